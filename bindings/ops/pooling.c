/* Means over windows of images, and the gradients of their inputs. */
#include "windows.h"

#include <string.h>

typedef struct {
    int64_t kernel[2], stride[2], pad[2], divisor;
    int rounds_up, counts_pad;
} pooling;

/* The stride is the kernel where none is given. */
static int read_stride(PyObject *list, pooling *p) {
    if (list && !(PyList_CheckExact(list) && !PyList_Size(list)))
        return sb_read_each(list, 2, 1, p->stride);
    memcpy(p->stride, p->kernel, sizeof p->stride);
    return 1;
}

/* Of the kernel, the stride, the padding, whether the number of outputs is rounded up, whether padding counts, and the
 * divisor; the last ones may be missing. torch refuses more padding than half a kernel. */
static int read_pooling(PyObject *const *args, Py_ssize_t count, pooling *p) {
    *p = (pooling){.rounds_up = count > 3 && args[3] == Py_True, .counts_pad = count < 5 || args[4] == Py_True};
    return count > 0 && count < 7 && sb_read_each(args[0], 2, 1, p->kernel) &&
           read_stride(count > 1 ? args[1] : NULL, p) && (count < 3 || sb_read_each(args[2], 2, 0, p->pad)) &&
           p->pad[0] <= p->kernel[0] / 2 && p->pad[1] <= p->kernel[1] / 2 &&
           (count < 6 || args[5] == Py_None || sb_read_count(args[5], &p->divisor));
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t outputs_of(int64_t size, const pooling *p, int d) {
    const int64_t room = size + 2 * p->pad[d] - p->kernel[d] + (p->rounds_up ? p->stride[d] - 1 : 0);
    const int64_t outputs = room < 0 ? 0 : room / p->stride[d] + 1;
    return outputs - (p->rounds_up && outputs && (outputs - 1) * p->stride[d] >= size + p->pad[d]);
}

static void set_windows(sb_axis *a, const pooling *p, int d) {
    for (int64_t o = 0; o < a->outputs; o++) {
        const int64_t start = o * p->stride[d] - p->pad[d], end = least(start + p->kernel[d], a->size + p->pad[d]);
        a->first[o] = start > 0 ? start : 0;
        a->end[o] = least(end, a->size);
        a->count[o] = p->counts_pad ? end - start : a->end[o] - a->first[o];
        if (a->count[o] < 1)
            a->count[o] = 1;
    }
}

/* The windows of an image of three or four dimensions, and the sizes of what is made of it. */
static int make_windows(const sb_view *image, const pooling *p, sb_axis *axes, int64_t *sizes) {
    if (image->dims != 3 && image->dims != 4)
        return 0;
    memcpy(sizes, image->sizes, (size_t)image->dims * sizeof *sizes);
    for (int d = 0; d < 2; d++) {
        int64_t *size = sizes + image->dims - 2 + d;
        axes[d].size = *size;
        axes[d].outputs = *size = outputs_of(axes[d].size, p, d);
    }
    if (axes[0].outputs < 1 || axes[1].outputs < 1 || !sb_make_axes(axes))
        return 0;
    for (int d = 0; d < 2; d++)
        set_windows(axes + d, p, d);
    return 1;
}

/* Of the image, and what `read_pooling` takes. */
static PyObject *average(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view image;
    pooling p;
    sb_axis axes[2];
    int64_t sizes[4];
    void *out;
    (void)self;
    if (names || !sb_read_planes(args[0], &image) || !read_pooling(args + 1, count - 1, &p) ||
        !make_windows(&image, &p, axes, sizes))
        return NULL;
    PyObject *result = sb_new(image.dims, sizes, image.is_f64, &out);
    if (result)
        result = sb_result(result, sb_call_window(axes, &image, p.divisor, image.data, out));
    sb_free_axes(axes);
    return result;
}

/* Of the gradient of its result, and its arguments. */
static PyObject *average_gradient(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view gradient, image;
    pooling p;
    sb_axis axes[2];
    int64_t sizes[4];
    void *out;
    (void)self;
    if (count != 8 || names || !sb_read_contiguous(args[0], &gradient) || !sb_read_contiguous(args[1], &image) ||
        gradient.is_f64 != image.is_f64 || gradient.dims != image.dims || !read_pooling(args + 2, 6, &p) ||
        !make_windows(&image, &p, axes, sizes))
        return NULL;
    const int fits = !memcmp(sizes, gradient.sizes, (size_t)image.dims * sizeof *sizes);
    PyObject *result = fits ? sb_new_like(&image, &out) : NULL;
    if (result)
        result = sb_result(result, sb_call_window(axes, &gradient, p.divisor, out, gradient.data));
    sb_free_axes(axes);
    return result;
}

const sb_named sb_pooling[] = {{"average", average}, {"average_gradient", average_gradient}, {NULL, NULL}};
