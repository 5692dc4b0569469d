/* One value each of the activations, the elementwise losses and the scaled arithmetic, for the type T.
 *
 * Included once for each type T, with F(name) and M(name) giving the names of the functions here and of the scalar
 * mathematics their suffix. `a`, `b`, `c` are inputs, `p` parameters; docs/reference/portable-numerics.md has the same lines.
 */
#define SBP_POINT(name) SBP_FUNCTION T F(name)(SBP_MAYBE T a, SBP_MAYBE T b, SBP_MAYBE T c, SBP_MAYBE T *p)
#define SBP_MAYBE __attribute__((unused)) const

/* Shrinking. A NaN passes through. */

SBP_POINT(softshrink) {
    const T less = a - p[0], more = a + p[0], none = a * 0;
    return a > p[0] ? less : a < -p[0] ? more : none;
}
SBP_POINT(hardshrink) { return (a >= -p[0]) & (a <= p[0]) ? 0 : a; }
SBP_POINT(shrink_backward) { return (b >= -p[0]) & (b <= p[0]) ? 0 : a; }

/* Hard activations. */

SBP_FUNCTION T F(gate)(T x) {
    const T shifted = x + 3, low = shifted < 0 ? 0 : shifted;
    return low > 6 ? 6 : low;
}
SBP_POINT(hardsigmoid) { return F(gate)(a) / 6; }
SBP_POINT(hardsigmoid_backward) {
    const T inside = a / 6;
    return (b > -3) & (b < 3) ? inside : 0;
}
SBP_POINT(hardswish) { return a * F(gate)(a) / 6; }
SBP_POINT(hardswish_backward) {
    const T inside = a * (b / 3 + (T)0.5);
    return b <= -3 ? 0 : b < 3 ? inside : a;
}

/* Smooth activations. */

SBP_FUNCTION T F(expit)(T x) { return 1 / (1 + M(exp)(-x)); }
SBP_FUNCTION T F(log1p_exp)(T x) {
    const T positive = x < 0 ? 0 : x, size = x < 0 ? -x : x;
    return positive + M(log1p)(M(exp)(-size));
}

SBP_FUNCTION T F(gelu_by_cdf)(T x, SBP_MAYBE T unused, T cdf) { return x * cdf; }
SBP_FUNCTION T F(gelu_backward_by_cdf)(T gradient, T x, T cdf) { return gradient * (cdf + x * F(normal_density)(x)); }
SBP_POINT(gelu) { return F(gelu_by_cdf)(a, b, F(normal_cdf)(a)); }
SBP_POINT(gelu_backward) { return F(gelu_backward_by_cdf)(a, b, F(normal_cdf)(b)); }
#define SBP_GELU_BETA (T)0x1.9884533d43651p-1
#define SBP_GELU_KAPPA (T)0x1.6e4e26d4801f7p-5
SBP_POINT(gelu_tanh) {
    const T cube = a * a * a;
    return (T)0.5 * a * (1 + M(tanh)(SBP_GELU_BETA * (a + SBP_GELU_KAPPA * cube)));
}
SBP_POINT(gelu_tanh_backward) {
    const T square = b * b, cube = square * b;
    const T t = M(tanh)(SBP_GELU_BETA * (b + SBP_GELU_KAPPA * cube));
    const T slope = SBP_GELU_BETA * (1 + 3 * SBP_GELU_KAPPA * square);
    return a * ((T)0.5 * (1 + t) + (T)0.5 * b * (1 - t * t) * slope);
}
SBP_POINT(silu) { return a / (1 + M(exp)(-a)); }
SBP_POINT(silu_backward) {
    const T s = F(expit)(b);
    return a * (s * (1 + b * (1 - s)));
}
/* tanh(log(1 + e)) = n / (n + 2), with n = e (e + 2); 1 beyond 20. */
SBP_POINT(mish) {
    const T e = M(exp)(a), n = e * (e + 2), below = a * (n / (n + 2));
    return a > 20 ? a : below;
}
SBP_POINT(mish_backward) {
    const T e = M(exp)(b), n = e * (e + 2), w = n / (n + 2);
    const T below = a * (w + b * (e / (1 + e)) * (1 - w * w));
    return b > 20 ? a : below;
}
/* p: alpha, scale, input_scale. */
SBP_POINT(elu) {
    const T below = M(expm1)(a * p[2]) * (p[0] * p[1]), above = a * p[1];
    return a <= 0 ? below : above;
}
SBP_POINT(elu_backward) {
    const T below = a * p[2] * (p[0] * p[1]) * M(exp)(b * p[2]), above = a * p[1];
    return b <= 0 ? below : above;
}
SBP_POINT(elu_backward_of_result) {
    const T below = a * p[2] * (b + p[0] * p[1]), above = a * p[1];
    return b <= 0 ? below : above;
}
/* p: beta, threshold. */
SBP_POINT(softplus) {
    const T z = a * p[0], below = F(log1p_exp)(z) / p[0];
    return z > p[1] ? a : below;
}
SBP_POINT(softplus_backward) {
    const T z = b * p[0], below = a * F(expit)(z);
    return z > p[1] ? a : below;
}
SBP_POINT(log_sigmoid) {
    const T negative = a > 0 ? 0 : a, size = a < 0 ? -a : a;
    return negative - M(log1p)(M(exp)(-size));
}
SBP_POINT(log_sigmoid_backward) { return a * F(expit)(-b); }
SBP_POINT(glu) { return a * F(expit)(b); }
/* a: gradient, b: value, c: gate. */
SBP_POINT(glu_backward_value) { return F(expit)(c) * a; }
SBP_POINT(glu_backward_gate) {
    const T s = F(expit)(c);
    return (1 - s) * s * a * b;
}

