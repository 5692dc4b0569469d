/* What the parts of CUDA's runtime have in common. */
#ifndef FAKE_GPU_RUNTIME_H
#define FAKE_GPU_RUNTIME_H

#include <cuda_runtime_api.h>

namespace fake {

/* The error of a call, which cudaGetLastError tells again. */
cudaError_t fail(cudaError_t error);
/* Of a call that uses the device, whose context is then current in this thread; the error if it is broken. */
cudaError_t use();
/* Of one that uses a stream, which may be none. */
cudaError_t use(cudaStream_t stream);

/* Of one that has waited: the error of what it waited for. */
cudaError_t waited();

} // namespace fake

#endif
