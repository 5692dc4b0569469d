/* What the kernels of portable mode for a GPU have in common. Compile with -fmad=false, without fast-math options: each
 * value is one fixed sequence of IEEE operations, the one in docs/reference/portable-numerics.md.
 *
 * A kernel gets the struct of its parameters (parameters.h) by value. Kernels are templates of the number's type; the name
 * of each ends in f32 or f64.
 */
#ifndef SAMEBITS_CUDA_PORTABLE_BASE_H
#define SAMEBITS_CUDA_PORTABLE_BASE_H

#define SBP_FUNCTION static __device__ __forceinline__
#define SBP_ON_DEVICE 16 /* axes of a reduction, and tensors of a step of an optimizer, that one launch takes */
#define restrict __restrict__

#include <stdint.h>

#include "math_functions.h"
#include "parameters.h"

/* A build for the host says here how a kernel is launched: one whose threads wait for each other, and one whose threads
 * do not know of each other. */
#ifndef HOST_KERNEL
#define HOST_KERNEL(name)
#define HOST_KERNEL_APART(name)
#endif

#define SBP_EACH_INDEX(i, n)                                                                                          \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

/* NAME_f32 and NAME_f64, of a template NAME_of whose threads do not know of each other. */
#define SBP_KERNEL_APART(name, parameters)                                                                            \
    extern "C" __global__ void name##_f32(const parameters p) { name##_of<float>(p); }                                \
    HOST_KERNEL_APART(name##_f32)                                                                                     \
    extern "C" __global__ void name##_f64(const parameters p) { name##_of<double>(p); }                               \
    HOST_KERNEL_APART(name##_f64)

/* The same, of a template whose threads exchange values. */
#define SBP_KERNEL_TOGETHER(name, parameters)                                                                         \
    extern "C" __global__ void name##_f32(const parameters p) { name##_of<float>(p); }                                \
    HOST_KERNEL(name##_f32)                                                                                           \
    extern "C" __global__ void name##_f64(const parameters p) { name##_of<double>(p); }                               \
    HOST_KERNEL(name##_f64)

SBP_FUNCTION float sbd_fma(float a, float b, float c) { return fmaf(a, b, c); }
SBP_FUNCTION double sbd_fma(double a, double b, double c) { return fma(a, b, c); }
SBP_FUNCTION float sbd_sqrt(float x) { return sbm_sqrt_f32(x); }
SBP_FUNCTION double sbd_sqrt(double x) { return sbm_sqrt_f64(x); }
SBP_FUNCTION float sbd_exp(float x) { return sbm_exp_f32(x); }
SBP_FUNCTION double sbd_exp(double x) { return sbm_exp_f64(x); }
SBP_FUNCTION float sbd_log(float x) { return sbm_log_f32(x); }
SBP_FUNCTION double sbd_log(double x) { return sbm_log_f64(x); }
SBP_FUNCTION float sbd_abs(float x) { return sbm_abs_f32(x); }
SBP_FUNCTION double sbd_abs(double x) { return sbm_abs_f64(x); }

template <class T> SBP_FUNCTION T sbd_infinity() { return (T)INFINITY; }

#endif
