/* Sums, differences, products and quotients of elements: one IEEE operation for each, which torch's own kernels give too. */
#include "ops.h"

#include <string.h>

enum { ADD, SUB, MUL, DIV };

/* Two operands of one dtype: of one shape, or one of them a single value for all elements of the other. */
typedef struct {
    const void *a, *b;
    int64_t numel;
    int a_is_single, b_is_single, is_f64;
} operands;

#define EACH(type, expression)                                                                                        \
    for (int64_t i = 0; i < o->numel; i++) {                                                                          \
        const type x = ((const type *)o->a)[a_step * i], y = ((const type *)o->b)[b_step * i];                        \
        ((type *)out)[i] = expression;                                                                                \
    }
#define EACH_OF(type)                                                                                                 \
    switch (code) {                                                                                                   \
    case ADD:                                                                                                         \
        EACH(type, x + y) break;                                                                                      \
    case SUB:                                                                                                         \
        EACH(type, x - y) break;                                                                                      \
    case MUL:                                                                                                         \
        EACH(type, x *y) break;                                                                                       \
    default:                                                                                                          \
        EACH(type, x / y)                                                                                             \
    }

static inline void steps(int64_t code, const operands *o, void *out, int64_t a_step, int64_t b_step) {
    if (o->is_f64) {
        EACH_OF(double)
    } else {
        EACH_OF(float)
    }
}

/* Steps that the compiler knows, so that it can use vectors. */
static void compute(int64_t code, const operands *o, void *out) {
    if (o->a_is_single)
        steps(code, o, out, 0, 1);
    else if (o->b_is_single)
        steps(code, o, out, 1, 0);
    else
        steps(code, o, out, 1, 1);
}

typedef union {
    float f32;
    double f64;
} number;

static int number_of(PyObject *object, int is_f64, number *to) {
    double value;
    if (!sb_read_number(object, is_f64, &value))
        return 0;
    if (is_f64)
        to->f64 = value;
    else
        to->f32 = (float)value;
    return 1;
}

/* Reads two tensors, or a tensor and a number, which `single` then holds. `shape` becomes the one that has the result's. */
static int read_operands(PyObject *const *args, operands *o, number *single, sb_view *shape) {
    sb_view b;
    if (!sb_read_contiguous(args[0], shape))
        return 0;
    *o = (operands){shape->data, single, shape->numel, 0, 1, shape->is_f64};
    if (number_of(args[1], shape->is_f64, single))
        return 1;
    if (!sb_read_contiguous(args[1], &b) || b.is_f64 != shape->is_f64)
        return 0;
    o->b = b.data;
    o->b_is_single = b.numel == 1 && b.dims <= shape->dims;
    if (o->b_is_single || sb_same_shape(shape, &b)) {
        o->b_is_single = o->b_is_single && shape->numel != 1;
        return 1;
    }
    o->a_is_single = shape->numel == 1 && shape->dims <= b.dims;
    o->numel = b.numel;
    *shape = b;
    return o->a_is_single;
}

/* The number that scales the second operand: the only argument by name that there may be. */
static int read_alpha(PyObject *const *args, Py_ssize_t count, PyObject *names, double *alpha) {
    *alpha = 1;
    if (!names || !PyTuple_Size(names))
        return 1;
    return PyTuple_Size(names) == 1 && !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "alpha") &&
           sb_read_number(args[count], 1, alpha);
}

static int add_scaled(const sb_op *self, const operands *o, double alpha, void *out) {
    const sbp_activation_parameters p = {
        .function = self->code >> 8,
        .is_f64 = o->is_f64,
        .numel = o->numel,
        .out = out,
        .inputs = {o->a, o->b, o->b},
        .is_single = {o->a_is_single, o->b_is_single, o->b_is_single},
        .numbers = {(self->code & 255) == SUB ? -alpha : alpha},
    };
    return SB_CALL(activation, &p, o->numel);
}

static int compute_into(const sb_op *self, const operands *o, double alpha, void *out) {
    if (alpha != 1)
        return (self->code & 255) <= SUB && add_scaled(self, o, alpha, out);
    compute(self->code & 255, o, out);
    return 1;
}

static int is_long(const operands *o) { return o->numel > SB_LONG_WORK; }

/* Whether torch's own kernel gives the result of the specification: of real tensors and numbers, nothing scaled. */
static int is_exact(PyObject *const *args) {
    sb_view a, b;
    return sb_read(args[0], &a) && (PyFloat_CheckExact(args[1]) || PyLong_CheckExact(args[1]) || sb_read(args[1], &b));
}

static PyObject *binary(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    operands o;
    sb_view shape;
    number single;
    double alpha;
    void *out;
    if (count != 2 || !read_alpha(args, count, names, &alpha))
        return NULL;
    const int is_read = read_operands(args, &o, &single, &shape);
    if (alpha == 1 && (!is_read || is_long(&o)) && is_exact(args))
        return sb_pass_on(self, args, count, names); /* it broadcasts, and uses several threads */
    if (!is_read)
        return NULL;
    PyObject *result = sb_new_like(&shape, &out);
    return result ? sb_result(result, compute_into(self, &o, alpha, out)) : NULL;
}

/* Whether the second operand lies exactly where the result goes, over the first, or elsewhere. */
static int lies_apart(const operands *o) {
    const int64_t width = o->is_f64 ? 8 : 4, bytes = o->numel * width;
    return sb_lies_apart(o->a, bytes, o->b, o->b_is_single ? width : bytes);
}

static PyObject *binary_in_place(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    operands o;
    sb_view shape;
    number single;
    double alpha;
    if (count != 2 || !read_alpha(args, count, names, &alpha))
        return NULL;
    const int fits = read_operands(args, &o, &single, &shape) && !o.a_is_single && lies_apart(&o);
    if (alpha == 1 && (!fits || is_long(&o)) && is_exact(args))
        return sb_pass_on(self, args, count, names);
    if (!fits || !compute_into(self, &o, alpha, (void *)o.a))
        return NULL;
    return Py_NewRef(args[0]);
}

/* +0 where the element is not above 0; NaN stays NaN. */
#define RELU(type)                                                                                                    \
    for (int64_t i = 0; i < x->numel; i++) {                                                                          \
        const type value = ((const type *)x->data)[i];                                                                \
        ((type *)out)[i] = value <= 0 ? 0 : value;                                                                    \
    }

static void write_relu(const sb_view *x, void *out) {
    if (x->is_f64) {
        RELU(double)
    } else {
        RELU(float)
    }
}

static int read_relu(PyObject *const *args, Py_ssize_t count, PyObject *names, sb_view *x) {
    return count == 1 && !names && sb_read_contiguous(args[0], x) && x->numel <= SB_LONG_WORK;
}

static PyObject *relu(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    void *out;
    (void)self;
    if (!read_relu(args, count, names, &x))
        return NULL;
    PyObject *result = sb_new_like(&x, &out);
    if (result)
        write_relu(&x, out);
    return result;
}

static PyObject *relu_in_place(const sb_op *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    sb_view x;
    (void)self;
    if (!read_relu(args, count, names, &x))
        return NULL;
    write_relu(&x, x.data);
    return Py_NewRef(args[0]);
}

const sb_named sb_arithmetic[] = {
    {"binary", binary}, {"binary_in_place", binary_in_place}, {"relu", relu}, {"relu_in_place", relu_in_place}, {NULL, NULL}};
