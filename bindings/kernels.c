#include "reader.h"

#include <stddef.h>
#include <structmember.h>

/* A kernel of portable mode (native/portable/parameters.h), called with its parameters by name: their numbers are
 * written slot by slot as its struct has them. */
typedef union {
    int64_t whole; /* an address too */
    double real;
} slot;

typedef struct {
    PyObject_HEAD
    int64_t (*function)(const slot *parameters);
    void (*set_threads)(int);
    PyObject *name, *fields; /* fields: tuple of names */
    PyObject *threads;       /* asked at each call how many to use; None to leave it */
    PyObject *types;         /* bytes: the types of the slots of each field, a space after each */
} kernel;

#define FEW 96 /* parameters lie on the stack up to this many slots */

static const char *next_field(const char *types) {
    while (*types != ' ')
        types++;
    return types + 1;
}

static int64_t width_of(const char *types) { return next_field(types) - types - 1; }

static int put(char type, PyObject *value, slot *to) {
    if (type == 'd') {
        to->real = PyFloat_AsDouble(value);
        return to->real != -1 || !PyErr_Occurred();
    }
    to->whole = PyLong_AsLongLong(value);
    return to->whole != -1 || !PyErr_Occurred();
}

/* The value of a field among the arguments, which are usually in the order of the fields. */
static PyObject *value_of(const kernel *self, PyObject *const *args, PyObject *names, Py_ssize_t field) {
    PyObject *wanted = PyTuple_GetItem(self->fields, field);
    if (PyTuple_GetItem(names, field) == wanted)
        return args[field];
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++)
        if (!PyUnicode_Compare(PyTuple_GetItem(names, i), wanted))
            return args[i];
    return PyErr_Format(PyExc_TypeError, "%U() got no parameter %R: it takes %R", self->name, wanted, self->fields);
}

static int check_length(const kernel *self, Py_ssize_t field, PyObject *value, int64_t wanted) {
    if (!PyTuple_Check(value) && !PyList_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%U() takes a list or tuple for %R", self->name,
                     PyTuple_GetItem(self->fields, field));
        return 0;
    }
    if (sb_size(value) == wanted)
        return 1;
    PyErr_Format(PyExc_ValueError, "%U() takes %lld numbers for %R, not %zd", self->name, (long long)wanted,
                 PyTuple_GetItem(self->fields, field), sb_size(value));
    return 0;
}

/* Several numbers, whose types repeat. */
static int put_all(const char *types, int64_t width, PyObject *values, slot *to) {
    for (Py_ssize_t i = 0; i < sb_size(values); i++)
        if (!put(types[i % width], sb_item(values, i), to + i))
            return 0;
    return 1;
}

static int put_field(const kernel *self, Py_ssize_t field, const char *types, PyObject *value, slot *to) {
    const int64_t width = width_of(types);
    if (width == 1)
        return put(*types, value, to);
    return check_length(self, field, value, width) && put_all(types, width, value, to);
}

/* Reads a field that is as long as the one before it says; `slots` with room for it, NULL and an exception. */
static slot *put_last(const kernel *self, Py_ssize_t field, const char *types, PyObject *value, slot *slots, int64_t used) {
    const int64_t width = width_of(types) - 1, count = slots[used - 1].whole;
    if (count < 0 || count > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%U() cannot take %lld times %R", self->name, (long long)count,
                     PyTuple_GetItem(self->fields, field));
        return NULL;
    }
    if (!check_length(self, field, value, count * width))
        return NULL;
    slot *to = slots;
    if (used + count * width > FEW) {
        to = PyMem_Malloc((size_t)(used + count * width) * sizeof *to);
        if (!to)
            return (slot *)PyErr_NoMemory();
        memcpy(to, slots, (size_t)used * sizeof *to);
    }
    if (put_all(types + 1, width, value, to + used))
        return to;
    if (to != slots)
        PyMem_Free(to);
    return NULL;
}

