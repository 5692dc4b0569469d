#include "links.h"
#include "memory_map.h"

#define NO_WRITER (-1)
/* Flags of the op whose links are asked for. */
enum { SOURCE = 1, RANDOM = 2, WRITES = 4 };

typedef struct {
    PyObject_HEAD
    sb_memory_map map;
    int32_t serial;
} memory;

static sb_bases bases_of(const char *bytes, Py_ssize_t length) { return (sb_bases){(const uint64_t *)bytes, length / 8}; }

/* ---- links of an op: see MemoryMap.op_links in recording/probes/op_calls.py, step by step the same */

/* The entry of an address; that of address 0, where no storage is, lasts for one op. */
static sb_entry *find(memory *self, sb_entry *nowhere, uint64_t base) {
    if (base)
        return sb_map_find(&self->map, base);
    return nowhere->serial ? nowhere : NULL;
}

static int set(memory *self, sb_entry *nowhere, uint64_t base, sb_entry entry) {
    if (!base)
        *nowhere = entry;
    return sb_map_set(&self->map, base, entry);
}

static int contains(sb_bases all, uint64_t base) {
    for (Py_ssize_t i = 0; i < all.count; i++)
        if (all.bases[i] == base)
            return 1;
    return 0;
}

static int link_inputs(memory *self, sb_entry *nowhere, sb_bases inputs, int flags, sb_entry *links) {
    for (Py_ssize_t i = 0; i < inputs.count; i++) {
        const sb_entry *known = flags & SOURCE ? NULL : find(self, nowhere, inputs.bases[i]);
        links[i] = known ? *known : (sb_entry){++self->serial, NO_WRITER};
        if (!known && !set(self, nowhere, inputs.bases[i], links[i]))
            return 0;
    }
    return 1;
}

static int link_outputs(memory *self, sb_entry *nowhere, sb_bases inputs, sb_bases outputs, int32_t seq, int flags,
                        sb_entry *links) {
    for (Py_ssize_t i = 0; i < outputs.count; i++) {
        const uint64_t base = outputs.bases[i];
        const int known = contains(inputs, base);
        links[i] = known ? *find(self, nowhere, base) : (sb_entry){++self->serial, NO_WRITER};
        const int written = !known || flags & (WRITES | SOURCE);
        if (written && !set(self, nowhere, base, (sb_entry){links[i].serial, seq}))
            return 0;
    }
    return 1;
}

PyObject *sb_op_links(PyObject *object, int seq, sb_bases inputs, sb_bases outputs, int flags) {
    memory *self = (memory *)object;
    const int random = (flags & RANDOM) != 0;
    PyObject *result = PyBytes_FromStringAndSize(NULL, 8 * (inputs.count + random + outputs.count));
    if (result) {
        sb_entry *links = (sb_entry *)PyBytes_AsString(result), nowhere = {0, NO_WRITER};
        if (random)
            links[inputs.count] = (sb_entry){0, NO_WRITER};
        if (!link_inputs(self, &nowhere, inputs, flags, links) ||
            !link_outputs(self, &nowhere, inputs, outputs, seq, flags, links + inputs.count + random)) {
            Py_CLEAR(result);
            PyErr_NoMemory();
        }
    }
    return result;
}

static PyObject *op_links(PyObject *object, PyObject *args) {
    int seq, flags;
    const char *in, *out;
    Py_ssize_t in_length, out_length;
    if (!PyArg_ParseTuple(args, "iy#y#i", &seq, &in, &in_length, &out, &out_length, &flags))
        return NULL;
    return sb_op_links(object, seq, bases_of(in, in_length), bases_of(out, out_length), flags);
}

/* ---- links of another event */

static PyObject *event_links(PyObject *object, PyObject *args) {
    int seq, writes;
    const char *bytes;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "iy#p", &seq, &bytes, &length, &writes))
        return NULL;
    memory *self = (memory *)object;
    const sb_bases all = bases_of(bytes, length);
    PyObject *result = PyBytes_FromStringAndSize(NULL, 8 * all.count);
    sb_entry *links = result ? (sb_entry *)PyBytes_AsString(result) : NULL;
    for (Py_ssize_t i = 0; result && i < all.count; i++) {
        const sb_entry *known = writes ? NULL : sb_map_find(&self->map, all.bases[i]);
        links[i] = known ? *known : (sb_entry){writes && all.bases[i] ? ++self->serial : 0, NO_WRITER};
        if (writes && !sb_map_set(&self->map, all.bases[i], (sb_entry){links[i].serial, seq})) {
            Py_CLEAR(result);
            PyErr_NoMemory();
        }
    }
    return result;
}

/* ---- the type */

static void free_memory(PyObject *object) {
    sb_map_free(&((memory *)object)->map);
    sb_free(object);
}

static PyMethodDef methods[] = {
    {"op_links", op_links, METH_VARARGS,
     "op_links(seq, inputs, outputs, flags) -> bytes\n\nAs the method of samebits.recording.probes.op_calls.MemoryMap."},
    {"event_links", event_links, METH_VARARGS, "event_links(seq, bases, writes) -> bytes\n\nLikewise."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "MemoryMap()\n\nWhich event last wrote a storage, by its address."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, free_memory},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec sb_memory_spec = {
    .name = "samebits._reader.MemoryMap",
    .basicsize = sizeof(memory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
