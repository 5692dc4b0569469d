/* How a kernel that was built for the host is launched: HOST_KERNEL(name) makes what the fake driver finds, and
 * HOST_KERNEL_APART(name) does for one whose threads do not wait for each other. */
#ifndef FAKE_GPU_HOST_LAUNCH_H
#define FAKE_GPU_HOST_LAUNCH_H

#include <mutex>
#include <tuple>
#include <utility>

#include "host_grid.h"

#include "kernels.h"

/* A grid keeps its place in static variables. */
static std::mutex &grid_lock() {
    static std::mutex lock;
    return lock;
}

template <class... Types, size_t... I>
static std::tuple<Types...> read_arguments(void **arguments, std::index_sequence<I...>) {
    return {*static_cast<Types *>(arguments[I])...};
}

template <class... Types>
static fake::Task launch_of(void (*kernel)(Types...), const fake::Launch &launch, void **arguments) {
    const auto values = read_arguments<Types...>(arguments, std::index_sequence_for<Types...>{});
    return [=] {
        std::lock_guard<std::mutex> held(grid_lock());
        host_launch({launch.grid[0], launch.grid[1], launch.grid[2]}, launch.threads, launch.shared,
                    launch.is_reversed, [=] { std::apply(kernel, values); });
    };
}

template <class... Types>
static fake::Task launch_apart_of(void (*kernel)(Types...), const fake::Launch &launch, void **arguments) {
    const auto values = read_arguments<Types...>(arguments, std::index_sequence_for<Types...>{});
    return [=] {
        std::lock_guard<std::mutex> held(grid_lock());
        host_launch_apart({launch.grid[0], launch.grid[1], launch.grid[2]}, launch.threads, launch.is_reversed,
                          [=] { std::apply(kernel, values); });
    };
}

#define HOST_KERNEL_APART(name)                                                                                        \
    extern "C" fake::Task host_##name(const fake::Launch &launch, void **arguments) {                                  \
        return launch_apart_of(name, launch, arguments);                                                               \
    }

#define HOST_KERNEL(name)                                                                                              \
    extern "C" fake::Task host_##name(const fake::Launch &launch, void **arguments) {                                  \
        return launch_of(name, launch, arguments);                                                                     \
    }

#endif
