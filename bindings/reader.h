/* Reads CPU tensors straight from Python objects: addresses and sizes through DLPack, digests through native/. */
#ifndef SAMEBITS_READER_H
#define SAMEBITS_READER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Changes with any change to what Python sees, so that a stale module is never used. */
#define SB_READER_ABI 1

extern PyTypeObject sb_reader_type;
extern PyTypeObject sb_memory_type;

#endif
