/* Planes of two dimensions whose windows are averaged (native/portable/window.h). */
#ifndef SAMEBITS_OPS_WINDOWS_H
#define SAMEBITS_OPS_WINDOWS_H

#include "ops.h"

/* For each output position of a dimension: the first position of its window, the one after the last, and its count. */
typedef struct {
    int64_t size, outputs;
    int64_t *first, *end, *count;
} sb_axis;

/* Memory for the windows of two dimensions, whose sizes are set; whether there was enough. */
int sb_make_axes(sb_axis *axes);
void sb_free_axes(sb_axis *axes);

/* Reads a tensor whose samples may lie apart, as those of a part of the channels do; the planes of each are contiguous. */
int sb_read_planes(PyObject *object, sb_view *view);

/* Calls the kernel. `wide` is divided into windows, `narrow` has a value for each; `one` is the tensor that is one of
 * them, contiguous if it is the latter. A divisor of 0 stands for the counts. */
int sb_call_window(const sb_axis *axes, const sb_view *one, int64_t divisor, void *wide, void *narrow);

#endif
