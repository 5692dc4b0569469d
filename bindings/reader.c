#include "describe.h"

#include <string.h>

/* ---- many tensors */

/* The digests that descriptors ask for; NULL, perhaps with an exception. */
static PyObject *digest(const sb_reader *self, const uint64_t *words, size_t n_words, size_t count) {
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(16 * count));
    if (!result)
        return NULL;
    uint64_t *out = (uint64_t *)PyBytes_AsString(result);
    int64_t status = self->digest_to(words, n_words, count, out);
    if (status > 0) {
        const long n = sb_n_threads(self);
        if (n > 0) {
            Py_BEGIN_ALLOW_THREADS
            status = self->digest_threaded(words, n_words, count, out, (int)n);
            Py_END_ALLOW_THREADS
        }
    }
    if (status)
        Py_CLEAR(result);
    return result;
}

/* Reads all tensors of a list or tuple and digests them; `whole` asks for kinds and bases too. */
static PyObject *read_all(const sb_reader *self, PyObject *tensors, int whole) {
    const size_t count = (size_t)sb_size(tensors);
    uint64_t few[SB_FEW * 2 * SB_MOST_WORDS], *memory = few;
    if (count > SB_FEW && !(memory = PyMem_Malloc(8 * count * 2 * SB_MOST_WORDS)))
        return NULL;
    uint64_t *kinds = memory + count * SB_MOST_WORDS, *bases = kinds + count * (1 + SB_MOST_DIMS);
    sb_cursor to = {memory, whole ? kinds : NULL, whole ? bases : NULL};
    PyObject *result = NULL;
    size_t i = 0;
    while (i < count && i < (size_t)sb_size(tensors) &&
           sb_add_tensor(self, sb_item(tensors, i), &to))
        i++;
    if (i == count) {
        result = digest(self, memory, (size_t)(to.words - memory), count);
        if (result && whole)
            result = sb_three(result, sb_bytes_of(kinds, to.kinds), sb_bytes_of(bases, to.bases));
    }
    if (memory != few)
        PyMem_Free(memory);
    return result;
}

