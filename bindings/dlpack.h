/* The part of DLPack's C ABI (https://dmlc.github.io/dlpack, version 1) through which torch 2.10 and later show a
 * tensor's address, dtype, sizes and strides to C code, without any of torch's headers. */
#ifndef SAMEBITS_DLPACK_H
#define SAMEBITS_DLPACK_H

#include <stdint.h>

#define DL_EXCHANGE_CAPSULE "dlpack_exchange_api"
#define DL_MAJOR 1
#define DL_CPU 1

enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dims;
    dl_dtype dtype;
    int64_t *sizes, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_exchange {
    uint32_t major, minor;
    struct dl_exchange *previous;
    void *allocator, *managed_from_object, *managed_to_object;
    /* Fills in what stays valid as long as the tensor lives and is not resized; 0, or -1 and a Python exception. */
    int (*tensor_from_object)(void *object, dl_tensor *out);
    void *current_stream;
} dl_exchange;

#endif
