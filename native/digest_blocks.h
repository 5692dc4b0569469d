/* The loop over whole blocks: one version for each instruction set, chosen at run time. */
#ifndef SAMEBITS_DIGEST_BLOCKS_H
#define SAMEBITS_DIGEST_BLOCKS_H

#include <stddef.h>

#include "digest_core.h"

/* Adds `count` whole blocks, the first of which has index `first`, to `sums`. */
typedef void (*sb_blocks_fn)(const unsigned char *data, size_t count, uint64_t first, sb_sums *sums);

typedef struct {
    const char *name;
    sb_blocks_fn blocks;
} sb_isa;

/* The version of that name, of the best one for the empty name; NULL when this machine cannot run it. */
const sb_isa *sb_find_isa(const char *name);

#endif
