/* lgamma, digamma, erfinv, sinc, logit and log_ndtr, in float64; float32 goes through them. Included by
 * math_functions.h. */

/* sin(pi x) and cos(pi x), turns being the half turns that are left out: |x| below 2^50. */
SBP_FUNCTION double sbm_of_pi_f64(double x, double *r_low, double *quarters) {
    *quarters = sbm_round_f64(2 * x);
    const double rest = x - 0.5 * *quarters, pi = 2 * SBM_HALF_PI_FULL_f64, r = rest * pi;
    *r_low = fma(rest, 2 * SBM_HALF_PI_REST_f64, fma(rest, pi, -r));
    return r;
}

SBP_FUNCTION double sbm_sinc_f64(double x) {
    double r_low, quarters;
    const double a = sbm_abs_f64(x), r = sbm_of_pi_f64(a, &r_low, &quarters), pi = 2 * SBM_HALF_PI_FULL_f64;
    const double sine = sbm_sin_turned_f64(r, r_low, quarters), d = a * pi;
    const double d_low = fma(a, 2 * SBM_HALF_PI_REST_f64, fma(a, pi, -d)), q = sine / d;
    const double value = q + (fma(-q, d, sine) - q * d_low) / d, known = a < 0x1p-27 ? 1 : value;
    return a < 0x1p50 ? known : x == x ? 0 : x; /* from there on x is a whole or a half number: nothing to 1 */
}

SBP_FUNCTION double sbm_logit_f64(double x) {
    double d_low;
    const double t = 2 * x - 1, z = t * t, near = 2 * fma(t * z, sbm_atanh_terms_f64(z), t);
    const double d = sbm_two_sum_f64(1, -x, &d_low), q = x / d, q_low = (fma(-q, d, x) - q * d_low) / d;
    const double far = sbm_log_or_special_f64(q, sbm_log_of_sum_f64(q, q_low, 0));
    return sbm_abs_f64(t) <= 0.5 ? near : far;
}

/* log of the normal distribution function. */
SBP_FUNCTION double sbm_log_ndtr_f64(double x) {
    const double y = -x * SBM_ROOT_HALF_FULL_f64, c = y > 0x1p500 ? 0x1p500 : y, s = c * c;
    const double y_low = -fma(x, SBM_ROOT_HALF_REST_f64, fma(x, SBM_ROOT_HALF_FULL_f64, y));
    double high, low, n_low;
    /* far on the left: -y^2 + log(erfcx(y) / 2) */
    const double n = sbm_two_sum_f64(c, -3, &n_low), m = c + 3, t = n / m;
    const double g = SBM_ERFCX_FULL_f64 + t * sbm_erfcx_terms_f64(t);
    sbm_log_pair_f64(0.5 * g / (1 + 2 * c), &high, &low);
    const double s_low = fma(2 * c, y_low, fma(c, c, -s)), sum = high - s;
    const double tail = sum + (((high - sum) - s) + (low - s_low));
    const double near = sbm_log1p_f64(-sbm_ndtr_f64(-x)), middle = sbm_log_f64(sbm_ndtr_f64(x));
    return x < -1.5 ? (x < -0x1p500 ? -SBM_INFINITY_f64 : tail) : x < 0 ? middle : near;
}

/* Near an argument it is a polynomial of w = -log(1 - y^2), or of its root; then one step of Halley's. */
SBP_FUNCTION double sbm_erfinv_f64(double y) {
    const double a = sbm_abs_f64(y), rest = 1 - a, w = -sbm_log1p_f64(-(a * a)), root = sqrt(w);
    const double near = a * sbm_erfinv_terms_f64(w), far = sbm_erfinv_far_terms_f64(root), x = w < 6 ? near : far;
    double high, low, k;
    sbm_erfc_parts_f64(x < 0.65 ? 0.65 : x, 0, &high, &low, &k);
    const double scale = sbm_power_of_two_f64(k), of_right = (rest - high * scale) - low * scale;
    const double more = x * sbm_erf_terms_f64(x * x), left = x + more, of_left = (left - a) + ((x - left) + more);
    const double residual = x < 0.65 ? of_left : of_right, slope = SBM_TWO_BY_ROOT_PI_f64 * sbm_exp_f64(-(x * x));
    const double e = residual / slope, found = x - e / fma(x, e, 1), known = a == 1 ? SBM_INFINITY_f64 : found;
    return y == 0 ? y : sbm_signed_f64(a <= 1 ? known : SBM_NAN_f64, y);
}

