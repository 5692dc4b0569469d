/* Softmax, layer norm and group norm: a group of 16 threads for each row of values. */
#include "portable_reduce.h"
#include "softmax.h"

/* Rows of a launch for which all groups of a block do the same steps; what lies behind the last row is not written. */
#define SBD_EACH_ROW(row, rows, is_there)                                                                             \
    const int64_t groups_ = (int64_t)gridDim.x * blockDim.x / SBP_LANES;                                              \
    const int64_t mine_ = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / SBP_LANES;                               \
    const int64_t rounds_ = ((rows) + groups_ - 1) / groups_;                                                         \
    for (int64_t round_ = 0; round_ < rounds_; round_++)                                                              \
        for (int64_t wanted_ = round_ * groups_ + mine_, row = wanted_ < (rows) ? wanted_ : 0, is_there = wanted_ < (rows), \
                     once_ = 1;                                                                                       \
             once_; once_ = 0)

#define SBD_EACH_VALUE(i, n) for (int64_t i = threadIdx.x % SBP_LANES; i < (n); i += SBP_LANES)

/* The greatest value, +0 for either zero; NaNs do not count. */
template <class T, class VALUE> SBP_FUNCTION T sbd_most(int64_t n, VALUE value) {
    T most = -sbd_infinity<T>();
    SBD_EACH_VALUE(i, n) {
        const T x = value(i);
        most = x > most ? x : most;
    }
    for (int h = SBP_LANES / 2; h; h /= 2) {
        const T other = sbd_other(most, h);
        most = other > most ? other : most;
    }
    return most + 0;
}

template <class T> SBP_FUNCTION void softmax_of(const sbp_softmax_parameters &p) {
    const int64_t n = p.n;
    SBD_EACH_ROW(row, p.rows, is_there) {
        const T *x = (const T *)p.x + row * n, *gradient = (const T *)p.gradient + row * n;
        T *out = (T *)p.out + row * n;
        if (p.kind < 2) { /* softmax, its logarithm */
            const T most = sbd_most<T>(n, [&](int64_t i) { return x[i]; });
            const T sum = sbd_total<SBP_SUM, T>(n, [&](T lane, int64_t i) { return lane + sbd_exp(x[i] - most); });
            const T log = sbd_log(sum);
            SBD_EACH_VALUE(i, is_there ? n : 0)
                out[i] = p.kind ? (x[i] - most) - log : sbd_exp(x[i] - most) / sum;
        } else if (p.kind == 2) {
            const T sum = sbd_total<SBP_PRODUCTS, T>(
                n, [&](T lane, int64_t i) { return sbd_fma(gradient[i], x[i], lane); });
            SBD_EACH_VALUE(i, is_there ? n : 0)
                out[i] = (gradient[i] - sum) * x[i];
        } else {
            const T sum = sbd_total<SBP_SUM, T>(n, [&](T lane, int64_t i) { return lane + gradient[i]; });
            SBD_EACH_VALUE(i, is_there ? n : 0)
                out[i] = gradient[i] - sbd_exp(x[i]) * sum;
        }
    }
}
SBP_KERNEL_TOGETHER(softmax, sbp_softmax_parameters)

/* Writes the mean and 1 / sqrt(variance + eps) of a row, which all lanes get. */
template <class T> SBP_FUNCTION void sbd_moments(const T *x, int64_t n, double eps, T *mean, T *rstd) {
    const T m = sbd_total<SBP_SUM, T>(n, [&](T lane, int64_t i) { return lane + x[i]; }) / (T)n;
    const T variance = sbd_total<SBP_DEVIATIONS, T>(n, [&](T lane, int64_t i) {
        return sbd_step<SBP_DEVIATIONS>(lane, x[i], x[i], m);
    }) / (T)n;
    *mean = m;
    *rstd = 1 / sbd_sqrt(variance + (T)eps);
}

template <class T> SBP_FUNCTION void layer_norm_of(const sbp_layer_norm_parameters &p) {
    const int64_t n = p.n;
    const T *weight = (const T *)p.weight, *bias = (const T *)p.bias;
    SBD_EACH_ROW(row, p.rows, is_there) {
        const T *x = (const T *)p.x + row * n;
        T *out = (T *)p.out + row * n;
        T mean, rstd;
        sbd_moments(x, n, p.eps, &mean, &rstd);
        if (is_there && threadIdx.x % SBP_LANES == 0) {
            ((T *)p.mean)[row] = mean;
            ((T *)p.rstd)[row] = rstd;
        }
        SBD_EACH_VALUE(i, is_there ? n : 0)
            out[i] = sbd_fma((x[i] - mean) * rstd, weight ? weight[i] : (T)1, bias ? bias[i] : (T)0);
    }
}
SBP_KERNEL_TOGETHER(layer_norm, sbp_layer_norm_parameters)

template <class T> SBP_FUNCTION void layer_norm_gradient_of(const sbp_layer_norm_parameters &p) {
    const int64_t n = p.n;
    const T *weight = (const T *)p.weight;
    SBD_EACH_ROW(row, p.rows, is_there) {
        const T *x = (const T *)p.x + row * n, *gradient = (const T *)p.gradient + row * n;
        T *out = (T *)p.out + row * n;
        const T mean = ((const T *)p.mean)[row], rstd = ((const T *)p.rstd)[row];
        const auto slope_at = [&](int64_t i) { return weight ? gradient[i] * weight[i] : gradient[i]; };
        const T sum = sbd_total<SBP_SUM, T>(n, [&](T lane, int64_t i) { return lane + slope_at(i); });
        const T cross = sbd_total<SBP_CROSS, T>(
            n, [&](T lane, int64_t i) { return sbd_fma(slope_at(i), x[i] - mean, lane); });
        const T shift = sum / (T)n, slope = cross / (T)n * rstd * rstd;
        SBD_EACH_VALUE(i, is_there ? n : 0)
            out[i] = sbd_fma(mean - x[i], slope, slope_at(i) - shift) * rstd;
    }
}
SBP_KERNEL_TOGETHER(layer_norm_gradient, sbp_layer_norm_parameters)

