/* The part of CUDA's runtime that torch asks of a device, for a device that is not there.
 *
 * torch's own kernels cannot run: a launch is an error. What is not here is an error too (`write_rest` in build.py).
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "faults.h"
#include "memory.h"
#include "streams.h"

using fake::Kind;
using fake::stream_of;

static thread_local cudaError_t last_error = cudaSuccess;

static cudaError_t fail(cudaError_t error) { return last_error = error; }

/* Of a call that uses the device. */
static cudaError_t use() {
    const auto error = static_cast<cudaError_t>(fake::fault());
    return error ? fail(error) : cudaSuccess;
}

extern "C" {

cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* Devices */

static int driver_release() { return fake::driver_release(CUDART_VERSION); }

cudaError_t cudaGetDeviceCount(int *count) {
    fake::look_for_devices();
    const bool too_old = driver_release() / 1000 < CUDART_VERSION / 1000;
    *count = too_old ? 0 : fake::device_count();
    return *count ? cudaSuccess : fail(too_old ? cudaErrorInsufficientDriver : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device) {
    fake::look_for_devices();
    *device = fake::current_device();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    fake::look_for_devices();
    if (device < 0 || device >= fake::device_count())
        return fail(cudaErrorInvalidDevice);
    fake::current_device() = device;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    fake::look_for_devices();
    *version = driver_release();
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *found, int device) {
    if (device < 0 || device >= fake::device_count())
        return fail(cudaErrorInvalidDevice);
    *found = cudaDeviceProp{};
    strcpy(found->name, "FAKE H200");
    found->major = fake::capability() / 10, found->minor = fake::capability() % 10;
    found->multiProcessorCount = 132;
    found->totalGlobalMem = fake::bytes_in_all();
    found->warpSize = 32;
    found->maxThreadsPerBlock = 1024, found->maxThreadsPerMultiProcessor = 2048;
    found->sharedMemPerBlock = 49152, found->sharedMemPerBlockOptin = 232448;
    found->sharedMemPerMultiprocessor = 233472;
    found->regsPerBlock = found->regsPerMultiprocessor = 65536;
    found->l2CacheSize = 62914560;
    found->maxGridSize[0] = 2147483647, found->maxGridSize[1] = found->maxGridSize[2] = 65535;
    found->maxThreadsDim[0] = found->maxThreadsDim[1] = 1024, found->maxThreadsDim[2] = 64;
    found->pciBusID = device + 1;
    found->uuid.bytes[0] = (char)(device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    fake::look_for_devices();
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = fake::capability() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = fake::capability() % 10; break;
    case cudaDevAttrMultiProcessorCount: *value = 132; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 232448; break;
    default: *value = 1;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
    snprintf(text, (size_t)length, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) {
    *can = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
    if (const cudaError_t error = use())
        return error;
    return fake::wait_for_device() ? cudaSuccess : fail(cudaErrorStreamCaptureUnsupported);
}

/* Memory */

static cudaError_t allocate(void **found, size_t size, Kind kind) {
    if (const cudaError_t error = use())
        return error;
    *found = fake::allocate(size, kind);
    return *found ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaMalloc(void **found, size_t size) { return allocate(found, size, Kind::device); }
cudaError_t cudaMallocHost(void **found, size_t size) { return allocate(found, size, Kind::pinned); }
cudaError_t cudaHostAlloc(void **found, size_t size, unsigned) { return allocate(found, size, Kind::pinned); }

static cudaError_t release(void *base) {
    if (!base)
        return cudaSuccess;
    fake::wait_for_device(); /* as on a device, which frees nothing that is in use */
    return fake::release(base) ? cudaSuccess : fail(cudaErrorInvalidValue);
}

cudaError_t cudaFree(void *base) { return release(base); }
cudaError_t cudaFreeHost(void *base) { return release(base); }

cudaError_t cudaHostRegister(void *base, size_t size, unsigned) {
    fake::pin(base, size);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *base) { return release(base); }

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    if (const cudaError_t error = use())
        return error;
    *total = fake::bytes_in_all();
    *free = *total - fake::bytes_in_use();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found, const void *address) {
    const fake::Place place = fake::place_of(address);
    void *const shown = const_cast<void *>(address);
    *found = {};
    found->type = place.kind == Kind::device   ? cudaMemoryTypeDevice
                  : place.kind == Kind::pinned ? cudaMemoryTypeHost
                                               : cudaMemoryTypeUnregistered;
    found->device = place.device;
    found->devicePointer = place.kind == Kind::pageable ? nullptr : shown;
    found->hostPointer = place.kind == Kind::device ? nullptr : shown;
    return cudaSuccess;
}

/* Pageable memory is read before the call returns, and written before it returns; all other copies are later. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t handle) {
    if (const cudaError_t error = use())
        return error;
    fake::Stream *const stream = stream_of(handle);
    if (fake::place_of(from).kind == Kind::pageable) {
        const auto *const bytes = static_cast<const char *>(from);
        auto kept = std::make_shared<std::vector<char>>(bytes, bytes + size);
        stream->submit([=] { memcpy(to, kept->data(), size); });
        return cudaSuccess;
    }
    const bool waits = fake::place_of(to).kind == Kind::pageable;
    if (waits && stream->captured())
        return fail(cudaErrorStreamCaptureUnsupported);
    stream->submit([=] { memcpy(to, from, size); });
    if (waits)
        stream->wait();
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
    const cudaError_t error = cudaMemcpyAsync(to, from, size, kind, nullptr);
    if (!error)
        stream_of(nullptr)->wait();
    return error;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t size, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
    if (const cudaError_t error = use())
        return error;
    stream_of(stream)->submit([=] { memset(to, value, size); });
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t size) { return cudaMemsetAsync(to, value, size, nullptr); }

/* Streams */

static cudaError_t make_stream(cudaStream_t *found, int priority) {
    *found = reinterpret_cast<cudaStream_t>(fake::make_stream(priority));
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *found) { return make_stream(found, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *found, unsigned) { return make_stream(found, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *found, unsigned, int priority) {
    return make_stream(found, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0, *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    *priority = stream_of(stream)->priority();
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (const cudaError_t error = use())
        return error;
    if (stream_of(stream)->captured())
        return fail(cudaErrorStreamCaptureUnsupported);
    return stream_of(stream)->is_idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (const cudaError_t error = use())
        return error;
    if (stream_of(stream)->captured())
        return fail(cudaErrorStreamCaptureUnsupported);
    stream_of(stream)->wait();
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    stream_of(stream)->submit([=] { function(data); });
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned) {
    stream_of(stream)->submit([=] { function(stream, cudaSuccess, data); });
    return cudaSuccess;
}

/* Graphs */

static cudaGraph_t handle_of(const fake::GraphPointer &graph) {
    return reinterpret_cast<cudaGraph_t>(new fake::GraphPointer(graph));
}

static fake::GraphPointer *graph_of(void *handle) { return static_cast<fake::GraphPointer *>(handle); }

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    const bool is_captured = stream_of(stream)->captured() != nullptr;
    *status = is_captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **, const cudaGraphEdgeData **,
                                     size_t *dependencies) {
    const fake::GraphPointer captured = stream_of(stream)->captured();
    *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id)
        *id = reinterpret_cast<size_t>(captured.get());
    if (graph)
        *graph = nullptr;
    if (dependencies)
        *dependencies = 0;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    stream_of(stream)->capture(std::make_shared<fake::Graph>());
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *found) {
    const fake::GraphPointer graph = stream_of(stream)->captured();
    if (!graph)
        return fail(cudaErrorIllegalState);
    fake::end_capture(graph);
    *found = handle_of(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *, size_t *count) {
    *count = (*graph_of(graph))->tasks.size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *found, cudaGraph_t graph, unsigned long long) {
    *found = reinterpret_cast<cudaGraphExec_t>(handle_of(*graph_of(graph)));
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *found, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiate(found, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    for (const fake::Task &task : (*graph_of(graph))->tasks)
        stream_of(stream)->submit(task);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph_of(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    delete graph_of(graph);
    return cudaSuccess;
}

/* Events */

static fake::Event *event_of(cudaEvent_t handle) { return reinterpret_cast<fake::Event *>(handle); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *found, unsigned) {
    *found = reinterpret_cast<cudaEvent_t>(new fake::Event);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *found) { return cudaEventCreateWithFlags(found, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event_of(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    event_of(event)->mark = stream_of(stream)->mark();
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (const cudaError_t error = use())
        return error;
    const fake::MarkPointer mark = event_of(event)->mark;
    if (mark && mark->graph)
        return fail(cudaErrorStreamCaptureUnsupported);
    return !mark || mark->is_reached() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (const cudaError_t error = use())
        return error;
    if (const fake::MarkPointer mark = event_of(event)->mark)
        mark->wait();
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    const auto a = event_of(from)->mark, b = event_of(to)->mark;
    if (!a || !b)
        return fail(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(b->at() - a->at()).count();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    const fake::MarkPointer mark = event_of(event)->mark;
    if (mark && mark->graph)
        stream_of(stream)->capture(mark->graph);
    else if (mark)
        stream_of(stream)->submit([mark] { mark->wait(); });
    return cudaSuccess;
}

/* Code */

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *found, const void *) {
    *found = {};
    found->maxThreadsPerBlock = 1024, found->numRegs = 32, found->binaryVersion = found->ptxVersion = 90;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) {
    return fail(cudaErrorNotSupported);
}

/* What `kernel<<<...>>>` calls (crt/device_functions.h of CUDA 13). */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *) {
    *kernel = nullptr;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t) {
    return fail(cudaErrorNotSupported);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *result) {
    *found = dlsym(RTLD_DEFAULT, name);
    if (result)
        *result = *found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

} /* extern "C" */
