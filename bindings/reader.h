/* Reads CPU tensors straight from Python objects: addresses and sizes through DLPack, digests through native/. */
#ifndef SAMEBITS_READER_H
#define SAMEBITS_READER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"

/* Changes when something that Python uses is changed or removed, so that a stale module is never used. Python asks
 * whether `append` is there. */
#define SB_READER_ABI 5

extern PyTypeObject sb_reader_type;
extern PyTypeObject sb_memory_type;
extern PyTypeObject sb_scanner_type;
extern PyTypeObject sb_kernel_type;

PyObject *sb_append(PyObject *module, PyObject *args);

/* The exchange that a capsule of torch holds, NULL and an exception if it is none of our version. */
dl_exchange *sb_exchange_of(PyObject *capsule);

#endif
