/* The part of CUDA's driver that torch and samebits ask for: contexts, and kernels that were built for the host.
 *
 * A kernel is `host_NAME` in the library that FAKE_GPU_KERNELS names. It runs on the thread of its stream.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "faults.h"
#include "kernels.h"
#include "memory.h"
#include "streams.h"

static std::string &last_refusal() {
    static thread_local std::string text;
    return text;
}

static CUresult refuse(CUresult error, const std::string &text) {
    last_refusal() = text;
    return error;
}

static fake::Kernel kernel_named(const char *name) {
    const char *const file = getenv("FAKE_GPU_KERNELS");
    void *const library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    return library ? reinterpret_cast<fake::Kernel>(dlsym(library, (std::string("host_") + name).c_str())) : nullptr;
}

extern "C" {

CUresult cuInit(unsigned) {
    fake::look_for_devices();
    return fake::device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
    *version = fake::driver_release(CUDA_VERSION);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    *count = fake::device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned *flags, int *active) {
    *flags = 0, *active = 1;
    return CUDA_SUCCESS;
}

/* The context of a device is its number, counted from one. */
static CUcontext context_of(int device) { return reinterpret_cast<CUcontext>((size_t)device + 1); }

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = context_of(device);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = context_of(fake::current_device());
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    if (context)
        fake::current_device() = (int)(reinterpret_cast<size_t>(context) - 1);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    *device = fake::current_device();
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_NOT_FOUND ? last_refusal().c_str() : cudaGetErrorString(static_cast<cudaError_t>(error));
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    const fake::Place place = fake::place_of(reinterpret_cast<void *>(address));
    if (place.kind == fake::Kind::pageable)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        *static_cast<int *>(value) = place.device;
    else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
        *static_cast<CUdeviceptr *>(value) = address;
    else
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *code) {
    if (const int error = fake::fault())
        return static_cast<CUresult>(error);
    *module = reinterpret_cast<CUmodule>(const_cast<void *>(code));
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
    *function = reinterpret_cast<CUfunction>(kernel_named(name));
    return *function ? CUDA_SUCCESS : refuse(CUDA_ERROR_NOT_FOUND, std::string("no host build of ") + name);
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }

/* NVIDIA's compiler asks the driver for tables of functions; a table begins with its size, and these hold nothing. */
CUresult cuGetExportTable(const void **table, const CUuuid *) {
    static const size_t empty[1] = {sizeof empty};
    *table = empty;
    return CUDA_SUCCESS;
}

/* The arguments are copied before the call returns, as the driver does: the caller may reuse their memory. */
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **arguments, void **) {
    const auto kernel = reinterpret_cast<fake::Kernel>(function);
    if (!gx || !gy || !gz || !bx || by != 1 || bz != 1 || bx > 1024 || gy > 65535 || gz > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (const int error = fake::fault())
        return static_cast<CUresult>(error);
    const fake::Launch launch = {{gx, gy, gz}, bx, shared, false};
    fake::stream_of(stream)->submit(kernel(launch, arguments));
    return CUDA_SUCCESS;
}

} /* extern "C" */
