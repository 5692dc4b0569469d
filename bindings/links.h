/* Which events wrote the tensors of an op. */
#ifndef SAMEBITS_LINKS_H
#define SAMEBITS_LINKS_H

#include "reader.h"

/* Tensors of one event by the addresses of their storages. */
typedef struct {
    const uint64_t *bases;
    Py_ssize_t count;
} sb_bases;

/* What MemoryMap.op_links gives; NULL and an exception when there is no memory. */
PyObject *sb_op_links(PyObject *memory_map, int seq, sb_bases inputs, sb_bases outputs, int flags);

#endif
