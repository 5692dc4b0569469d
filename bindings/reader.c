#include "reader.h"

#include <string.h>

/* Words of a descriptor (native/digest.h) of a tensor with this many dimensions; those with more take the slow way. */
#define MOST_DIMS 12
#define MOST_WORDS (2 + 2 * MOST_DIMS)
#define STRIDED ((uint64_t)1 << 12)
#define N_DIMS 20
/* Descriptors of this many tensors lie on the stack. */
#define FEW 8

typedef struct {
    PyObject_HEAD
    PyObject *tensor, *parameter; /* the classes whose objects are read here */
    PyObject *is_neg, *is_conj, *is_zero, *storage_offset;
    PyObject *dtype, *int8, *uint8;
    PyObject *n_threads;
    int (*tensor_from_object)(void *, dl_tensor *);
    int64_t (*digest_to)(const uint64_t *, size_t, size_t, uint64_t *);
    int64_t (*digest_threaded)(const uint64_t *, size_t, size_t, uint64_t *, int);
} reader;

/* The lists that are written while tensors are read; `kinds` and `bases` may be NULL. */
typedef struct {
    uint64_t *words, *kinds, *bases;
} cursor;

/* ---- one tensor */

/* Dtype code and log2 of the bytes of an element (digest/_definition.py); 0 for dtypes that take the slow way. */
static uint64_t header_of(dl_dtype dtype) {
    static const uint8_t codes[7][5] = {
        [DL_INT] = {3, 4, 5, 6}, [DL_UINT] = {2, 7, 8, 9}, [DL_FLOAT] = {0, 10, 12, 13}, [DL_BFLOAT] = {0, 11},
        [DL_COMPLEX] = {0, 0, 14, 15, 16}, [DL_BOOL] = {1},
    };
    unsigned shift = 0;
    while (shift < 4 && 8u << shift < dtype.bits)
        shift++;
    if (dtype.code > DL_BOOL || dtype.lanes != 1 || 8u << shift != dtype.bits || !codes[dtype.code][shift])
        return 0;
    return codes[dtype.code][shift] | (uint64_t)shift << 8;
}

/* 1, 0, or -1 and an exception. */
static int ask(PyObject *method, PyObject *tensor) {
    PyObject *answer = PyObject_CallFunctionObjArgs(method, tensor, NULL);
    const int result = answer == NULL ? -1 : answer == Py_True;
    Py_XDECREF(answer);
    return result;
}

/* 1 for a lazily negated or conjugated view, 0 for none, -1 and an exception. */
static int is_lazy(const reader *self, PyObject *tensor, dl_dtype dtype) {
    if (dtype.code != DL_FLOAT && dtype.code != DL_BFLOAT && dtype.code != DL_COMPLEX)
        return 0;
    const int negated = ask(self->is_neg, tensor);
    return negated || dtype.code != DL_COMPLEX ? negated : ask(self->is_conj, tensor);
}

/* Tells whether an 8-bit integer is one: torch exports its int1 to int7 and uint1 to uint7 under that name. */
static int is_whole_byte(const reader *self, PyObject *tensor, dl_dtype dtype) {
    PyObject *name = PyObject_GetAttr(tensor, self->dtype);
    const int result = name == (dtype.code == DL_INT ? self->int8 : self->uint8);
    Py_XDECREF(name);
    return result;
}

/* 1 and the tensor as DLPack describes it; 0 for one that takes the slow way, perhaps with an exception. */
static int describe(const reader *self, PyObject *object, int device_type, dl_tensor *view, uint64_t *header) {
    PyObject *type = (PyObject *)Py_TYPE(object);
    if ((type != self->tensor && type != self->parameter) || self->tensor_from_object(object, view))
        return 0;
    if (view->device_type != device_type || view->n_dims > MOST_DIMS)
        return 0;
    if (view->dtype.code <= DL_UINT && view->dtype.bits == 8 && !is_whole_byte(self, object, view->dtype))
        return 0;
    *header = header_of(view->dtype) | (uint64_t)view->n_dims << N_DIMS;
    return (*header & 0xFF) && !is_lazy(self, object, view->dtype) && !sb_stands_for_zeros(self->is_zero, object, view);
}

