#include "ops.h"

#include <string.h>

PyObject *sb_call_with(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *unnamed = PyTuple_New(count), *named = names ? PyDict_New() : NULL, *result = NULL;
    int failed = !unnamed || (names && !named);
    for (Py_ssize_t i = 0; !failed && i < count; i++)
        failed = PyTuple_SetItem(unnamed, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; !failed && names && i < PyTuple_Size(names); i++)
        failed = PyDict_SetItem(named, PyTuple_GetItem(names, i), args[count + i]);
    if (!failed)
        result = PyObject_Call(function, unnamed, named);
    Py_XDECREF(unnamed);
    Py_XDECREF(named);
    return result;
}

static PyObject *call(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const sb_op *self = (const sb_op *)object;
    if (names && !PyTuple_Size(names))
        names = NULL;
    PyObject *result = sb.is_off ? NULL : self->function(self, args, count, names);
    return result || PyErr_Occurred() ? result : sb_call_with(self->otherwise, args, count, names);
}

static sb_function find(const char *name) {
    const sb_named *const families[] = {sb_arithmetic, sb_channels, sb_convolutions, sb_functions, sb_groups,
                                        sb_moves, sb_nearest, sb_pooling, sb_products, sb_reductions, sb_rows, sb_updates};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const sb_named *each = families[i]; each->name; each++)
            if (!strcmp(each->name, name))
                return each->function;
    return NULL;
}

static PyObject *new_op(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    const char *name;
    long long code;
    PyObject *own, *otherwise;
    if (!PyArg_ParseTuple(args, "sLOO", &name, &code, &own, &otherwise))
        return NULL;
    const sb_function function = find(name);
    if (!function)
        return PyErr_Format(PyExc_ValueError, "there is no function %s", name);
    sb_op *self = (sb_op *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->function = function;
    self->code = code;
    self->own = Py_NewRef(own);
    self->otherwise = Py_NewRef(otherwise);
    return (PyObject *)self;
}

static void free_op(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(((sb_op *)object)->own);
    Py_XDECREF(((sb_op *)object)->otherwise);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS,
     "call(*args, **kwargs)\n\nComputes the op, here or in Python."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Op(function, code, own, otherwise)\n\nA kernel of an op. `own` is torch's op; `otherwise` is called for what the "
                "kernel does not know."},
    {Py_tp_new, new_op},
    {Py_tp_dealloc, free_op},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec sb_op_spec = {
    .name = "samebits._ops.Op",
    .basicsize = sizeof(sb_op),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
