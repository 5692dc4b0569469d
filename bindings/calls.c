/* Calls of ops, each seen by one call of this module, or two where the op writes to its arguments. */
#include <string.h>

#include "arguments.h"
#include "links.h"
#include "observe.h"

typedef struct {
    PyObject_HEAD
    sb_observer *observer;
    PyObject *memory_map, *next_seq;
    sb_sorter sorter;
} sb_calls;

/* What is known of an op: whether its outputs are new storages, its flags for links, and whether its output is its input
 * under another name. */
typedef struct {
    int births, flags, alias;
} traits;

/* One call; what was seen of its inputs before it wrote to them is empty where it writes to none. */
typedef struct {
    const sb_calls *self;
    const traits *op;
    PyObject *text;
    const char *digests, *kinds, *bases;
    Py_ssize_t n_kinds, n_inputs; /* the former in bytes */
} sb_call;

/* ---- what Python gets of a call: number of the event, key of its layout, digests, links, text */

/* The number of inputs, then dtypes and sizes of inputs and outputs. */
static PyObject *key_of(const sb_call *call, const sb_work *w) {
    const Py_ssize_t own = 8 * (w->end.kinds - w->kinds), twice = call->op->alias ? own : 0;
    PyObject *key = PyBytes_FromStringAndSize(NULL, 8 + call->n_kinds + own + twice);
    char *to = key ? PyBytes_AsString(key) : NULL;
    if (to) {
        memcpy(to, &(uint64_t){(uint64_t)call->n_inputs}, 8);
        if (call->n_kinds)
            memcpy(to + 8, call->kinds, (size_t)call->n_kinds);
        memcpy(to + 8 + call->n_kinds, w->kinds, (size_t)own);
        memcpy(to + 8 + call->n_kinds + own, w->kinds, (size_t)twice);
    }
    return key;
}

/* The digests of the inputs before, then those that were taken now; takes the reference to the latter. */
static PyObject *all_digests(const sb_call *call, PyObject *own) {
    const Py_ssize_t length = PyBytes_Size(own), before = call->digests ? 16 * call->n_inputs : 0;
    if (!before && !call->op->alias)
        return own;
    PyObject *all = PyBytes_FromStringAndSize(NULL, before ? before + length : 2 * length);
    char *to = all ? PyBytes_AsString(all) : NULL;
    if (to) {
        memcpy(to, before ? call->digests : PyBytes_AsString(own), (size_t)(before ? before : length));
        memcpy(to + (before ? before : length), PyBytes_AsString(own), (size_t)length);
    }
    Py_DECREF(own);
    return all;
}

static PyObject *links_of(const sb_call *call, const sb_work *w, PyObject *seq) {
    const long number = PyLong_AsLong(seq);
    const int at_once = !call->bases; /* inputs and outputs are both in `w` */
    const sb_bases inputs = {at_once ? w->bases : (const uint64_t *)call->bases, call->n_inputs};
    const Py_ssize_t skipped = at_once && !call->op->alias ? call->n_inputs : 0;
    if (PyErr_Occurred())
        return NULL;
    return sb_op_links(call->self->memory_map, (int)number, inputs,
                       (sb_bases){w->bases + skipped, (Py_ssize_t)w->count - skipped}, call->op->flags);
}

static PyObject *finish_row(const sb_work *w, PyObject *digests, void *context) {
    const sb_call *call = context;
    PyObject *seq = PyObject_CallNoArgs(call->self->next_seq);
    PyObject *links = seq ? links_of(call, w, seq) : NULL;
    PyObject *const values[] = {seq, key_of(call, w), all_digests(call, digests), links, Py_NewRef(call->text)};
    return sb_tuple(5, values);
}

/* ---- an op that writes to no argument */