/* Returns the address of its storage; 0 and perhaps an exception. */
static int base_of(const reader *self, PyObject *object, const dl_tensor *view, uint64_t header, uint64_t *base) {
    PyObject *offset = PyObject_CallFunctionObjArgs(self->storage_offset, object, NULL);
    const long long elements = offset ? PyLong_AsLongLong(offset) : -1;
    Py_XDECREF(offset);
    *base = (uint64_t)(uintptr_t)view->data - ((uint64_t)elements << (header >> 8 & 0xF));
    return elements >= 0;
}

/* Appends dtype and sizes, and where the storage begins; 0 as `describe`. */
static int note(const reader *self, PyObject *object, const dl_tensor *view, uint64_t header, cursor *to) {
    if (!base_of(self, object, view, header, to->bases++))
        return 0;
    *to->kinds++ = header;
    memcpy(to->kinds, view->sizes, 8 * (size_t)view->n_dims);
    to->kinds += view->n_dims;
    return 1;
}

/* Appends one tensor; 0 as `describe`. */
static int append(const reader *self, PyObject *object, cursor *to) {
    dl_tensor view;
    uint64_t header;
    if (!describe(self, object, DL_CPU, &view, &header) || (to->bases && !note(self, object, &view, header, to)))
        return 0;
    const size_t n = (size_t)view.n_dims;
    *to->words++ = (uint64_t)(uintptr_t)view.data + view.byte_offset;
    *to->words++ = header | STRIDED;
    memcpy(to->words, view.sizes, 8 * n);
    memcpy(to->words + n, view.strides, 8 * n);
    to->words += 2 * n;
    return 1;
}

/* ---- many tensors */

