/* The part of CUDA's runtime that torch asks of a device, for a device that is not there; queues.cpp has its streams,
 * events and graphs.
 *
 * torch's own kernels cannot run: a launch is an error. What is not here is an error too (`write_rest` in build.py).
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "device.h"
#include "faults.h"
#include "memory.h"
#include "runtime.h"
#include "streams.h"

using fake::fail;
using fake::Kind;
using fake::stream_of;
using fake::use;

static cudaError_t &last_error() {
    static thread_local cudaError_t error = cudaSuccess;
    return error;
}

cudaError_t fake::fail(cudaError_t error) { return last_error() = error; }

cudaError_t fake::use() {
    has_context() = true;
    const auto error = static_cast<cudaError_t>(fault());
    return error ? fail(error) : cudaSuccess;
}

cudaError_t fake::waited() {
    const auto error = static_cast<cudaError_t>(broken());
    return error ? fail(error) : cudaSuccess;
}

cudaError_t fake::use(cudaStream_t stream) {
    const cudaError_t error = use();
    return error || stream_of(stream) ? error : fail(cudaErrorInvalidResourceHandle);
}

extern "C" {

cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error();
    last_error() = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() { return last_error(); }

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
    fake::has_context() = true;
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
    found->multiProcessorCount = fake::PROCESSORS;
    found->totalGlobalMem = fake::bytes_in_all();
    found->warpSize = fake::WARP;
    found->maxThreadsPerBlock = fake::THREADS_OF_BLOCK;
    found->maxThreadsPerMultiProcessor = fake::THREADS_OF_PROCESSOR;
    found->sharedMemPerBlock = fake::SHARED, found->sharedMemPerBlockOptin = fake::MOST_SHARED;
    found->sharedMemPerMultiprocessor = fake::SHARED_OF_PROCESSOR;
    found->regsPerBlock = found->regsPerMultiprocessor = fake::REGISTERS_OF_BLOCK;
    found->l2CacheSize = 62914560;
    found->maxGridSize[0] = fake::LONGEST_GRID, found->maxGridSize[1] = found->maxGridSize[2] = fake::WIDEST_GRID;
    found->maxThreadsDim[0] = found->maxThreadsDim[1] = fake::THREADS_OF_BLOCK;
    found->maxThreadsDim[2] = fake::DEEPEST_BLOCK;
    found->pciBusID = device + 1;
    found->uuid.bytes[0] = (char)(device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    fake::look_for_devices();
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = fake::capability() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = fake::capability() % 10; break;
    case cudaDevAttrMultiProcessorCount: *value = fake::PROCESSORS; break;
    case cudaDevAttrWarpSize: *value = fake::WARP; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = fake::THREADS_OF_BLOCK; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = fake::THREADS_OF_PROCESSOR; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = fake::MOST_SHARED; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = fake::SHARED; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = fake::SHARED_OF_PROCESSOR; break;
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
    return fake::wait_for_device() ? fake::waited() : fail(cudaErrorStreamCaptureUnsupported);
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
    if (const cudaError_t error = use(handle))
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
    if (!waits)
        return cudaSuccess;
    stream->wait();
    return fake::waited();
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind) {
    const cudaError_t error = cudaMemcpyAsync(to, from, size, kind, nullptr);
    if (error)
        return error;
    stream_of(nullptr)->wait();
    return fake::waited();
}

cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t size, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
    if (const cudaError_t error = use(stream))
        return error;
    stream_of(stream)->submit([=] { memset(to, value, size); });
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t size) { return cudaMemsetAsync(to, value, size, nullptr); }

/* Code. While torch's own function is rehearsed (ops.py), a launch of its kernels does nothing; else it is refused. */

static bool &is_rehearsed() {
    static thread_local bool is = false;
    return is;
}

/* Returns how it was before. */
int fake_gpu_rehearse(int on) {
    const bool before = is_rehearsed();
    is_rehearsed() = on != 0;
    return before;
}

static cudaError_t launch() { return is_rehearsed() ? cudaSuccess : fail(cudaErrorNotSupported); }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *found, const void *) {
    *found = {};
    found->maxThreadsPerBlock = 1024, found->numRegs = 32, found->binaryVersion = found->ptxVersion = 90;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t) { return launch(); }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **) { return launch(); }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int threads, size_t) {
    *blocks = (int)fake::THREADS_OF_PROCESSOR / threads;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel, int threads,
                                                                   size_t shared, unsigned) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared);
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return launch(); }

/* What `kernel<<<...>>>` calls (crt/device_functions.h of CUDA 13). */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *) {
    *kernel = nullptr;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t) { return launch(); }

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
