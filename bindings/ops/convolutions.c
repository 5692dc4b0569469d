/* Convolutions that are not transposed, and their gradients. */
#include "ops.h"

#include <math.h>
#include <string.h>

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

/* Of the input, the weight, anything, strides, paddings, dilations, whether it is transposed, more padding, groups. */
static int read_convolution(PyObject *const *args, sb_view *image, sb_view *weight, sbp_conv_parameters *p) {
    if (args[6] != Py_False || !sb_read_contiguous(args[0], image) || !sb_read_contiguous(args[1], weight) ||
        image->is_f64 != weight->is_f64 || image->dims != weight->dims || image->dims < 3 || image->dims > 5)
        return 0;
    p->is_f64 = image->is_f64;
    p->image = image->data;
    p->weight = weight->data;
    return read_geometry(args, image->dims - 2, p) && set_channels(image, weight, args[8], p) &&
           set_sizes(image, weight, p);
}

/* The sizes of the output, and how many products there are. */
static int64_t output_sizes(const sb_view *image, const sb_view *weight, const sbp_conv_parameters *p, int64_t *sizes) {
    int64_t products = weight->numel * image->sizes[0];
    sizes[0] = image->sizes[0];
    sizes[1] = weight->sizes[0];
    for (int64_t i = 2; i < image->dims; i++) {
        sizes[i] = p->out_size[3 - image->dims + i];
        products *= sizes[i];
    }
    return products;
}

/* What `read_convolution` reads; the third argument is the bias. */
static PyObject *convolution(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view image, weight;
    sbp_conv_parameters p = {0};
    int64_t sizes[5];
    void *out;
    (void)self;
    if (count != 9 || names || !read_convolution(args, &image, &weight, &p) || !read_bias(args[2], &weight, &p))
        return NULL;
    const int64_t products = output_sizes(&image, &weight, &p, sizes);
    PyObject *result = sb_new(image.dims, sizes, image.is_f64, &out);
    if (!result)
        return NULL;
    p.out = out;
    return sb_result(result, SB_CALL(conv, &p, products));
}

typedef struct {
    sb_view gradient, image, weight;
    sbp_conv_parameters p;
    int64_t products;
} backward;

/* The transpose of the convolution. */
static PyObject *gradient_of_input(const backward *b) {
    sbp_conv_parameters p = b->p;
    void *out;
    PyObject *result = sb_new_like(&b->image, &out);
    if (!result)
        return NULL;
    p.is_transposed = 1;
    p.image = b->gradient.data;
    p.out = out;
    p.depth = b->p.rows;
    p.rows = b->p.depth;
    memcpy(p.size, b->p.out_size, sizeof p.size);
    memcpy(p.out_size, b->p.size, sizeof p.size);
    return sb_result(result, SB_CALL(conv, &p, b->products));
}

static PyObject *gradient_of_weight(const backward *b) {
    void *out;
    PyObject *result = sb_new_like(&b->weight, &out);
    if (!result)
        return NULL;
    sbp_conv_weight_parameters p = {.is_f64 = b->p.is_f64, .image = b->p.image, .gradient = b->gradient.data,
                                    .of_weight = out, .samples = b->p.samples, .groups = b->p.groups,
                                    .depth = b->p.depth, .rows = b->p.rows};
    for (int i = 0; i < 3; i++) {
        p.size[i] = b->p.size[i], p.out_size[i] = b->p.out_size[i], p.kernel[i] = b->p.kernel[i];
        p.stride[i] = b->p.stride[i], p.padding[i] = b->p.padding[i], p.dilation[i] = b->p.dilation[i];
    }
    return sb_result(result, SB_CALL(conv_weight, &p, b->products));
}

static PyObject *gradient_of_bias(const backward *b) {
    const uint64_t all = ((uint64_t)1 << b->gradient.dims) - 1;
    void *out;
    PyObject *result = sb_new(1, b->weight.sizes, b->p.is_f64, &out);
    return result ? sb_result(result, sb_add_up(&b->gradient, all & ~(uint64_t)2, out)) : NULL;
}

/* Whether the kernel of the transpose may leave out the products with zeros between samples. */
static int has_finite_products(const backward *b) {
    if (b->p.stride[0] == 1 && b->p.stride[1] == 1 && b->p.stride[2] == 1)
        return 1;
    for (int64_t i = 0; i < b->weight.numel; i++)
        if (!isfinite(b->p.is_f64 ? ((const double *)b->weight.data)[i] : ((const float *)b->weight.data)[i]))
            return 0;
    return 1;
}

/* Of the gradient of the output, what `read_convolution` reads, and which gradients are wanted. */
static PyObject *convolution_gradients(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    static PyObject *(*const parts[])(const backward *) = {gradient_of_input, gradient_of_weight, gradient_of_bias};
    backward b = {.p = {0}};
    int64_t sizes[5];
    PyObject *gradients[3];
    (void)self;
    if (count != 11 || names || !PyList_CheckExact(args[10]) || PyList_Size(args[10]) != 3 ||
        !read_convolution(args + 1, &b.image, &b.weight, &b.p) || !sb_read_contiguous(args[0], &b.gradient) ||
        b.gradient.is_f64 != b.p.is_f64 || b.gradient.dims != b.image.dims || !has_finite_products(&b))
        return NULL;
    b.products = output_sizes(&b.image, &b.weight, &b.p, sizes);
    if (memcmp(sizes, b.gradient.sizes, (size_t)b.image.dims * sizeof *sizes))
        return NULL;
    for (int i = 0; i < 3; i++)
        gradients[i] = PyList_GetItem(args[10], i) == Py_True ? parts[i](&b) : Py_NewRef(Py_None);
    return sb_three(gradients[0], gradients[1], gradients[2]);
}

const sb_named sb_convolutions[] = {
    {"convolution", convolution}, {"convolution_gradients", convolution_gradients}, {NULL, NULL}};
