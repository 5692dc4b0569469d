/* What is computed of each channel: batch norms with the statistics that they keep. */
#include "ops.h"

#include <math.h>

typedef struct {
    sb_view x;
    const void *weight, *bias, *mean, *variance;
} batch;

/* A value for each channel; none is allowed for a weight or bias. */
static int read_channels(PyObject *object, const sb_view *x, int is_optional, const void **data) {
    return sb_read_weight(object, x, x->sizes[1], data) && (*data || is_optional);
}

static double value_at(const void *values, int is_f64, int64_t i) {
    return is_f64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* The factors of the channels, and what is added where there is no bias: zeros, after them. Variances that have no
 * root are left to the handler. */
static int set_factors(const batch *b, double eps, void *factors) {
    const int64_t channels = b->x.sizes[1];
    for (int64_t i = 0; i < channels; i++) {
        const double shifted = value_at(b->variance, b->x.is_f64, i) + eps;
        if (!(shifted >= 0))
            return 0;
        const double rstd = 1 / sqrt(shifted);
        if (b->x.is_f64)
            ((double *)factors)[i] = b->weight ? rstd * ((const double *)b->weight)[i] : rstd;
        else
            ((float *)factors)[i] = b->weight ? (float)rstd * ((const float *)b->weight)[i] : (float)rstd;
    }
    return 1;
}

static PyObject *write_batch(const batch *b, double eps) {
    const int64_t channels = b->x.sizes[1], size = b->x.is_f64 ? 8 : 4;
    char *factors = PyMem_Calloc(2, (size_t)(channels * size));
    void *out;
    PyObject *result = factors && set_factors(b, eps, factors) ? sb_new_like(&b->x, &out) : NULL;
    if (result) {
        const sbp_channel_norm_parameters p = {.is_f64 = b->x.is_f64, .x = b->x.data, .mean = b->mean, .scale = factors,
                                               .shift = b->bias ? b->bias : factors + channels * size, .out = out,
                                               .outer = b->x.sizes[0], .channels = channels,
                                               .inner = b->x.numel / (b->x.sizes[0] * channels)};
        result = sb_result(result, SB_CALL(channel_norm, &p, b->x.numel));
    }
    PyMem_Free(factors);
    return result;
}

/* The result, and two tensors without values: statistics that are not computed. */
static PyObject *with_nothing(PyObject *first, int is_f64) {
    const int64_t none = 0;
    void *data;
    if (!first)
        return NULL;
    PyObject *second = sb_new(1, &none, is_f64, &data), *third = sb_new(1, &none, is_f64, &data);
    return sb_three(first, second, third);
}

/* Of the input, the weight, the bias, the mean and the variance, then whether these are to be updated unless the op
 * never does (`code` 1), the momentum and eps. */
static PyObject *batch_norm(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    batch b;
    if (count != 8 - self->code || names || (!self->code && args[5] != Py_False) || !PyFloat_CheckExact(args[count - 1]) ||
        !sb_read_contiguous(args[0], &b.x) || b.x.dims < 2 || !read_channels(args[1], &b.x, 1, &b.weight) ||
        !read_channels(args[2], &b.x, 1, &b.bias) || !read_channels(args[3], &b.x, 0, &b.mean) ||
        !read_channels(args[4], &b.x, 0, &b.variance))
        return NULL;
    return with_nothing(write_batch(&b, PyFloat_AsDouble(args[count - 1])), b.x.is_f64);
}

const sb_named sb_channels[] = {{"batch_norm", batch_norm}, {NULL, NULL}};
