/* What is computed of each row: softmax, layer norm. */
#include "ops.h"

static int is_last(PyObject *object, int64_t dims) {
    if (!PyLong_CheckExact(object))
        return 0;
    const long dim = PyLong_AsLong(object);
    return dims && (dim == -1 || dim == dims - 1);
}

static PyObject *write_softmax(int64_t kind, const sb_view *x, const void *gradient) {
    void *out;
    PyObject *result = sb_new_like(x, &out);
    if (!result)
        return NULL;
    const int64_t n = x->sizes[x->dims - 1];
    const sbp_softmax_parameters p = {
        .kind = kind, .is_f64 = x->is_f64, .x = x->data, .gradient = gradient, .out = out, .rows = x->numel / n, .n = n};
    return sb_result(result, SB_CALL(softmax, &p, x->numel));
}

/* Of a tensor, a dimension, and whether float16 becomes float32. */
static PyObject *softmax(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    if (count != 3 || names || args[2] != Py_False || !sb_read_contiguous(args[0], &x) || !is_last(args[1], x.dims))
        return NULL;
    return write_softmax(self->code, &x, NULL);
}

/* Of the gradient, the result, the dimension and the dtype of the input, which is theirs. */
static PyObject *softmax_gradient(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view gradient, x;
    if (count != 4 || names || !sb_read_contiguous(args[0], &gradient) || !sb_read_contiguous(args[1], &x) ||
        x.is_f64 != gradient.is_f64 || !sb_same_shape(&x, &gradient) || !is_last(args[2], x.dims) ||
        args[3] != (x.is_f64 ? sb.dtype64 : sb.dtype32))
        return NULL;
    return write_softmax(self->code, &x, gradient.data);
}

/* How many of the last dimensions a row has: as many as there are in the list, whose sizes they must be. */
static int64_t dims_of_row(PyObject *shape, const sb_view *x) {
    const Py_ssize_t count = PyList_CheckExact(shape) ? PyList_Size(shape) : 0;
    if (!count || count > x->dims)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *size = PyList_GetItem(shape, i);
        if (!PyLong_CheckExact(size) || PyLong_AsLongLong(size) != x->sizes[x->dims - count + i])
            return 0;
    }
    return count;
}

static PyObject *layer_norm(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    int64_t sizes[SB_MOST_DIMS], row, n = 1;
    const void *weight, *bias;
    void *out, *mean, *rstd;
    (void)self;
    if (count != 5 || names || !PyFloat_CheckExact(args[4]) || !sb_read_contiguous(args[0], &x) ||
        !(row = dims_of_row(args[1], &x)))
        return NULL;
    for (int64_t i = 0; i < x.dims; i++) {
        sizes[i] = i < x.dims - row ? x.sizes[i] : 1;
        n *= i < x.dims - row ? 1 : x.sizes[i];
    }
    if (!sb_read_weight(args[2], &x, n, &weight) || !sb_read_weight(args[3], &x, n, &bias))
        return NULL;
    PyObject *first = sb_new_like(&x, &out), *second = sb_new(x.dims, sizes, x.is_f64, &mean);
    PyObject *third = sb_new(x.dims, sizes, x.is_f64, &rstd);
    if (first && second && third) {
        const sbp_layer_norm_parameters p = {.is_f64 = x.is_f64, .x = x.data, .weight = weight, .bias = bias, .out = out,
                                             .mean = mean, .rstd = rstd, .rows = x.numel / n, .n = n,
                                             .eps = PyFloat_AsDouble(args[4])};
        first = sb_result(first, SB_CALL(layer_norm, &p, x.numel));
    }
    return sb_three(first, second, third);
}

const sb_named sb_rows[] = {
    {"softmax", softmax}, {"softmax_gradient", softmax_gradient}, {"layer_norm", layer_norm}, {NULL, NULL}};
