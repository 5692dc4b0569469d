#include "ops.h"

#include <string.h>

sb_bound sb;

static int is_contiguous(const sb_view *view) {
    int64_t expected = 1;
    for (int64_t i = view->dims - 1; i >= 0; i--) {
        if (view->sizes[i] != 1 && view->strides[i] != expected)
            return 0;
        expected *= view->sizes[i];
    }
    return 1;
}

static sb_tensor tensor_of(PyObject *object) { return (sb_tensor)((char *)object + sb.offset); }

int sb_is_dense(PyObject *object, int32_t *dtype) {
    PyObject *type = (PyObject *)Py_TYPE(object);
    int32_t device, layout;
    return (type == sb.tensor || type == sb.parameter) && !sb.get_device_type(tensor_of(object), &device) &&
           device == 0 && !sb.get_layout(tensor_of(object), &layout) && layout == sb.strided &&
           !sb.get_dtype(tensor_of(object), dtype);
}

int sb_read(PyObject *object, sb_view *view) {
    sb_tensor tensor = tensor_of(object);
    int64_t *sizes, *strides;
    int32_t dtype;
    if (!sb_is_dense(object, &dtype) || (dtype != sb.float32 && dtype != sb.float64) || sb.get_dim(tensor, &view->dims) || view->dims > SB_MOST_DIMS ||
        sb.get_sizes(tensor, &sizes) || sb.get_strides(tensor, &strides) || sb.get_data_ptr(tensor, &view->data))
        return 0;
    view->sizes = sizes;
    view->strides = strides;
    view->numel = 1;
    for (int64_t i = 0; i < view->dims; i++)
        view->numel *= sizes[i];
    view->is_f64 = dtype == sb.float64;
    view->is_contiguous = is_contiguous(view);
    return view->data || !view->numel; /* tensors that stand for zeros have no memory */
}

int sb_read_contiguous(PyObject *object, sb_view *view) {
    return sb_read(object, view) && view->is_contiguous && view->numel;
}

int sb_same_shape(const sb_view *a, const sb_view *b) {
    return a->dims == b->dims && !memcmp(a->sizes, b->sizes, (size_t)a->dims * sizeof *a->sizes);
}

int sb_read_number(PyObject *object, int is_f64, double *number) {
    if (PyFloat_CheckExact(object)) {
        *number = PyFloat_AsDouble(object);
        return is_f64 || *number != *number || (*number <= 3e38 && *number >= -3e38);
    }
    if (!PyLong_CheckExact(object))
        return 0;
    int overflow;
    const long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
    *number = (double)whole;
    return !overflow && whole <= 1 << 24 && whole >= -(1 << 24); /* exact in each dtype */
}

int sb_read_count(PyObject *object, int64_t *count) {
    *count = PyLong_CheckExact(object) ? PyLong_AsLongLong(object) : 0;
    PyErr_Clear();
    return *count > 0;
}

int sb_read_each(PyObject *list, int64_t dims, int64_t least, int64_t *to) {
    const Py_ssize_t count = PyList_CheckExact(list) ? PyList_Size(list) : 0;
    if (count != 1 && count != dims)
        return 0;
    for (int64_t i = 0; i < dims; i++) {
        PyObject *number = PyList_GetItem(list, count == 1 ? 0 : i);
        if (!PyLong_CheckExact(number))
            return 0;
        const long long value = PyLong_AsLongLong(number);
        if (value < least || value > INT32_MAX)
            return 0;
        to[i] = value;
    }
    return 1;
}

int sb_read_weight(PyObject *object, const sb_view *x, int64_t n, const void **data) {
    sb_view weight;
    *data = NULL;
    if (object == Py_None)
        return 1;
    if (!sb_read_contiguous(object, &weight) || weight.is_f64 != x->is_f64 || weight.numel != n)
        return 0;
    *data = weight.data;
    return 1;
}

int sb_lies_apart(const void *written, int64_t bytes, const void *from, int64_t read) {
    const char *a = written, *b = from;
    return (a == b && read == bytes) || b >= a + bytes || b + read <= a;
}

PyObject *sb_new(int64_t dims, const int64_t *sizes, int is_f64, void **data) {
    int64_t strides[SB_MOST_DIMS], step = 1;
    for (int64_t i = dims - 1; i >= 0; i--) {
        strides[i] = step;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
    sb_tensor made;
    if (sb.empty_strided(dims, sizes, strides, is_f64 ? sb.float64 : sb.float32, 0, 0, &made))
        return NULL;
    PyObject *object = sb.get_data_ptr(made, data) ? NULL : sb.wrap(made);
    sb.delete_tensor(made);
    PyErr_Clear();
    return object;
}

PyObject *sb_new_like(const sb_view *view, void **data) { return sb_new(view->dims, view->sizes, view->is_f64, data); }

int sb_call(int64_t (*kernel)(const void *), const void *parameters, int64_t work) {
    int64_t status;
    sb.set_threads(sb.get_threads());
    if (work < SB_LONG_WORK)
        return !kernel(parameters);
    Py_BEGIN_ALLOW_THREADS
    status = kernel(parameters);
    Py_END_ALLOW_THREADS
    return !status;
}

PyObject *sb_result(PyObject *object, int succeeded) {
    if (!succeeded)
        Py_CLEAR(object);
    return object;
}