/* Returns the addresses of all storages. */
static PyObject *read_bases(const sb_reader *self, PyObject *tensors) {
    const Py_ssize_t count = sb_size(tensors);
    PyObject *result = PyBytes_FromStringAndSize(NULL, 8 * count);
    Py_ssize_t i = 0;
    while (result && i < count && i < sb_size(tensors)) {
        PyObject *tensor = sb_item(tensors, i);
        uint64_t header, *base = (uint64_t *)PyBytes_AsString(result) + i++;
        dl_tensor view;
        if (!sb_describe(self, tensor, DL_CPU, &view, &header) || !sb_base_of(self, tensor, &view, header, base))
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *digests(PyObject *self, PyObject *tensors) {
    return sb_is_fast(tensors) ? sb_or_none(read_all((const sb_reader *)self, tensors, 0)) : NULL;
}

static PyObject *observe(PyObject *self, PyObject *tensors) {
    return sb_is_fast(tensors) ? sb_or_none(read_all((const sb_reader *)self, tensors, 1)) : NULL;
}

static PyObject *bases(PyObject *self, PyObject *tensors) {
    return sb_is_fast(tensors) ? sb_or_none(read_bases((const sb_reader *)self, tensors)) : NULL;
}

/* ---- tables for kernels: see _described in digest/_cuda_backend.py, word by word the same */

/* Where the parts of a table for this many tensors are written: `words` holds FIELDS words for each, then one more unit
 * than there are tensors, then all sizes. */
typedef struct {
    int device_type, device_id;
    uint64_t unit; /* bytes of one piece of work */
    uint64_t *row, *units, *sizes;
    sb_cursor noted;
} table;

#define FIELDS 5

/* Tells whether the contents lie in order, as torch's is_contiguous does. */
static int is_in_order(const dl_tensor *view, uint64_t *n_elements) {
    int64_t stride = 1;
    int in_order = 1;
    for (int i = view->n_dims - 1; i >= 0; i--) {
        in_order &= view->sizes[i] == 1 || view->strides[i] == stride;
        stride *= view->sizes[i];
    }
    *n_elements = (uint64_t)stride;
    return in_order || stride == 0;
}

/* Appends one tensor whose contents lie in order; 0 as `describe`. */
static int append_row(const sb_reader *self, PyObject *object, table *to, const uint64_t *first_size) {
    dl_tensor view;
    uint64_t header, n_elements;
    if (!sb_describe(self, object, to->device_type, &view, &header) || view.device_id != to->device_id ||
        !is_in_order(&view, &n_elements) || (n_elements && !view.data) ||
        !sb_note(self, object, &view, header, &to->noted))
        return 0;
    const uint64_t n_bytes = n_elements << (header >> 8 & 0xF);
    const uint64_t row[FIELDS] = {n_elements ? (uint64_t)(uintptr_t)view.data + view.byte_offset : 0, n_bytes,
                                  header & 0xFF, (uint64_t)view.n_dims, (uint64_t)(to->sizes - first_size)};
    memcpy(to->row, row, sizeof row);
    to->row += FIELDS;
    to->units[1] = to->units[0] + n_bytes / to->unit + (n_bytes % to->unit != 0);
    to->units++;
    memcpy(to->sizes, view.sizes, 8 * (size_t)view.n_dims);
    to->sizes += view.n_dims;
    return 1;
}

/* Reads all tensors of a list or tuple into a table. */
static PyObject *read_table(const sb_reader *self, PyObject *tensors, table *to) {
    const size_t count = (size_t)sb_size(tensors), head = (FIELDS + 1) * count + 1;
    uint64_t *words = PyMem_Malloc(8 * (head + count * (2 + 2 * SB_MOST_DIMS)));
    if (!words)
        return PyErr_NoMemory();
    uint64_t *kinds = words + head + count * SB_MOST_DIMS, *bases = kinds + count * (1 + SB_MOST_DIMS);
    to->row = words;
    to->units = words + FIELDS * count;
    to->units[0] = 0;
    to->sizes = words + head;
    to->noted = (sb_cursor){NULL, kinds, bases};
    size_t i = 0;
    while (i < count && i < (size_t)sb_size(tensors) && append_row(self, sb_item(tensors, i), to, words + head))
        i++;
    PyObject *result = NULL;
    if (i == count)
        result = sb_three(sb_bytes_of(words, to->sizes), sb_bytes_of(kinds, to->noted.kinds), sb_bytes_of(bases, to->noted.bases));
    PyMem_Free(words);
    return result;
}

static PyObject *rows(PyObject *self, PyObject *args) {
    PyObject *tensors;
    unsigned long long unit;
    table to;
    if (!PyArg_ParseTuple(args, "OiiK", &tensors, &to.device_type, &to.device_id, &unit) || !sb_is_fast(tensors))
        return NULL;
    to.unit = unit ? unit : 1;
    return sb_or_none(read_table((const sb_reader *)self, tensors, &to));
}

/* ---- the type */

static PyObject *new_reader(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *capsule, *tensor, *parameter, *int8, *uint8, *n_threads;
    unsigned long long digest_to, digest_threaded;
    if (!PyArg_ParseTuple(args, "O(OO)(OO)OKK", &capsule, &tensor, &parameter, &int8, &uint8, &n_threads, &digest_to,
                          &digest_threaded))
        return NULL;
    const dl_exchange *exchange = sb_exchange_of(capsule);
    sb_reader *self = exchange ? (sb_reader *)PyType_GenericAlloc(type, 0) : NULL;
    if (!self)
        return NULL;
    self->tensor = Py_NewRef(tensor);
    self->parameter = Py_NewRef(parameter);
    self->int8 = Py_NewRef(int8);
    self->uint8 = Py_NewRef(uint8);
    self->n_threads = Py_NewRef(n_threads);
    self->dtype = PyUnicode_InternFromString("dtype");
    self->is_neg = PyObject_GetAttrString(tensor, "is_neg");
    self->is_conj = PyObject_GetAttrString(tensor, "is_conj");
    self->is_zero = PyObject_GetAttrString(tensor, "_is_zerotensor");
    self->storage_offset = PyObject_GetAttrString(tensor, "storage_offset");
    self->tensor_from_object = exchange->tensor_from_object;
    self->digest_to = (int64_t(*)(const uint64_t *, size_t, size_t, uint64_t *))(uintptr_t)digest_to;
    self->digest_threaded =
        (int64_t(*)(const uint64_t *, size_t, size_t, uint64_t *, int))(uintptr_t)digest_threaded;
    if (!self->dtype || !self->is_neg || !self->is_conj || !self->is_zero || !self->storage_offset)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void free_reader(PyObject *object) {
    sb_reader *self = (sb_reader *)object;
    Py_XDECREF(self->tensor);
    Py_XDECREF(self->parameter);
    Py_XDECREF(self->n_threads);
    Py_XDECREF(self->int8);
    Py_XDECREF(self->uint8);
    Py_XDECREF(self->dtype);
    Py_XDECREF(self->is_neg);
    Py_XDECREF(self->is_conj);
    Py_XDECREF(self->is_zero);
    Py_XDECREF(self->storage_offset);
    sb_free(object);
}

static PyMethodDef methods[] = {
    {"digests", digests, METH_O,
     "digests(tensors) -> bytes | None\n\n16 bytes for each tensor of a list or tuple; None if one is not a plain CPU "
     "tensor of a common dtype."},
    {"observe", observe, METH_O,
     "observe(tensors) -> tuple[bytes, bytes, bytes] | None\n\nDigests; dtypes and sizes; 8 bytes for each tensor that "
     "say where its storage begins. None as for `digests`."},
    {"rows", rows, METH_VARARGS,
     "rows(tensors, device_type, device_id, unit) -> tuple[bytes, bytes, bytes] | None\n\nThe table that "
     "native/cuda/digest_body.h reads, in units of that many bytes; dtypes and sizes, storages as for `observe`. None if "
     "one is not a plain tensor of that device (DLPack's numbers) with its contents in order."},
    {"bases", bases, METH_O, "bases(tensors) -> bytes | None\n\nThe last part of what `observe` gives."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Reader(exchange, (Tensor, Parameter), (int8, uint8), get_num_threads, digest_to, digest_threaded)\n\n"
     "Reads plain tensors; the last two are addresses of functions of native/digest.h."},
    {Py_tp_new, new_reader},
    {Py_tp_dealloc, free_reader},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec sb_reader_spec = {
    .name = "samebits._reader.Reader",
    .basicsize = sizeof(sb_reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
