/* Tuples of objects that are new, or NULL where making one failed. */
#ifndef SAMEBITS_TUPLES_H
#define SAMEBITS_TUPLES_H

/* Takes over the references. NULL if one of the objects is, or without memory. */
static inline PyObject *sb_tuple(Py_ssize_t count, PyObject *const *objects) {
    PyObject *result = PyTuple_New(count);
    int complete = result != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        complete &= objects[i] != NULL;
        if (result && objects[i])
            PyTuple_SetItem(result, i, objects[i]);
        else
            Py_XDECREF(objects[i]);
    }
    if (!complete)
        Py_CLEAR(result);
    return result;
}

static inline PyObject *sb_three(PyObject *a, PyObject *b, PyObject *c) {
    PyObject *const objects[] = {a, b, c};
    return sb_tuple(3, objects);
}

#endif
