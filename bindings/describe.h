/* Descriptors (native/digest.h) of tensors, from their Python objects. */
#ifndef SAMEBITS_DESCRIBE_H
#define SAMEBITS_DESCRIBE_H

#include "reader.h"

/* Words of a descriptor of a tensor with this many dimensions; those with more take the slow way. */
#define SB_MOST_DIMS 12
#define SB_MOST_WORDS (2 + 2 * SB_MOST_DIMS)
#define SB_STRIDED_BIT ((uint64_t)1 << 12)
#define SB_DIMS_BIT 20
/* Descriptors of this many tensors lie on the stack. */
#define SB_FEW 8

typedef struct {
    PyObject_HEAD
    PyObject *tensor, *parameter; /* the classes whose objects are read here */
    PyObject *is_neg, *is_conj, *is_zero, *storage_offset;
    PyObject *dtype, *int8, *uint8;
    PyObject *n_threads;
    int (*tensor_from_object)(void *, dl_tensor *);
    int64_t (*digest_to)(const uint64_t *, size_t, size_t, uint64_t *);
    int64_t (*digest_threaded)(const uint64_t *, size_t, size_t, uint64_t *, int);
} sb_reader;

/* The lists that are written while tensors are read; `kinds` and `bases` may be NULL. */
typedef struct {
    uint64_t *words, *kinds, *bases;
} sb_cursor;

/* 1 and the tensor as DLPack describes it; 0 for one that takes the slow way, perhaps with an exception. */
int sb_describe(const sb_reader *self, PyObject *object, int device_type, dl_tensor *view, uint64_t *header);

/* Returns the address of its storage; 0 and perhaps an exception. */
int sb_base_of(const sb_reader *self, PyObject *object, const dl_tensor *view, uint64_t header, uint64_t *base);

/* Appends dtype and sizes, and where the storage begins; 0 as `sb_describe`. */
int sb_note(const sb_reader *self, PyObject *object, const dl_tensor *view, uint64_t header, sb_cursor *to);

/* Appends one tensor; 0 as `sb_describe`. */
int sb_add_tensor(const sb_reader *self, PyObject *object, sb_cursor *to);

/* The number of threads that torch uses; -1 and an exception. */
long sb_n_threads(const sb_reader *self);

/* NULL without an exception becomes None, as do the exceptions of tensors without sizes or an address: the caller
 * has a slow way that knows what to say. */
PyObject *sb_or_none(PyObject *result);

static inline PyObject *sb_bytes_of(const uint64_t *from, const uint64_t *to) {
    return PyBytes_FromStringAndSize((const char *)from, (const char *)to - (const char *)from);
}

/* Tells whether these are a list or tuple; sets an exception if not. */
int sb_is_fast(PyObject *tensors);

#endif
