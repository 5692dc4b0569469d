/* Steps of optimizers over lists of tensors. See "Optimizers" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_OPTIMIZER_H
#define SAMEBITS_PORTABLE_OPTIMIZER_H

#include <stdint.h>

#include "parameters.h"

#define SBP_STEP_CHUNK 4096 /* elements in a part of the work */

enum { SBP_MAXIMIZE = 1, SBP_DECAY_GRADIENT = 2, SBP_AMSGRAD = 4, SBP_MOMENTUM = 8, SBP_FIRST_STEP = 16, SBP_NESTEROV = 32 };

typedef struct {
    int64_t flags, tensors;
    double shrink;                     /* factor of the parameter before all else, 1 for none */
    double decay;                      /* factor of the parameter that is added to the gradient */
    double weight, keep, gain; /* of the new gradient in the mean; of the old square; of the new one */
    double eps;
    const sbp_step_tensor *each;
} sbp_step;

typedef struct {
    void (*adam_f32)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to);
    void (*adam_f64)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to);
    void (*sgd_f32)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to);
    void (*sgd_f64)(const sbp_step *s, const sbp_step_tensor *t, int64_t from, int64_t to);
} sbp_optimizer_table;

#endif
