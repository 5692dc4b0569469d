#include <stdlib.h>
#include <string.h>

#include "observe.h"

/* ---- methods */

static PyObject *observe(PyObject *object, PyObject *args) {
    sb_work w = {0};
    Py_ssize_t n_inputs;
    if (!PyArg_ParseTuple(args, "Onp", &w.tensors, &n_inputs, &w.births) || !sb_is_fast(w.tensors))
        return NULL;
    w.n_inputs = (size_t)n_inputs;
    return sb_or_none(sb_observe((sb_observer *)object, &w));
}

/* A storage that is being written to. */
typedef struct {
    uint64_t base, storage;
} mark;

/* The position of a written tensor among the inputs, which has most likely the same order; -1 if it is not there. */
static Py_ssize_t position_of(PyObject *inputs, PyObject *tensor, Py_ssize_t from) {
    const Py_ssize_t count = sb_size(inputs);
    for (Py_ssize_t tried = 0; tried < count; tried++) {
        const Py_ssize_t i = (from + tried) % count;
        if (sb_item(inputs, i) == tensor)
            return i;
    }
    return -1;
}

PyObject *sb_mark_written(sb_observer *self, PyObject *inputs, PyObject *written, const uint64_t *bases) {
    const Py_ssize_t count = sb_size(written);
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(mark) * count);
    mark *marks = result ? (mark *)PyBytes_AsString(result) : NULL;
    for (Py_ssize_t i = 0, at = 0; marks && i < count; i++, at++) {
        at = position_of(inputs, sb_item(written, i), at);
        if (at < 0) {
            Py_CLEAR(result);
            break;
        }
        sb_storage *storage = sb_contents_find(&self->all, bases[at]);
        marks[i] = storage ? (mark){storage->base, storage->storage} : (mark){0, 0};
        if (storage) {
            storage->writing++;
            sb_contents_forget(&self->all, storage);
        }
    }
    return result;
}

static PyObject *with_marks(PyObject *seen, PyObject *marks) {
    PyObject *result = seen && marks ? PyTuple_Pack(2, seen, marks) : NULL;
    Py_XDECREF(seen);
    Py_XDECREF(marks);
    return result;
}

static PyObject *begin(PyObject *object, PyObject *args) {
    sb_observer *self = (sb_observer *)object;
    PyObject *written, *marks = NULL;
    sb_work w = {0};
    if (!PyArg_ParseTuple(args, "OO", &w.tensors, &written) || !sb_is_fast(w.tensors) || !sb_is_fast(written))
        return NULL;
    w.n_inputs = (size_t)sb_size(w.tensors);
    PyObject *seen = sb_observe(self, &w);
    if (seen)
        marks = sb_mark_written(self, w.tensors, written, (const uint64_t *)PyBytes_AsString(PyTuple_GetItem(seen, 2)));
    return sb_or_none(with_marks(seen, marks));
}

void sb_unmark(sb_observer *self, const char *bytes, Py_ssize_t length) {
    const mark *marks = (const mark *)bytes;
    for (Py_ssize_t i = 0; i < length / (Py_ssize_t)sizeof *marks; i++) {
        sb_storage *storage = marks[i].base ? sb_contents_find(&self->all, marks[i].base) : NULL;
        if (storage && storage->storage == marks[i].storage) {
            storage->writing -= storage->writing > 0;
            sb_contents_forget(&self->all, storage);
        }
    }
}

static PyObject *finish(PyObject *object, PyObject *args) {
    const char *before, *marks;
    Py_ssize_t before_length, marks_length;
    sb_work w = {0};
    if (!PyArg_ParseTuple(args, "OOy#y#p", &w.tensors, &w.written, &before, &before_length, &marks, &marks_length,
                          &w.births) ||
        !sb_is_fast(w.tensors) || !sb_is_fast(w.written))
        return NULL;
    w.before = (sb_cursor){.bases = (uint64_t *)before, .words = (uint64_t *)(before + before_length)};
    sb_unmark((sb_observer *)object, marks, marks_length);
    return sb_or_none(sb_observe((sb_observer *)object, &w));
}

