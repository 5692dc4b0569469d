/* The kernels of one element type. The including file has defined T, LSTM(name) and M(name): of a name here, and of one of
 * math_functions.h. Loops are short, so that a processor has many of their chains at hand. */

static void LSTM(add)(const void *x, void *to, int64_t n) {
    const T *from = x;
    T *sum = to;
    LSTM_EACH(n) sum[u] = sum[u] + from[u];
}

static void LSTM(forward)(const sbp_lstm_row *r, int64_t n) {
    const T *x = r->x, *bias = r->bias, *before = r->before;
    T *gates = r->gates, *in = gates, *forget = gates + n, *new = gates + 2 * n, *show = gates + 3 * n;
    T *cell = r->cell, *tanh_cell = r->tanh_cell, *out = r->out;
    if (bias)
        LSTM_EACH(4 * n) gates[u] = (gates[u] + bias[u]) + x[u];
    else
        LSTM_EACH(4 * n) gates[u] = gates[u] + x[u];
    LSTM_EACH(2 * n) gates[u] = M(sigmoid)(gates[u]);
    LSTM_EACH(n) new[u] = M(tanh)(new[u]);
    LSTM_EACH(n) show[u] = M(sigmoid)(show[u]);
    LSTM_EACH(n) cell[u] = forget[u] * before[u] + in[u] * new[u];
    LSTM_EACH(n) tanh_cell[u] = M(tanh)(cell[u]);
    LSTM_EACH(n) out[u] = show[u] * tanh_cell[u];
}

/* Returns the slope of the output, NULL if there is none. */
static const T *LSTM(slope)(const sbp_lstm_slopes *r, int64_t n) {
    const T *of_out = r->of_out, *of_next = r->of_next;
    T *sum = r->sum;
    if (!of_out || !of_next)
        return of_out ? of_out : of_next;
    LSTM_EACH(n) sum[u] = of_out[u] + of_next[u];
    return sum;
}

/* The slopes of the last gate, and of the cell state, from that of the output. */
static void LSTM(backward_out)(const sbp_lstm_slopes *r, const T *slope, int64_t n) {
    const T *show = (const T *)r->gates + 3 * n, *tanh_cell = r->tanh_cell;
    T *of_cell = r->of_cell, *of_show = (T *)r->of_gates + 3 * n;
    if (!slope) {
        LSTM_EACH(n) of_show[u] = 0;
        return;
    }
    LSTM_EACH(n) of_show[u] = M(sigmoid_backward)(slope[u] * tanh_cell[u], show[u]);
    if (r->has_cell)
        LSTM_EACH(n) of_cell[u] = of_cell[u] + M(tanh_backward)(slope[u] * show[u], tanh_cell[u]);
    else
        LSTM_EACH(n) of_cell[u] = M(tanh_backward)(slope[u] * show[u], tanh_cell[u]);
}

static void LSTM(output)(const sbp_lstm_slopes *r, int64_t n) {
    const T *show = (const T *)r->gates + 3 * n, *tanh_cell = r->tanh_cell;
    T *out = r->out;
    LSTM_EACH(n) out[u] = show[u] * tanh_cell[u];
}

static void LSTM(backward)(const sbp_lstm_slopes *r, int64_t n) {
    const T *in = r->gates, *forget = in + n, *new = in + 2 * n, *before = r->before;
    T *of_cell = r->of_cell, *of_in = r->of_gates, *of_forget = of_in + n, *of_new = of_in + 2 * n;
    LSTM(backward_out)(r, LSTM(slope)(r, n), n);
    LSTM_EACH(n) of_in[u] = M(sigmoid_backward)(of_cell[u] * new[u], in[u]);
    LSTM_EACH(n) of_forget[u] = M(sigmoid_backward)(of_cell[u] * before[u], forget[u]);
    LSTM_EACH(n) of_new[u] = M(tanh_backward)(of_cell[u] * in[u], new[u]);
    LSTM_EACH(n) of_cell[u] = of_cell[u] * forget[u];
    if (r->out)
        LSTM(output)(r, n);
}
