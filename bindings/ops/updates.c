/* What optimizers do to each value in place: `lerp_`, `addcmul_`, `addcdiv_`. */
#include "ops.h"

/* A tensor like the one that is written to. */
static int read_like(PyObject *object, const sb_view *to, sb_view *from) {
    const int64_t bytes = to->numel * (to->is_f64 ? 8 : 4);
    return sb_read_contiguous(object, from) && from->is_f64 == to->is_f64 && sb_same_shape(to, from) &&
           sb_lies_apart(to->data, bytes, from->data, bytes);
}

static PyObject *update(const sb_op *self, PyObject *const *args, sbp_activation_parameters *p, const sb_view *to) {
    p->function = self->code;
    p->is_f64 = to->is_f64;
    p->numel = to->numel;
    p->out = to->data;
    p->inputs[0] = to->data;
    return SB_CALL(activation, p, to->numel) ? Py_NewRef(args[0]) : NULL;
}

/* Of two tensors, and how far the first goes towards the second. */
static PyObject *go_towards(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view to, end;
    double weight;
    if (count != 3 || names || !sb_read_contiguous(args[0], &to) || !read_like(args[1], &to, &end) ||
        !sb_read_number(args[2], to.is_f64, &weight))
        return NULL;
    const float narrow = (float)weight;
    sbp_activation_parameters p = {.inputs = {NULL, end.data, to.is_f64 ? (const void *)&weight : &narrow},
                                   .is_single = {0, 0, to.numel != 1}};
    return update(self, args, &p, &to);
}

/* Of three tensors, and a number by name. */
static PyObject *add_combined(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view to, x, y;
    double value = 1;
    if (count != 3 || !sb_read_contiguous(args[0], &to) || !read_like(args[1], &to, &x) || !read_like(args[2], &to, &y))
        return NULL;
    if (names && (PyTuple_Size(names) != 1 || PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "value") ||
                  !sb_read_number(args[count], to.is_f64, &value)))
        return NULL;
    sbp_activation_parameters p = {.inputs = {NULL, x.data, y.data}, .numbers = {value}};
    return update(self, args, &p, &to);
}

const sb_named sb_updates[] = {{"go_towards", go_towards}, {"add_combined", add_combined}, {NULL, NULL}};
