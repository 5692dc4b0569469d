/* How a kernel that was built for the host is launched: HOST_KERNEL(name) makes what the fake driver finds, and
 * HOST_KERNEL_APART(name) does for one whose threads do not wait for each other. */
#ifndef FAKE_GPU_HOST_LAUNCH_H
#define FAKE_GPU_HOST_LAUNCH_H

#include <mutex>
#include <tuple>
#include <utility>

#include "host_grid.h"

#ifdef FAKE_GPU_CHECKED
#include "access.h"
#else
#include "kernels.h"
#endif

/* A grid keeps its place in static variables. */
static std::mutex &grid_lock() {
    static std::mutex lock;
    return lock;
}

/* What each thread of a launch does. It lies on the stack of the one that runs them all. */
template <class... Types> struct Threads {
    void (*kernel)(Types...);
    std::tuple<Types...> arguments;
    bool have_begun;

    void run_one() {
        if (!have_begun)
            begin();
        std::apply(kernel, arguments);
    }

    void begin() {
        have_begun = true;
#ifdef FAKE_GPU_CHECKED
        fake::begin_access((const void *)kernel,
                           {{host_stacks.data(), host_stacks.size()},
                            {host_dynamic.data(), host_dynamic.size() * 16},
                            {host_fibers.data(), host_fibers.size() * sizeof(host_fiber)}});
#endif
    }
};

template <class... Types> static void run_grid(Threads<Types...> &threads, const fake::Launch &launch, bool apart) {
    const host_index grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
    const auto one = [&threads] { threads.run_one(); };
    std::lock_guard<std::mutex> held(grid_lock());
    const auto all = [&] {
        if (apart)
            host_launch_apart(grid, launch.threads, launch.is_reversed, one);
        else
            host_launch(grid, launch.threads, launch.shared, launch.is_reversed, one);
    };
#ifdef FAKE_GPU_CHECKED
    fake::run_checked(launch, all);
#else
    all();
#endif
}

/* Whether there is an address for each of so many. */
static bool are_given(void **arguments, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!arguments || !arguments[i])
            return false;
    return true;
}

template <class... Types, size_t... I>
static std::tuple<Types...> read_arguments(void **arguments, std::index_sequence<I...>) {
    return {*static_cast<Types *>(arguments[I])...};
}

template <class... Types>
static fake::Task launch_of(void (*kernel)(Types...), const fake::Launch &launch, void **arguments, bool apart) {
    if (!are_given(arguments, sizeof...(Types)))
        return nullptr;
    const auto values = read_arguments<Types...>(arguments, std::index_sequence_for<Types...>{});
    return [=] {
        Threads<Types...> threads = {kernel, values, false};
        run_grid(threads, launch, apart);
    };
}

#define HOST_KERNEL_APART(name)                                                                                        \
    extern "C" fake::Task host_##name(const fake::Launch &launch, void **arguments) {                                  \
        return launch_of(name, launch, arguments, true);                                                               \
    }

#define HOST_KERNEL(name)                                                                                              \
    extern "C" fake::Task host_##name(const fake::Launch &launch, void **arguments) {                                  \
        return launch_of(name, launch, arguments, false);                                                              \
    }

#endif
