/* What is known of the contents of storages: which regions of them were read, and what the sums of their digests were. */
#ifndef SAMEBITS_CONTENTS_H
#define SAMEBITS_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

#define SB_SUM_WORDS 16 /* native/digest.h */
#define SB_REGION_DIMS 4
/* Views of one storage whose contents are kept: the latest. */
#define SB_REGIONS 4

/* The memory that a tensor shows, in its order, whatever its dtype and shape. One without gaps has no dimensions. */
typedef struct {
    uint64_t address, n_bytes;
    uint32_t n_dims, shift;
    int64_t sizes[SB_REGION_DIMS], strides[SB_REGION_DIMS];
} sb_region;

/* The sums of a region, and the version of the tensor through which it was read. */
typedef struct {
    sb_region region;
    int64_t version;
    uint64_t sums[SB_SUM_WORDS];
} sb_content;

/* A storage that an op of the recording made. It is trusted as long as only recorded ops reach its memory. */
typedef struct {
    uint64_t base;    /* where it begins */
    uint64_t storage; /* torch's object, which a weak reference keeps from being another one at the same address */
    uint64_t change;  /* a number that no other state of any storage has had */
    int writing;      /* ops that are writing to it at the moment */
    int exposed;      /* something beside torch's ops may know the address, for good */
    int n_contents, next;
    sb_content contents[SB_REGIONS];
} sb_storage;

/* By where they begin. */
typedef struct {
    sb_storage **slots;
    size_t n_slots, used;
    uint64_t change; /* the last number given */
} sb_contents;

/* The bytes of the tensor that a descriptor (native/digest.h) is of. */
uint64_t sb_bytes_shown(const uint64_t *words);

/* 1, and what memory a descriptor shows; 0 for one with too many dimensions. */
int sb_region_of(const uint64_t *words, sb_region *region);

sb_storage *sb_contents_find(const sb_contents *all, uint64_t base);

/* A new storage in place of what was there; NULL when there is no memory for it. `replaced` gets the object of the one
 * that was there, or 0. */
sb_storage *sb_contents_add(sb_contents *all, uint64_t base, uint64_t object, uint64_t *replaced);

/* Takes out the storage at this slot, and gives its object back; others may move to other slots. */
uint64_t sb_contents_take(sb_contents *all, size_t slot);

/* Forgets what is known of the contents. */
void sb_contents_forget(sb_contents *all, sb_storage *storage);

/* The sums of a region as of a version; NULL if they are not known. */
const uint64_t *sb_contents_sums(const sb_storage *storage, const sb_region *region, int64_t version);

/* Keeps them, in place of the oldest if need be. */
void sb_contents_keep(sb_storage *storage, const sb_content *content);

#endif