static PyObject *observe_sorted(sb_calls *self, PyObject *outcome, const traits *op, sb_arguments *sorted) {
    const Py_ssize_t n_inputs = PyList_Size(sorted->tensors);
    sb_arguments given = {NULL, NULL};
    PyObject *row = NULL;
    if (op->alias ? !(given.tensors = PyList_New(0)) : 0)
        return NULL;
    if (sb_sort_outcome(&self->sorter, outcome, op->alias ? &given : sorted)) {
        PyObject *text = sb_text_of(sorted);
        sb_call call = {.self = self, .op = op, .text = text, .n_inputs = n_inputs};
        sb_work w = {.tensors = sorted->tensors, .n_inputs = (size_t)n_inputs, .births = op->births};
        if (text && (!op->alias || n_inputs == 1))
            row = sb_or_none(sb_observe_with(self->observer, &w, finish_row, &call));
        Py_XDECREF(text);
    }
    sb_drop_arguments(&given);
    return row;
}

/* NULL without an exception becomes None: the op takes the slow way. An exception may be one that a signal handler of the
 * script raised while Python code gave a text. */
static PyObject *or_none(PyObject *result) { return result || PyErr_Occurred() ? result : Py_NewRef(Py_None); }

static PyObject *observe(PyObject *object, PyObject *args) {
    sb_calls *self = (sb_calls *)object;
    PyObject *given, *kwargs, *outcome, *row = NULL;
    traits op;
    if (!PyArg_ParseTuple(args, "O!O!Oiii", &PyTuple_Type, &given, &PyDict_Type, &kwargs, &outcome, &op.births, &op.flags,
                          &op.alias))
        return NULL;
    sb_arguments sorted = {PyList_New(0), NULL};
    if (sorted.tensors && sb_sort_items(&self->sorter, given, &sorted) && sb_sort_values(&self->sorter, kwargs, &sorted))
        row = observe_sorted(self, outcome, &op, &sorted);
    sb_drop_arguments(&sorted);
    return or_none(row);
}

/* ---- an op that writes to some of its arguments */

/* What `finish` and the slow way need: inputs, written, text, (digests, kinds, bases), marks. */
static PyObject *begin_sorted(sb_calls *self, sb_arguments *sorted, PyObject *written) {
    sb_work w = {.tensors = sorted->tensors, .n_inputs = (size_t)PyList_Size(sorted->tensors)};
    PyObject *seen = sb_or_none(sb_observe(self->observer, &w));
    if (!seen || seen == Py_None)
        return seen;
    PyObject *marks = sb_mark_written(self->observer, w.tensors, written,
                                      (const uint64_t *)PyBytes_AsString(PyTuple_GetItem(seen, 2)));
    PyObject *const values[] = {Py_NewRef(sorted->tensors), Py_NewRef(written), sb_text_of(sorted), seen, marks};
    return sb_tuple(5, values);
}

static PyObject *begin(PyObject *object, PyObject *args) {
    sb_calls *self = (sb_calls *)object;
    PyObject *call, *positions, *begun = NULL;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &call, &PyTuple_Type, &positions))
        return NULL;
    PyObject *given = PyTuple_GetItem(call, 0), *kwargs = given ? PyTuple_GetItem(call, 1) : NULL;
    if (!kwargs)
        return NULL;
    sb_arguments sorted = {PyList_New(0), NULL};
    PyObject *written = PyList_New(0);
    if (sorted.tensors && written && sb_sort_items(&self->sorter, given, &sorted) &&
        sb_sort_values(&self->sorter, kwargs, &sorted) && sb_sort_written(&self->sorter, call, positions, written))
        begun = begin_sorted(self, &sorted, written);
    sb_drop_arguments(&sorted);
    Py_XDECREF(written);
    return or_none(begun);
}

