#include "digest_gather.h"

#include <string.h>

#include "digest_transpose.h"

void sb_view_init(sb_view *view, const unsigned char *data, unsigned shift, unsigned n_dims, const uint64_t *sizes,
                  const uint64_t *strides) {
    view->data = data;
    view->shift = shift;
    unsigned n = 0;
    for (unsigned d = 0; d < n_dims; d++) {
        const int64_t size = (int64_t)sizes[d], stride = (int64_t)strides[d];
        if (size == 1)
            continue;
        if (n > 0 && view->stride[n - 1] == stride * size) {
            view->size[n - 1] *= size;
            view->stride[n - 1] = stride;
        } else {
            view->size[n] = size;
            view->stride[n++] = stride;
        }
    }
    view->n_dims = n;
}

/* Below, `width` is a constant at each call: a memcpy of it is one load and one store. */

SB_ALWAYS_INLINE void copy_strided(const unsigned char *src, int64_t count, int64_t step, unsigned char *out, size_t width) {
    for (int64_t i = 0; i < count; i++)
        memcpy(out + width * i, src + step * i, width);
}

typedef struct {
    const unsigned char *src;
    int64_t rows, cols;
    int64_t row_stride, col_stride; /* in elements */
} sb_tile;

SB_ALWAYS_INLINE void copy_tile_of(const sb_tile *t, unsigned char *out, size_t width) {
    const int64_t w = (int64_t)width;
    if (t->col_stride == 1)
        for (int64_t r = 0; r < t->rows; r++)
            memcpy(out + w * t->cols * r, t->src + w * t->row_stride * r, (size_t)(w * t->cols));
    else if (t->row_stride == 1 && t->rows > 1) {
        const sb_columns columns = {t->src, t->rows, t->cols, w * t->col_stride};
        sb_transpose(&columns, out, width);
    } else
        for (int64_t r = 0; r < t->rows; r++)
            copy_strided(t->src + w * t->row_stride * r, t->cols, w * t->col_stride, out + w * t->cols * r, width);
}

static void copy_tile(const sb_tile *t, unsigned shift, unsigned char *out) {
    switch (shift) {
    case 0: copy_tile_of(t, out, 1); break;
    case 1: copy_tile_of(t, out, 2); break;
    case 2: copy_tile_of(t, out, 4); break;
    case 3: copy_tile_of(t, out, 8); break;
    default: copy_tile_of(t, out, 16); break;
    }
}

/* Where a row starts (a row is what the last dimension spans), in elements from the data pointer. */
static int64_t row_offset(const sb_view *v, int64_t row) {
    int64_t offset = 0;
    for (int d = (int)v->n_dims - 2; d >= 0; d--) {
        offset += row % v->size[d] * v->stride[d];
        row /= v->size[d];
    }
    return offset;
}

void sb_gather(const sb_view *v, int64_t first, int64_t count, unsigned char *out) {
    const unsigned last = v->n_dims - 1;
    const int64_t cols = v->size[last];
    const int64_t height = last > 0 ? v->size[last - 1] : 1;
    while (count > 0) {
        const int64_t row = first / cols, col = first % cols;
        sb_tile t = {v->data, 1, cols - col, last > 0 ? v->stride[last - 1] : 0, v->stride[last]};
        t.src += (row_offset(v, row) + col * t.col_stride) * ((int64_t)1 << v->shift);
        if (t.cols > count)
            t.cols = count;
        else if (col == 0) { /* as many whole rows as lie evenly apart */
            t.rows = height - row % height;
            if (t.rows > count / cols)
                t.rows = count / cols;
        }
        copy_tile(&t, v->shift, out);
        const int64_t done = t.rows * t.cols;
        out += done << v->shift;
        first += done;
        count -= done;
    }
}
