/* Tensors of random values. See "Random numbers" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_RANDOM_H
#define SAMEBITS_PORTABLE_RANDOM_H

#include <stdint.h>

#include "math_base.h"

#define SBP_RANDOM_WORDS 1024 /* in a part of the work */

enum {
    SBP_WORDS,          /* uint32: the words themselves */
    SBP_UNIFORM_F32,    /* bits: of u; a: from; b: to */
    SBP_UNIFORM_F64,    /* a: from; b: to */
    SBP_BERNOULLI_F32,  /* bits: ceil(p 2^32) */
    SBP_BERNOULLI_U8,   /* bits: ceil(p 2^32) */
    SBP_BERNOULLI_P_F32, /* uint8; in: p, float32 */
    SBP_BERNOULLI_P_F64, /* uint8; in: p, float64 */
    SBP_RANGE,          /* int64; bits: range; low: added */
    SBP_NORMAL_F32,     /* a: mean; b: standard deviation */
    SBP_NORMAL_F64,
    SBP_EXPONENTIAL_F32, /* a: divisor */
    SBP_EXPONENTIAL_F64
};

/* Two words next to each other as one number, the first one low. */
typedef uint64_t __attribute__((may_alias)) sbp_word64;

/* Tells whether an element takes 64 bits. */
SBP_FUNCTION int sbp_random_wide(int64_t kind) {
    return kind == SBP_UNIFORM_F64 || kind == SBP_RANGE || kind == SBP_NORMAL_F64 || kind == SBP_EXPONENTIAL_F64;
}

typedef struct {
    int64_t kind;
    void *out;
    int64_t count; /* of elements */
    uint64_t key, first; /* first: block of the first word */
    uint32_t stream, lane; /* the upper two words of the counter */
    uint64_t bits;
    int64_t low;
    const void *in;
    double a, b;
} sbp_random;

typedef struct {
    /* Parts from .. to - 1 of SBP_RANDOM_WORDS words each. */
    void (*fill)(const sbp_random *r, int64_t from, int64_t to);
} sbp_random_table;

#endif