/* The digests that descriptors ask for; NULL, perhaps with an exception. */
static PyObject *digest(const reader *self, const uint64_t *words, size_t n_words, size_t count) {
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(16 * count));
    if (!result)
        return NULL;
    uint64_t *out = (uint64_t *)PyBytes_AsString(result);
    int64_t status = self->digest_to(words, n_words, count, out);
    if (status > 0) {
        PyObject *threads = PyObject_CallNoArgs(self->n_threads);
        const long n = threads ? PyLong_AsLong(threads) : -1;
        Py_XDECREF(threads);
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

/* NULL without an exception becomes None, as do the exceptions of tensors without sizes or an address: the caller
 * has a slow way that knows what to say. */
static PyObject *or_none(PyObject *result) {
    if (result)
        return result;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyObject *bytes_of(const uint64_t *from, const uint64_t *to) {
    return PyBytes_FromStringAndSize((const char *)from, (const char *)to - (const char *)from);
}

static PyObject *triple(PyObject *digests, PyObject *kinds, PyObject *bases) {
    PyObject *result = digests && kinds && bases ? PyTuple_Pack(3, digests, kinds, bases) : NULL;
    Py_XDECREF(digests);
    Py_XDECREF(kinds);
    Py_XDECREF(bases);
    return result;
}

/* Reads all tensors of a list or tuple and digests them; `whole` asks for kinds and bases too. */
static PyObject *read_all(const reader *self, PyObject *tensors, int whole) {
    const size_t count = (size_t)sb_size(tensors);
    uint64_t few[FEW * 2 * MOST_WORDS], *memory = few;
    if (count > FEW && !(memory = PyMem_Malloc(8 * count * 2 * MOST_WORDS)))
        return NULL;
    uint64_t *kinds = memory + count * MOST_WORDS, *bases = kinds + count * (1 + MOST_DIMS);
    cursor to = {memory, whole ? kinds : NULL, whole ? bases : NULL};
    PyObject *result = NULL;
    size_t i = 0;
    while (i < count && i < (size_t)sb_size(tensors) &&
           append(self, sb_item(tensors, i), &to))
        i++;
    if (i == count) {
        result = digest(self, memory, (size_t)(to.words - memory), count);
        if (result && whole)
            result = triple(result, bytes_of(kinds, to.kinds), bytes_of(bases, to.bases));
    }
    if (memory != few)
        PyMem_Free(memory);
    return result;
}

static int is_fast(PyObject *tensors) {
    const int fast = PyList_CheckExact(tensors) || PyTuple_CheckExact(tensors);
    if (!fast)
        PyErr_SetString(PyExc_TypeError, "expected a list or tuple of tensors");
    return fast;
}

/* Returns the addresses of all storages. */
static PyObject *read_bases(const reader *self, PyObject *tensors) {
    const Py_ssize_t count = sb_size(tensors);
    PyObject *result = PyBytes_FromStringAndSize(NULL, 8 * count);
    Py_ssize_t i = 0;
    while (result && i < count && i < sb_size(tensors)) {
        PyObject *tensor = sb_item(tensors, i);
        uint64_t header, *base = (uint64_t *)PyBytes_AsString(result) + i++;
        dl_tensor view;
        if (!describe(self, tensor, DL_CPU, &view, &header) || !base_of(self, tensor, &view, header, base))
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *digests(PyObject *self, PyObject *tensors) {
    return is_fast(tensors) ? or_none(read_all((const reader *)self, tensors, 0)) : NULL;
}

static PyObject *observe(PyObject *self, PyObject *tensors) {
    return is_fast(tensors) ? or_none(read_all((const reader *)self, tensors, 1)) : NULL;
}

static PyObject *bases(PyObject *self, PyObject *tensors) {
    return is_fast(tensors) ? or_none(read_bases((const reader *)self, tensors)) : NULL;
}

/* ---- tables for kernels: see _described in digest/_cuda_backend.py, word by word the same */

/* Where the parts of a table for this many tensors are written: `words` holds FIELDS words for each, then one more unit
 * than there are tensors, then all sizes. */
typedef struct {
    int device_type, device_id;
    uint64_t unit; /* bytes of one piece of work */
    uint64_t *row, *units, *sizes;
    cursor noted;
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
static int append_row(const reader *self, PyObject *object, table *to, const uint64_t *first_size) {
    dl_tensor view;
    uint64_t header, n_elements;
    if (!describe(self, object, to->device_type, &view, &header) || view.device_id != to->device_id ||
        !is_in_order(&view, &n_elements) || (n_elements && !view.data) ||
        !note(self, object, &view, header, &to->noted))
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
static PyObject *read_table(const reader *self, PyObject *tensors, table *to) {
    const size_t count = (size_t)sb_size(tensors), head = (FIELDS + 1) * count + 1;
    uint64_t *words = PyMem_Malloc(8 * (head + count * (2 + 2 * MOST_DIMS)));
    if (!words)
        return PyErr_NoMemory();
    uint64_t *kinds = words + head + count * MOST_DIMS, *bases = kinds + count * (1 + MOST_DIMS);
    to->row = words;
    to->units = words + FIELDS * count;
    to->units[0] = 0;
    to->sizes = words + head;
    to->noted = (cursor){NULL, kinds, bases};
    size_t i = 0;
    while (i < count && i < (size_t)sb_size(tensors) && append_row(self, sb_item(tensors, i), to, words + head))
        i++;
    PyObject *result = NULL;
    if (i == count)
        result = triple(bytes_of(words, to->sizes), bytes_of(kinds, to->noted.kinds), bytes_of(bases, to->noted.bases));
    PyMem_Free(words);
    return result;
}

static PyObject *rows(PyObject *self, PyObject *args) {
    PyObject *tensors;
    unsigned long long unit;
    table to;
    if (!PyArg_ParseTuple(args, "OiiK", &tensors, &to.device_type, &to.device_id, &unit) || !is_fast(tensors))
        return NULL;
    to.unit = unit ? unit : 1;
    return or_none(read_table((const reader *)self, tensors, &to));
}

/* ---- the type */

dl_exchange *sb_exchange_of(PyObject *capsule) {
    dl_exchange *exchange = PyCapsule_GetPointer(capsule, DL_EXCHANGE_CAPSULE);
    while (exchange && exchange->major != DL_MAJOR)
        exchange = exchange->previous;
    if (!PyErr_Occurred() && (!exchange || !exchange->tensor_from_object))
        PyErr_SetString(PyExc_ValueError, "no DLPack exchange of version 1");
    return PyErr_Occurred() ? NULL : exchange;
}

static PyObject *new_reader(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *capsule, *tensor, *parameter, *int8, *uint8, *n_threads;
    unsigned long long digest_to, digest_threaded;
    if (!PyArg_ParseTuple(args, "O(OO)(OO)OKK", &capsule, &tensor, &parameter, &int8, &uint8, &n_threads, &digest_to,
                          &digest_threaded))
        return NULL;
    const dl_exchange *exchange = sb_exchange_of(capsule);
    reader *self = exchange ? (reader *)PyType_GenericAlloc(type, 0) : NULL;
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
    reader *self = (reader *)object;
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
    .basicsize = sizeof(reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
