/* Modules, their functions, and launches: refused as a driver refuses them, else queued on their stream.
 *
 * A kernel is `host_NAME` in the library that FAKE_GPU_KERNELS names, or in one that was built with the machine code. It
 * runs on the thread of its stream. Its limits are those of the machine code that was loaded.
 */
#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "device.h"
#include "faults.h"
#include "kernels.h"
#include "machine_code.h"
#include "streams.h"

namespace {

struct Module {
    void *library;
    int device;
    std::map<std::string, fake::Limits> limits;
};

struct Function {
    std::string name;
    fake::Kernel kernel;
    int device;
    fake::Limits limits;
    size_t dynamic; /* bytes of shared memory that a launch may ask for */
};

/* All that was loaded, for good: a launch may run when its module is gone. */
struct Loaded {
    std::mutex mutex;
    std::set<const void *> modules;
    std::map<const void *, Function *> functions;
};

Loaded &loaded() {
    static Loaded *const found = new Loaded;
    return *found;
}

Function *function_of(CUfunction handle) {
    std::lock_guard<std::mutex> lock(loaded().mutex);
    const auto found = loaded().functions.find(handle);
    return found == loaded().functions.end() ? nullptr : found->second;
}

Module *module_of(CUmodule handle) {
    std::lock_guard<std::mutex> lock(loaded().mutex);
    return loaded().modules.count(handle) ? reinterpret_cast<Module *>(handle) : nullptr;
}

std::string &missing_kernel() {
    static thread_local std::string text;
    return text;
}

unsigned up_to(unsigned value, unsigned unit) { return (value + unit - 1) / unit * unit; }

/* Registers are given to warps, 256 at a time, and to threads in eights. */
bool has_registers(const Function &function, unsigned threads) {
    const unsigned of_warp = up_to(up_to(function.limits.registers, 8) * fake::WARP, 256);
    return of_warp * (up_to(threads, fake::WARP) / fake::WARP) <= fake::REGISTERS_OF_BLOCK;
}

struct Shape {
    unsigned grid[3], block[3];
    size_t shared;
};

CUresult check_shape(const Function &function, const Shape &shape) {
    const auto &[grid, block, shared] = shape;
    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2])
        return CUDA_ERROR_INVALID_VALUE;
    if (grid[0] > fake::LONGEST_GRID || grid[1] > fake::WIDEST_GRID || grid[2] > fake::WIDEST_GRID)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t threads = (size_t)block[0] * block[1] * block[2];
    if (threads > function.limits.most_threads || block[2] > fake::DEEPEST_BLOCK || shared > function.dynamic)
        return CUDA_ERROR_INVALID_VALUE;
    if (!has_registers(function, (unsigned)threads))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return threads == block[0] ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED; /* host builds have one row of threads */
}

} // namespace

extern "C" {

CUresult cuGetErrorString(CUresult error, const char **text) {
    const char *cudaGetErrorString(int);
    *text = error == CUDA_ERROR_NOT_FOUND ? missing_kernel().c_str() : cudaGetErrorString(error);
    return CUDA_SUCCESS;
}

/* Code that a program compiled while it runs begins so; the path of its host build follows, and the machine code. */
static const std::string HEAD = "host build: ";

CUresult cuModuleLoadData(CUmodule *handle, const void *code) {
    if (!fake::has_context())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (const int error = fake::fault())
        return static_cast<CUresult>(error);
    const char *file = getenv("FAKE_GPU_KERNELS");
    if (!strncmp(static_cast<const char *>(code), HEAD.c_str(), HEAD.size())) {
        file = static_cast<const char *>(code) + HEAD.size();
        code = file + strlen(file) + 1;
    }
    void *const library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    auto *const module = new Module{library, fake::current_device(), fake::limits_of(code)};
    std::lock_guard<std::mutex> lock(loaded().mutex);
    loaded().modules.insert(module);
    *handle = reinterpret_cast<CUmodule>(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
    std::lock_guard<std::mutex> lock(loaded().mutex);
    return loaded().modules.erase(module) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetFunction(CUfunction *handle, CUmodule of, const char *name) {
    const Module *const module = module_of(of);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    void *const host = module->library ? dlsym(module->library, (std::string("host_") + name).c_str()) : nullptr;
    const auto known = module->limits.find(name);
    if (!host || (known == module->limits.end() && !module->limits.empty())) {
        missing_kernel() = std::string(host ? "no kernel " : "no host build of ") + name;
        return CUDA_ERROR_NOT_FOUND;
    }
    const fake::Limits limits = known == module->limits.end() ? fake::Limits{} : known->second;
    auto *const function = new Function{name, reinterpret_cast<fake::Kernel>(host), module->device, limits,
                                        fake::SHARED - limits.shared};
    std::lock_guard<std::mutex> lock(loaded().mutex);
    loaded().functions[function] = function;
    *handle = reinterpret_cast<CUfunction>(function);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
    const Function *const function = function_of(handle);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)function->limits.most_threads; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)function->limits.shared; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)function->limits.registers; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = (int)function->dynamic; break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    Function *const function = function_of(handle);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_ERROR_INVALID_VALUE; /* those before it are only read */
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (value < 0 || (size_t)value + function->limits.shared > fake::MOST_SHARED)
        return CUDA_ERROR_INVALID_VALUE;
    function->dynamic = (size_t)value;
    return CUDA_SUCCESS;
}

/* The arguments are copied before the call returns, as the driver does: the caller may reuse their memory. */
CUresult cuLaunchKernel(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream queue, void **arguments, void **extra) {
    if (!fake::has_context())
        return CUDA_ERROR_INVALID_CONTEXT;
    const Function *const function = function_of(handle);
    fake::Stream *const stream = fake::stream_of(queue);
    if (!function || !stream || function->device != fake::current_device() || stream->device() != function->device)
        return CUDA_ERROR_INVALID_HANDLE;
    if (extra)
        return arguments ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    if (const CUresult refused = check_shape(*function, {{gx, gy, gz}, {bx, by, bz}, shared}))
        return refused;
    if (const int error = fake::fault())
        return static_cast<CUresult>(error);
    fake::Task task = function->kernel(
        {{gx, gy, gz}, bx, shared, false, function->name.c_str(), function->device}, arguments);
    if (!task)
        return CUDA_ERROR_INVALID_VALUE;
    stream->submit(std::move(task));
    return CUDA_SUCCESS;
}

} /* extern "C" */
