#include "observe.h"

#include <string.h>

/* A tensor of fewer bytes is read faster than it is looked up. */
#define LEAST_BYTES ((uint64_t)1 << 14)
#define LEAST_SWEPT 256

/* ---- storages that are gone */

/* Drops the storages that torch has freed, when there are twice as many as the last time. Python may run in between. */
static void sweep(sb_observer *self) {
    if (self->all.used < LEAST_SWEPT || self->all.used < 2 * self->swept)
        return;
    for (size_t i = 0; i < self->all.n_slots;) {
        const sb_storage *storage = self->all.slots[i];
        const uint64_t object = storage ? storage->storage : 0, change = storage ? storage->change : 0;
        const int gone = storage && sb_is_expired(&self->questions, object);
        const int same = gone && i < self->all.n_slots && self->all.slots[i] && self->all.slots[i]->change == change;
        if (same)
            sb_let_go(&self->questions, sb_contents_take(&self->all, i));
        else
            i++;
    }
    self->swept = self->all.used;
}

/* ---- the tensors of one call */

static int contains(const uint64_t *from, const uint64_t *to, uint64_t base) {
    while (from < to)
        if (*from++ == base)
            return 1;
    return 0;
}

/* Tells whether a tensor has the storage of an argument that the op wrote to, which may have got other memory. */
static int is_of_written(const sb_observer *self, const sb_work *w, uint64_t storage) {
    int found = 0;
    for (Py_ssize_t i = 0; w->written && !found && i < sb_size(w->written); i++) {
        sb_identity known;
        if (sb_identify(&self->questions, sb_item(w->written, i), &known)) {
            found = known.storage == storage;
            Py_DECREF(known.object);
        }
    }
    return found;
}

/* The storage of an output that the op made; NULL if it cannot be trusted. */
static sb_storage *give_birth(sb_observer *self, uint64_t base, const sb_identity *made) {
    uint64_t replaced;
    const uint64_t object = sb_hold(&self->questions, made);
    if (!object)
        return NULL;
    sweep(self);
    sb_storage *storage = sb_contents_add(&self->all, base, object, &replaced);
    const uint64_t change = storage ? storage->change : 0;
    sb_let_go(&self->questions, storage ? replaced : object);
    storage = sb_contents_find(&self->all, base);
    return storage && storage->change == change ? storage : NULL;
}

static int is_new(const sb_work *w, size_t i) {
    return w->births && i >= w->n_inputs && !contains(w->bases, w->bases + i, w->parts[i].base) &&
           !contains(w->before.bases, w->before.words, w->parts[i].base);
}

/* The storage of tensor i, if it is trusted. */
static sb_storage *storage_of(sb_observer *self, const sb_work *w, size_t i, const sb_identity *seen) {
    const uint64_t base = w->parts[i].base;
    sb_storage *storage = sb_contents_find(&self->all, base);
    if ((!storage || storage->storage != seen->storage) && is_new(w, i) && seen->resizable &&
        !is_of_written(self, w, seen->storage))
        storage = give_birth(self, base, seen);
    else
        storage = sb_contents_find(&self->all, base);
    if (!storage || storage->storage != seen->storage)
        return NULL;
    storage->exposed |= !seen->resizable; /* NumPy, or another process, has its address */
    return storage->exposed || storage->writing ? NULL : storage;
}

static int is_among(PyObject *tensors, PyObject *tensor) {
    for (Py_ssize_t i = 0; tensors && i < sb_size(tensors); i++)
        if (sb_item(tensors, i) == tensor)
            return 1;
    return 0;
}

/* The tensor that has the version of tensor i: torch gives a view the version of its base after the op only. NULL if it
 * is not known. */
static PyObject *counted(const sb_work *w, size_t i, PyObject *tensor) {
    for (size_t j = 0; i >= w->n_inputs && j < w->n_inputs; j++)
        if (w->bases[j] == w->parts[i].base)
            return sb_item(w->tensors, (Py_ssize_t)j);
    return contains(w->before.bases, w->before.words, w->parts[i].base) && !is_among(w->written, tensor) ? NULL : tensor;
}

/* Finds what is known of tensor i. */
static void look_up(sb_observer *self, sb_work *w, size_t i, PyObject *tensor) {
    sb_part *p = &w->parts[i];
    sb_identity seen;
    if (!p->base || (!sb_contents_find(&self->all, p->base) && !is_new(w, i)))
        return;
    if (!(tensor = counted(w, i, tensor)) || !sb_identify(&self->questions, tensor, &seen))
        return;
    const sb_storage *storage = storage_of(self, w, i, &seen);
    if (storage) {
        const uint64_t *sums = sb_contents_sums(storage, &p->content.region, seen.version);
        p->change = storage->change;
        p->content.version = seen.version;
        if (sums) {
            memcpy(w->sums + SB_SUM_WORDS * i, sums, 8 * SB_SUM_WORDS);
            w->known[i] = 1;
        }
    }
    Py_DECREF(seen.object);
}