/* All parameters: `few`, or memory of their own; NULL and an exception. */
static slot *put_parameters(const kernel *self, PyObject *const *args, PyObject *names, slot *few) {
    const char *types = PyBytes_AsString(self->types);
    int64_t used = 0;
    for (Py_ssize_t field = 0; field < PyTuple_Size(self->fields); field++, types = next_field(types)) {
        PyObject *value = value_of(self, args, names, field);
        if (!value)
            return NULL;
        if (*types == '*')
            return put_last(self, field, types, value, few, used);
        if (!put_field(self, field, types, value, few + used))
            return NULL;
        used += width_of(types);
    }
    return few;
}

static int choose_threads(const kernel *self) {
    if (self->threads == Py_None)
        return 1;
    PyObject *count = PyObject_CallNoArgs(self->threads);
    const long threads = count ? PyLong_AsLong(count) : -1;
    Py_XDECREF(count);
    if (PyErr_Occurred())
        return 0;
    self->set_threads((int)threads);
    return 1;
}

static PyObject *call(PyObject *object, PyObject *const *args, Py_ssize_t unnamed, PyObject *names) {
    const kernel *self = (const kernel *)object;
    if (unnamed || !names || PyTuple_Size(names) != PyTuple_Size(self->fields))
        return PyErr_Format(PyExc_TypeError, "%U() takes exactly these parameters, by name: %R", self->name, self->fields);
    slot few[FEW], *slots = put_parameters(self, args, names, few);
    if (!slots)
        return NULL;
    int64_t status = 0;
    const int chosen = choose_threads(self);
    if (chosen) {
        Py_BEGIN_ALLOW_THREADS
        status = self->function(slots);
        Py_END_ALLOW_THREADS
    }
    if (slots != few)
        PyMem_Free(slots);
    if (chosen && status)
        PyErr_SetObject(PyExc_MemoryError, self->name);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* Tells whether there is a type for each field, only the last one of any length, and all fit into few slots. */
static int are_types(PyObject *types, PyObject *fields) {
    Py_ssize_t spaces = 0;
    const char *text = PyBytes_AsString(types);
    for (Py_ssize_t i = 0; i < PyBytes_Size(types); i++)
        spaces += text[i] == ' ';
    const char *star = strchr(text, '*');
    const int ends = PyBytes_Size(types) && text[PyBytes_Size(types) - 1] == ' ';
    const int is_last = !star || (star > text + 1 && star[1] != ' ' && !*next_field(star));
    return ends && is_last && spaces == PyTuple_Size(fields) && PyBytes_Size(types) - spaces <= FEW;
}

static PyObject *new_kernel(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *name, *fields, *types;
    unsigned long long function, set_threads;
    if (!PyArg_ParseTuple(args, "UO!SKK", &name, &PyTuple_Type, &fields, &types, &function, &set_threads))
        return NULL;
    if (!function || !set_threads || !are_types(types, fields))
        return PyErr_Format(PyExc_ValueError, "%U has no such parameters", name);
    kernel *self = (kernel *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->function = (int64_t(*)(const slot *))(uintptr_t)function;
    self->set_threads = (void (*)(int))(uintptr_t)set_threads;
    self->name = Py_NewRef(name);
    self->fields = Py_NewRef(fields);
    self->types = Py_NewRef(types);
    self->threads = Py_NewRef(Py_None);
    return (PyObject *)self;
}

static void free_kernel(PyObject *object) {
    kernel *self = (kernel *)object;
    Py_XDECREF(self->name);
    Py_XDECREF(self->fields);
    Py_XDECREF(self->types);
    Py_XDECREF(self->threads);
    sb_free(object);
}

static PyMemberDef members[] = {
    {"threads", T_OBJECT, offsetof(kernel, threads), 0,
     "A function that is asked at each call how many threads to use; None to leave it."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS,
     "call(**parameters)\n\nCalls it with all of its parameters."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Kernel(name, fields, types, address, address_of_set_threads)\n\n"
     "A kernel of portable mode, called with all of its parameters by name."},
    {Py_tp_new, new_kernel},
    {Py_tp_dealloc, free_kernel},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec sb_kernel_spec = {
    .name = "samebits._reader.Kernel",
    .basicsize = sizeof(kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
