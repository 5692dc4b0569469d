#include "storages.h"

/* Takes the reference; -1 and an exception. */
static int64_t number(PyObject *value) {
    const int64_t result = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    return result;
}

/* What a method says of a value; takes the value's reference, and clears exceptions. */
static int says_true(PyObject *method, PyObject *value) {
    PyObject *answer = value ? PyObject_CallFunctionObjArgs(method, value, NULL) : NULL;
    const int result = answer == Py_True;
    Py_XDECREF(answer);
    Py_XDECREF(value);
    PyErr_Clear();
    return result;
}

int sb_identify(const sb_questions *ask, PyObject *tensor, sb_identity *found) {
    found->object = PyObject_CallFunctionObjArgs(ask->untyped_storage, tensor, NULL);
    if (found->object) {
        found->storage = (uint64_t)number(PyObject_GetAttr(found->object, ask->cdata));
        found->version = PyErr_Occurred() ? -1 : number(PyObject_GetAttr(tensor, ask->version));
        if (!PyErr_Occurred()) { /* an inference tensor has no version */
            found->resizable = says_true(ask->resizable, Py_NewRef(found->object));
            return 1;
        }
    }
    PyErr_Clear();
    Py_CLEAR(found->object);
    return 0;
}

uint64_t sb_storage_of(const sb_questions *ask, PyObject *tensor) {
    PyObject *object = PyObject_CallFunctionObjArgs(ask->untyped_storage, tensor, NULL);
    const int64_t storage = object ? number(PyObject_GetAttr(object, ask->cdata)) : -1;
    Py_XDECREF(object);
    const int failed = PyErr_Occurred() != NULL;
    PyErr_Clear();
    return failed ? 0 : (uint64_t)storage;
}

uint64_t sb_hold(const sb_questions *ask, const sb_identity *made) {
    const uint64_t storage = (uint64_t)number(PyObject_CallFunctionObjArgs(ask->weak_ref, made->object, NULL));
    const int failed = PyErr_Occurred() != NULL || storage != made->storage;
    PyErr_Clear();
    return failed ? 0 : storage;
}

void sb_let_go(const sb_questions *ask, uint64_t storage) {
    if (storage)
        says_true(ask->free_weak_ref, PyLong_FromUnsignedLongLong(storage));
}

int sb_is_expired(const sb_questions *ask, uint64_t storage) {
    return says_true(ask->expired, PyLong_FromUnsignedLongLong(storage));
}

int sb_find_methods(sb_questions *ask, PyObject *tensor, PyObject *storage) {
    ask->untyped_storage = PyObject_GetAttrString(tensor, "untyped_storage");
    ask->weak_ref = PyObject_GetAttrString(storage, "_weak_ref");
    ask->free_weak_ref = PyObject_GetAttrString(storage, "_free_weak_ref");
    ask->expired = PyObject_GetAttrString(storage, "_expired");
    ask->resizable = PyObject_GetAttrString(storage, "resizable");
    ask->cdata = PyUnicode_InternFromString("_cdata");
    ask->version = PyUnicode_InternFromString("_version");
    return ask->untyped_storage && ask->weak_ref && ask->free_weak_ref && ask->expired && ask->resizable && ask->cdata &&
           ask->version;
}

void sb_drop_methods(sb_questions *ask) {
    PyObject *held[] = {ask->untyped_storage, ask->weak_ref, ask->free_weak_ref, ask->expired,
                        ask->resizable,       ask->cdata,    ask->version};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        Py_XDECREF(held[i]);
}
