#include "reader.h"

/* The questions that portable mode asks about every argument of every op (portable/_scan.py), for plain tensors. */
typedef struct {
    PyObject_HEAD
    PyObject *tensor, *parameter; /* the classes whose objects are read here */
    PyObject *is_zero;
    int (*tensor_from_object)(void *, dl_tensor *);
} scanner;

/* As in portable/_scan.py. */
enum { FLOATS = 1, LOW = 2, NOT_PLAIN = -1 };

/* The bits of a dtype; NOT_PLAIN for one that portable mode does not have, or that DLPack does not tell from others. */
static int bits_of(dl_dtype dtype) {
    const int width = dtype.bits;
    if (dtype.lanes != 1)
        return NOT_PLAIN;
    switch (dtype.code) {
    case DL_FLOAT:
        return width == 32 || width == 64 ? FLOATS : width == 16 ? FLOATS | LOW : NOT_PLAIN;
    case DL_BFLOAT:
        return width == 16 ? FLOATS | LOW : NOT_PLAIN;
    case DL_BOOL:
        return width == 8 ? 0 : NOT_PLAIN;
    case DL_INT: /* those of 8 bits share a name with torch's int1 to int7 */
    case DL_UINT:
        return width == 16 || width == 32 || width == 64 ? 0 : NOT_PLAIN;
    default:
        return NOT_PLAIN;
    }
}

static int scan_tensor(const scanner *self, PyObject *value) {
    dl_tensor view;
    if (self->tensor_from_object(value, &view)) {
        PyErr_Clear();
        return NOT_PLAIN;
    }
    const int plain = view.device_type == DL_CPU && !sb_stands_for_zeros(self->is_zero, value, &view);
    return plain ? bits_of(view.dtype) : NOT_PLAIN;
}

/* The bits of all, or-ed; NOT_PLAIN where one is neither a plain tensor nor surely no tensor. */
static int scan_all(const scanner *self, PyObject *values) {
    int bits = 0;
    for (Py_ssize_t i = 0; bits >= 0 && i < sb_size(values); i++) {
        PyObject *value = sb_item(values, i), *type = (PyObject *)Py_TYPE(value);
        if (type == self->tensor || type == self->parameter)
            bits |= scan_tensor(self, value);
        else if (PyList_CheckExact(value) || PyTuple_CheckExact(value))
            bits |= scan_all(self, value);
        else if (value != Py_None && !PyLong_Check(value) && !PyFloat_CheckExact(value))
            bits = NOT_PLAIN;
    }
    return bits;
}

static PyObject *scan(PyObject *self, PyObject *values) {
    if (!PyTuple_CheckExact(values) && !PyList_CheckExact(values))
        return PyLong_FromLong(NOT_PLAIN);
    return PyLong_FromLong(scan_all((const scanner *)self, values));
}

/* Signatures are written here; longer ones are left to Python. */
typedef struct {
    char bytes[512];
    size_t used;
} key;

static int put(key *to, const void *from, size_t size) {
    if (sizeof to->bytes - to->used < size)
        return 0;
    memcpy(to->bytes + to->used, from, size);
    to->used += size;
    return 1;
}

static int sign_tensor(const scanner *self, PyObject *value, key *to) {
    dl_tensor view;
    if (self->tensor_from_object(value, &view)) {
        PyErr_Clear();
        return 0;
    }
    const char head[] = {'t', (char)view.dtype.code, (char)view.dtype.bits, (char)view.n_dims};
    return view.device_type == DL_CPU && bits_of(view.dtype) != NOT_PLAIN &&
           !sb_stands_for_zeros(self->is_zero, value, &view) && put(to, head, sizeof head) &&
           put(to, view.sizes, (size_t)view.n_dims * sizeof *view.sizes);
}

static int sign_whole(PyObject *value, key *to) {
    int overflow;
    const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow && put(to, "i", 1) && put(to, &whole, sizeof whole);
}

/* Each tells whether it could be written, and begins with a letter of its own. */
static int sign_all(const scanner *self, PyObject *values, key *to) {
    for (Py_ssize_t i = 0; i < sb_size(values); i++) {
        PyObject *value = sb_item(values, i), *type = (PyObject *)Py_TYPE(value);
        int done = 0;
        if (type == self->tensor || type == self->parameter)
            done = sign_tensor(self, value, to);
        else if (value == Py_None || PyBool_Check(value))
            done = put(to, value == Py_None ? "n" : value == Py_True ? "y" : "z", 1);
        else if (PyFloat_CheckExact(value))
            done = put(to, "f", 1);
        else if (PyLong_CheckExact(value))
            done = sign_whole(value, to);
        else if (PyList_CheckExact(value) || PyTuple_CheckExact(value))
            done = put(to, "(", 1) && sign_all(self, value, to) && put(to, ")", 1);
        if (!done)
            return 0;
    }
    return 1;
}

static PyObject *signature(PyObject *self, PyObject *values) {
    key text = {.used = 0};
    if ((!PyTuple_CheckExact(values) && !PyList_CheckExact(values)) || !sign_all((const scanner *)self, values, &text))
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(text.bytes, (Py_ssize_t)text.used);
}

static PyObject *new_scanner(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *capsule, *tensor, *parameter;
    if (!PyArg_ParseTuple(args, "O(OO)", &capsule, &tensor, &parameter))
        return NULL;
    const dl_exchange *exchange = sb_exchange_of(capsule);
    scanner *self = exchange ? (scanner *)PyType_GenericAlloc(type, 0) : NULL;
    if (!self)
        return NULL;
    self->tensor = Py_NewRef(tensor);
    self->parameter = Py_NewRef(parameter);
    self->is_zero = PyObject_GetAttrString(tensor, "_is_zerotensor");
    self->tensor_from_object = exchange->tensor_from_object;
    if (!self->is_zero)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void free_scanner(PyObject *object) {
    Py_XDECREF(((scanner *)object)->tensor);
    Py_XDECREF(((scanner *)object)->parameter);
    Py_XDECREF(((scanner *)object)->is_zero);
    sb_free(object);
}

static PyMethodDef methods[] = {
    {"scan", scan, METH_O,
     "scan(values) -> int\n\nWhat portable._scan.scan gives for plain tensors, numbers and lists of them; -1 where others "
     "are among them."},
    {"signature", signature, METH_O,
     "signature(values) -> bytes | None\n\nSays of plain tensors, numbers and lists of them what portable._scan.signature "
     "says; None where others are among them."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Scanner(exchange, (Tensor, Parameter))\n\nReads the arguments of ops."},
    {Py_tp_new, new_scanner},
    {Py_tp_dealloc, free_scanner},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec sb_scanner_spec = {
    .name = "samebits._reader.Scanner",
    .basicsize = sizeof(scanner),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
