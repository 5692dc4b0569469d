/* Images made larger or smaller by copies of the nearest pixel, and the gradients of their inputs. */
#include "windows.h"

#include <math.h>

/* A factor by which a dimension is made larger; 0 where none is given. */
static int read_factor(PyObject *const *args, Py_ssize_t count, Py_ssize_t at, double *factor) {
    *factor = 0;
    return at >= count || args[at] == Py_None ||
           (sb_read_number(args[at], 1, factor) && *factor > 1e-6 && *factor < 1e6);
}

/* How often each pixel comes where its copies are the same in any precision: a power of two; else 0. */
static int64_t copies_of(int64_t size, int64_t outputs, double factor) {
    const int64_t copies = outputs / size;
    return outputs == copies * size && !(copies & (copies - 1)) && (factor == 0 || factor == (double)copies) ? copies : 0;
}

/* Of the image, the size of the result, and the factors of both dimensions; not where the result may have channels last. */
static int read_nearest(PyObject *const *args, Py_ssize_t count, sb_view *x, int64_t *outputs, int64_t *copies) {
    double factor;
    if (count < 2 || count > 4 || !sb_read_contiguous(args[0], x) || x->dims != 4 || x->strides[3] != 1 ||
        x->strides[2] != x->sizes[3] || !sb_read_each(args[1], 2, 1, outputs))
        return 0;
    for (int d = 0; d < 2; d++) {
        copies[d] = read_factor(args, count, 2 + d, &factor) ? copies_of(x->sizes[2 + d], outputs[d], factor) : 0;
        if (!copies[d])
            return 0;
    }
    return 1;
}

/* What is not read is torch's, whose kernel only copies as well. */
static PyObject *nearest(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    int64_t outputs[2], copies[2];
    int32_t dtype;
    void *out;
    if (names || !read_nearest(args, count, &x, outputs, copies))
        return sb_is_dense(args[0], &dtype) ? sb_pass_on(self, args, count, names) : NULL;
    const int64_t sizes[] = {x.sizes[0], x.sizes[1], outputs[0], outputs[1]};
    PyObject *result = sb_new(4, sizes, x.is_f64, &out);
    if (!result)
        return NULL;
    const sbp_repeat_parameters p = {.is_f64 = x.is_f64, .x = x.data, .out = out, .rows = x.numel / x.sizes[3],
                                     .width = x.sizes[3], .across = copies[1], .down = copies[0]};
    return sb_result(result, SB_CALL(repeat, &p, x.numel * copies[0] * copies[1]));
}

/* The pixel of which output o is a copy. */
static int64_t source_of(int64_t o, int64_t size, int64_t outputs, double factor) {
    if (outputs == size || outputs == 2 * size)
        return o * size / outputs;
    const float step = factor > 0 ? (float)(1 / factor) : (float)size / (float)outputs;
    const int64_t source = (int64_t)floorf((float)o * step);
    return source < size ? source : size - 1;
}

/* The copies of each pixel are a window of the outputs. */
static void set_copies(sb_axis *a, double factor) {
    for (int64_t i = 0, o = 0; i < a->outputs; i++) {
        a->first[i] = o;
        while (o < a->size && source_of(o, a->outputs, a->size, factor) == i)
            o++;
        a->end[i] = o;
        a->count[i] = 1;
    }
}

static int read_image_sizes(PyObject *list, int64_t *sizes) {
    return PyList_CheckExact(list) && PyList_Size(list) == 4 && sb_read_each(list, 4, 1, sizes);
}

/* Of the gradient of the result, its size, the sizes of the image, and the factors of both dimensions. */
static PyObject *nearest_gradient(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view gradient;
    sb_axis axes[2];
    int64_t outputs[2], sizes[4];
    double factors[2];
    void *out;
    (void)self;
    if (count < 3 || count > 5 || names || !sb_read_planes(args[0], &gradient) || gradient.dims != 4 ||
        !sb_read_each(args[1], 2, 1, outputs) || !read_image_sizes(args[2], sizes) ||
        !read_factor(args, count, 3, factors) || !read_factor(args, count, 4, factors + 1))
        return NULL;
    for (int d = 0; d < 2; d++) {
        axes[d] = (sb_axis){outputs[d], sizes[2 + d], NULL, NULL, NULL};
        if (gradient.sizes[d] != sizes[d] || gradient.sizes[2 + d] != outputs[d])
            return NULL;
    }
    if (!sb_make_axes(axes))
        return NULL;
    for (int d = 0; d < 2; d++)
        set_copies(axes + d, factors[d]);
    PyObject *result = sb_new(4, sizes, gradient.is_f64, &out);
    if (result)
        result = sb_result(result, sb_call_window(axes, &gradient, 1, gradient.data, out));
    sb_free_axes(axes);
    return result;
}

const sb_named sb_nearest[] = {{"nearest", nearest}, {"nearest_gradient", nearest_gradient}, {NULL, NULL}};
