/* Ops that compute nothing, of tensors of any dtype: torch's own. They come here for the sake of sparse tensors, for which
 * Python has other handlers. */
#include "ops.h"

/* An argument by name that says nothing of the result's dtype or device. */
static int is_harmless(PyObject *name, PyObject *value) {
    return value == Py_None || !PyUnicode_CompareWithASCIIString(name, "memory_format") ||
           (value == Py_False && !PyUnicode_CompareWithASCIIString(name, "pin_memory"));
}

/* `code`: whether it is so for float32 and float64 only. */
static PyObject *move(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    int32_t dtype;
    if (count != 1 || !sb_is_dense(args[0], &dtype) || (self->code && dtype != sb.float32 && dtype != sb.float64))
        return NULL;
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++)
        if (!is_harmless(PyTuple_GetItem(names, i), args[count + i]))
            return NULL;
    return sb_pass_on(self, args, count, names);
}

/* Of one tensor into another of the same dtype. */
static PyObject *copy(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    int32_t to, from;
    if (count < 2 || names || !sb_is_dense(args[0], &to) || !sb_is_dense(args[1], &from) || to != from)
        return NULL;
    return sb_pass_on(self, args, count, names);
}

const sb_named sb_moves[] = {{"move", move}, {"copy", copy}, {NULL, NULL}};
