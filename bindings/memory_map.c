#include "memory_map.h"

#include <stdlib.h>

#define FIRST_SIZE 1024

static size_t slot_of(const sb_memory_map *map, uint64_t address) {
    size_t slot = (size_t)(address * 0x9E3779B97F4A7C15u >> 20) & map->mask;
    while (map->keys[slot] && map->keys[slot] != address)
        slot = (slot + 1) & map->mask;
    return slot;
}

sb_entry *sb_map_find(const sb_memory_map *map, uint64_t address) {
    if (!map->keys || !address)
        return NULL;
    const size_t slot = slot_of(map, address);
    return map->keys[slot] ? &map->entries[slot] : NULL;
}

/* Makes room for one more. */
static int grow(sb_memory_map *map) {
    const size_t size = map->keys ? map->mask + 1 : 0;
    if (2 * (map->used + 1) <= size)
        return 1;
    const size_t wanted = size ? 2 * size : FIRST_SIZE;
    sb_memory_map larger = {calloc(wanted, sizeof(uint64_t)), calloc(wanted, sizeof(sb_entry)), wanted - 1, map->used};
    if (!larger.keys || !larger.entries) {
        sb_map_free(&larger);
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        if (map->keys[i]) {
            const size_t slot = slot_of(&larger, map->keys[i]);
            larger.keys[slot] = map->keys[i];
            larger.entries[slot] = map->entries[i];
        }
    sb_map_free(map);
    *map = larger;
    return 1;
}

int sb_map_set(sb_memory_map *map, uint64_t address, sb_entry entry) {
    if (!address)
        return 1;
    if (!grow(map))
        return 0;
    const size_t slot = slot_of(map, address);
    map->used += map->keys[slot] == 0;
    map->keys[slot] = address;
    map->entries[slot] = entry;
    return 1;
}

void sb_map_free(sb_memory_map *map) {
    free(map->keys);
    free(map->entries);
}
