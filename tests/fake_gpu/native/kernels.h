/* What the driver and the kernels that were built for the host agree on. */
#ifndef FAKE_GPU_KERNELS_H
#define FAKE_GPU_KERNELS_H

#include <cstddef>
#include <functional>

namespace fake {

struct Launch {
    unsigned grid[3];
    unsigned threads;
    size_t shared;
    bool is_reversed = false; /* the threads of a block take their turns from the last one on */
    const char *name = "";    /* of the kernel, which outlives the launch */
    int device = -1;
};

using Task = std::function<void()>;
/* Reads the arguments, each through its address, and returns what runs the kernel; nothing if an address is missing. */
using Kernel = Task (*)(const Launch &, void **arguments);

} // namespace fake

#endif
