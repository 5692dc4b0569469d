/* Group norm: what is computed of each group of channels of each sample. */
#include "ops.h"

/* (samples, groups, each, inner) values next to each other; pointers to weight and bias may be NULL. */
typedef struct {
    sb_view x;
    int64_t samples, groups, each, inner;
    const void *weight, *bias;
} grouped;

/* Of numbers of samples, channels, positions of a channel, and groups. */
static int read_groups(PyObject *const *args, grouped *g) {
    int64_t numbers[4];
    for (int i = 0; i < 4; i++)
        if (!sb_read_count(args[i], numbers + i))
            return 0;
    *g = (grouped){g->x, numbers[0], numbers[3], numbers[1] / numbers[3], numbers[2], NULL, NULL};
    return numbers[1] % numbers[3] == 0 && g->x.numel % numbers[1] == 0 &&
           g->x.numel / numbers[1] % numbers[2] == 0 && g->x.numel / numbers[1] / numbers[2] == numbers[0];
}

static int64_t channels_of(const grouped *g) { return g->groups * g->each; }

/* The result, and the mean and the reciprocal deviation of each group. */
static PyObject *write_groups(const grouped *g, double eps) {
    const int64_t sizes[] = {g->samples, g->groups};
    void *out, *mean, *rstd;
    PyObject *first = sb_new_like(&g->x, &out), *second = sb_new(2, sizes, g->x.is_f64, &mean);
    PyObject *third = sb_new(2, sizes, g->x.is_f64, &rstd);
    if (first && second && third) {
        const sbp_group_norm_parameters p = {.is_f64 = g->x.is_f64, .x = g->x.data, .weight = g->weight, .bias = g->bias,
                                             .out = out, .mean = mean, .rstd = rstd, .samples = g->samples,
                                             .groups = g->groups, .each = g->each, .inner = g->inner, .eps = eps};
        first = sb_result(first, SB_CALL(group_norm, &p, g->x.numel));
    }
    return sb_three(first, second, third);
}

/* Of the input, the weight, the bias, what `read_groups` takes, and eps. */
static PyObject *group_norm(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    grouped g;
    (void)self;
    if (count != 8 || names || !PyFloat_CheckExact(args[7]) || !sb_read_contiguous(args[0], &g.x) ||
        !read_groups(args + 3, &g) || !sb_read_weight(args[1], &g.x, channels_of(&g), &g.weight) ||
        !sb_read_weight(args[2], &g.x, channels_of(&g), &g.bias))
        return NULL;
    return write_groups(&g, PyFloat_AsDouble(args[7]));
}

/* Where there is no weight, torch gives no gradients of weight and bias. */
static int read_mask(PyObject *mask, PyObject *weight) {
    return PyList_CheckExact(mask) && PyList_Size(mask) == 3 &&
           (weight != Py_None || (PyList_GetItem(mask, 1) == Py_False && PyList_GetItem(mask, 2) == Py_False));
}

/* A gradient that was not asked for is None. */
static PyObject *asked(PyObject *gradient, PyObject *mask, Py_ssize_t i) {
    if (!gradient || PyList_GetItem(mask, i) == Py_True)
        return gradient;
    Py_DECREF(gradient);
    return Py_NewRef(Py_None);
}

/* The gradients of the input, the weight and the bias, as far as `mask` asks for them. */
static PyObject *write_gradients(const grouped *g, const void *gradient, const void *const *statistics, PyObject *mask) {
    const int64_t channels = channels_of(g);
    void *out, *of_weight, *of_bias;
    PyObject *first = sb_new_like(&g->x, &out), *second = sb_new(1, &channels, g->x.is_f64, &of_weight);
    PyObject *third = sb_new(1, &channels, g->x.is_f64, &of_bias);
    if (first && second && third) {
        const sbp_group_norm_gradient_parameters p = {
            .is_f64 = g->x.is_f64, .x = g->x.data, .gradient = gradient, .weight = g->weight, .mean = statistics[0],
            .rstd = statistics[1], .out = out, .of_weight = of_weight, .of_bias = of_bias, .samples = g->samples,
            .groups = g->groups, .each = g->each, .inner = g->inner};
        first = sb_result(first, SB_CALL(group_norm_gradient, &p, g->x.numel));
    }
    return sb_three(asked(first, mask, 0), asked(second, mask, 1), asked(third, mask, 2));
}

/* Of the gradient of the result, the input, the mean, the reciprocal deviation, the weight, what `read_groups` takes,
 * and which gradients are wanted. */
static PyObject *group_norm_gradient(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    grouped g;
    sb_view gradient;
    const void *statistics[2];
    (void)self;
    if (count != 10 || names || !read_mask(args[9], args[4]) || !sb_read_contiguous(args[1], &g.x) ||
        !sb_read_contiguous(args[0], &gradient) || gradient.is_f64 != g.x.is_f64 ||
        !sb_same_shape(&g.x, &gradient) || !read_groups(args + 5, &g) ||
        !sb_read_weight(args[4], &g.x, channels_of(&g), &g.weight))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (!sb_read_weight(args[2 + i], &g.x, g.samples * g.groups, statistics + i) || !statistics[i])
            return NULL;
    return write_gradients(&g, gradient.data, statistics, args[9]);
}

const sb_named sb_groups[] = {{"group_norm", group_norm}, {"group_norm_gradient", group_norm_gradient}, {NULL, NULL}};
