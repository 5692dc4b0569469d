/* Compiled code that could reach the memory of tensors without torch's dispatcher. */
#ifndef SAMEBITS_LIBRARIES_H
#define SAMEBITS_LIBRARIES_H

#include "reader.h"

typedef struct {
    char torch[512]; /* the folder of torch, whose own libraries are known; empty: nothing can be told */
    uint64_t loads;  /* how many libraries the process had loaded when it was last looked at */
    int foreign;
} sb_libraries;

/* Tells whether the process has loaded a library, other than torch's own, that is made for torch's C++ interface. It may
 * take a tensor from a Python object and write to it, and nothing else would show that. 1 where this cannot be known. */
int sb_has_foreign(sb_libraries *libraries);

/* A function of the module: see its text there. */
PyObject *sb_libraries_from(PyObject *module, PyObject *args);

#endif
