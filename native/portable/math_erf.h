/* erfc and the normal distribution, in float64; float32 goes through them. Included by math_functions.h. */

/* erfc(x + x_low) = (high + low) 2^k for x from 0.65 to 28: e^-x^2 G(t) / (1 + 2 x), t = (x - 3) / (x + 3). */
SBP_FUNCTION void sbm_erfc_parts_f64(double x, double x_low, double *high, double *low, double *k) {
    const double s = x * x, s_low = fma(2 * x, x_low, fma(x, x, -s));
    double n_low, m_low, e, e_low;
    const double n = sbm_two_sum_f64(x, -3, &n_low), m = sbm_two_sum_f64(x, 3, &m_low), t = n / m;
    const double t_low = (fma(-t, m, n) + fma(-t, m_low, n_low)) / m, rest = t * sbm_erfcx_terms_f64(t);
    const double g = SBM_ERFCX_FULL_f64 + rest, g_rest = ((SBM_ERFCX_FULL_f64 - g) + rest) + SBM_ERFCX_REST_f64;
    const double g_low = fma(t_low, sbm_erfcx_slope_terms_f64(t), g_rest);
    const double d = 1 + 2 * x, d_low = ((1 - d) + 2 * x) + 2 * x_low;
    const double q = g / d, q_low = (fma(-q, d, g) + fma(-q, d_low, g_low)) / d;
    sbm_exp_pair_f64(-s, -s_low, &e, &e_low, k);
    *high = e * q;
    *low = fma(e, q, -*high) + fma(e_low, q, e * q_low);
}

SBP_FUNCTION double sbm_erfc_f64(double x) {
    const double a = sbm_abs_f64(x), start = 1 - x;
    const double near = start + (((1 - start) - x) - x * sbm_erf_terms_f64(x * x));
    double high, low, k;
    sbm_erfc_parts_f64(a > 28 ? 28 : a, 0, &high, &low, &k);
    const double tail = sbm_scale_f64(high + low, k), far = x < 0 ? 2 - tail : tail;
    return a < 0.65 ? near : far;
}

/* The normal distribution function: erfc(-x sqrt(1/2)) / 2. */
SBP_FUNCTION double sbm_ndtr_f64(double x) {
    const double y = x * SBM_ROOT_HALF_FULL_f64;
    const double rest = fma(x, SBM_ROOT_HALF_REST_f64, fma(x, SBM_ROOT_HALF_FULL_f64, -y));
    const double a = sbm_abs_f64(y), start = 1 + y;
    const double near = start + (((1 - start) + y) + fma(y, sbm_erf_terms_f64(y * y), rest));
    double high, low, k;
    sbm_erfc_parts_f64(a > 28 ? 28 : a, a > 28 ? 0 : y < 0 ? -rest : rest, &high, &low, &k);
    const double tail = sbm_scale_f64(high + low, k - 1), far = x < 0 ? tail : 1 - tail;
    return a < 0.65 ? 0.5 * near : far;
}
