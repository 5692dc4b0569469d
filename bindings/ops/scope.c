/* Which keys the dispatcher looks at in this thread, switched without a call of torch. torch keeps two sets of 64 bits
 * in each thread, of keys that are included and excluded (c10/core/impl/LocalDispatchKeySet.h, 2.6 to 2.15). Python finds
 * their place and what the bits are (_torch/dispatch_key.py), and checks that they are as it expects. */
#include "ops.h"

#include <dlfcn.h>
#include <string.h>

typedef struct {
    uint64_t included, excluded;
} keys;

static struct {
    void *library;
    char name[96];
    /* Of the sets as torch stores them: what leaving takes out, and puts in. */
    uint64_t less_included, less_excluded, more_excluded;
} scope;

static keys *keys_of_thread(void) {
    static _Thread_local keys *found;
    if (!found && scope.library)
        found = dlsym(scope.library, scope.name);
    return scope.library ? found : NULL;
}

PyObject *sb_set_scope(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *name;
    unsigned long long library, less_included, less_excluded, more_excluded;
    if (!PyArg_ParseTuple(args, "KsKKK", &library, &name, &less_included, &less_excluded, &more_excluded))
        return NULL;
    if (strlen(name) >= sizeof scope.name)
        Py_RETURN_FALSE;
    memcpy(scope.name, name, strlen(name) + 1);
    scope.library = (void *)(uintptr_t)library;
    scope.less_included = less_included;
    scope.less_excluded = less_excluded;
    scope.more_excluded = more_excluded;
    return PyBool_FromLong(keys_of_thread() != NULL);
}

static void leave(keys *here) {
    here->included &= ~scope.less_included;
    here->excluded = (here->excluded & ~scope.less_excluded) | scope.more_excluded;
}

PyObject *sb_leave(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    keys *here = keys_of_thread();
    if (!here)
        return PyErr_Format(PyExc_RuntimeError, "the keys of this thread were not found");
    PyObject *before = PyBytes_FromStringAndSize((const char *)here, sizeof *here);
    if (before)
        leave(here);
    return before;
}

PyObject *sb_pass_on(const sb_op *op, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    keys *here = keys_of_thread();
    if (!here)
        return NULL;
    const keys before = *here;
    leave(here);
    PyObject *result = sb_call_with(op->own, args, count, names);
    *here = before;
    return result;
}

PyObject *sb_return_to(PyObject *Py_UNUSED(module), PyObject *state) {
    char *before;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(state, &before, &length))
        return NULL;
    keys *here = keys_of_thread();
    if (here && length == sizeof(keys))
        memcpy(here, before, sizeof(keys));
    Py_RETURN_NONE;
}
