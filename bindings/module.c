/* samebits._reader: the hot paths of recording and of portable mode without calls of Python in between. Everything in it
 * has a twin in Python (digest/_native_backend.py, digest/_cuda_backend.py, recording/probes/op_calls.py, records/log.py,
 * portable/backends/library.py, portable/_scan.py), which is used where this module was not built. */
#include "libraries.h"
#include "reader.h"

static PyMethodDef functions[] = {
    {"append", sb_append, METH_VARARGS,
     "append(path, (device, inode, size, head), data) -> int\n\nAppends to that very file, all or nothing."},
    {"libraries_from", sb_libraries_from, METH_VARARGS,
     "libraries_from(first) -> tuple[int, int, bool]\n\nHow many libraries this process has unloaded and has now, and "
     "whether one of those from number `first` on is made for torch; True where this cannot be known."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "samebits._reader", .m_size = -1, .m_methods = functions};

static int add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    const int failed = !type || PyModule_AddType(module, (PyTypeObject *)type);
    Py_XDECREF(type);
    return failed;
}

PyMODINIT_FUNC PyInit__reader(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddIntConstant(module, "ABI", SB_READER_ABI) || add_type(module, &sb_reader_spec) ||
                   add_type(module, &sb_memory_spec) || add_type(module, &sb_observer_spec) ||
                   add_type(module, &sb_calls_spec) ||
                   add_type(module, &sb_scanner_spec) || add_type(module, &sb_kernel_spec)))
        Py_CLEAR(module);
    return module;
}
