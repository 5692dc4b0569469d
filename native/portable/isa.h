/* The instruction set in use, and how a family of kernels finds its variant for it.
 *
 * A family keeps its kernels in FAMILY_kernel.h, which every variant_*.c includes, as one constant table named
 * SBP(FAMILY); in FAMILY.c, SBP_DECLARE_TABLES(type, FAMILY) makes `const type *FAMILY_now(void)`.
 */
#ifndef SAMEBITS_PORTABLE_ISA_H
#define SAMEBITS_PORTABLE_ISA_H

#if defined(__GNUC__) && defined(__x86_64__)
#define SBP_X86 1
#endif
#if defined(__aarch64__) && defined(__ARM_NEON)
#define SBP_ARM 1
#endif

enum { SBP_SCALAR, SBP_FIRST, SBP_SECOND };

/* SBP_SCALAR; SBP_FIRST is AVX2 with FMA, or NEON; SBP_SECOND is AVX-512. */
int sbp_isa_now(void);

#if defined(SBP_X86)
#define SBP_DECLARE_TABLES(type, family)                                                                              \
    extern const type family##_scalar, family##_avx2, family##_avx512;                                               \
    static const type *family##_now(void) {                                                                           \
        const int isa = sbp_isa_now();                                                                                \
        return isa == SBP_SECOND ? &family##_avx512 : isa == SBP_FIRST ? &family##_avx2 : &family##_scalar;           \
    }
#elif defined(SBP_ARM)
#define SBP_DECLARE_TABLES(type, family)                                                                              \
    extern const type family##_scalar, family##_neon;                                                                 \
    static const type *family##_now(void) { return sbp_isa_now() == SBP_FIRST ? &family##_neon : &family##_scalar; }
#else
#define SBP_DECLARE_TABLES(type, family)                                                                              \
    extern const type family##_scalar;                                                                                \
    static const type *family##_now(void) { return &family##_scalar; }
#endif

#endif
