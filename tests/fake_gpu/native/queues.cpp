/* Streams, events and graphs of CUDA's runtime, for a device that is not there. */
#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>

#include "runtime.h"
#include "streams.h"

using fake::fail;
using fake::stream_of;
using fake::use;

extern "C" {

/* Streams */

static cudaError_t make_stream(cudaStream_t *found, int priority) {
    if (const cudaError_t error = use())
        return error;
    *found = reinterpret_cast<cudaStream_t>(fake::make_stream(priority));
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *found) { return make_stream(found, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *found, unsigned) { return make_stream(found, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *found, unsigned, int priority) {
    return make_stream(found, priority);
}

/* What it was given before is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return fake::end_stream(stream) ? cudaSuccess : fail(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0, *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
    *priority = stream_of(stream)->priority();
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (const cudaError_t error = use(stream))
        return error;
    if (stream_of(stream)->captured())
        return fail(cudaErrorStreamCaptureUnsupported);
    return stream_of(stream)->is_idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    if (const cudaError_t error = use(stream))
        return error;
    if (stream_of(stream)->captured())
        return fail(cudaErrorStreamCaptureUnsupported);
    stream_of(stream)->wait();
    return fake::waited();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
    stream_of(stream)->submit([=] { function(data); });
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned) {
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
    stream_of(stream)->submit([=] { function(stream, cudaSuccess, data); });
    return cudaSuccess;
}

/* Graphs */

static cudaGraph_t handle_of(const fake::GraphPointer &graph) {
    return reinterpret_cast<cudaGraph_t>(new fake::GraphPointer(graph));
}

static fake::GraphPointer *graph_of(void *handle) { return static_cast<fake::GraphPointer *>(handle); }

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
    const bool is_captured = stream_of(stream)->captured() != nullptr;
    *status = is_captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **, const cudaGraphEdgeData **,
                                     size_t *dependencies) {
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
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
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
    stream_of(stream)->capture(std::make_shared<fake::Graph>());
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *found) {
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
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
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
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
    if (const cudaError_t error = use())
        return error;
    *found = reinterpret_cast<cudaEvent_t>(new fake::Event{fake::current_device(), nullptr});
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *found) { return cudaEventCreateWithFlags(found, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event_of(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    if (!stream_of(stream) || stream_of(stream)->device() != event_of(event)->device)
        return fail(cudaErrorInvalidResourceHandle);
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
    return fake::waited();
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    const auto a = event_of(from)->mark, b = event_of(to)->mark;
    if (!a || !b)
        return fail(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(b->at() - a->at()).count();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (!stream_of(stream))
        return fail(cudaErrorInvalidResourceHandle);
    const fake::MarkPointer mark = event_of(event)->mark;
    if (mark && mark->graph)
        stream_of(stream)->capture(mark->graph);
    else if (mark)
        stream_of(stream)->submit([mark] { mark->wait(); });
    return cudaSuccess;
}

} /* extern "C" */
