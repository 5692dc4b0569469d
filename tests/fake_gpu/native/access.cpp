#include "access.h"

#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "faults.h"
#include "memory.h"

namespace fake {

static const int ILLEGAL_ADDRESS = 700;

/* A kernel that runs on this thread. Its threads are fibers: they have one such value. */
struct Running {
    const Launch *launch;
    std::vector<Range> known; /* where it may read and write, as far as it has been asked */
    Range last;               /* the one of the access before */
    ucontext_t end;
    volatile bool is_over = false;
};

/* Null outside kernels. The library is loaded before all others, so that there is room for a variable of this model. */
__attribute__((tls_model("initial-exec"))) static thread_local Running *looked_at = nullptr;
static thread_local Running *running = nullptr;

void run_checked(const Launch &launch, const std::function<void()> &kernel) {
    Running now{};
    now.launch = &launch;
    running = &now;
    getcontext(&now.end); /* comes back once more when the kernel is ended */
    if (!now.is_over)
        kernel();
    running = looked_at = nullptr;
}

void begin_access(const void *code, std::initializer_list<Span> spans) {
    Running *const now = running;
    for (const Span &span : spans)
        now->known.push_back(range_of(span));
    now->known.push_back(own_stack());
    const std::vector<Range> variables = segments_of(code);
    now->known.insert(now->known.end(), variables.begin(), variables.end());
    now->last = now->known.front();
    looked_at = now;
}

static void refuse(Running &now, uintptr_t address, size_t size, const char *verb, const Place &place) {
    char whose[64];
    if (place.kind == Kind::device)
        snprintf(whose, sizeof whose, "memory of device %d", place.device);
    else
        snprintf(whose, sizeof whose, "no memory of a device, nor pinned memory");
    fprintf(stderr, "fake GPU: the kernel %s on device %d %s %zu bytes at %#zx: %s\n", now.launch->name,
            now.launch->device, verb, size, (size_t)address, whose);
    break_device(ILLEGAL_ADDRESS);
    looked_at = nullptr;
    now.is_over = true;
    setcontext(&now.end);
}

__attribute__((noinline)) static void search(Running *now, uintptr_t address, size_t size, const char *verb) {
    for (const Range &range : now->known)
        if (range.start <= address && address + size <= range.end) {
            now->last = range;
            return;
        }
    const Place place = place_of(reinterpret_cast<const void *>(address));
    const Range range = range_of({place.start, place.size});
    if (place.kind == Kind::pinned || place.device == now->launch->device)
        now->known.push_back(range);
    else
        refuse(*now, address, size, verb, place);
}

static inline void look(uintptr_t address, size_t size, const char *verb) {
    Running *const now = looked_at;
    if (now && (address < now->last.start || address + size > now->last.end))
        search(now, address, size, verb);
}

} // namespace fake

/* What the compiler makes each access call. */
#define ACCESS(size)                                                                                                   \
    void __asan_load##size##_noabort(uintptr_t address) { fake::look(address, size, "reads"); }                        \
    void __asan_store##size##_noabort(uintptr_t address) { fake::look(address, size, "writes"); }

extern "C" {

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __asan_loadN_noabort(uintptr_t address, size_t size) { fake::look(address, size, "reads"); }
void __asan_storeN_noabort(uintptr_t address, size_t size) { fake::look(address, size, "writes"); }

void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const void *) {}
void __asan_after_dynamic_init() {}

} /* extern "C" */
