/* Functions of each element, losses of two tensors, and their gradients. */
#include "ops.h"

static PyObject *unary(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    void *out;
    if (count != 1 || names || !sb_read_contiguous(args[0], &x))
        return NULL;
    PyObject *result = sb_new_like(&x, &out);
    if (!result)
        return NULL;
    const sbp_elementwise_unary_parameters p = {
        .function = self->code, .is_f64 = x.is_f64, .x = x.data, .out = out, .numel = x.numel};
    return sb_result(result, SB_CALL(elementwise_unary, &p, x.numel));
}

static PyObject *root(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    void *out;
    (void)self;
    if (count != 1 || names || !sb_read_contiguous(args[0], &x))
        return NULL;
    PyObject *result = sb_new_like(&x, &out);
    if (!result)
        return NULL;
    const sbp_sqrt_parameters p = {.is_f64 = x.is_f64, .x = x.data, .out = out, .numel = x.numel};
    return sb_result(result, SB_CALL(sqrt, &p, x.numel));
}

/* Two tensors of one shape. */
static PyObject *pair(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x, y;
    void *out;
    if (count != 2 || names || !sb_read_contiguous(args[0], &x) || !sb_read_contiguous(args[1], &y) ||
        x.is_f64 != y.is_f64 || !sb_same_shape(&x, &y))
        return NULL;
    PyObject *result = sb_new_like(&x, &out);
    if (!result)
        return NULL;
    const sbp_elementwise_binary_parameters p = {
        .function = self->code, .is_f64 = x.is_f64, .x = x.data, .y = y.data, .out = out, .numel = x.numel};
    return sb_result(result, SB_CALL(elementwise_binary, &p, x.numel));
}

static int activate(int64_t function, const sb_view *const *inputs, double parameter, const sb_view *shape, void *out) {
    sbp_activation_parameters p = {
        .function = function, .is_f64 = shape->is_f64, .numel = shape->numel, .out = out, .numbers = {parameter}};
    for (int i = 0; i < 3; i++) {
        p.inputs[i] = inputs[i]->data;
        p.is_single[i] = inputs[i]->numel != shape->numel;
    }
    return SB_CALL(activation, &p, shape->numel);
}

/* A function of one to three tensors of one shape, without parameters. */
static PyObject *activation(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x[3];
    void *out;
    if (count < 1 || count > 3 || names)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!sb_read_contiguous(args[i], x + i) || x[i].is_f64 != x->is_f64 || !sb_same_shape(x, x + i))
            return NULL;
    PyObject *result = sb_new_like(x, &out);
    if (!result)
        return NULL;
    /* Of two inputs, the second stands for the third. */
    const sb_view *const inputs[] = {x, count > 1 ? x + 1 : x, x + count - 1};
    return sb_result(result, activate(self->code, inputs, 0, x, out));
}

enum { NONE, MEAN, SUM };

static int read_reduction(PyObject *object, long *reduction) {
    *reduction = PyLong_CheckExact(object) ? PyLong_AsLong(object) : -1;
    return *reduction >= NONE && *reduction <= SUM;
}

static int reduce_all(const sb_view *values, void *data, long reduction, void *out) {
    struct {
        sbp_reduce_parameters p;
        int64_t extents[3];
    } call = {{.kind = 0, .is_f64 = values->is_f64, .a = data, .out = out, .reduced = 1, .axes = 1},
              {values->numel, 1, 1}};
    if (!SB_CALL(reduce, &call.p, values->numel))
        return 0;
    if (reduction == MEAN && values->is_f64)
        *(double *)out /= (double)values->numel;
    else if (reduction == MEAN)
        *(float *)out /= (float)values->numel;
    return 1;
}

/* A loss of each element of two tensors of one shape, and what becomes of these. */
static PyObject *loss(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x, y;
    long reduction = MEAN;
    void *values, *out;
    if (count < 2 || count > 3 || names || !sb_read_contiguous(args[0], &x) || !sb_read_contiguous(args[1], &y) ||
        x.is_f64 != y.is_f64 || !sb_same_shape(&x, &y) || (count == 3 && !read_reduction(args[2], &reduction)) ||
        x.numel > 1 << 24)
        return NULL;
    PyObject *each = sb_new_like(&x, &values);
    const sb_view *const inputs[] = {&x, &y, &y};
    each = each ? sb_result(each, activate(self->code, inputs, 0, &x, values)) : NULL;
    if (!each || reduction == NONE)
        return each;
    PyObject *result = sb_new(0, NULL, x.is_f64, &out);
    if (result)
        result = sb_result(result, reduce_all(&x, values, reduction, out));
    Py_DECREF(each);
    return result;
}

/* Its gradient: of the gradient of the result, both tensors, and the reduction. `code`: the function; above, in the
 * fourth byte, what the factor of each element is divided by the count. */
static PyObject *loss_gradient(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view gradient, x, y;
    long reduction;
    void *out;
    if (count != 4 || names || !sb_read_contiguous(args[0], &gradient) || !sb_read_contiguous(args[1], &x) ||
        !sb_read_contiguous(args[2], &y) || x.is_f64 != y.is_f64 || x.is_f64 != gradient.is_f64 ||
        !sb_same_shape(&x, &y) || !read_reduction(args[3], &reduction) ||
        !(gradient.numel == 1 || sb_same_shape(&x, &gradient)) || gradient.dims > x.dims)
        return NULL;
    PyObject *result = sb_new_like(&x, &out);
    if (!result)
        return NULL;
    const double numerator = (double)(self->code >> 24);
    const sb_view *const inputs[] = {&x, &y, &gradient};
    return sb_result(result, activate(self->code & 0xffffff, inputs,
                                      reduction == MEAN ? numerator / (double)x.numel : numerator, &x, out));
}

const sb_named sb_functions[] = {{"unary", unary},           {"root", root}, {"pair", pair},
                                 {"activation", activation}, {"loss", loss}, {"loss_gradient", loss_gradient},
                                 {NULL, NULL}};
