/* Sums and means over dimensions. */
#include "ops.h"

typedef struct {
    uint64_t reduced; /* a bit for each dimension */
    int keeps;        /* whether these stay, with size 1 */
} dimensions;

static int add_dimension(PyObject *object, int64_t dims, uint64_t *reduced) {
    if (!PyLong_CheckExact(object))
        return 0;
    const long given = PyLong_AsLong(object);
    const int64_t at = given < 0 ? given + dims : given;
    if (at < 0 || at >= dims || *reduced & (uint64_t)1 << at)
        return 0;
    *reduced |= (uint64_t)1 << at;
    return 1;
}

/* From a list of dimensions, where none and an empty one mean all, and whether to keep them. */
static int read_dimensions(PyObject *const *args, Py_ssize_t count, int64_t dims, dimensions *to) {
    *to = (dimensions){0, count > 2 && args[2] == Py_True};
    if (count > 1 && PyList_CheckExact(args[1]))
        for (Py_ssize_t i = 0; i < PyList_Size(args[1]); i++)
            if (!add_dimension(PyList_GetItem(args[1], i), dims, &to->reduced))
                return 0;
    if (!to->reduced)
        to->reduced = ((uint64_t)1 << dims) - 1;
    return count < 2 || args[1] == Py_None || PyList_CheckExact(args[1]);
}

static int64_t sizes_left(const sb_view *x, const dimensions *over, int64_t *sizes) {
    int64_t left = 0;
    for (int64_t i = 0; i < x->dims; i++) {
        const int is_reduced = over->reduced >> i & 1;
        if (!is_reduced || over->keeps)
            sizes[left++] = is_reduced ? 1 : x->sizes[i];
    }
    return left;
}

int sb_add_up(const sb_view *x, uint64_t reduced, void *out) {
    struct {
        sbp_reduce_parameters p;
        int64_t extents[3 * SB_MOST_DIMS];
    } call = {{.kind = 0, .is_f64 = x->is_f64, .a = x->data, .out = out, .reduced = (int64_t)reduced, .axes = x->dims},
              {0}};
    for (int64_t i = 0; i < x->dims; i++) {
        call.extents[i] = x->sizes[i];
        call.extents[x->dims + i] = call.extents[2 * x->dims + i] = x->strides[i];
    }
    return SB_CALL(reduce, &call.p, x->numel);
}

static void divide(const sb_view *x, int64_t left, void *out) {
    const int64_t count = x->numel / left;
    for (int64_t i = 0; i < left; i++)
        if (x->is_f64)
            ((double *)out)[i] /= (double)count;
        else
            ((float *)out)[i] /= (float)count;
}

/* `code`: whether the mean is wanted. */
static PyObject *sum(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    dimensions over;
    int64_t sizes[SB_MOST_DIMS], left = 1;
    void *out;
    if (count < 1 || count > 3 || names || !sb_read(args[0], &x) || !x.numel || x.numel > 1 << 24 ||
        !read_dimensions(args, count, x.dims, &over))
        return NULL;
    const int64_t dims = sizes_left(&x, &over, sizes);
    for (int64_t i = 0; i < dims; i++)
        left *= sizes[i];
    PyObject *result = sb_new(dims, sizes, x.is_f64, &out);
    if (!result || !sb_add_up(&x, over.reduced, out))
        return sb_result(result, 0);
    if (self->code)
        divide(&x, left, out);
    return result;
}

const sb_named sb_reductions[] = {{"sum", sum}, {NULL, NULL}};
