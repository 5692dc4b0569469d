/* Powers, and functions of two numbers with a logarithm in them. Included by math_functions.h. */

/* log(x) = high + low to 2^-64, for finite x > 0. */
SBP_FUNCTION void sbm_log_wide_f64(double x, double *high, double *low) {
    double k;
    const double f = sbm_split_f64(x, &k) - 1, d = 2 + f, d_low = (2 - d) + f;
    /* log(1 + f) = 2 (s + s^3 / 3 + s^5 / 5 + ...), s = f / (2 + f) */
    const double s = f / d, s_low = (fma(-s, d, f) - s * d_low) / d;
    const double w = s * s, w_low = fma(2 * s, s_low, fma(s, s, -w)), v = w * sbm_power_terms_f64(w);
    const double third = SBM_THIRD_FULL_f64 + v, third_low = ((SBM_THIRD_FULL_f64 - third) + v) + SBM_THIRD_REST_f64;
    const double p = w * third, p_low = fma(w, third, -p) + fma(w, third_low, w_low * third);
    const double c = s * p, c_low = fma(s, p, -c) + fma(s, p_low, s_low * p);
    const double half = s + c, half_low = ((s - half) + c) + (s_low + c_low);
    const double whole = k * SBM_LN2_HIGH_f64, sum = whole + 2 * half;
    const double rest = ((whole - sum) + 2 * half) + fma(k, SBM_LN2_LOW_f64, 2 * half_low);
    *high = sum + rest;
    *low = (sum - *high) + rest;
}

/* |x|^y from log|x| = high + low, with the sign and the special cases of C. */
SBP_FUNCTION double sbm_power_of_log_f64(double x, double y, double high, double low) {
    const double a = sbm_abs_f64(x), b = sbm_abs_f64(y);
    const double zero = a == 0 ? -SBM_INFINITY_f64 : high, log_a = a == SBM_INFINITY_f64 ? a : zero;
    const double p = y * log_a, p_low = fma(y, low, fma(y, log_a, -p));
    double r, more, k;
    sbm_exp_parts_f64(p, p_low, &r, &more, &k);
    const double value = sbm_scale_f64(sbm_one_plus_f64(r, more), k), bounded = p < SBM_EXP_BOTTOM_f64 ? 0 : value;
    const double size = p > SBM_EXP_TOP_f64 ? SBM_INFINITY_f64 : bounded;
    const int whole = b >= 0x1p52 || (b + 0x1p52) - 0x1p52 == b;
    const int odd = whole && b < 0x1p53 && (0.5 * b + 0x1p52) - 0x1p52 != 0.5 * b;
    const int negative = sbm_bits_f64(x) >> 63 != 0;
    const double with_sign = negative && odd ? -size : size;
    const double real = x < 0 && !whole && a != SBM_INFINITY_f64 ? SBM_NAN_f64 : with_sign;
    const double known = x != x || y != y ? SBM_NAN_f64 : real;
    return y == 0 || x == 1 || (a == 1 && b == SBM_INFINITY_f64) ? 1 : known;
}

SBP_FUNCTION double sbm_pow_f64(double x, double y) {
    double high, low;
    sbm_log_wide_f64(sbm_abs_f64(x), &high, &low);
    return sbm_power_of_log_f64(x, y, high, low);
}

SBP_FUNCTION float sbm_pow_f32(float x, float y) {
    double high, low;
    sbm_log_pair_f64(sbm_abs_f64(x), &high, &low);
    return (float)sbm_power_of_log_f64(x, y, high, low);
}

/* x (high + low), low being small. */
SBP_FUNCTION double sbm_times_pair_f64(double x, double high, double low) {
    const double p = x * high, rest = fma(x, low, fma(x, high, -p));
    return sbm_abs_f64(p) < SBM_INFINITY_f64 ? p + rest : p;
}

/* x log(y), 0 where x is 0 and y is a number. */
SBP_FUNCTION double sbm_xlogy_f64(double x, double y) {
    double high, low;
    sbm_log_pair_f64(y, &high, &low);
    const double value = sbm_times_pair_f64(x, high, low), special = x * sbm_log_or_special_f64(y, high);
    const double any = y > 0 && y < SBM_INFINITY_f64 ? value : special;
    return x == 0 && y == y ? 0 : any;
}

SBP_FUNCTION double sbm_xlog1py_f64(double x, double y) {
    double first, second;
    const double u = 1 + y, back = u - 1, lost = (1 - (u - back)) + (y - back);
    sbm_log_parts_f64(u, &first, &second);
    const int tiny = sbm_abs_f64(y) < 0x1p-30;
    const double rest = second + lost / u, sum = first + rest, low = (first - sum) + rest;
    const double high = tiny ? y : sum, of_tiny = y * y * fma(y, SBM_THIRD_FULL_f64, -0.5);
    const double value = sbm_times_pair_f64(x, high, tiny ? of_tiny : low);
    const double any = u > 0 && u < SBM_INFINITY_f64 ? value : x * sbm_log_or_special_f64(u, high);
    return x == 0 && y == y ? 0 : any;
}

SBP_FUNCTION double sbm_hypot_f64(double x, double y) {
    const double a = sbm_abs_f64(x), b = sbm_abs_f64(y), most = a > b ? a : b, least = a > b ? b : a;
    const double up = most < 0x1p-400 ? 0x1p600 : 1, scale = most > 0x1p500 ? 0x1p-600 : up;
    const double m = most * scale, n = least * scale, mm = m * m, nn = n * n, u = mm + nn;
    const double u_low = ((mm - u) + nn) + (fma(m, m, -mm) + fma(n, n, -nn)), root = sqrt(u);
    const double value = (root + (root > 0 ? (fma(-root, root, u) + u_low) / (2 * root) : 0)) * (1 / scale);
    const double known = x == x && y == y ? value : SBM_NAN_f64;
    return a == SBM_INFINITY_f64 || b == SBM_INFINITY_f64 ? SBM_INFINITY_f64 : known;
}

/* log(e^a + e^b) = the larger + log(1 + e^-d), d being their distance. */
SBP_FUNCTION double sbm_log_add_f64(double a, double b, double unit, double unit_low) {
    const double top = a > b ? a : b, bottom = a > b ? b : a;
    double d_low, e, e_low, k, high, low;
    const double d = sbm_two_sum_f64(top, -bottom, &d_low), s = d * unit;
    const double s_low = fma(d, unit_low, fma(d_low, unit, fma(d, unit, -s)));
    sbm_exp_pair_f64(-s, -s_low, &e, &e_low, &k);
    const double y = sbm_scale_f64(e, k), u = 1 + y;
    const double u_low = ((1 - u) + y) + sbm_scale_f64(e_low, k);
    sbm_log_parts_f64(u, &high, &low);
    low = low + u_low / u;
    const double c = 1 / unit, term = high * c, more = fma(low, c, fma(high, c, -term));
    const double c_low = fma(-c, unit, 1) * c - unit_low * c * c;
    const double sum = top + term, sum_low = (top - sum) + term;
    const double value = sum + (sum_low + fma(high, c_low, more)), far = s > 745 ? top : value;
    const double known = a == b && sbm_abs_f64(a) == SBM_INFINITY_f64 ? a : far;
    return a == a && b == b ? known : SBM_NAN_f64;
}

SBP_FUNCTION double sbm_logaddexp_f64(double a, double b) { return sbm_log_add_f64(a, b, 1, 0); }
SBP_FUNCTION double sbm_logaddexp2_f64(double a, double b) {
    return sbm_log_add_f64(a, b, SBM_LN2_FULL_f64, SBM_LN2_REST_f64);
}
