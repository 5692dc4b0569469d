#include "contents.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 256

/* ---- regions */

/* Neighbouring dimensions that lie evenly become one, as in sb_view_init (native/digest_gather.c). */
static int merge_dims(const uint64_t *sizes, const uint64_t *strides, unsigned n_dims, sb_region *region) {
    unsigned n = 0;
    for (unsigned d = 0; d < n_dims; d++) {
        const int64_t size = (int64_t)sizes[d], stride = (int64_t)strides[d];
        if (size == 1)
            continue;
        if (n > 0 && region->strides[n - 1] == stride * size) {
            region->sizes[n - 1] *= size;
            region->strides[n - 1] = stride;
            continue;
        }
        if (n == SB_REGION_DIMS)
            return 0;
        region->sizes[n] = size;
        region->strides[n++] = stride;
    }
    region->n_dims = n;
    return 1;
}

uint64_t sb_bytes_shown(const uint64_t *words) {
    const unsigned n_dims = (unsigned)(words[1] >> 20 & 0xFF);
    uint64_t n_bytes = (uint64_t)1 << (words[1] >> 8 & 0xF);
    for (unsigned d = 0; d < n_dims; d++)
        n_bytes *= words[2 + d];
    return n_bytes;
}

int sb_region_of(const uint64_t *words, sb_region *region) {
    const unsigned n_dims = (unsigned)(words[1] >> 20 & 0xFF);
    *region = (sb_region){
        .address = words[0], .n_bytes = sb_bytes_shown(words), .shift = (uint32_t)(words[1] >> 8 & 0xF)};
    if (!merge_dims(words + 2, words + 2 + n_dims, n_dims, region))
        return 0;
    if (region->n_dims == 0 || (region->n_dims == 1 && region->strides[0] == 1)) {
        region->n_dims = region->shift = 0; /* the same bytes under another dtype have the same sums */
        region->sizes[0] = region->strides[0] = 0;
    }
    return 1;
}

static int is_same(const sb_region *a, const sb_region *b) {
    const size_t n = sizeof(int64_t) * a->n_dims;
    return a->address == b->address && a->n_bytes == b->n_bytes && a->n_dims == b->n_dims && a->shift == b->shift &&
           !memcmp(a->sizes, b->sizes, n) && !memcmp(a->strides, b->strides, n);
}

/* ---- storages by where they begin */

static size_t slot_of(const sb_contents *all, uint64_t base) {
    const size_t mask = all->n_slots - 1;
    size_t slot = (size_t)(base * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (all->slots[slot] && all->slots[slot]->base != base)
        slot = (slot + 1) & mask;
    return slot;
}

sb_storage *sb_contents_find(const sb_contents *all, uint64_t base) {
    return all->n_slots ? all->slots[slot_of(all, base)] : NULL;
}

static int grow(sb_contents *all) {
    if (2 * (all->used + 1) <= all->n_slots)
        return 1;
    const size_t wanted = all->n_slots ? 2 * all->n_slots : FIRST_SIZE;
    sb_contents larger = {calloc(wanted, sizeof(sb_storage *)), wanted, all->used, all->change};
    if (!larger.slots)
        return 0;
    for (size_t i = 0; i < all->n_slots; i++)
        if (all->slots[i])
            larger.slots[slot_of(&larger, all->slots[i]->base)] = all->slots[i];
    free(all->slots);
    *all = larger;
    return 1;
}

sb_storage *sb_contents_add(sb_contents *all, uint64_t base, uint64_t object, uint64_t *replaced) {
    *replaced = 0;
    if (!grow(all))
        return NULL;
    const size_t slot = slot_of(all, base);
    sb_storage *storage = all->slots[slot];
    if (storage)
        *replaced = storage->storage;
    else if ((storage = all->slots[slot] = malloc(sizeof *storage)))
        all->used++;
    if (storage)
        *storage = (sb_storage){.base = base, .storage = object, .change = ++all->change};
    return storage;
}

uint64_t sb_contents_take(sb_contents *all, size_t slot) {
    const uint64_t object = all->slots[slot]->storage;
    const size_t mask = all->n_slots - 1;
    free(all->slots[slot]);
    all->slots[slot] = NULL;
    all->used--;
    for (size_t i = (slot + 1) & mask; all->slots[i]; i = (i + 1) & mask) { /* a search must not end at the gap */
        sb_storage *moved = all->slots[i];
        all->slots[i] = NULL;
        all->slots[slot_of(all, moved->base)] = moved;
    }
    return object;
}

/* ---- contents of one storage */

void sb_contents_forget(sb_contents *all, sb_storage *storage) {
    storage->n_contents = storage->next = 0;
    storage->change = ++all->change;
}

const uint64_t *sb_contents_sums(const sb_storage *storage, const sb_region *region, int64_t version) {
    for (int i = 0; i < storage->n_contents; i++)
        if (is_same(&storage->contents[i].region, region))
            return storage->contents[i].version == version ? storage->contents[i].sums : NULL;
    return NULL;
}

void sb_contents_keep(sb_storage *storage, const sb_content *content) {
    int i = 0;
    while (i < storage->n_contents && !is_same(&storage->contents[i].region, &content->region))
        i++;
    if (i == SB_REGIONS) {
        i = storage->next;
        storage->next = (storage->next + 1) % SB_REGIONS;
    } else if (i == storage->n_contents)
        storage->n_contents++;
    storage->contents[i] = *content;
}
