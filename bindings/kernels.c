#include "reader.h"

/* Arguments of a kernel (native/portable/portable.h) lie on the stack up to this many. */
#define FEW 64

typedef int64_t (*kernel)(const int64_t *words, const double *scalars);

/* Numbers of a list or tuple into `few`, or into memory of their own; NULL and an exception. */
static void *numbers(PyObject *from, void *few, int floats) {
    if (!PyList_CheckExact(from) && !PyTuple_CheckExact(from)) {
        PyErr_SetString(PyExc_TypeError, "expected a list or tuple of numbers");
        return NULL;
    }
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(from);
    void *to = count <= FEW ? few : PyMem_Malloc(8 * (size_t)count);
    for (Py_ssize_t i = 0; to && i < count && !PyErr_Occurred(); i++)
        if (floats)
            ((double *)to)[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(from, i));
        else
            ((int64_t *)to)[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(from, i));
    if (!to)
        PyErr_NoMemory();
    else if (PyErr_Occurred() && to != few)
        PyMem_Free(to);
    return PyErr_Occurred() ? NULL : to;
}

static PyObject *run(kernel function, PyObject *given_words, PyObject *given_scalars) {
    int64_t few_words[FEW], status = 0;
    double few_scalars[FEW];
    int64_t *words = numbers(given_words, few_words, 0);
    double *scalars = words ? numbers(given_scalars, few_scalars, 1) : NULL;
    if (scalars) {
        Py_BEGIN_ALLOW_THREADS
        status = function(words, scalars);
        Py_END_ALLOW_THREADS
    }
    if (words && words != few_words)
        PyMem_Free(words);
    if (!scalars)
        return NULL;
    if (scalars != few_scalars)
        PyMem_Free(scalars);
    return PyLong_FromLongLong(status);
}

PyObject *sb_call_kernel(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "expected an address, words and scalars");
        return NULL;
    }
    void *address = PyLong_AsVoidPtr(args[0]);
    return address ? run((kernel)(uintptr_t)address, args[1], args[2]) : PyErr_Format(PyExc_ValueError, "no kernel");
}
