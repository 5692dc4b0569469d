/* sin, cos, tan and their inverses, in float64; float32 goes through them. Included by math_functions.h. */

/* Up to here an argument is reduced in floating point, beyond it with integers. */
#define SBM_CIRCLE_LIMIT 0x1p19

/* x = k pi/2 + r + r_low for |x| up to the limit. Three parts of pi/2 have 34 bits: their products with k are exact. */
SBP_FUNCTION double sbm_reduce_f64(double x, double *r, double *r_low) {
    const double k = sbm_round_f64(x * SBM_TWO_BY_PI_f64), first = fma(-k, SBM_HALF_PI_1_f64, x);
    double second_low, third_low;
    const double second = sbm_two_sum_f64(first, -k * SBM_HALF_PI_2_f64, &second_low);
    const double third = sbm_two_sum_f64(second, -k * SBM_HALF_PI_3_f64, &third_low);
    const double low = fma(-k, SBM_HALF_PI_4_f64, second_low + third_low);
    *r = third + low;
    *r_low = (third - *r) + low;
    return k;
}

/* The same for any finite x from 2 on: x 2/pi modulo 4 from the 192 bits of 2/pi that matter. */
SBP_FUNCTION double sbm_reduce_large_f64(double x, double *r, double *r_low) {
    static const uint64_t digits[] = SBM_TWO_BY_PI_DIGITS;
    const uint64_t bits = sbm_bits_f64(x), m = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
    /* |x| = m 2^(exponent - 1075); digit i of 2/pi, from 1 on, is bit 63 + i of the table: 64 zeros come first */
    const int exponent = (int)(bits >> 52 & 2047), start = exponent - 1075 - 2 + 64, word = start / 64, shift = start % 64;
    uint64_t window[3];
    for (int i = 0; i < 3; i++)
        window[i] = digits[word + i] << shift | (shift ? digits[word + i + 1] >> (64 - shift) : 0);
    const unsigned __int128 last = (unsigned __int128)m * window[2];
    const unsigned __int128 middle = (unsigned __int128)m * window[1] + (uint64_t)(last >> 64);
    uint64_t high = m * window[0] + (uint64_t)(middle >> 64), mid = (uint64_t)middle, low = (uint64_t)last;
    /* high:mid:low / 2^190 is x 2/pi modulo 4: the nearest integer, and the rest as a magnitude of 189 bits */
    const uint64_t quadrant = (high + 0x2000000000000000u) >> 62, below = high >> 61 & 1;
    high = high & 0x3fffffffffffffffu;
    if (below) {
        low = ~low + 1;
        mid = ~mid + (low == 0);
        high = (~high + (low == 0 && mid == 0)) & 0x3fffffffffffffffu;
    }
    int zeros = 0;
    for (; zeros < 128 && !(high >> 63); zeros++) {
        high = high << 1 | mid >> 63;
        mid = mid << 1 | low >> 63;
        low = low << 1;
    }
    /* the first 53 bits, and the 53 after them */
    const double unit = sbm_from_bits_f64((uint64_t)(1023 - 50 - zeros - 1) << 52), tiny = unit * 0x1p-53;
    const double head = (double)(high >> 11) * unit, tail = (double)((high & 2047) << 42 | mid >> 22) * tiny;
    const double y = head * SBM_HALF_PI_FULL_f64, rest = fma(head, SBM_HALF_PI_FULL_f64, -y);
    const double y_low = fma(head, SBM_HALF_PI_REST_f64, fma(tail, SBM_HALF_PI_FULL_f64, rest));
    const double sum = y + y_low, sum_low = (y - sum) + y_low;
    const int negative = (below != 0) != (x < 0);
    *r = negative ? -sum : sum;
    *r_low = negative ? -sum_low : sum_low;
    return x < 0 ? -(double)(quadrant & 3) : (double)(quadrant & 3);
}

