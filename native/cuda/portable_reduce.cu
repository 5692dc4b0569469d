/* Reductions over any axes. First the chunks, then the tree over them, a part of it with each launch. */
#include "portable_reduce.h"

typedef struct {
    int64_t size, a, b; /* strides in elements */
} sbd_axis;

/* Axes that are not reduced, whose last one is the innermost of `out`, then those that are. `out` holds a value for each
 * chunk of each output, outputs beside each other. */
typedef struct {
    int64_t kind;
    const void *a, *b, *mean;
    void *out;
    int64_t outputs, n, chunks, kept, reduced;
    sbd_axis keep[SBP_ON_DEVICE], over[SBP_ON_DEVICE];
} sbd_reduce_parameters;

/* The offsets of value i in a and b. */
SBP_FUNCTION sbd_axis sbd_locate(const sbd_axis *axes, int64_t count, int64_t i) {
    sbd_axis at = {0, 0, 0};
#pragma unroll 1
    for (int64_t d = count - 1; d > 0; d--) {
        const int64_t here = i % axes[d].size;
        i /= axes[d].size;
        at.a += here * axes[d].a;
        at.b += here * axes[d].b;
    }
    if (count) {
        at.a += i * axes[0].a;
        at.b += i * axes[0].b;
    }
    return at;
}

template <int KIND, class T> SBP_FUNCTION T sbd_take(const sbd_reduce_parameters &p, sbd_axis from, T lane, int64_t i, T m) {
    const sbd_axis at = sbd_locate(p.over, p.reduced, i);
    const T a = ((const T *)p.a)[from.a + at.a];
    return sbd_step<KIND>(lane, a, SBP_USES_B(KIND) ? ((const T *)p.b)[from.b + at.b] : a, m);
}

/* A group of 16 threads for each chunk. */
template <int KIND, class T> SBP_FUNCTION void sbd_reduce_rows(const sbd_reduce_parameters &p) {
    const int64_t groups = (int64_t)gridDim.x * blockDim.x / SBP_LANES, items = p.outputs * p.chunks;
    const int64_t mine = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / SBP_LANES;
    const int64_t rounds = (items + groups - 1) / groups;
    for (int64_t round = 0; round < rounds; round++) {
        const int64_t item = round * groups + mine, known = item < items ? item : 0;
        const int64_t output = known % p.outputs, chunk = known / p.outputs;
        const sbd_axis from = sbd_locate(p.keep, p.kept, output);
        const T m = SBP_USES_M(KIND) ? ((const T *)p.mean)[output] : 0;
        const T sum = sbd_chunk<KIND, T>(chunk * SBP_CHUNK, p.n,
                                         [&](T lane, int64_t i) { return sbd_take<KIND>(p, from, lane, i, m); });
        if (item < items && threadIdx.x % SBP_LANES == 0)
            ((T *)p.out)[item] = sum;
    }
}

/* One thread for each chunk: outputs beside each other are in threads beside each other. */
template <int KIND, class T> SBP_FUNCTION void sbd_reduce_columns(const sbd_reduce_parameters &p) {
    SBP_EACH_INDEX(item, p.outputs * p.chunks) {
        const int64_t output = item % p.outputs, first = item / p.outputs * SBP_CHUNK;
        const int64_t n = p.n - first < SBP_CHUNK ? p.n - first : SBP_CHUNK;
        const sbd_axis from = sbd_locate(p.keep, p.kept, output);
        const T m = SBP_USES_M(KIND) ? ((const T *)p.mean)[output] : 0;
        sbd_tree<KIND, T> lanes; /* in the order 0, 8, 4, 12, ..., in which halves are neighbours */
#pragma unroll 1
        for (int turned = 0; turned < SBP_LANES; turned++) {
            const int l = (turned & 1) << 3 | (turned & 2) << 1 | (turned & 4) >> 1 | turned >> 3;
            T lane = sbd_nothing<KIND, T>();
#pragma unroll 1
            for (int64_t i = l; i < n; i += SBP_LANES)
                lane = sbd_take<KIND>(p, from, lane, first + i, m);
            lanes.add(lane);
        }
        ((T *)p.out)[item] = lanes.end();
    }
}

#define SBD_EACH_KIND(function, p)                                                                                    \
    switch (p.kind) {                                                                                                 \
    case SBP_SUM:                                                                                                     \
        return function<SBP_SUM, T>(p);                                                                               \
    case SBP_SQUARES:                                                                                                 \
        return function<SBP_SQUARES, T>(p);                                                                           \
    case SBP_PRODUCTS:                                                                                                \
        return function<SBP_PRODUCTS, T>(p);                                                                          \
    case SBP_DEVIATIONS:                                                                                              \
        return function<SBP_DEVIATIONS, T>(p);                                                                        \
    case SBP_CROSS:                                                                                                   \
        return function<SBP_CROSS, T>(p);                                                                             \
    case SBP_MAGNITUDES:                                                                                              \
        return function<SBP_MAGNITUDES, T>(p);                                                                        \
    default:                                                                                                          \
        return function<SBP_PRODUCT, T>(p);                                                                           \
    }

template <class T> SBP_FUNCTION void reduce_rows_of(const sbd_reduce_parameters &p) { SBD_EACH_KIND(sbd_reduce_rows, p) }
template <class T> SBP_FUNCTION void reduce_columns_of(const sbd_reduce_parameters &p) {
    SBD_EACH_KIND(sbd_reduce_columns, p)
}
SBP_KERNEL_TOGETHER(reduce_rows, sbd_reduce_parameters)
SBP_KERNEL_APART(reduce_columns, sbd_reduce_parameters)

/* n rows of `width` sums; each SBP_CHUNK of them, which are whole branches of the tree, become one. */
typedef struct {
    int64_t is_product;
    const void *sums;
    void *out;
    int64_t n, width;
} sbd_branches_parameters;

template <int KIND, class T> SBP_FUNCTION void sbd_branches(const sbd_branches_parameters &p) {
    SBP_EACH_INDEX(item, (p.n + SBP_CHUNK - 1) / SBP_CHUNK * p.width) {
        const int64_t first = item / p.width * SBP_CHUNK, end = p.n - first < SBP_CHUNK ? p.n : first + SBP_CHUNK;
        sbd_tree<KIND, T> tree;
        for (int64_t i = first; i < end; i++)
            tree.add(((const T *)p.sums)[i * p.width + item % p.width]);
        ((T *)p.out)[item] = tree.end();
    }
}

template <class T> SBP_FUNCTION void branches_of(const sbd_branches_parameters &p) {
    if (p.is_product)
        sbd_branches<SBP_PRODUCT, T>(p);
    else
        sbd_branches<SBP_SUM, T>(p);
}
SBP_KERNEL_APART(branches, sbd_branches_parameters)
