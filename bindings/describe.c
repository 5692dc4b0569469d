#include "describe.h"

#include <string.h>

/* Dtype code and log2 of the bytes of an element (digest/_definition.py); 0 for dtypes that take the slow way. */
static uint64_t header_of(dl_dtype dtype) {
    static const uint8_t codes[7][5] = {
        [DL_INT] = {3, 4, 5, 6}, [DL_UINT] = {2, 7, 8, 9}, [DL_FLOAT] = {0, 10, 12, 13}, [DL_BFLOAT] = {0, 11},
        [DL_COMPLEX] = {0, 0, 14, 15, 16}, [DL_BOOL] = {1},
    };
    unsigned shift = 0;
    while (shift < 4 && 8u << shift < dtype.bits)
        shift++;
    if (dtype.code > DL_BOOL || dtype.lanes != 1 || 8u << shift != dtype.bits || !codes[dtype.code][shift])
        return 0;
    return codes[dtype.code][shift] | (uint64_t)shift << 8;
}

/* 1, 0, or -1 and an exception. */
static int ask(PyObject *method, PyObject *tensor) {
    PyObject *answer = PyObject_CallFunctionObjArgs(method, tensor, NULL);
    const int result = answer == NULL ? -1 : answer == Py_True;
    Py_XDECREF(answer);
    return result;
}

/* 1 for a lazily negated or conjugated view, 0 for none, -1 and an exception. */
static int is_lazy(const sb_reader *self, PyObject *tensor, dl_dtype dtype) {
    if (dtype.code != DL_FLOAT && dtype.code != DL_BFLOAT && dtype.code != DL_COMPLEX)
        return 0;
    const int negated = ask(self->is_neg, tensor);
    return negated || dtype.code != DL_COMPLEX ? negated : ask(self->is_conj, tensor);
}

/* Tells whether an 8-bit integer is one: torch exports its int1 to int7 and uint1 to uint7 under that name. */
static int is_whole_byte(const sb_reader *self, PyObject *tensor, dl_dtype dtype) {
    PyObject *name = PyObject_GetAttr(tensor, self->dtype);
    const int result = name == (dtype.code == DL_INT ? self->int8 : self->uint8);
    Py_XDECREF(name);
    return result;
}

int sb_describe(const sb_reader *self, PyObject *object, int device_type, dl_tensor *view, uint64_t *header) {
    PyObject *type = (PyObject *)Py_TYPE(object);
    if ((type != self->tensor && type != self->parameter) || self->tensor_from_object(object, view))
        return 0;
    if (view->device_type != device_type || view->n_dims > SB_MOST_DIMS)
        return 0;
    if (view->dtype.code <= DL_UINT && view->dtype.bits == 8 && !is_whole_byte(self, object, view->dtype))
        return 0;
    *header = header_of(view->dtype) | (uint64_t)view->n_dims << SB_DIMS_BIT;
    return (*header & 0xFF) && !is_lazy(self, object, view->dtype) && !sb_stands_for_zeros(self->is_zero, object, view);
}

int sb_base_of(const sb_reader *self, PyObject *object, const dl_tensor *view, uint64_t header, uint64_t *base) {
    PyObject *offset = PyObject_CallFunctionObjArgs(self->storage_offset, object, NULL);
    const long long elements = offset ? PyLong_AsLongLong(offset) : -1;
    Py_XDECREF(offset);
    *base = (uint64_t)(uintptr_t)view->data - ((uint64_t)elements << (header >> 8 & 0xF));
    return elements >= 0;
}

int sb_note(const sb_reader *self, PyObject *object, const dl_tensor *view, uint64_t header, sb_cursor *to) {
    if (!sb_base_of(self, object, view, header, to->bases++))
        return 0;
    *to->kinds++ = header;
    memcpy(to->kinds, view->sizes, 8 * (size_t)view->n_dims);
    to->kinds += view->n_dims;
    return 1;
}

int sb_add_tensor(const sb_reader *self, PyObject *object, sb_cursor *to) {
    dl_tensor view;
    uint64_t header;
    if (!sb_describe(self, object, DL_CPU, &view, &header) || (to->bases && !sb_note(self, object, &view, header, to)))
        return 0;
    const size_t n = (size_t)view.n_dims;
    *to->words++ = (uint64_t)(uintptr_t)view.data + view.byte_offset;
    *to->words++ = header | SB_STRIDED_BIT;
    memcpy(to->words, view.sizes, 8 * n);
    memcpy(to->words + n, view.strides, 8 * n);
    to->words += 2 * n;
    return 1;
}

dl_exchange *sb_exchange_of(PyObject *capsule) {
    dl_exchange *exchange = PyCapsule_GetPointer(capsule, DL_EXCHANGE_CAPSULE);
    while (exchange && exchange->major != DL_MAJOR)
        exchange = exchange->previous;
    if (!PyErr_Occurred() && (!exchange || !exchange->tensor_from_object))
        PyErr_SetString(PyExc_ValueError, "no DLPack exchange of version 1");
    return PyErr_Occurred() ? NULL : exchange;
}

/* ---- what callers share */

long sb_n_threads(const sb_reader *self) {
    PyObject *threads = PyObject_CallNoArgs(self->n_threads);
    const long n = threads ? PyLong_AsLong(threads) : -1;
    Py_XDECREF(threads);
    return n;
}

PyObject *sb_or_none(PyObject *result) {
    if (result)
        return result;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

int sb_is_fast(PyObject *tensors) {
    const int fast = PyList_CheckExact(tensors) || PyTuple_CheckExact(tensors);
    if (!fast)
        PyErr_SetString(PyExc_TypeError, "expected a list or tuple of tensors");
    return fast;
}
