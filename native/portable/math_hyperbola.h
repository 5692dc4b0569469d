/* sinh, cosh and the inverses of these and of tanh, in float64; float32 goes through them. Included by
 * math_functions.h. */

/* e^a = m 2^k, and e^-a = i 2^k, both as pairs; a from 0 on. */
SBP_FUNCTION void sbm_exp_both_f64(double a, double *m, double *m_low, double *i, double *i_low, double *k) {
    sbm_exp_pair_f64(a, 0, m, m_low, k);
    const double inverse = 1 / *m, left = fma(-*m, inverse, 1), power = -2 * *k;
    const double scale = sbm_power_of_two_f64(power < -1000 ? -1000 : power);
    *i = inverse * scale;
    *i_low = fma(-*m_low, inverse, left) * *i;
}

SBP_FUNCTION double sbm_sinh_f64(double x) {
    const double a = sbm_abs_f64(x), z = x * x, near = fma(x * z, sbm_sinh_terms_f64(z), x);
    double m, m_low, i, i_low, k;
    sbm_exp_both_f64(a, &m, &m_low, &i, &i_low, &k);
    const double high = m - i, low = ((m - high) - i) + (m_low - i_low), far = sbm_scale_f64(high + low, k - 1);
    const double bounded = a > 711 ? SBM_INFINITY_f64 : far;
    return a < 1 ? near : sbm_signed_f64(bounded, x);
}

SBP_FUNCTION double sbm_cosh_f64(double x) {
    const double a = sbm_abs_f64(x);
    double m, m_low, i, i_low, k;
    sbm_exp_both_f64(a, &m, &m_low, &i, &i_low, &k);
    const double high = m + i, low = ((m - high) + i) + (m_low + i_low), result = sbm_scale_f64(high + low, k - 1);
    return a > 711 ? SBM_INFINITY_f64 : result;
}

/* log(x + x_low), and log 2 more if asked. */
SBP_FUNCTION double sbm_log_of_sum_f64(double x, double x_low, int twice) {
    double high, low;
    sbm_log_parts_f64(x, &high, &low);
    const double more = twice ? SBM_LN2_FULL_f64 : 0, sum = high + more;
    low = ((high - sum) + more) + (low + (twice ? SBM_LN2_REST_f64 : 0));
    return sum + (low + x_low / x);
}

SBP_FUNCTION double sbm_asinh_f64(double x) {
    const double a = sbm_abs_f64(x), z = x * x, near = fma(x * z, sbm_asinh_terms_f64(z), x);
    const double u = z + 1, u_low = (z > 1 ? (z - u) + 1 : (1 - u) + z) + fma(x, x, -z);
    const double s = sqrt(u), s_low = (fma(-s, s, u) + u_low) / (2 * s), sum = s + a, sum_low = ((s - sum) + a) + s_low;
    const int far = a > 0x1p30; /* sqrt(a^2 + 1) is a */
    const double value = sbm_log_of_sum_f64(far ? a : sum, far ? 0 : sum_low, far);
    return a <= 0.5 ? near : sbm_signed_f64(sbm_log_or_special_f64(a, value), x);
}

SBP_FUNCTION double sbm_acosh_f64(double x) {
    const double t = x - 1, square = t * t, twice = 2 * t;
    double p_low;
    const double p = sbm_two_sum_f64(twice, square, &p_low), s = sqrt(p);
    const double s_low = (fma(-s, s, p) + (p_low + fma(t, t, -square))) * (s > 0 ? 0.5 / s : 0);
    /* x + sqrt(x^2 - 1) = 1 + (t + s) */
    const double y = s + t, y_low = ((s - y) + t) + s_low;
    double u_low;
    const double u = sbm_two_sum_f64(1, y, &u_low);
    const int far = x > 0x1p30;
    const double value = sbm_log_of_sum_f64(far ? x : u, far ? 0 : u_low + y_low, far);
    return x >= 1 ? sbm_log_or_special_f64(x, value) : SBM_NAN_f64;
}

SBP_FUNCTION double sbm_atanh_f64(double x) {
    const double a = sbm_abs_f64(x), z = x * x, near = fma(x * z, sbm_atanh_terms_f64(z), x);
    const double n = 1 + a, n_low = (1 - n) + a, d = 1 - a, q = n / d, q_low = (fma(-q, d, n) + n_low) / d;
    const double far = sbm_log_or_special_f64(q, 0.5 * sbm_log_of_sum_f64(q, q_low, 0));
    return a <= 0.5 ? near : sbm_signed_f64(a <= 1 ? far : SBM_NAN_f64, x);
}
