/* The part of CUDA's driver that torch and samebits ask for, but for kernels (launches.cpp): devices, contexts, memory. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "faults.h"
#include "memory.h"
#include "streams.h"

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
    *context = fake::has_context() ? context_of(fake::current_device()) : nullptr;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    fake::has_context() = context != nullptr;
    if (context)
        fake::current_device() = (int)(reinterpret_cast<size_t>(context) - 1);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    if (!fake::has_context())
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = fake::current_device();
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

/* NVIDIA's compiler asks the driver for tables of functions; a table begins with its size, and these hold nothing. */
CUresult cuGetExportTable(const void **table, const CUuuid *) {
    static const size_t empty[1] = {sizeof empty};
    *table = empty;
    return CUDA_SUCCESS;
}

} /* extern "C" */
