/* samebits._ops: kernels that torch's dispatcher calls in portable mode. Each takes the Python objects of an op's
 * arguments, reads tensors through torch's C interface, and computes as the handler of that op in portable/ops does.
 * What it does not know (another dtype, strides, a tensor of a subclass, a mistake) it leaves to that handler. */
#ifndef SAMEBITS_OPS_H
#define SAMEBITS_OPS_H

/* As in bindings/reader.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

#include "../../native/portable/parameters.h"
#include "../tuples.h"

#define SB_OPS_ABI 1
#define SB_MOST_DIMS 16
#define SB_LONG_WORK 32768 /* values, from which on other threads of Python may run meanwhile */

/* A tensor of torch: an at::Tensor, as its C interface has it (torch/csrc/inductor/aoti_torch/c/shim.h). */
typedef struct sb_tensor_ *sb_tensor;

/* Functions of torch and of native/portable by their addresses; `bind` (module.c) sets them once. */
#define SB_KERNELS(X)                                                                                                 \
    X(activation) X(channel_norm) X(conv) X(conv_weight) X(elementwise_binary) X(elementwise_unary) X(gemm)                \
    X(group_norm) X(group_norm_gradient) X(layer_norm) X(reduce) X(repeat) X(softmax) X(sqrt) X(window)
#define SB_KERNEL_MEMBER(name) int64_t (*name)(const sbp_##name##_parameters *);
typedef struct {
    int32_t (*get_data_ptr)(sb_tensor, void **);
    int32_t (*get_dim)(sb_tensor, int64_t *);
    int32_t (*get_sizes)(sb_tensor, int64_t **);
    int32_t (*get_strides)(sb_tensor, int64_t **);
    int32_t (*get_dtype)(sb_tensor, int32_t *);
    int32_t (*get_device_type)(sb_tensor, int32_t *);
    int32_t (*get_layout)(sb_tensor, int32_t *);
    int32_t (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, sb_tensor *);
    int32_t (*delete_tensor)(sb_tensor);
    PyObject *(*wrap)(sb_tensor); /* a new Python object */
    int (*get_threads)(void);
    void (*set_threads)(int);
    SB_KERNELS(SB_KERNEL_MEMBER)
    int32_t float32, float64, strided;
    Py_ssize_t offset;            /* of the at::Tensor in its Python object */
    PyObject *tensor, *parameter; /* the classes whose objects are read */
    PyObject *dtype32, *dtype64;  /* torch.float32, torch.float64 */
    int is_off;                   /* whether everything is left to Python */
} sb_bound;

extern sb_bound sb;

/* An op: what computes it here, and the function of Python for the rest. */
typedef struct sb_op sb_op;
typedef PyObject *(*sb_function)(const sb_op *op, PyObject *const *args, Py_ssize_t count, PyObject *names);
struct sb_op {
    PyObject_HEAD
    sb_function function; /* returns NULL without an exception for what it leaves */
    int64_t code;         /* the number of the kernel's function */
    PyObject *own;        /* torch's op */
    PyObject *otherwise;
};

typedef struct {
    const char *name;
    sb_function function;
} sb_named;

extern const sb_named sb_arithmetic[], sb_channels[], sb_convolutions[], sb_functions[], sb_groups[], sb_moves[],
    sb_nearest[], sb_pooling[], sb_products[], sb_reductions[], sb_rows[], sb_updates[];
extern PyType_Spec sb_op_spec;

/* What is read of a tensor. */
typedef struct {
    void *data;
    const int64_t *sizes, *strides;
    int64_t dims, numel;
    int is_f64, is_contiguous;
} sb_view;

/* Each tells whether it could; no exception is set. `sb_read`: of a plain strided tensor of float32 or float64 in CPU
 * memory. `sb_read_contiguous`: one whose values lie in their order, and not nowhere. */
int sb_read(PyObject *object, sb_view *view);
int sb_read_contiguous(PyObject *object, sb_view *view);
int sb_is_dense(PyObject *object, int32_t *dtype); /* a plain strided tensor in CPU memory, of any dtype */
int sb_same_shape(const sb_view *a, const sb_view *b);
int sb_read_number(PyObject *object, int is_f64, double *number);
int sb_read_count(PyObject *object, int64_t *count); /* a whole number above 0 */

/* Reads a list of one number, or of one for each dimension, none of them less than `least`. */
int sb_read_each(PyObject *list, int64_t dims, int64_t least, int64_t *to);

/* Reads a contiguous tensor of n values and the dtype of x; None gives NULL. */
int sb_read_weight(PyObject *object, const sb_view *x, int64_t n, const void **data);

/* Whether `read` bytes lie exactly where as many are written, or elsewhere. */
int sb_lies_apart(const void *written, int64_t bytes, const void *from, int64_t read);

/* A new contiguous tensor and its memory; NULL without an exception. The object owns the memory. */
PyObject *sb_new(int64_t dims, const int64_t *sizes, int is_f64, void **data);
PyObject *sb_new_like(const sb_view *view, void **data);

/* Calls a kernel on as many threads as torch uses; tells whether it had memory. */
#define SB_CALL(kernel, parameters, work) sb_call((int64_t (*)(const void *))sb.kernel, parameters, work)
int sb_call(int64_t (*kernel)(const void *), const void *parameters, int64_t work);

/* The object where the kernel succeeded, else NULL; takes the object over. */
PyObject *sb_result(PyObject *object, int succeeded);

/* Writes the sums over the dimensions of these bits; tells whether it had memory. */
int sb_add_up(const sb_view *x, uint64_t reduced, void *out);

/* Calls torch's op as if portable mode was off; where that is not possible here, NULL without an exception. */
PyObject *sb_pass_on(const sb_op *op, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *sb_call_with(PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* The keys that the dispatcher looks at in this thread: see scope.c. */
PyObject *sb_leave(PyObject *module, PyObject *none);
PyObject *sb_return_to(PyObject *module, PyObject *state);
PyObject *sb_set_scope(PyObject *module, PyObject *args);

#endif
