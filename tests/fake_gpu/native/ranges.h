/* Where memory lies: of a thread's stack, of a library. */
#ifndef FAKE_GPU_RANGES_H
#define FAKE_GPU_RANGES_H

#include <link.h>
#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fake {

struct Span {
    const void *start;
    size_t size;
};

struct Range {
    uintptr_t start = 0, end = 0;
    bool has(uintptr_t address) const { return start <= address && address < end; }
};

inline Range range_of(const Span &span) {
    const auto number = reinterpret_cast<uintptr_t>(span.start);
    return {number, number + span.size};
}

/* The stack of the calling thread. */
inline Range own_stack() {
    pthread_attr_t attributes;
    void *start = nullptr;
    size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &start, &size);
    pthread_attr_destroy(&attributes);
    return range_of({start, size});
}

struct Library {
    uintptr_t known; /* an address in it */
    unsigned flags;  /* that a segment must have, such as PF_W */
    std::vector<Range> segments;
};

inline int look_for_library(dl_phdr_info *info, size_t, void *given) {
    auto *const library = static_cast<Library *>(given);
    std::vector<Range> segments;
    bool is_this_one = false;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (const auto &segment = info->dlpi_phdr[i]; segment.p_type == PT_LOAD) {
            const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
            const Range range = {start, start + segment.p_memsz};
            is_this_one |= range.has(library->known);
            if ((segment.p_flags & library->flags) == library->flags)
                segments.push_back(range);
        }
    if (is_this_one)
        library->segments = segments;
    return is_this_one;
}

/* The segments, with those flags, of the library that has an address. */
inline std::vector<Range> segments_of(const void *known, unsigned flags = 0) {
    Library library{reinterpret_cast<uintptr_t>(known), flags, {}};
    dl_iterate_phdr(look_for_library, &library);
    return library.segments;
}

} // namespace fake

#endif
