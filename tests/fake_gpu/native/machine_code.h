/* What machine code says of its kernels: the limits that a driver holds a launch to. */
#ifndef FAKE_GPU_MACHINE_CODE_H
#define FAKE_GPU_MACHINE_CODE_H

#include <cstddef>
#include <map>
#include <string>

namespace fake {

struct Limits {
    unsigned most_threads = 1024; /* of a block: its __launch_bounds__ */
    unsigned registers = 0;       /* of a thread */
    size_t shared = 0;            /* bytes that a block has without asking at the launch */
};

/* Each kernel of a cubin by name; nothing of other code, whose limits are not known here. */
std::map<std::string, Limits> limits_of(const void *code);

} // namespace fake

#endif