template <class T> SBP_FUNCTION void group_norm_of(const sbp_group_norm_parameters &p) {
    const int64_t inner = p.inner, n = p.each * inner;
    const T *weight = (const T *)p.weight, *bias = (const T *)p.bias;
    SBD_EACH_ROW(row, p.samples * p.groups, is_there) {
        const T *x = (const T *)p.x + row * n;
        T *out = (T *)p.out + row * n;
        T mean, rstd;
        sbd_moments(x, n, p.eps, &mean, &rstd);
        if (is_there && threadIdx.x % SBP_LANES == 0) {
            ((T *)p.mean)[row] = mean;
            ((T *)p.rstd)[row] = rstd;
        }
        SBD_EACH_VALUE(i, is_there ? n : 0) {
            const int64_t channel = row % p.groups * p.each + i / inner;
            out[i] = sbd_fma(x[i] - mean, weight ? rstd * weight[channel] : rstd, bias ? bias[channel] : (T)0);
        }
    }
}
SBP_KERNEL_TOGETHER(group_norm, sbp_group_norm_parameters)

/* Scores of attention, `rows` queries of one head after the other, become weights. */
typedef struct {
    void *scores; /* (all heads, queries, keys) */
    const void *mask;
    void *log;
    int64_t all_heads, heads, queries, keys, is_causal, mask_strides[4];
} sbd_weights_parameters;

/* How many keys a query sees. One behind the last sees none: others write the row that it would read. */
SBP_FUNCTION int64_t sbd_seen(int64_t is_causal, int64_t query, int64_t keys, int64_t is_there) {
    if (!is_there)
        return 0;
    return is_causal && query + 1 < keys ? query + 1 : keys;
}

template <class T> SBP_FUNCTION void attention_weights_of(const sbd_weights_parameters &p) {
    SBD_EACH_ROW(row, p.all_heads * p.queries, is_there) {
        const int64_t head = row / p.queries, query = row % p.queries, *m = p.mask_strides;
        const int64_t seen = sbd_seen(p.is_causal, query, p.keys, is_there);
        const T *mask = (const T *)p.mask + (head / p.heads * m[0] + head % p.heads * m[1] + query * m[2]);
        T *x = (T *)p.scores + row * p.keys;
        const auto score = [&](int64_t i) { return p.mask ? x[i] + mask[i * m[3]] : x[i]; };
        const T most = sbd_most<T>(seen, score);
        T is_nan = 0;
        SBD_EACH_VALUE(i, seen) {
            const T s = score(i);
            is_nan = s != s ? (T)1 : is_nan;
        }
        for (int h = SBP_LANES / 2; h; h /= 2) {
            const T other = sbd_other(is_nan, h);
            is_nan = is_nan > other ? is_nan : other;
        }
        const bool is_empty = most == -sbd_infinity<T>();
        /* All groups of a block go through as many chunks: those behind the last seen key add nothing. */
        sbd_tree<SBP_SUM, T> tree;
        for (int64_t first = 0; first < p.keys; first += SBP_CHUNK) {
            const T sum = sbd_chunk<SBP_SUM, T>(first, seen > first ? seen : first,
                                                [&](T lane, int64_t i) { return lane + sbd_exp(score(i) - most); });
            if (first < seen)
                tree.add(sum);
        }
        const T sum = tree.end();
        SBD_EACH_VALUE(i, is_there ? p.keys : 0) {
            const T weight = is_empty ? (is_nan > 0 ? (T)NAN : (T)0) : sbd_exp(score(i) - most) / sum;
            x[i] = i < seen ? weight : (T)0;
        }
        if (is_there && p.log && threadIdx.x % SBP_LANES == 0)
            ((T *)p.log)[row] = is_empty ? (is_nan > 0 ? (T)NAN : most) : most + sbd_log(sum);
    }
}
SBP_KERNEL_TOGETHER(attention_weights, sbd_weights_parameters)

/* Gradients of weights become those of scores. */
typedef struct {
    void *slopes;
    const void *weights;
    int64_t all_heads, queries, keys, is_causal;
} sbd_slopes_parameters;

template <class T> SBP_FUNCTION void attention_slopes_of(const sbd_slopes_parameters &p) {
    SBD_EACH_ROW(row, p.all_heads * p.queries, is_there) {
        const int64_t query = row % p.queries, seen = sbd_seen(p.is_causal, query, p.keys, is_there);
        T *x = (T *)p.slopes + row * p.keys;
        const T *weight = (const T *)p.weights + row * p.keys;
        sbd_tree<SBP_PRODUCTS, T> tree;
        for (int64_t first = 0; first < p.keys; first += SBP_CHUNK) {
            const T sum = sbd_chunk<SBP_PRODUCTS, T>(first, seen > first ? seen : first, [&](T lane, int64_t i) {
                return sbd_fma(x[i], weight[i], lane);
            });
            if (first < seen)
                tree.add(sum);
        }
        const T sum = tree.end();
        SBD_EACH_VALUE(i, is_there ? p.keys : 0)
            x[i] = i < seen ? (x[i] - sum) * weight[i] : (T)0;
    }
}
SBP_KERNEL_TOGETHER(attention_slopes, sbd_slopes_parameters)
