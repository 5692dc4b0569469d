/* Digests of the tensors of ops, without reading again what is known. docs/reference/recording.md says when that is so. */
#ifndef SAMEBITS_OBSERVE_H
#define SAMEBITS_OBSERVE_H

#include "contents.h"
#include "describe.h"
#include "libraries.h"
#include "storages.h"

/* As in native/digest.h. */
typedef struct {
    uint64_t *sums;
    const unsigned char *known;
    int threads;
} sb_rest;

typedef struct {
    PyObject_HEAD
    sb_reader *reader;
    sb_questions questions;
    int64_t (*digest_rest)(const uint64_t *, size_t, size_t, uint64_t *, const sb_rest *);
    sb_contents all;
    sb_libraries libraries;
    size_t swept; /* storages that were left by the last sweep */
    uint64_t asked, spared; /* bytes of all tensors, and of those that were not read */
} sb_observer;

/* One tensor. `base` is 0 where it is to be read in any case, `change` where its contents are not to be kept. */
typedef struct {
    uint64_t base, change;
    sb_content content;
} sb_part;

/* The tensors of one call, and what is found of them. */
typedef struct {
    PyObject *tensors;
    size_t count, n_inputs;
    uint64_t *words, *kinds, *bases;
    sb_cursor end;
    sb_part *parts;
    unsigned char *known;
    uint64_t *sums;
    PyObject *written; /* arguments that the op wrote to; NULL for none */
    sb_cursor before;  /* `bases` to `words`: where the storages of the op's inputs began */
    int births;        /* whether a storage that was not an input's is a new one */
} sb_work;

/* Makes a result of what was found, and takes the reference to the digests. */
typedef PyObject *(*sb_result)(const sb_work *w, PyObject *digests, void *context);

/* What `make` returns; NULL, perhaps with an exception, as Reader.observe. `tensors`, `n_inputs`, `written`, `before` and
 * `births` are set. */
PyObject *sb_observe_with(sb_observer *self, sb_work *w, sb_result make, void *context);

/* The same with what Reader.observe gives. */
PyObject *sb_observe(sb_observer *self, sb_work *w);

/* Marks the storage of each written tensor, all of them inputs, as being written to. Returns the marks as bytes; NULL,
 * perhaps with an exception. */
PyObject *sb_mark_written(sb_observer *self, PyObject *inputs, PyObject *written, const uint64_t *bases);

/* Takes the marks away; what was known of the storages is forgotten. */
void sb_unmark(sb_observer *self, const char *marks, Py_ssize_t length);

#endif
