#include "arguments.h"

static int append_text(sb_arguments *to, PyObject *text) {
    if (text && !to->texts)
        to->texts = PyList_New(0);
    const int done = text && to->texts && !PyList_Append(to->texts, text);
    Py_XDECREF(text);
    return done;
}

static int is_tensor(const sb_sorter *self, PyObject *value) {
    PyObject *type = (PyObject *)Py_TYPE(value);
    return type == self->reader->tensor || type == self->reader->parameter;
}

static int is_sequence(PyObject *value) { return PyList_CheckExact(value) || PyTuple_CheckExact(value); }

/* Tells whether the repr of a value is short, exact and the same in every run (_EXACT in recording/probes/op_calls.py). */
static int is_exact(PyObject *value) {
    return value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
           PyUnicode_CheckExact(value) || Py_IS_TYPE(value, &PyComplex_Type);
}

static int sort_one(const sb_sorter *self, PyObject *value, sb_arguments *to) {
    if (!value)
        return 0;
    if (is_tensor(self, value))
        return !PyList_Append(to->tensors, value);
    if (is_exact(value))
        return append_text(to, PyObject_Repr(value));
    if (is_sequence(value))
        return sb_sort_items(self, value, to);
    if (PyObject_HasAttrString((PyObject *)Py_TYPE(value), "untyped_storage"))
        return 0;
    return append_text(to, PyObject_CallFunctionObjArgs(self->name_of, value, NULL));
}

int sb_sort_items(const sb_sorter *self, PyObject *items, sb_arguments *to) {
    if (Py_EnterRecursiveCall(""))
        return 0;
    int sorted = 1;
    for (Py_ssize_t i = 0; sorted && i < sb_size(items); i++)
        sorted = sort_one(self, sb_item(items, i), to);
    Py_LeaveRecursiveCall();
    return sorted;
}

int sb_sort_values(const sb_sorter *self, PyObject *dict, sb_arguments *to) {
    Py_ssize_t at = 0;
    PyObject *value;
    while (PyDict_Next(dict, &at, NULL, &value))
        if (!sort_one(self, value, to))
            return 0;
    return 1;
}

/* ---- what an op returned */

static int append_result(PyObject *outcome, sb_arguments *to) {
    PyObject *pair = outcome == Py_None ? NULL : Py_BuildValue("(sO)", "->", outcome);
    const int done = outcome == Py_None || append_text(to, pair ? PyObject_Repr(pair) : NULL);
    Py_XDECREF(pair);
    return done;
}

int sb_sort_outcome(const sb_sorter *self, PyObject *outcome, sb_arguments *to) {
    if (is_tensor(self, outcome))
        return !PyList_Append(to->tensors, outcome);
    if (!is_sequence(outcome))
        return is_exact(outcome) && append_result(outcome, to);
    const Py_ssize_t before = PyList_Size(to->tensors);
    for (Py_ssize_t i = 0; i < sb_size(outcome); i++) {
        PyObject *item = sb_item(outcome, i);
        if (item != Py_None && (!is_tensor(self, item) || PyList_Append(to->tensors, item)))
            return 0;
    }
    return PyList_Size(to->tensors) > before;
}

/* ---- what it writes to */

static int append_tensors(const sb_sorter *self, PyObject *value, PyObject *tensors) {
    if (value && is_tensor(self, value))
        return !PyList_Append(tensors, value);
    for (Py_ssize_t i = 0; value && is_sequence(value) && i < sb_size(value); i++)
        if (!append_tensors(self, sb_item(value, i), tensors))
            return 0;
    return !value || value == Py_None || is_sequence(value);
}

int sb_sort_written(const sb_sorter *self, PyObject *call, PyObject *written, PyObject *tensors) {
    PyObject *args, *kwargs, *positions, *keywords;
    if (!PyArg_ParseTuple(call, "OO", &args, &kwargs) || !PyArg_ParseTuple(written, "OO", &positions, &keywords))
        return 0;
    for (Py_ssize_t i = 0; i < sb_size(positions); i++) {
        const Py_ssize_t position = PyLong_AsSsize_t(sb_item(positions, i));
        if (position < sb_size(args) && !append_tensors(self, sb_item(args, position), tensors))
            return 0;
    }
    for (Py_ssize_t i = 0; i < sb_size(keywords); i++)
        if (!append_tensors(self, PyDict_GetItemWithError(kwargs, sb_item(keywords, i)), tensors))
            return 0;
    return !PyErr_Occurred();
}

/* ---- the text */

PyObject *sb_text_of(const sb_arguments *arguments) {
    if (!arguments->texts)
        return PyUnicode_FromStringAndSize("", 0);
    if (PyList_Size(arguments->texts) == 1)
        return Py_NewRef(PyList_GetItem(arguments->texts, 0));
    PyObject *comma = PyUnicode_FromString(", ");
    PyObject *result = comma ? PyUnicode_Join(comma, arguments->texts) : NULL;
    Py_XDECREF(comma);
    return result;
}