/* sin and cos of r + r_low, |r| up to pi/4, as pairs. */
SBP_FUNCTION void sbm_sin_cos_f64(double r, double r_low, double *s, double *s_low, double *c, double *c_low) {
    const double z = r * r, z_low = fma(r, r, -z), half = 0.5 * z;
    *s = r;
    *s_low = fma(r * z, sbm_sin_terms_f64(z), fma(-half, r_low, r_low));
    *c = 1 - half;
    *c_low = ((1 - *c) - half) + fma(z * z, sbm_cos_terms_f64(z), -fma(0.5, z_low, r * r_low));
}

/* sin(r + r_low + turns pi/2). */
SBP_FUNCTION double sbm_sin_turned_f64(double r, double r_low, double turns) {
    double s, s_low, c, c_low;
    sbm_sin_cos_f64(r, r_low, &s, &s_low, &c, &c_low);
    const uint64_t n = sbm_bits_f64(turns + SBM_ROUNDER_f64);
    const double value = n & 1 ? c + c_low : s + s_low;
    return sbm_from_bits_f64(sbm_bits_f64(value) ^ (n & 2) << 62);
}

SBP_FUNCTION double sbm_tan_turned_f64(double r, double r_low, double turns) {
    double s, s_low, c, c_low;
    sbm_sin_cos_f64(r, r_low, &s, &s_low, &c, &c_low);
    const int odd = (int)(sbm_bits_f64(turns + SBM_ROUNDER_f64) & 1);
    const double sine = s + s_low, sine_low = (s - sine) + s_low, cosine = c + c_low, cosine_low = (c - cosine) + c_low;
    const double n = odd ? -cosine : sine, n_low = odd ? -cosine_low : sine_low;
    const double d = odd ? sine : cosine, d_low = odd ? sine_low : cosine_low, q = n / d;
    return q + (fma(-q, d, n) + fma(-q, d_low, n_low)) / d;
}

#define SBM_CIRCLE(name, turned, start)                                                                               \
    /* For |x| up to the limit; anything finite beyond it. */                                                         \
    SBP_FUNCTION double sbm_##name##_small_f64(double x) {                                                            \
        double r, r_low;                                                                                              \
        const double k = sbm_reduce_f64(x, &r, &r_low), value = turned(r, r_low, k + start);                          \
        return start == 0 && x == 0 ? x : value;                                                                      \
    }                                                                                                                 \
    SBP_FUNCTION double sbm_##name##_f64(double x) {                                                                  \
        double r, r_low;                                                                                              \
        if (!(sbm_abs_f64(x) > SBM_CIRCLE_LIMIT))                                                                     \
            return sbm_##name##_small_f64(x);                                                                         \
        if (sbm_abs_f64(x) == SBM_INFINITY_f64)                                                                       \
            return SBM_NAN_f64;                                                                                       \
        const double k = sbm_reduce_large_f64(x, &r, &r_low);                                                         \
        return turned(r, r_low, k + start);                                                                           \
    }                                                                                                                 \
    SBP_FUNCTION float sbm_##name##_small_f32(float x) { return (float)sbm_##name##_small_f64(x); }                   \
    SBP_FUNCTION float sbm_##name##_f32(float x) { return (float)sbm_##name##_f64(x); }

SBM_CIRCLE(sin, sbm_sin_turned_f64, 0)
SBM_CIRCLE(cos, sbm_sin_turned_f64, 1)
SBM_CIRCLE(tan, sbm_tan_turned_f64, 0)
#undef SBM_CIRCLE

/* The angle of (d, n), 0 <= n <= d, as octants pi/4 + v + more, octants being 0 or 1. */
SBP_FUNCTION double sbm_angle_f64(double n, double d, double *v, double *more) {
    const int wide = n > 0x1.a8p-2 * d; /* tan(pi/8), about: then it is that of (n + d, n - d) from pi/4 */
    double n_low, d_low;
    const double less = sbm_two_sum_f64(n, -d, &n_low), sum = sbm_two_sum_f64(d, n, &d_low);
    const double p = wide ? less : n, p_low = wide ? n_low : 0, q = wide ? sum : d, q_low = wide ? d_low : 0;
    const double found = p / q, rest = (fma(-found, q, p) + fma(-found, q_low, p_low)) / q;
    const double z = found * found, of_z = found * z * sbm_atan_terms_f64(z) + rest;
    const double finite = d < SBM_INFINITY_f64 ? found : 0, of_finite = d < SBM_INFINITY_f64 ? of_z : 0;
    *v = n == 0 ? 0 : finite;
    *more = n == 0 ? 0 : of_finite;
    return wide ? 1 : 0;
}

