/* Functions that are the same in float32 and float64: included once for each by math_functions.h, which says what
 * R (the type), SBM(name) and C(constant) are. In pairs, `high` is the value rounded and `low` what is missing. */

#define FMA SBM(SBM_FMA)

/* e^(x + x_low) = (1 + r + more) 2^k; |x| at most 1000 (120). */
SBP_FUNCTION void SBM(sbm_exp_parts)(R x, R x_low, R *r, R *more, R *k) {
    *k = FMA(x, C(LOG2_E), C(ROUNDER)) - C(ROUNDER);
    const R head = FMA(-*k, C(LN2_HIGH), x), tail = FMA(-*k, C(LN2_LOW), x_low);
    *r = head + tail;
    const R r_low = (head - *r) + tail, terms = FMA(*r, SBM(sbm_exp_terms)(*r), (R)0.5);
    *more = FMA(*r * *r, terms, r_low);
}

/* 1 + r + more, rounded nearly once. */
SBP_FUNCTION R SBM(sbm_one_plus)(R r, R more) {
    const R high = 1 + r;
    return high + ((r - (high - 1)) + more);
}

/* e^(x + x_low) = (high + low) 2^k, high being the sum rounded. */
SBP_FUNCTION void SBM(sbm_exp_pair)(R x, R x_low, R *high, R *low, R *k) {
    R r, more;
    SBM(sbm_exp_parts)(x, x_low, &r, &more, k);
    const R first = 1 + r, second = (r - (first - 1)) + more;
    *high = first + second;
    *low = (first - *high) + second;
}

/* x 2^k rounded once; `is_small`: 2^k is a normal number. */
SBP_FUNCTION R SBM(sbm_scale_by)(const int is_small, R x, R k) {
    return is_small ? x * SBM(sbm_power_of_two)(k) : SBM(sbm_scale)(x, k);
}

/* e^x for |x| to SMALL. */
SBP_FUNCTION R SBM(sbm_exp_small)(R x) {
    R r, more, k;
    SBM(sbm_exp_parts)(x, 0, &r, &more, &k);
    return SBM(sbm_scale_by)(1, SBM(sbm_one_plus)(r, more), k);
}

SBP_FUNCTION R SBM(sbm_exp)(R x) {
    R r, more, k;
    SBM(sbm_exp_parts)(x, 0, &r, &more, &k);
    const R result = SBM(sbm_scale)(SBM(sbm_one_plus)(r, more), k), bounded = x < C(EXP_BOTTOM) ? 0 : result;
    return x > C(EXP_TOP) ? C(INFINITY) : bounded;
}

SBP_FUNCTION R SBM(sbm_exp2)(R x) {
    const R k = SBM(sbm_round)(x), y = x - k;
    const R r = y * C(LN2_FULL), r_low = FMA(y, C(LN2_REST), FMA(y, C(LN2_FULL), -r));
    const R more = FMA(r * r, FMA(r, SBM(sbm_exp_terms)(r), (R)0.5), r_low);
    const R result = SBM(sbm_scale)(SBM(sbm_one_plus)(r, more), k), bounded = x < C(EXP2_BOTTOM) ? 0 : result;
    return x > C(EXP2_TOP) ? C(INFINITY) : bounded;
}

SBP_FUNCTION R SBM(sbm_expm1)(R x) {
    const R k = FMA(x, C(LOG2_E), C(ROUNDER)) - C(ROUNDER);
    const R head = FMA(-k, C(LN2_HIGH), x), tail = -k * C(LN2_LOW);
    const R r = head + tail, r_low = (head - r) + tail;
    const R half = (R)0.5 * r, square = half * r, square_low = FMA(half, r, -square);
    const R more = FMA(r * (r * r), SBM(sbm_exp_terms)(r), square_low + r_low);
    /* 2^k (1 + r + square + more) - 1 = 2^k ((1 - 2^-k) + r + square + more) */
    const R one = SBM(sbm_power_of_two)(-k < C(EXPM1_LOST) ? C(EXPM1_LOST) : -k);
    const R whole = 1 - one, whole_low = one > 1 ? 1 - (whole + one) : (1 - whole) - one;
    const R sum = whole + r, sum_low = (whole - sum) + r, high = sum + square, low = (sum - high) + square;
    const R result = SBM(sbm_scale)(high + (((sum_low + whole_low) + low) + more), k);
    const R bounded = x < C(EXPM1_BOTTOM) ? -1 : result, upper = x > C(EXP_TOP) ? C(INFINITY) : bounded;
    return x == 0 ? x : upper;
}

/* log(1 + f) = high + low for 1 + f in [sqrt(1/2), sqrt(2)]. */
SBP_FUNCTION void SBM(sbm_log_of_mantissa)(R f, R *high, R *low) {
    const R half = (R)0.5 * f, square = half * f, square_low = FMA(half, f, -square);
    *high = f - square;
    *low = ((f - *high) - square) + FMA(f * (f * f), SBM(sbm_log_terms)(f), -square_low);
}

/* log(x) = high + low for finite x > 0. */
SBP_FUNCTION void SBM(sbm_log_parts)(R x, R *high, R *low) {
    R k, of_f, of_f_low;
    const R f = SBM(sbm_split)(x, &k) - 1, whole = k * C(LN2_HIGH);
    SBM(sbm_log_of_mantissa)(f, &of_f, &of_f_low);
    *high = whole + of_f;
    *low = ((whole - *high) + of_f) + FMA(k, C(LN2_LOW), of_f_low);
}

/* The same, `high` being the logarithm rounded. */
SBP_FUNCTION void SBM(sbm_log_pair)(R x, R *high, R *low) {
    R first, second;
    SBM(sbm_log_parts)(x, &first, &second);
    *high = first + second;
    *low = (first - *high) + second;
}

