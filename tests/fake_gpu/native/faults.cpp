#include "faults.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fake {

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

int driver_release(int otherwise) { return number_of("FAKE_GPU_DRIVER", otherwise); }

int capability() { return number_of("FAKE_GPU_CAPABILITY", 90); }

struct Fault {
    int error = 0, first = 1;
    Fault() {
        if (const char *text = getenv("FAKE_GPU_FAULT"))
            sscanf(text, "%d:%d", &error, &first);
    }
};

static std::atomic<int> &lasting_error() {
    static std::atomic<int> error{0};
    return error;
}

void break_device(int error) { lasting_error() = error; }

int broken() { return lasting_error(); }

int fault() {
    static const Fault wanted;
    static std::atomic<int> calls{0};
    if (const int error = broken())
        return error;
    return wanted.error && ++calls >= wanted.first ? wanted.error : 0;
}

void look_for_devices() {
    static std::atomic<bool> looked{false};
    const char *const wish = getenv("FAKE_GPU_FIRST");
    if (!wish || looked.exchange(true))
        return;
    fputs("fake GPU: devices are looked for\n", stderr);
    if (!strcmp(wish, "abort"))
        abort();
}

} // namespace fake