/* octants pi/4 + sign (v + more). */
SBP_FUNCTION double sbm_of_octants_f64(double octants, double sign, double v, double more) {
    const double unit = 0.5 * SBM_HALF_PI_FULL_f64, base = octants * unit, at = sign * v, high = base + at;
    const double base_low = fma(octants, 0.5 * SBM_HALF_PI_REST_f64, fma(octants, unit, -base));
    return high + (((base - high) + at) + fma(sign, more, base_low));
}

SBP_FUNCTION double sbm_atan_f64(double x) {
    const double a = sbm_abs_f64(x);
    const int steep = a > 1;
    double v, more;
    const double octants = sbm_angle_f64(steep ? 1 : a, steep ? a : 1, &v, &more);
    const double result = sbm_of_octants_f64(steep ? 2 - octants : octants, steep ? -1 : 1, v, more);
    return sbm_signed_f64(x == x ? result : SBM_NAN_f64, x);
}

SBP_FUNCTION double sbm_atan2_f64(double y, double x) {
    const double a = sbm_abs_f64(x), b = sbm_abs_f64(y), most = a < b ? b : a, least = a < b ? a : b;
    const double scale = most > 0x1p1000 ? 0x1p-4 : 1; /* their sum must be finite; infinities are as (1, 1) */
    const int same = least == SBM_INFINITY_f64, left = sbm_bits_f64(x) >> 63 != 0, steep = a < b;
    double v, more;
    const double found = sbm_angle_f64(same ? 1 : least * scale, same ? 1 : most * scale, &v, &more);
    const double right = steep ? 2 - found : found, octants = left ? 4 - right : right;
    const double result = sbm_of_octants_f64(octants, steep == left ? 1 : -1, v, more);
    return x == x && y == y ? sbm_signed_f64(result, y) : SBM_NAN_f64;
}

/* sqrt(w) + what it lacks, and the rest of asin of it. */
SBP_FUNCTION double sbm_asin_of_root_f64(double w, double *low) {
    const double s = sqrt(w), s_low = fma(-s, s, w) * (s > 0 ? 0.5 / s : 0);
    *low = fma(s * w, sbm_asin_terms_f64(w), s_low);
    return s;
}

SBP_FUNCTION double sbm_asin_f64(double x) {
    const double a = sbm_abs_f64(x), z = x * x, near = fma(x * z, sbm_asin_terms_f64(z), x);
    double s_low;
    const double s = 2 * sbm_asin_of_root_f64(0.5 * (1 - a), &s_low), high = SBM_HALF_PI_FULL_f64 - s;
    const double far = high + (((SBM_HALF_PI_FULL_f64 - high) - s) + fma(-2.0, s_low, SBM_HALF_PI_REST_f64));
    return a <= 0.5 ? near : sbm_signed_f64(a <= 1 ? far : SBM_NAN_f64, x);
}

SBP_FUNCTION double sbm_acos_f64(double x) {
    const double a = sbm_abs_f64(x), z = x * x, high = SBM_HALF_PI_FULL_f64 - x;
    const double more = fma(-(x * z), sbm_asin_terms_f64(z), SBM_HALF_PI_REST_f64);
    const double near = high + (((SBM_HALF_PI_FULL_f64 - high) - x) + more);
    double s_low;
    const double s = 2 * sbm_asin_of_root_f64(0.5 * (1 - a), &s_low), pi = 2 * SBM_HALF_PI_FULL_f64, back = pi - s;
    const double left = back + (((pi - back) - s) + 2 * (SBM_HALF_PI_REST_f64 - s_low)), right = s + 2 * s_low;
    const double far = x < 0 ? left : right;
    return a <= 0.5 ? near : a <= 1 ? far : SBM_NAN_f64;
}
