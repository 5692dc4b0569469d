#include "memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "streams.h"

namespace fake {

static const size_t ALIGNMENT = 512;
static const int NOTHING = 0xa5; /* fills new memory, so that nobody takes it for zeros */

struct Memory {
    std::mutex mutex;
    std::map<uintptr_t, Place> blocks;
    size_t on_device = 0;
};

static Memory &memory() {
    static Memory *const found = new Memory;
    return *found;
}

size_t bytes_in_all() {
    const char *text = getenv("FAKE_GPU_MEMORY");
    return text && *text ? strtoull(text, nullptr, 10) : (size_t)16 << 30;
}

size_t bytes_in_use() {
    std::lock_guard<std::mutex> lock(memory().mutex);
    return memory().on_device;
}

static void remember(const Place &place) {
    std::lock_guard<std::mutex> lock(memory().mutex);
    memory().blocks[reinterpret_cast<uintptr_t>(place.start)] = place;
    if (place.kind == Kind::device)
        memory().on_device += place.size;
}

void *allocate(size_t size, Kind kind) {
    const size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (kind == Kind::device && bytes_in_use() + rounded > bytes_in_all())
        return nullptr;
    void *base = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    if (!base)
        return nullptr;
    if (rounded <= (size_t)64 << 20)
        memset(base, NOTHING, rounded);
    remember({kind, current_device(), base, rounded});
    return base;
}

static Place forget(void *base) {
    std::lock_guard<std::mutex> lock(memory().mutex);
    const auto found = memory().blocks.find(reinterpret_cast<uintptr_t>(base));
    if (found == memory().blocks.end())
        return {};
    const Place place = found->second;
    memory().blocks.erase(found);
    if (place.kind == Kind::device)
        memory().on_device -= place.size;
    return place;
}

bool release(void *base) {
    const Place place = forget(base);
    if (place.start && !place.is_borrowed)
        free(base);
    return place.start != nullptr;
}

void pin(void *base, size_t size) { remember({Kind::pinned, current_device(), base, size, true}); }

Place place_of(const void *address) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    std::lock_guard<std::mutex> lock(memory().mutex);
    auto after = memory().blocks.upper_bound(number);
    if (after == memory().blocks.begin())
        return {};
    const auto &[start, place] = *--after;
    return number < start + place.size ? place : Place{};
}

} // namespace fake
