/* The error function and its relatives. Included by math_functions.h. */

/* erfc(x + x_low) = (high + low) 2^k for x from 0.5 to 28. */
SBP_FUNCTION void sbm_erfc_parts_f64(double x, double x_low, double *high, double *low, double *k) {
    const double s = x * x, s_low = fma(2 * x, x_low, fma(x, x, -s)), t = (x - 4) / (x + 4);
    const double g = sbm_erfcx_terms_f64(t), d = 1 + 2 * x, d_low = ((1 - d) + 2 * x) + 2 * x_low;
    const double q = g / d, q_low = (fma(-q, d, g) - q * d_low) / d;
    double e, e_low;
    sbm_exp_pair_f64(-s, -s_low, &e, &e_low, k);
    *high = e * q;
    *low = fma(e, q, -*high) + fma(e_low, q, e * q_low);
}
