/* Reads tensors straight from Python objects: addresses and sizes through DLPack; digests of those in CPU memory through
 * native/, tables of the others for kernels (native/cuda/digest_body.h). */
#ifndef SAMEBITS_READER_H
#define SAMEBITS_READER_H

/* Only the limited API of Python 3.10 (setup.py defines Py_LIMITED_API), so that one build serves every later release. It
 * has no Py_buffer, no vectorcall and none of the macros that read objects unchecked. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"
#include "tuples.h"

/* Changes when something that Python uses is changed or removed, so that a stale module is never used. Python asks
 * whether `append` is there. */
#define SB_READER_ABI 10

extern PyType_Spec sb_reader_spec;
extern PyType_Spec sb_memory_spec;
extern PyType_Spec sb_observer_spec;
extern PyType_Spec sb_calls_spec;
extern PyType_Spec sb_scanner_spec;
extern PyType_Spec sb_kernel_spec;

PyObject *sb_append(PyObject *module, PyObject *args);

/* Frees an object of one of these types, which each object keeps alive. */
static inline void sb_free(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* The length of a list or tuple. */
static inline Py_ssize_t sb_size(PyObject *values) {
    return PyList_Check(values) ? PyList_Size(values) : PyTuple_Size(values);
}

/* An item of a list or tuple, borrowed; NULL and an exception past its end. */
static inline PyObject *sb_item(PyObject *values, Py_ssize_t i) {
    return PyList_Check(values) ? PyList_GetItem(values, i) : PyTuple_GetItem(values, i);
}

/* Tells whether a tensor has no memory and stands for zeros, as second derivatives make them. Its address is that of its
 * offset in a storage at 0, which is lower than any memory that a 64-bit process has as a rule; so few others are asked.
 * Args: torch.Tensor._is_zerotensor, the tensor, and what DLPack says of it. */
static inline int sb_stands_for_zeros(PyObject *is_zero, PyObject *tensor, const dl_tensor *view) {
    if (((uint64_t)(uintptr_t)view->data + view->byte_offset) >> 32)
        return 0;
    PyObject *answer = PyObject_CallFunctionObjArgs(is_zero, tensor, NULL);
    const int result = answer != Py_False;
    if (!answer)
        PyErr_Clear();
    Py_XDECREF(answer);
    return result;
}

/* The exchange that a capsule of torch holds, NULL and an exception if it is none of our version. */
dl_exchange *sb_exchange_of(PyObject *capsule);

#endif
