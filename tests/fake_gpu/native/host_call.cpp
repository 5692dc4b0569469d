/* Calls a kernel that was built for the host, for programs that have no driver. */
#include "kernels.h"

extern "C" void call_kernel(fake::Kernel kernel, const unsigned *grid, unsigned threads, size_t shared, int is_reversed,
                            void **arguments) {
    const fake::Launch launch = {{grid[0], grid[1], grid[2]}, threads, shared, is_reversed != 0};
    kernel(launch, arguments)();
}
