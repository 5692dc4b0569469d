/* Products of matrices and of batches of them. */
#include "ops.h"

#include <string.h>

static int read_pair(PyObject *const *args, int64_t dims, sb_view *a, sb_view *b) {
    return sb_read(args[0], a) && sb_read(args[1], b) && a->dims == dims && b->dims == dims && a->is_f64 == b->is_f64 &&
           a->sizes[dims - 1] == b->sizes[dims - 2] && (dims == 2 || a->sizes[0] == b->sizes[0]);
}

/* Strides of rows, columns and the batch. */
static void set_strides(const sb_view *x, int64_t *to) {
    to[0] = x->strides[x->dims - 2];
    to[1] = x->strides[x->dims - 1];
    to[2] = x->dims == 3 ? x->strides[0] : 0;
}

/* The strides of what is added, expanded to (batches, m, n). */
static int set_added(const sb_view *added, const int64_t *sizes, int64_t dims, sbp_gemm_parameters *p) {
    int64_t *const places[] = {p->added_strides + 2, p->added_strides, p->added_strides + 1};
    if (added->dims > dims)
        return 0;
    for (int64_t i = 1; i <= added->dims; i++) {
        const int64_t size = added->sizes[added->dims - i];
        if (size != sizes[dims - i] && size != 1)
            return 0;
        *places[3 - i] = size == 1 ? 0 : added->strides[added->dims - i];
    }
    p->added = added->data;
    return 1;
}

static PyObject *product(const sb_view *a, const sb_view *b, const sb_view *added, double beta, double alpha) {
    const int64_t dims = a->dims, m = a->sizes[dims - 2], k = a->sizes[dims - 1], n = b->sizes[dims - 1];
    const int64_t sizes[] = {dims == 3 ? a->sizes[0] : m, dims == 3 ? m : n, n};
    sbp_gemm_parameters p = {.is_f64 = a->is_f64,
                             .batches = dims == 3 ? a->sizes[0] : 1,
                             .m = m,
                             .n = n,
                             .k = k,
                             .a = a->data,
                             .b = b->data,
                             .out_strides = {n, 1, m * n},
                             .alpha = alpha,
                             .beta = beta};
    if (!p.batches || (added && (added->is_f64 != a->is_f64 || !set_added(added, sizes, dims, &p))))
        return NULL;
    set_strides(a, p.a_strides);
    set_strides(b, p.b_strides);
    void *out;
    PyObject *result = sb_new(dims, sizes, a->is_f64, &out);
    if (!result)
        return NULL;
    p.out = out;
    return sb_result(result, SB_CALL(gemm, &p, p.batches * m * n * (k / 8 + 1)));
}

/* `code`: dimensions of the operands. */
static PyObject *multiply(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view a, b;
    if (count != 2 || names || !read_pair(args, self->code, &a, &b))
        return NULL;
    return product(&a, &b, NULL, 1, 1);
}

static int read_scales(PyObject *const *args, PyObject *names, double *beta, double *alpha) {
    *beta = *alpha = 1;
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
        const int is_beta = !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), "beta");
        if (!is_beta && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), "alpha"))
            return 0;
        if (!sb_read_number(args[i], 1, is_beta ? beta : alpha))
            return 0;
    }
    return 1;
}

static PyObject *multiply_and_add(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view added, a, b;
    double beta, alpha;
    if (count != 3 || !read_scales(args + count, names, &beta, &alpha) || !sb_read(args[0], &added) ||
        !read_pair(args + 1, self->code, &a, &b))
        return NULL;
    return product(&a, &b, beta != 0 ? &added : NULL, beta, alpha);
}

const sb_named sb_products[] = {{"multiply", multiply}, {"multiply_and_add", multiply_and_add}, {NULL, NULL}};
