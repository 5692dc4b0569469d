#include "ops.h"

static int address(PyObject *addresses, const char *name, void *to) {
    PyObject *value = PyDict_GetItemString(addresses, name);
    if (!value) {
        PyErr_Format(PyExc_ValueError, "the address of %s is missing", name);
        return 0;
    }
    *(void **)to = PyLong_AsVoidPtr(value);
    return !PyErr_Occurred();
}

#define ADDRESS(name) &&address(addresses, #name, &bound.name)

static PyObject *bind(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *addresses, *tensor, *parameter, *dtype32, *dtype64;
    sb_bound bound = {0};
    if (!PyArg_ParseTuple(args, "O!(iii)n(OOOO)", &PyDict_Type, &addresses, &bound.float32, &bound.float64, &bound.strided,
                          &bound.offset, &tensor, &parameter, &dtype32, &dtype64))
        return NULL;
    if (!(1 ADDRESS(get_data_ptr) ADDRESS(get_dim) ADDRESS(get_sizes) ADDRESS(get_strides) ADDRESS(get_dtype)
              ADDRESS(get_device_type) ADDRESS(get_layout) ADDRESS(empty_strided) ADDRESS(delete_tensor) ADDRESS(wrap)
                  ADDRESS(get_threads) ADDRESS(set_threads) SB_KERNELS(ADDRESS)))
        return NULL;
    bound.tensor = Py_NewRef(tensor);
    bound.parameter = Py_NewRef(parameter);
    bound.dtype32 = Py_NewRef(dtype32);
    bound.dtype64 = Py_NewRef(dtype64);
    sb = bound;
    Py_RETURN_NONE;
}

static PyObject *set_off(PyObject *Py_UNUSED(module), PyObject *is_off) {
    sb.is_off = is_off == Py_True;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"bind", bind, METH_VARARGS,
     "bind(addresses, (float32, float64, strided), offset, (Tensor, Parameter, torch.float32, torch.float64))\n\nSets where the functions of torch and the "
     "kernels are, torch's numbers of dtypes and layouts, and where a tensor is in its Python object."},
    {"set_off", set_off, METH_O, "set_off(is_off)\n\nSets whether all ops are left to Python."},
    {"set_scope", sb_set_scope, METH_VARARGS,
     "set_scope(library, name, less_included, less_excluded, more_excluded) -> bool\n\nSets where a thread's keys are and "
     "what `leave` changes; False where they cannot be found."},
    {"leave", sb_leave, METH_NOARGS, "leave() -> bytes\n\nLets ops of this thread go to torch's own kernels."},
    {"return_to", sb_return_to, METH_O, "return_to(state)\n\nPuts back what `leave` returned."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "samebits._ops", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__ops(void) {
    PyObject *module = PyModule_Create(&definition), *type = module ? PyType_FromSpec(&sb_op_spec) : NULL;
    if (module && (PyModule_AddIntConstant(module, "ABI", SB_OPS_ABI) || !type ||
                   PyModule_AddType(module, (PyTypeObject *)type)))
        Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
