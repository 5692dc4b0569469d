/* Convolutions that are not transposed, forward. */
#include "ops.h"

static int read_geometry(PyObject *const *args, int64_t dims, sbp_conv_parameters *p) {
    for (int i = 0; i < 3; i++) {
        p->size[i] = p->out_size[i] = p->kernel[i] = p->stride[i] = p->dilation[i] = 1;
        p->padding[i] = 0;
    }
    const int64_t first = 3 - dims;
    return sb_read_each(args[3], dims, 1, p->stride + first) && sb_read_each(args[4], dims, 0, p->padding + first) &&
           sb_read_each(args[5], dims, 1, p->dilation + first);
}

/* The sizes of the image, the kernel and the output; what does not fit is left to the handler, and so is a kernel of
 * one tap that leaves pixels out. */
static int set_sizes(const sb_view *image, const sb_view *weight, sbp_conv_parameters *p) {
    const int64_t dims = weight->dims - 2;
    int64_t taps = 1, step = 1;
    for (int64_t i = 0, at = 3 - dims; i < dims; i++, at++) {
        p->size[at] = image->sizes[2 + i];
        p->kernel[at] = weight->sizes[2 + i];
        const int64_t more = p->size[at] + 2 * p->padding[at] - p->dilation[at] * (p->kernel[at] - 1) - 1;
        if (more < 0)
            return 0;
        p->out_size[at] = more / p->stride[at] + 1;
        taps *= p->kernel[at];
        step *= p->stride[at];
    }
    return taps > 1 || step == 1;
}

static int set_channels(const sb_view *image, const sb_view *weight, PyObject *groups, sbp_conv_parameters *p) {
    const long long count = PyLong_CheckExact(groups) ? PyLong_AsLongLong(groups) : 0;
    if (count < 1 || count > weight->sizes[0] || weight->sizes[0] % count || image->sizes[1] != weight->sizes[1] * count)
        return 0;
    p->samples = image->sizes[0];
    p->groups = count;
    p->depth = weight->sizes[1];
    p->rows = weight->sizes[0] / count;
    return 1;
}

static int read_bias(PyObject *object, const sb_view *weight, sbp_conv_parameters *p) {
    sb_view bias;
    if (object == Py_None)
        return 1;
    if (!sb_read_contiguous(object, &bias) || bias.is_f64 != weight->is_f64 || bias.dims != 1 ||
        bias.sizes[0] != weight->sizes[0])
        return 0;
    p->bias = bias.data;
    return 1;
}

/* Of the input, the weight, the bias, strides, paddings, dilations, whether it is transposed, more padding, groups. */
static PyObject *convolution(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view image, weight;
    sbp_conv_parameters p = {0};
    (void)self;
    if (count != 9 || names || args[6] != Py_False || !sb_read_contiguous(args[0], &image) ||
        !sb_read_contiguous(args[1], &weight) || image.is_f64 != weight.is_f64 || image.dims != weight.dims ||
        image.dims < 3 || image.dims > 5 || !read_geometry(args, image.dims - 2, &p) ||
        !set_channels(&image, &weight, args[8], &p) || !set_sizes(&image, &weight, &p) || !read_bias(args[2], &weight, &p))
        return NULL;
    int64_t sizes[5] = {image.sizes[0], weight.sizes[0]}, sums = weight.numel * image.sizes[0];
    void *out;
    for (int64_t i = 2; i < image.dims; i++) {
        sizes[i] = p.out_size[3 - image.dims + i];
        sums *= sizes[i];
    }
    PyObject *result = sb_new(image.dims, sizes, image.is_f64, &out);
    if (!result)
        return NULL;
    p.is_f64 = image.is_f64;
    p.image = image.data;
    p.weight = weight.data;
    p.out = out;
    return sb_result(result, SB_CALL(conv, &p, sums));
}

const sb_named sb_convolutions[] = {{"convolution", convolution}, {NULL, NULL}};
