/* Memory of a device that is not there: memory of the host, of which is known what it stands for. */
#ifndef FAKE_GPU_MEMORY_H
#define FAKE_GPU_MEMORY_H

#include <cstddef>

namespace fake {

enum class Kind { pageable, pinned, device };

struct Place {
    Kind kind = Kind::pageable;
    int device = -1;
    const void *start = nullptr;
    size_t size = 0;
    bool is_borrowed = false; /* memory of others */
};

/* New memory, aligned as the device's; null where it has no more (FAKE_GPU_MEMORY, in bytes). */
void *allocate(size_t size, Kind kind);
/* Whether there was such memory. */
bool release(void *base);
/* Memory of others, which is pinned from now on. */
void pin(void *base, size_t size);
/* What an address belongs to. */
Place place_of(const void *address);
size_t bytes_in_all();
size_t bytes_in_use();

} // namespace fake

#endif
