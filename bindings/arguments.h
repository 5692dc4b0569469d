/* What an op was called with and what it gave, apart: tensors, and a text of everything else. */
#ifndef SAMEBITS_ARGUMENTS_H
#define SAMEBITS_ARGUMENTS_H

#include "describe.h"

/* Both are lists; `texts` is NULL until there is one. */
typedef struct {
    PyObject *tensors, *texts;
} sb_arguments;

/* The classes of tensors that are read here, and what gives the text of a value that is neither one nor a plain one. */
typedef struct {
    const sb_reader *reader;
    PyObject *name_of;
} sb_sorter;

/* Appends the items of a tuple or list, or the values of a dict. 0, perhaps with an exception, for what takes the slow way:
 * a tensor of another class. */
int sb_sort_items(const sb_sorter *self, PyObject *items, sb_arguments *to);
int sb_sort_values(const sb_sorter *self, PyObject *dict, sb_arguments *to);

/* Appends the tensors that an op returned; or the text of what it returned, if that is a number. 0 as above. */
int sb_sort_outcome(const sb_sorter *self, PyObject *outcome, sb_arguments *to);

/* Appends those of the op's arguments that it writes to. 0 as above. */
int sb_sort_written(const sb_sorter *self, PyObject *call, PyObject *written, PyObject *tensors);

/* All texts, as in a list's repr; NULL and an exception. */
PyObject *sb_text_of(const sb_arguments *arguments);

static inline void sb_drop_arguments(sb_arguments *arguments) {
    Py_CLEAR(arguments->tensors);
    Py_CLEAR(arguments->texts);
}

#endif
