/* What depends on positions: means of windows, accumulation, the steps of an LSTM. */
#include "portable_base.h"

#include "accumulate.h"

SBP_FUNCTION int64_t sbd_count(const sbp_window_parameters &p, int d, int64_t output) {
    return ((const int64_t *)p.counts[d])[output];
}

SBP_FUNCTION int64_t sbd_first(const sbp_window_parameters &p, int d, int64_t output) {
    return ((const int64_t *)p.first[d])[output];
}

SBP_FUNCTION int64_t sbd_end(const sbp_window_parameters &p, int d, int64_t output) {
    return ((const int64_t *)p.end[d])[output];
}

template <class T> SBP_FUNCTION T sbd_divisor(const sbp_window_parameters &p, int64_t z, int64_t y, int64_t x) {
    return (T)(p.divisor ? p.divisor : sbd_count(p, 0, z) * sbd_count(p, 1, y) * sbd_count(p, 2, x));
}

template <class T> SBP_FUNCTION void window_of(const sbp_window_parameters &p) {
    const int64_t outputs = p.outputs[0] * p.outputs[1] * p.outputs[2], values = p.size[0] * p.size[1] * p.size[2];
    SBP_EACH_INDEX(i, p.planes * outputs) {
        const T *wide = (const T *)p.wide + i / outputs * values;
        const int64_t z = i % outputs / (p.outputs[1] * p.outputs[2]), y = i / p.outputs[2] % p.outputs[1];
        const int64_t x = i % p.outputs[2];
        T sum = 0;
        for (int64_t a = sbd_first(p, 0, z); a < sbd_end(p, 0, z); a++)
            for (int64_t b = sbd_first(p, 1, y); b < sbd_end(p, 1, y); b++)
                for (int64_t c = sbd_first(p, 2, x); c < sbd_end(p, 2, x); c++)
                    sum = sum + wide[(a * p.size[1] + b) * p.size[2] + c];
        ((T *)p.narrow)[i] = sum / sbd_divisor<T>(p, z, y, x);
    }
}
SBP_KERNEL_APART(window, sbp_window_parameters)

/* Each position takes the shares of the windows that it is in, in the order of the windows. */
template <class T> SBP_FUNCTION void window_gradient_of(const sbp_window_parameters &p) {
    const int64_t outputs = p.outputs[0] * p.outputs[1] * p.outputs[2], values = p.size[0] * p.size[1] * p.size[2];
    SBP_EACH_INDEX(i, p.planes * values) {
        const T *narrow = (const T *)p.narrow + i / values * outputs;
        const int64_t a = i % values / (p.size[1] * p.size[2]), b = i / p.size[2] % p.size[1], c = i % p.size[2];
        T sum = 0;
        for (int64_t z = 0; z < p.outputs[0]; z++) {
            if (a < sbd_first(p, 0, z) || a >= sbd_end(p, 0, z))
                continue;
            for (int64_t y = 0; y < p.outputs[1]; y++) {
                if (b < sbd_first(p, 1, y) || b >= sbd_end(p, 1, y))
                    continue;
                for (int64_t x = 0; x < p.outputs[2]; x++)
                    if (c >= sbd_first(p, 2, x) && c < sbd_end(p, 2, x))
                        sum = sum + narrow[(z * p.outputs[1] + y) * p.outputs[2] + x] / sbd_divisor<T>(p, z, y, x);
            }
        }
        ((T *)p.wide)[i] = sum;
    }
}
SBP_KERNEL_APART(window_gradient, sbp_window_parameters)

/* Conditions are written so that a NaN is taken over and stays. */
template <class T> SBP_FUNCTION T sbd_taken(int64_t kind, T old, T now) {
    switch (kind) {
    case SBP_ADD:
        return old + now;
    case SBP_MULTIPLY:
        return old * now;
    case SBP_LARGEST:
        return now > old || now != now ? now : old;
    case SBP_SMALLEST:
        return now < old || now != now ? now : old;
    default:
        return now;
    }
}

/* A thread for each column of each batch, which takes m in ascending order. Indices are in range. */
template <class T> SBP_FUNCTION void accumulate_of(const sbp_accumulate_parameters &p) {
    SBP_EACH_INDEX(i, p.batch * p.columns) {
        const int64_t n = i / p.columns, c = i % p.columns;
        T *out = (T *)p.out + n * p.rows * p.columns + c;
        const T *src = (const T *)p.src + n * p.src_strides[0] + c * p.src_strides[2];
        const int64_t *index = (const int64_t *)p.indices + n * p.index_strides[0] + c * p.index_strides[2];
        for (int64_t m = 0; m < p.m; m++) {
            const int64_t at = index[m * p.index_strides[1]], row = at < 0 && !p.skip ? at + p.rows : at;
            if (row >= 0)
                out[row * p.columns] = sbd_taken(p.kind, out[row * p.columns], src[m * p.src_strides[1]]);
        }
    }
}
SBP_KERNEL_APART(accumulate, sbp_accumulate_parameters)

