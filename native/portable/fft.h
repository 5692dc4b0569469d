/* Fourier transforms. See "Fourier transforms" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_FFT_H
#define SAMEBITS_PORTABLE_FFT_H

#include <stdint.h>

#include "parameters.h"

/* How many transforms go side by side, where there are enough of them. */
enum { SBP_FFT_LANES_F32 = 16, SBP_FFT_LANES_F64 = 8 };

#define SBP_FFT_MOST_RADIX 31

enum { SBP_FFT_COMPLEX, SBP_FFT_FROM_REAL, SBP_FFT_TO_REAL };

/* Where the numbers of one transform are: element e has its real part at e * step, and its imaginary part `imaginary`
 * further on; that one is +0, or is dropped, if `imaginary` is 0. */
typedef struct {
    int64_t step, imaginary;
} sbp_fft_place;

/* `half`: a transform of real numbers is one of n / 2 complex ones. `length`: of the complex transform. */
typedef struct {
    const sbp_fft_parameters *parameters;
    int64_t half, length, failed;
    sbp_fft_place in, out;
} sbp_fft;

/* `lanes`: so many transforms or fewer, from address from[i] to address to[i]; `one`: one of them. `a` and `b` have
 * room for length + 1 elements of that many lanes. */
typedef struct {
    void (*lanes)(const sbp_fft *f, int count, const void *const *from, void *const *to, void *a, void *b);
    void (*one)(const sbp_fft *f, const void *from, void *to, void *a, void *b);
} sbp_fft_of;

typedef struct {
    sbp_fft_of f32, f64;
} sbp_fft_table;

#endif
