#include "pairs.h"

/* Real and imaginary parts are computed into memory of their own: where they alternate, gcc 12 makes one fused
 * operation of a product and what is added to or subtracted from it, whatever -ffp-contract says. */
#define SBP_PAIRS_LOOP(name, type, body)                                                                              \
    static void SBP(name)(const type *restrict x, const type *restrict y, type *restrict out, int64_t n) {            \
        type real[SBP_PAIRS_BLOCK], imaginary[SBP_PAIRS_BLOCK];                                                       \
        for (int64_t count; n > 0; n -= count, x += 2 * count, y += 2 * count, out += 2 * count) {                    \
            count = n < SBP_PAIRS_BLOCK ? n : SBP_PAIRS_BLOCK;                                                        \
            for (int64_t i = 0; i < count; i++) {                                                                     \
                const type a = x[2 * i], b = x[2 * i + 1], c = y[2 * i], d = y[2 * i + 1];                            \
                body                                                                                                  \
            }                                                                                                         \
            for (int64_t i = 0; i < count; i++) {                                                                     \
                out[2 * i] = real[i];                                                                                 \
                out[2 * i + 1] = imaginary[i];                                                                        \
            }                                                                                                         \
        }                                                                                                             \
    }

#define SBP_PRODUCT                                                                                                   \
    real[i] = a * c - b * d;                                                                                          \
    imaginary[i] = a * d + b * c;

/* By the larger part of the divisor, so that nothing overflows on the way. */
#define SBP_QUOTIENT(type)                                                                                            \
    const type over = c < 0 ? -c : c, aside = d < 0 ? -d : d;                                                         \
    const int flat = over >= aside;                                                                                   \
    const type most = flat ? c : d, least = flat ? d : c, zero = most == 0;                                           \
    const type ratio = zero ? most : least / most, whole = zero ? 0 : most + least * ratio;                           \
    const type one = flat ? a : b, other = flat ? b : a;                                                              \
    const type crossed = flat ? b - a * ratio : b * ratio - a;                                                        \
    real[i] = (one + other * ratio) / whole;                                                                          \
    imaginary[i] = crossed / whole;

SBP_PAIRS_LOOP(pairs_product_f32, float, SBP_PRODUCT)
SBP_PAIRS_LOOP(pairs_product_f64, double, SBP_PRODUCT)
SBP_PAIRS_LOOP(pairs_quotient_f32, float, SBP_QUOTIENT(float))
SBP_PAIRS_LOOP(pairs_quotient_f64, double, SBP_QUOTIENT(double))

const sbp_pairs_table SBP(pairs) = {{SBP(pairs_product_f32), SBP(pairs_quotient_f32)},
                                    {SBP(pairs_product_f64), SBP(pairs_quotient_f64)}};
