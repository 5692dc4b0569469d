/* The limits of each device: those of an H200. */
#ifndef FAKE_GPU_DEVICE_H
#define FAKE_GPU_DEVICE_H

#include <cstddef>

namespace fake {

enum : unsigned {
    PROCESSORS = 132,
    THREADS_OF_BLOCK = 1024,
    THREADS_OF_PROCESSOR = 2048,
    DEEPEST_BLOCK = 64, /* threads in z */
    LONGEST_GRID = 2147483647,
    WIDEST_GRID = 65535, /* blocks in y, and in z */
    REGISTERS_OF_BLOCK = 65536,
    WARP = 32,
};

enum : size_t {
    SHARED = 48 << 10,         /* bytes of a block that does not ask for more */
    MOST_SHARED = 227 << 10,   /* of one that does */
    SHARED_OF_PROCESSOR = 228 << 10,
};

} // namespace fake

#endif
