/* Square roots, rounded once as IEEE 754 says; the C library of a platform or of torch need not. */
#ifndef SAMEBITS_PORTABLE_ROOT_H
#define SAMEBITS_PORTABLE_ROOT_H

#include <stdint.h>

typedef struct {
    void (*f32)(const float *in, float *out, int64_t n);
    void (*f64)(const double *in, double *out, int64_t n);
} sbp_root_table;

#endif