/* Keeps what was read, unless the storage has changed since it was looked up. */
static void keep_all(sb_observer *self, sb_work *w) {
    for (size_t i = 0; i < w->count; i++) {
        sb_part *p = &w->parts[i];
        self->asked += p->content.region.n_bytes;
        self->spared += w->known[i] ? p->content.region.n_bytes : 0;
        sb_storage *storage = p->change && !w->known[i] ? sb_contents_find(&self->all, p->base) : NULL;
        if (!storage || storage->change != p->change || storage->writing || storage->exposed)
            continue;
        memcpy(p->content.sums, w->sums + SB_SUM_WORDS * i, sizeof p->content.sums);
        sb_contents_keep(storage, &p->content);
    }
}

/* ---- digests */

/* 0 for a tensor that takes the slow way. */
static int describe_all(const sb_observer *self, sb_work *w) {
    for (size_t i = 0; i < w->count; i++) {
        const uint64_t *words = w->end.words;
        if (i >= (size_t)sb_size(w->tensors) || !sb_add_tensor(self->reader, sb_item(w->tensors, i), &w->end))
            return 0;
        sb_part *p = &w->parts[i];
        p->change = 0;
        p->content.region.n_bytes = sb_bytes_shown(words);
        const int large = p->content.region.n_bytes >= LEAST_BYTES && sb_region_of(words, &p->content.region);
        p->base = large ? w->bases[i] : 0;
    }
    return 1;
}

static int is_large(const sb_work *w) {
    for (size_t i = 0; i < w->count; i++)
        if (w->parts[i].base)
            return 1;
    return 0;
}

static PyObject *digest_work(const sb_observer *self, sb_work *w) {
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(16 * w->count));
    if (!result)
        return NULL;
    uint64_t *out = (uint64_t *)PyBytes_AsString(result);
    const size_t n_words = (size_t)(w->end.words - w->words);
    sb_rest rest = {w->sums, w->known, 0};
    int64_t status = self->digest_rest(w->words, n_words, w->count, out, &rest);
    if (status > 0 && (rest.threads = (int)sb_n_threads(self->reader)) > 0) {
        Py_BEGIN_ALLOW_THREADS
        status = self->digest_rest(w->words, n_words, w->count, out, &rest);
        Py_END_ALLOW_THREADS
    }
    if (status)
        Py_CLEAR(result);
    return result;
}

static PyObject *observe_work(sb_observer *self, sb_work *w, sb_result make, void *context) {
    if (!describe_all(self, w))
        return NULL;
    if (is_large(w) && !sb_has_foreign(&self->libraries))
        for (size_t i = 0; i < w->count; i++) {
            PyObject *tensor = sb_item(w->tensors, i);
            if (!tensor)
                return NULL;
            look_up(self, w, i, tensor);
        }
    PyObject *digests = digest_work(self, w);
    if (!digests)
        return NULL;
    keep_all(self, w);
    return make(w, digests, context);
}

/* Words for each tensor: its descriptor, its dtype and sizes, its storage, its sums, what is known of it. */
#define WORDS_EACH (SB_MOST_WORDS + 1 + SB_MOST_DIMS + 1 + SB_SUM_WORDS + sizeof(sb_part) / 8 + 1)

PyObject *sb_observe_with(sb_observer *self, sb_work *w, sb_result make, void *context) {
    uint64_t few[SB_FEW * WORDS_EACH], *memory = few;
    w->count = (size_t)sb_size(w->tensors);
    if (w->count > SB_FEW && !(memory = PyMem_Malloc(8 * w->count * WORDS_EACH)))
        return PyErr_NoMemory();
    w->words = memory;
    w->kinds = w->words + w->count * SB_MOST_WORDS;
    w->bases = w->kinds + w->count * (1 + SB_MOST_DIMS);
    w->sums = w->bases + w->count;
    w->parts = (sb_part *)(w->sums + w->count * SB_SUM_WORDS);
    w->known = (unsigned char *)(w->parts + w->count);
    w->end = (sb_cursor){w->words, w->kinds, w->bases};
    memset(w->known, 0, w->count);
    PyObject *result = observe_work(self, w, make, context);
    if (memory != few)
        PyMem_Free(memory);
    return result;
}

static PyObject *all_of(const sb_work *w, PyObject *digests, void *context) {
    (void)context;
    return sb_three(digests, sb_bytes_of(w->kinds, w->end.kinds), sb_bytes_of(w->bases, w->end.bases));
}

PyObject *sb_observe(sb_observer *self, sb_work *w) { return sb_observe_with(self, w, all_of, NULL); }
