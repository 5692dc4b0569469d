/* samebits._reader: the hot path of recording without calls of Python in between. Everything in it has a twin in
 * Python (digest/tensors.py, recording/probes/memory.py), which is used where this module was not built. */
#include "reader.h"

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "samebits._reader", .m_size = -1};

PyMODINIT_FUNC PyInit__reader(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddIntConstant(module, "ABI", SB_READER_ABI) ||
                   PyModule_AddType(module, &sb_reader_type) || PyModule_AddType(module, &sb_memory_type)))
        Py_CLEAR(module);
    return module;
}
