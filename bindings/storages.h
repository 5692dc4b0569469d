/* What torch says of the storages of tensors. */
#ifndef SAMEBITS_STORAGES_H
#define SAMEBITS_STORAGES_H

#include "reader.h"

/* Methods of torch, as they were before anything replaced them, and names of attributes. */
typedef struct {
    PyObject *untyped_storage, *weak_ref, *free_weak_ref, *expired, *resizable;
    PyObject *cdata, *version;
} sb_questions;

typedef struct {
    PyObject *object; /* a new reference */
    uint64_t storage; /* the address of torch's own object */
    int64_t version;  /* how often the tensor was written to, as far as torch knows */
    int resizable;    /* no longer once NumPy has its address; never for memory that torch did not allocate */
} sb_identity;

/* 0 and an exception if torch has other names. */
int sb_find_methods(sb_questions *ask, PyObject *tensor, PyObject *storage);
void sb_drop_methods(sb_questions *ask);

/* 0, without an exception, for a tensor without a storage or without a version. */
int sb_identify(const sb_questions *ask, PyObject *tensor, sb_identity *found);

/* The address of a tensor's storage object; 0 if it has none. */
uint64_t sb_storage_of(const sb_questions *ask, PyObject *tensor);

/* Keeps the address of a storage object from becoming that of another, though not its memory; 0 if that fails. */
uint64_t sb_hold(const sb_questions *ask, const sb_identity *made);
void sb_let_go(const sb_questions *ask, uint64_t storage);

/* Tells whether a storage that is held has been freed. */
int sb_is_expired(const sb_questions *ask, uint64_t storage);

#endif