/* `result` where the logarithm of x is finite. */
SBP_FUNCTION R SBM(sbm_log_or_special)(R x, R result) {
    const R special = x == 0 ? -C(INFINITY) : C(NAN);
    result = x > 0 ? result : special;
    return x == C(INFINITY) ? x : result;
}

SBP_FUNCTION R SBM(sbm_log)(R x) {
    R high, low;
    SBM(sbm_log_parts)(x, &high, &low);
    return SBM(sbm_log_or_special)(x, high + low);
}

SBP_FUNCTION R SBM(sbm_log2)(R x) {
    R k, high, low;
    const R f = SBM(sbm_split)(x, &k) - 1;
    SBM(sbm_log_of_mantissa)(f, &high, &low);
    const R p = high * C(ONE_BY_LN2_FULL), sum = k + p;
    const R p_low = FMA(low, C(ONE_BY_LN2_FULL), FMA(high, C(ONE_BY_LN2_REST), FMA(high, C(ONE_BY_LN2_FULL), -p)));
    return SBM(sbm_log_or_special)(x, sum + (((k - sum) + p) + p_low));
}

SBP_FUNCTION R SBM(sbm_log10)(R x) {
    R k, high, low;
    const R f = SBM(sbm_split)(x, &k) - 1;
    SBM(sbm_log_of_mantissa)(f, &high, &low);
    const R whole = k * C(LOG10_2_HIGH), p = high * C(ONE_BY_LN10_FULL), sum = whole + p;
    const R p_low = FMA(low, C(ONE_BY_LN10_FULL), FMA(high, C(ONE_BY_LN10_REST), FMA(high, C(ONE_BY_LN10_FULL), -p)));
    return SBM(sbm_log_or_special)(x, sum + (((whole - sum) + p) + FMA(k, C(LOG10_2_LOW), p_low)));
}

SBP_FUNCTION R SBM(sbm_log1p)(R x) {
    R high, low;
    const R u = 1 + x, back = u - 1, lost = (1 - (u - back)) + (x - back);
    SBM(sbm_log_parts)(u, &high, &low);
    const R result = SBM(sbm_log_or_special)(u, high + (low + lost / u));
    return x == 0 ? x : result;
}

SBP_FUNCTION R SBM(sbm_tanh)(R x) {
    const R a = SBM(sbm_abs)(x), z = x * x, near = FMA(x * z, SBM(sbm_tanh_terms)(z), x);
    R r, more, k;
    SBM(sbm_exp_parts)(2 * a, 0, &r, &more, &k);
    const R e = SBM(sbm_one_plus)(r, more) * SBM(sbm_power_of_two)(k);
    const R far = 1 - 2 / (e + 1), bounded = a > C(TANH_TOP) ? 1 : far;
    return a < 1 ? near : SBM(sbm_signed)(bounded, x);
}

SBP_FUNCTION R SBM(sbm_sigmoid_by)(const int is_small, R x) {
    const R a = SBM(sbm_abs)(x);
    R m, m_low, k;
    SBM(sbm_exp_pair)(-a, 0, &m, &m_low, &k);
    /* e^-a = (m + m_low) 2^k: 1 / (1 + e^-a), or e^-a / (1 + e^-a) with its 2^k left to the end */
    const R e = SBM(sbm_scale_by)(is_small, m, k), d = 1 + e, by_d = 1 / d;
    const R d_low = ((1 - d) + e) + SBM(sbm_scale_by)(is_small, m_low, k);
    const R n = x < 0 ? m : 1, n_low = x < 0 ? m_low : 0;
    const R q = n * by_d, left = FMA(-q, d, n) + FMA(-q, d_low, n_low);
    const R value = FMA(left, by_d, q);
    return x < 0 ? SBM(sbm_scale_by)(is_small, value, k) : value;
}

/* For |x| to SMALL. */
SBP_FUNCTION R SBM(sbm_sigmoid_small)(R x) { return SBM(sbm_sigmoid_by)(1, x); }

SBP_FUNCTION R SBM(sbm_sigmoid)(R x) {
    const R result = SBM(sbm_sigmoid_by)(0, x), bounded = x < C(EXP_BOTTOM) ? 0 : result;
    return x > -C(EXP_BOTTOM) ? 1 : bounded;
}

SBP_FUNCTION R SBM(sbm_erf)(R x) {
    const R a = SBM(sbm_abs)(x), near = FMA(x, SBM(sbm_erf_terms)(x * x), x);
    R r, more, k;
    SBM(sbm_exp_parts)(-SBM(sbm_erf_far_terms)(a - 1), 0, &r, &more, &k);
    const R erfc = SBM(sbm_one_plus)(r, more) * SBM(sbm_power_of_two)(k), bounded = a > C(ERF_TOP) ? 1 : 1 - erfc;
    return a < 1 ? near : SBM(sbm_signed)(bounded, x);
}

SBP_FUNCTION R SBM(sbm_rsqrt)(R x) {
    const R y = 1 / SBM(sbm_sqrt)(x), xy = x * y, xy_low = FMA(x, y, -xy);
    const R left = FMA(-xy, y, 1) - xy_low * y, better = FMA((R)0.5 * y, left, y);
    return (x > 0) & (x < C(INFINITY)) ? better : y;
}

SBP_FUNCTION R SBM(sbm_tanh_backward)(R gradient, R y) { return gradient * (1 - y * y); }

SBP_FUNCTION R SBM(sbm_sigmoid_backward)(R gradient, R y) { return (gradient * (1 - y)) * y; }

#undef FMA
