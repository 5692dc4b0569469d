/* What a kernel that runs on the host reads and writes, held to what a GPU has addresses for: memory of its device, and
 * pinned memory. The kernels are compiled so that each access calls access.cpp (`CHECKED` in build.py). */
#ifndef FAKE_GPU_ACCESS_H
#define FAKE_GPU_ACCESS_H

#include <cstddef>
#include <functional>

#include "kernels.h"
#include "ranges.h"

namespace fake {

/* Runs a kernel. At an access that a GPU has no address for it ends at once, and the device is broken (error 700). */
void run_checked(const Launch &launch, const std::function<void()> &kernel);

/* From here on its accesses are looked at. It has some memory of its own: stacks and shared memory, in `spans`; the stack
 * of this thread; all variables of the library that `code` is in. */
void begin_access(const void *code, std::initializer_list<Span> spans);

} // namespace fake

#endif
