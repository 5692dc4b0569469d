/* Reading a strided tensor in the order of its logical contents. */
#ifndef SAMEBITS_DIGEST_GATHER_H
#define SAMEBITS_DIGEST_GATHER_H

#include <stddef.h>
#include <stdint.h>

#define SB_MAX_DIMS 64

/* A tensor in memory; sizes and strides count elements. Dimensions that memory does not need are merged. */
typedef struct {
    const unsigned char *data;
    unsigned shift; /* log2 of the bytes of an element */
    unsigned n_dims;
    int64_t size[SB_MAX_DIMS];
    int64_t stride[SB_MAX_DIMS];
} sb_view;

void sb_view_init(sb_view *view, const unsigned char *data, unsigned shift, unsigned n_dims, const uint64_t *sizes,
                  const uint64_t *strides);

/* True when the logical contents are one piece of memory that starts at `data`. */
static inline int sb_view_is_dense(const sb_view *v) {
    return v->n_dims == 0 || (v->n_dims == 1 && v->stride[0] == 1);
}

/* Writes elements first .. first + count - 1 of a view that is not dense to `out`. */
void sb_gather(const sb_view *view, int64_t first, int64_t count, unsigned char *out);

#endif