/* lgamma for x > 0. */
SBP_FUNCTION double sbm_lgamma_positive_f64(double x) {
    if (x >= 8) {
        double high, low;
        sbm_log_wide_f64(x, &high, &low);
        /* (x - 1/2) (log(x) - 1) - 1/2 + log(2 pi) / 2 + series */
        const double f = x - 0.5, h = high - 1, h_low = ((high - h) - 1) + low, p = f * h;
        const double by_x = 1 / x, series = by_x * sbm_stirling_terms_f64(by_x * by_x);
        const double rest = fma(f, h_low, fma(f, h, -p)) + ((SBM_HALF_LOG_TWO_PI_f64 - 0.5) + series);
        return p < SBM_INFINITY_f64 ? p + rest : p;
    }
    double product = 1, high = 0, low = 0, value;
    for (; x > 2.5; product = product * x)
        x = x - 1;
    if (product > 1)
        sbm_log_parts_f64(product, &high, &low);
    if (x < 0.5) {
        sbm_log_parts_f64(x, &high, &low);
        high = -high;
        low = -low;
        value = x * sbm_lgamma_one_terms_f64(x);
    } else {
        value = x < 1.5 ? (x - 1) * sbm_lgamma_one_terms_f64(x - 1) : (x - 2) * sbm_lgamma_two_terms_f64(x - 2);
    }
    const double sum = high + value;
    return sum + ((sbm_abs_f64(high) > sbm_abs_f64(value) ? (high - sum) + value : (value - sum) + high) + low);
}

SBP_FUNCTION double sbm_lgamma_f64(double x) {
    const double a = sbm_abs_f64(x);
    if (x != x || a == SBM_INFINITY_f64)
        return a;
    if (x > 0)
        return sbm_lgamma_positive_f64(x);
    if (a >= 0x1p52 || a == 0)
        return SBM_INFINITY_f64;
    if (a < 0x1p-60)
        return -sbm_log_f64(a);
    double r_low, quarters, high, low;
    const double r = sbm_of_pi_f64(a < 0x1p50 ? a : a - 0x1p50, &r_low, &quarters);
    const double sine = sbm_abs_f64(sbm_sin_turned_f64(r, r_low, quarters));
    if (sine == 0)
        return SBM_INFINITY_f64;
    /* log(pi / |x sin(pi x)|) - lgamma(|x|) */
    sbm_log_wide_f64(2 * SBM_HALF_PI_FULL_f64 / (a * sine), &high, &low);
    return (high - sbm_lgamma_positive_f64(a)) + low;
}

SBP_FUNCTION double sbm_digamma_f64(double x) {
    double reflected = 0, shift = 0;
    if (x == 0)
        return sbm_signed_f64(SBM_INFINITY_f64, -x);
    if (x < 0) {
        if (x <= -0x1p50)
            return SBM_NAN_f64;
        double r_low, quarters;
        const double r = sbm_of_pi_f64(x, &r_low, &quarters);
        if (r == 0 && !(sbm_bits_f64(quarters + SBM_ROUNDER_f64) & 1))
            return SBM_NAN_f64;
        /* psi(x) = psi(1 - x) - pi / tan(pi x) = psi(-x) - 1 / x - pi / tan(pi x) */
        reflected = -1 / x - 2 * SBM_HALF_PI_FULL_f64 / sbm_tan_turned_f64(r, r_low, quarters);
        x = -x;
    }
    for (; x < 10; x = x + 1)
        shift = shift + 1 / x;
    const double by_x = 1 / x, z = by_x * by_x, series = fma(z, sbm_digamma_terms_f64(z), 0.5 * by_x);
    return x == SBM_INFINITY_f64 ? x : ((sbm_log_f64(x) - series) - shift) + reflected;
}