/* Scaled arithmetic. */

SBP_POINT(add_scaled) { return a + b * p[0]; }
SBP_POINT(lerp) {
    const T difference = b - a, size = c < 0 ? -c : c;
    const T near_start = a + c * difference, near_end = b - difference * (1 - c);
    return size < (T)0.5 ? near_start : near_end;
}
SBP_POINT(addcmul) { return a + p[0] * b * c; }
SBP_POINT(addcdiv) { return a + p[0] * b / c; }

/* Losses. a: input, b: target; in gradients c: gradient of the output, p[0]: its factor. */

SBP_POINT(mse) {
    const T d = a - b;
    return d * d;
}
SBP_POINT(mse_backward) { return (a - b) * c * p[0]; }
SBP_POINT(smooth_l1) {
    const T d = a - b, size = d < 0 ? -d : d;
    const T near = (T)0.5 * size * size / p[0], far = size - (T)0.5 * p[0];
    return size < p[0] ? near : far;
}
SBP_POINT(smooth_l1_backward) {
    const T d = a - b, g = c * p[0], near = d * g / p[1];
    return d <= -p[1] ? -g : d >= p[1] ? g : near;
}
SBP_POINT(huber) {
    const T d = a - b, size = d < 0 ? -d : d;
    const T near = (T)0.5 * size * size, far = p[0] * (size - (T)0.5 * p[0]);
    return size <= p[0] ? near : far;
}
SBP_POINT(huber_backward) {
    const T d = a - b, g = c * p[0], near = d * g, far = g * p[1];
    return d <= -p[1] ? -far : d >= p[1] ? far : near;
}
SBP_FUNCTION T F(log_cut)(T log_x) { return log_x < -100 ? -100 : log_x; }
SBP_POINT(binary_cross_entropy) {
    return (b - 1) * F(log_cut)(M(log1p)(-a)) - b * F(log_cut)(M(log)(a));
}
SBP_POINT(binary_cross_entropy_backward) {
    const T spread = (1 - a) * a, least = spread < (T)1e-12 ? (T)1e-12 : spread;
    return c * (a - b) / least * p[0];
}
/* softplus(-a) = -log(sigmoid(a)); c: weight of the positive class. */
SBP_POINT(with_logits) { return (1 - b) * a + F(log1p_exp)(-a); }
SBP_POINT(with_logits_pos) {
    const T weight = (c - 1) * b + 1;
    return (1 - b) * a + weight * F(log1p_exp)(-a);
}
SBP_POINT(soft_margin) { return F(log1p_exp)(-b * a); }
SBP_POINT(soft_margin_backward) { return -(b * F(expit)(-b * a)) * c * p[0]; }

#undef SBP_POINT
#undef SBP_MAYBE
#undef SBP_GELU_BETA
#undef SBP_GELU_KAPPA
