/* Storages by address: each has a serial number and the event that last wrote it. */
#ifndef SAMEBITS_MEMORY_MAP_H
#define SAMEBITS_MEMORY_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int32_t serial, writer;
} sb_entry;

typedef struct {
    uint64_t *keys; /* 0 where free; address 0 itself is never stored */
    sb_entry *entries;
    size_t mask, used;
} sb_memory_map;

/* Returns the entry of an address, NULL if it is not known. */
sb_entry *sb_map_find(const sb_memory_map *map, uint64_t address);

/* Sets the entry of an address; 0 when there is no memory for that. */
int sb_map_set(sb_memory_map *map, uint64_t address, sb_entry entry);

void sb_map_free(sb_memory_map *map);

#endif