SBP_FUNCTION float sbd_sigmoid(float x) { return sbm_sigmoid_f32(x); }
SBP_FUNCTION double sbd_sigmoid(double x) { return sbm_sigmoid_f64(x); }
SBP_FUNCTION float sbd_tanh(float x) { return sbm_tanh_f32(x); }
SBP_FUNCTION double sbd_tanh(double x) { return sbm_tanh_f64(x); }
SBP_FUNCTION float sbd_sigmoid_backward(float g, float y) { return sbm_sigmoid_backward_f32(g, y); }
SBP_FUNCTION double sbd_sigmoid_backward(double g, double y) { return sbm_sigmoid_backward_f64(g, y); }
SBP_FUNCTION float sbd_tanh_backward(float g, float y) { return sbm_tanh_backward_f32(g, y); }
SBP_FUNCTION double sbd_tanh_backward(double g, double y) { return sbm_tanh_backward_f64(g, y); }

/* A step of an LSTM, from the product of the state and its weight: `batch` samples of `size` units. */
typedef struct {
    const void *product, *bias, *x, *before;
    void *out, *gates, *cell, *tanh_cell;
    int64_t batch, size;
} sbd_lstm_step_parameters;

template <class T> SBP_FUNCTION T sbd_gate(const sbd_lstm_step_parameters &p, int64_t sample, int64_t at) {
    const T product = ((const T *)p.product)[sample * 4 * p.size + at];
    const T added = p.bias ? product + ((const T *)p.bias)[at] : product;
    return added + ((const T *)p.x)[sample * 4 * p.size + at];
}

template <class T> SBP_FUNCTION void lstm_step_of(const sbd_lstm_step_parameters &p) {
    SBP_EACH_INDEX(n, p.batch * p.size) {
        const int64_t sample = n / p.size, unit = n % p.size;
        const T i = sbd_sigmoid(sbd_gate<T>(p, sample, unit)), f = sbd_sigmoid(sbd_gate<T>(p, sample, p.size + unit));
        const T g = sbd_tanh(sbd_gate<T>(p, sample, 2 * p.size + unit));
        const T o = sbd_sigmoid(sbd_gate<T>(p, sample, 3 * p.size + unit));
        const T cell = f * ((const T *)p.before)[n] + i * g, tanh_cell = sbd_tanh(cell);
        T *gates = (T *)p.gates + sample * 4 * p.size + unit;
        gates[0] = i, gates[p.size] = f, gates[2 * p.size] = g, gates[3 * p.size] = o;
        ((T *)p.cell)[n] = cell;
        ((T *)p.tanh_cell)[n] = tanh_cell;
        ((T *)p.out)[n] = o * tanh_cell;
    }
}
SBP_KERNEL_APART(lstm_step, sbd_lstm_step_parameters)

/* The gradients at a step: of the gates, and of the cell state before it. `of_out` and `of_next` are those of the result,
 * from outside and from the next step, `of_cell` that of the cell state; they may be missing. `out_step`: from a sample of
 * `of_out` to the next. */
typedef struct {
    const void *gates, *tanh_cell, *before, *of_out, *of_next, *of_cell;
    void *of_gates, *of_before;
    int64_t batch, size, out_step;
} sbd_lstm_step_gradient_parameters;

template <class T> SBP_FUNCTION void lstm_step_gradient_of(const sbd_lstm_step_gradient_parameters &p) {
    SBP_EACH_INDEX(n, p.batch * p.size) {
        const int64_t sample = n / p.size, unit = n % p.size;
        const T *gates = (const T *)p.gates + sample * 4 * p.size + unit;
        const T i = gates[0], f = gates[p.size], g = gates[2 * p.size], o = gates[3 * p.size];
        const T tanh_cell = ((const T *)p.tanh_cell)[n];
        T slope = p.of_out ? ((const T *)p.of_out)[sample * p.out_step + unit] : (T)0;
        if (p.of_next)
            slope = p.of_out ? slope + ((const T *)p.of_next)[n] : ((const T *)p.of_next)[n];
        T of_shown = 0, whole = p.of_cell ? ((const T *)p.of_cell)[n] : (T)0;
        if (p.of_out || p.of_next) {
            of_shown = sbd_sigmoid_backward(slope * tanh_cell, o);
            const T through = sbd_tanh_backward(slope * o, tanh_cell);
            whole = p.of_cell ? whole + through : through;
        }
        T *of_gates = (T *)p.of_gates + sample * 4 * p.size + unit;
        of_gates[0] = sbd_sigmoid_backward(whole * g, i);
        of_gates[p.size] = sbd_sigmoid_backward(whole * ((const T *)p.before)[n], f);
        of_gates[2 * p.size] = sbd_tanh_backward(whole * i, g);
        of_gates[3 * p.size] = of_shown;
        ((T *)p.of_before)[n] = whole * f;
    }
}
SBP_KERNEL_APART(lstm_step_gradient, sbd_lstm_step_gradient_parameters)