/* Appends those that the op did not return, each as often as it was given. */
static int add_written(PyObject *outputs, PyObject *written) {
    const Py_ssize_t returned = sb_size(outputs);
    for (Py_ssize_t i = 0; i < sb_size(written); i++) {
        PyObject *tensor = sb_item(written, i);
        int listed = 0;
        for (Py_ssize_t k = 0; !listed && k < returned; k++)
            listed = sb_item(outputs, k) == tensor;
        if (!listed && PyList_Append(outputs, tensor))
            return 0;
    }
    return 1;
}

static PyObject *finish(PyObject *object, PyObject *args) {
    sb_calls *self = (sb_calls *)object;
    PyObject *inputs, *written, *text, *outcome, *row = NULL;
    const char *digests, *kinds, *bases, *marks;
    Py_ssize_t lengths[4];
    traits op = {.alias = 0};
    if (!PyArg_ParseTuple(args, "(OOO(y#y#y#)y#)Oii", &inputs, &written, &text, &digests, &lengths[0], &kinds, &lengths[1],
                          &bases, &lengths[2], &marks, &lengths[3], &outcome, &op.births, &op.flags))
        return NULL;
    sb_unmark(self->observer, marks, lengths[3]);
    sb_arguments outputs = {PyList_New(0), NULL};
    if (outputs.tensors && (outcome == Py_None || sb_sort_outcome(&self->sorter, outcome, &outputs)) && !outputs.texts &&
        add_written(outputs.tensors, written)) {
        sb_call call = {self, &op, text, digests, kinds, bases, lengths[1], sb_size(inputs)};
        sb_work w = {.tensors = outputs.tensors, .written = written, .births = op.births,
                     .before = {.bases = (uint64_t *)bases, .words = (uint64_t *)(bases + lengths[2])}};
        row = sb_or_none(sb_observe_with(self->observer, &w, finish_row, &call));
    }
    sb_drop_arguments(&outputs);
    return or_none(row);
}

/* ---- the type */

static PyObject *new_calls(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *observer, *memory_map, *next_seq, *name_of;
    if (!PyArg_ParseTuple(args, "OOOO", &observer, &memory_map, &next_seq, &name_of))
        return NULL;
    sb_calls *self = (sb_calls *)PyType_GenericAlloc(type, 0);
    if (self) {
        self->observer = (sb_observer *)Py_NewRef(observer);
        self->memory_map = Py_NewRef(memory_map);
        self->next_seq = Py_NewRef(next_seq);
        self->sorter = (sb_sorter){self->observer->reader, Py_NewRef(name_of)};
    }
    return (PyObject *)self;
}

static void free_calls(PyObject *object) {
    sb_calls *self = (sb_calls *)object;
    Py_XDECREF((PyObject *)self->observer);
    Py_XDECREF(self->memory_map);
    Py_XDECREF(self->next_seq);
    Py_XDECREF(self->sorter.name_of);
    sb_free(object);
}

static PyMethodDef methods[] = {
    {"observe", observe, METH_VARARGS,
     "observe(args, kwargs, outcome, births, flags, alias) -> tuple[int, bytes, bytes, bytes, str] | None\n\nSee an op that "
     "wrote to no argument: the number of its event, a key of its layout, digests, links and a text of what is no tensor. "
     "None for one that takes the slow way."},
    {"begin", begin, METH_VARARGS,
     "begin((args, kwargs), (positions, keywords)) -> tuple | None\n\nBefore an op that writes to these arguments: inputs, "
     "those written to, the text, what Observer.begin gives. None as above."},
    {"finish", finish, METH_VARARGS,
     "finish(begun, outcome, births, flags) -> tuple | None\n\nAfter it, as `observe`. The storages are no longer being "
     "written to in any case."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Calls(observer, memory_map, next_seq, name_of)\n\nSees calls of ops; `name_of` gives the text of an argument "
                "that is neither a tensor nor a number."},
    {Py_tp_new, new_calls},
    {Py_tp_dealloc, free_calls},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec sb_calls_spec = {
    .name = "samebits._reader.Calls",
    .basicsize = sizeof(sb_calls),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