static PyObject *expose(PyObject *object, PyObject *tensor) {
    sb_observer *self = (sb_observer *)object;
    const uint64_t storage = sb_storage_of(&self->questions, tensor);
    for (size_t i = 0; storage && i < self->all.n_slots; i++)
        if (self->all.slots[i] && self->all.slots[i]->storage == storage) {
            self->all.slots[i]->exposed = 1;
            sb_contents_forget(&self->all, self->all.slots[i]);
        }
    Py_RETURN_NONE;
}

static PyObject *forget(PyObject *object, PyObject *Py_UNUSED(nothing)) {
    sb_observer *self = (sb_observer *)object;
    for (size_t i = 0; i < self->all.n_slots; i++)
        if (self->all.slots[i])
            sb_contents_forget(&self->all, self->all.slots[i]);
    Py_RETURN_NONE;
}

static PyObject *bytes_spared(PyObject *object, PyObject *Py_UNUSED(nothing)) {
    const sb_observer *self = (sb_observer *)object;
    return Py_BuildValue("KK", (unsigned long long)self->spared, (unsigned long long)self->asked);
}

/* ---- the type */

static PyObject *new_observer(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *reader, *storage;
    const char *folder;
    unsigned long long digest_rest;
    if (!PyArg_ParseTuple(args, "OOsK", &reader, &storage, &folder, &digest_rest))
        return NULL;
    sb_observer *self = (sb_observer *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->reader = (sb_reader *)Py_NewRef(reader);
    self->digest_rest =
        (int64_t(*)(const uint64_t *, size_t, size_t, uint64_t *, const sb_rest *))(uintptr_t)digest_rest;
    if (strlen(folder) < sizeof self->libraries.torch)
        strcpy(self->libraries.torch, folder);
    PyObject *base = PyObject_GetAttrString(self->reader->tensor, "__base__"); /* nothing is replaced in the class below */
    if (!base || !sb_find_methods(&self->questions, base, storage))
        Py_CLEAR(self);
    Py_XDECREF(base);
    return (PyObject *)self;
}

static void free_observer(PyObject *object) {
    sb_observer *self = (sb_observer *)object;
    for (size_t i = 0; i < self->all.n_slots; i++)
        if (self->all.slots[i]) {
            sb_let_go(&self->questions, self->all.slots[i]->storage);
            free(self->all.slots[i]);
        }
    free(self->all.slots);
    Py_XDECREF((PyObject *)self->reader);
    sb_drop_methods(&self->questions);
    sb_free(object);
}

static PyMethodDef methods[] = {
    {"observe", observe, METH_VARARGS,
     "observe(tensors, n_inputs, births) -> tuple[bytes, bytes, bytes] | None\n\nAs Reader.observe, of the inputs and "
     "outputs of an op that wrote to no argument; `births`: an output that shares no input's storage has a new one."},
    {"begin", begin, METH_VARARGS,
     "begin(inputs, written) -> tuple[tuple[bytes, bytes, bytes], bytes] | None\n\nBefore an op that writes to some of "
     "its inputs; the last part is for `finish`."},
    {"finish", finish, METH_VARARGS,
     "finish(outputs, written, bases, marks, births) -> tuple[bytes, bytes, bytes] | None\n\nAfter it, with what `begin` "
     "gave; also without any use for the result, so that the storages are no longer being written to."},
    {"expose", expose, METH_O, "expose(tensor)\n\nNever trust its storage again."},
    {"forget", forget, METH_NOARGS, "forget()\n\nRead everything again."},
    {"bytes_spared", bytes_spared, METH_NOARGS,
     "bytes_spared() -> tuple[int, int]\n\nBytes that were not read because they were known, of how many bytes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Observer(reader, UntypedStorage, folder of torch, digest_rest)\n\nReads what is not known; the last is the address "
     "of a function of native/digest.h."},
    {Py_tp_new, new_observer},
    {Py_tp_dealloc, free_observer},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec sb_observer_spec = {
    .name = "samebits._reader.Observer",
    .basicsize = sizeof(sb_observer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
