/* Made by generate/coefficients.py: do not edit. See docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_MATH_COEFFICIENTS_H
#define SAMEBITS_PORTABLE_MATH_COEFFICIENTS_H

#include "math_base.h"

#define SBM_LN2_HIGH_f32 0x1.62e4p-1f
#define SBM_LN2_LOW_f32 0x1.7f7d1cp-20f
#define SBM_LOG2_E_f32 0x1.715476p+0f
#define SBM_LN2_FULL_f32 0x1.62e43p-1f
#define SBM_LN2_REST_f32 -0x1.05c61p-29f
#define SBM_ONE_BY_LN2_FULL_f32 0x1.715476p+0f
#define SBM_ONE_BY_LN2_REST_f32 0x1.4ae0cp-26f
#define SBM_ONE_BY_LN10_FULL_f32 0x1.bcb7b2p-2f
#define SBM_ONE_BY_LN10_REST_f32 -0x1.5b235ep-27f
#define SBM_LOG10_2_HIGH_f32 0x1.344p-2f
#define SBM_LOG10_2_LOW_f32 0x1.3509f8p-18f
#define SBM_LN2_HIGH_f64 0x1.62e42fefa4p-1
#define SBM_LN2_LOW_f64 -0x1.8432a1b0e2634p-43
#define SBM_LOG2_E_f64 0x1.71547652b82fep+0
#define SBM_LN2_FULL_f64 0x1.62e42fefa39efp-1
#define SBM_LN2_REST_f64 0x1.abc9e3b39803fp-56
#define SBM_ONE_BY_LN2_FULL_f64 0x1.71547652b82fep+0
#define SBM_ONE_BY_LN2_REST_f64 0x1.777d0ffda0d24p-56
#define SBM_ONE_BY_LN10_FULL_f64 0x1.bcb7b1526e50ep-2
#define SBM_ONE_BY_LN10_REST_f64 0x1.95355baaafad3p-57
#define SBM_LOG10_2_HIGH_f64 0x1.34413509f8p-2
#define SBM_LOG10_2_LOW_f64 -0x1.80433b83b532ap-44
#define SBM_HALF_PI_1_f64 0x1.921fb5448p+0
#define SBM_HALF_PI_2_f64 -0x1.e973dcb38p-35
#define SBM_HALF_PI_3_f64 -0x1.9cceba3f8p-70
#define SBM_HALF_PI_4_f64 -0x1.1f1976b7ed8fcp-106
#define SBM_HALF_PI_FULL_f64 0x1.921fb54442d18p+0
#define SBM_HALF_PI_REST_f64 0x1.1a62633145c07p-54
#define SBM_ROOT_HALF_FULL_f64 0x1.6a09e667f3bcdp-1
#define SBM_ROOT_HALF_REST_f64 -0x1.bdd3413b26456p-55
#define SBM_ERFCX_FULL_f64 0x1.40c522d7e4987p+0
#define SBM_ERFCX_REST_f64 0x1.a19969d5cf11fp-55
#define SBM_THIRD_FULL_f64 0x1.5555555555555p-2
#define SBM_THIRD_REST_f64 0x1.5555555555555p-56
#define SBM_TWO_BY_PI_f64 0x1.45f306dc9c883p-1
#define SBM_TWO_BY_ROOT_PI_f64 0x1.20dd750429b6dp+0
#define SBM_HALF_LOG_TWO_PI_f64 0x1.d67f1c864beb5p-1
#define SBM_TWO_BY_PI_DIGITS {0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu}

SBP_FUNCTION float sbm_exp_terms_f32(float x) {
    float p = 0x1.a0f862p-13f;
    p = SBM_FMA_f32(p, x, 0x1.6d10fcp-10f);
    p = SBM_FMA_f32(p, x, 0x1.1110f6p-7f);
    p = SBM_FMA_f32(p, x, 0x1.55551ap-5f);
    p = SBM_FMA_f32(p, x, 0x1.555556p-3f);
    return p;
}

SBP_FUNCTION double sbm_exp_terms_f64(double x) {
    double p = 0x1.61b2b016a9a33p-33;
    p = SBM_FMA_f64(p, x, 0x1.1f72fc730b4ffp-29);
    p = SBM_FMA_f64(p, x, 0x1.ae64344d7f4e6p-26);
    p = SBM_FMA_f64(p, x, 0x1.27e4db67b4303p-22);
    p = SBM_FMA_f64(p, x, 0x1.71de3a5904934p-19);
    p = SBM_FMA_f64(p, x, 0x1.a01a01a6d7808p-16);
    p = SBM_FMA_f64(p, x, 0x1.a01a01a019b2bp-13);
    p = SBM_FMA_f64(p, x, 0x1.6c16c16c162d6p-10);
    p = SBM_FMA_f64(p, x, 0x1.1111111111111p-7);
    p = SBM_FMA_f64(p, x, 0x1.5555555555556p-5);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-3);
    return p;
}

SBP_FUNCTION float sbm_log_terms_f32(float x) {
    float p = 0x1.1d8ea6p-4f;
    p = SBM_FMA_f32(p, x, -0x1.d635bcp-4f);
    p = SBM_FMA_f32(p, x, 0x1.dea282p-4f);
    p = SBM_FMA_f32(p, x, -0x1.fcf4c6p-4f);
    p = SBM_FMA_f32(p, x, 0x1.23d21ap-3f);
    p = SBM_FMA_f32(p, x, -0x1.555b4ap-3f);
    p = SBM_FMA_f32(p, x, 0x1.999d5ap-3f);
    p = SBM_FMA_f32(p, x, -0x1.fffffcp-3f);
    p = SBM_FMA_f32(p, x, 0x1.555554p-2f);
    return p;
}

SBP_FUNCTION double sbm_log_terms_f64(double x) {
    double p = 0x1.7d29370356709p-6;
    p = SBM_FMA_f64(p, x, -0x1.ba0db7c5ec46p-5);
    p = SBM_FMA_f64(p, x, 0x1.e4de09bbb15acp-5);
    p = SBM_FMA_f64(p, x, -0x1.a4f2cb642aed7p-5);
    p = SBM_FMA_f64(p, x, 0x1.9ef55712af986p-5);
    p = SBM_FMA_f64(p, x, -0x1.c29e22cde6a1cp-5);
    p = SBM_FMA_f64(p, x, 0x1.e3351b0b8a06ap-5);
    p = SBM_FMA_f64(p, x, -0x1.00471d25a052ap-4);
    p = SBM_FMA_f64(p, x, 0x1.110a3cb814e7cp-4);
    p = SBM_FMA_f64(p, x, -0x1.248da6617d7e1p-4);
    p = SBM_FMA_f64(p, x, 0x1.3b13c73c82083p-4);
    p = SBM_FMA_f64(p, x, -0x1.555582293998ep-4);
    p = SBM_FMA_f64(p, x, 0x1.745d1806bdea4p-4);
    p = SBM_FMA_f64(p, x, -0x1.9999989e9f8b5p-4);
    p = SBM_FMA_f64(p, x, 0x1.c71c71bf5db12p-4);
    p = SBM_FMA_f64(p, x, -0x1.000000017c4eap-3);
    p = SBM_FMA_f64(p, x, 0x1.249249249e4a9p-3);
    p = SBM_FMA_f64(p, x, -0x1.5555555553457p-3);
    p = SBM_FMA_f64(p, x, 0x1.99999999998d7p-3);
    p = SBM_FMA_f64(p, x, -0x1.0000000000007p-2);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-2);
    return p;
}

SBP_FUNCTION float sbm_tanh_terms_f32(float x) {
    float p = 0x1.2b7582p-13f;
    p = SBM_FMA_f32(p, x, -0x1.e42e3p-11f);
    p = SBM_FMA_f32(p, x, 0x1.a45278p-9f);
    p = SBM_FMA_f32(p, x, -0x1.1d02d6p-7f);
    p = SBM_FMA_f32(p, x, 0x1.65a7c4p-6f);
    p = SBM_FMA_f32(p, x, -0x1.ba117cp-5f);
    p = SBM_FMA_f32(p, x, 0x1.1110f2p-3f);
    p = SBM_FMA_f32(p, x, -0x1.555556p-2f);
    return p;
}

SBP_FUNCTION double sbm_tanh_terms_f64(double x) {
    double p = 0x1.b028f6cb72ebfp-26;
    p = SBM_FMA_f64(p, x, -0x1.1ab979c0ab58cp-22);
    p = SBM_FMA_f64(p, x, 0x1.7238a0a7e22b6p-20);
    p = SBM_FMA_f64(p, x, -0x1.4eb911dcd9788p-18);
    p = SBM_FMA_f64(p, x, 0x1.ea19b73b128d8p-17);
    p = SBM_FMA_f64(p, x, -0x1.42090e21d3d28p-15);
    p = SBM_FMA_f64(p, x, 0x1.94981e5bdbe6fp-14);
    p = SBM_FMA_f64(p, x, -0x1.f5211730ee038p-13);
    p = SBM_FMA_f64(p, x, 0x1.3551ae34bdfffp-11);
    p = SBM_FMA_f64(p, x, -0x1.7da2bdc3daa27p-10);
    p = SBM_FMA_f64(p, x, 0x1.d6d3c538d0bbep-9);
    p = SBM_FMA_f64(p, x, -0x1.226e3519865dfp-7);
    p = SBM_FMA_f64(p, x, 0x1.664f4880d2a47p-6);
    p = SBM_FMA_f64(p, x, -0x1.ba1ba1ba1453ep-5);
    p = SBM_FMA_f64(p, x, 0x1.11111111110b9p-3);
    p = SBM_FMA_f64(p, x, -0x1.5555555555555p-2);
    return p;
}

SBP_FUNCTION float sbm_erf_terms_f32(float x) {
    float p = -0x1.445f48p-17f;
    p = SBM_FMA_f32(p, x, 0x1.d8875p-14f);
    p = SBM_FMA_f32(p, x, -0x1.bccf66p-11f);
    p = SBM_FMA_f32(p, x, 0x1.562a6p-8f);
    p = SBM_FMA_f32(p, x, -0x1.b829c8p-6f);
    p = SBM_FMA_f32(p, x, 0x1.ce2f08p-4f);
    p = SBM_FMA_f32(p, x, -0x1.812746p-2f);
    p = SBM_FMA_f32(p, x, 0x1.06eba8p-3f);
    return p;
}

SBP_FUNCTION double sbm_erf_terms_f64(double x) {
    double p = 0x1.3c01fd3a74542p-42;
    p = SBM_FMA_f64(p, x, -0x1.b40e7abf9fp-38);
    p = SBM_FMA_f64(p, x, 0x1.9a0fcb5e22c5bp-34);
    p = SBM_FMA_f64(p, x, -0x1.517ce02f1265fp-30);
    p = SBM_FMA_f64(p, x, 0x1.fcbb312b48443p-27);
    p = SBM_FMA_f64(p, x, -0x1.5f73c3bf14b91p-23);
    p = SBM_FMA_f64(p, x, 0x1.b9e6c38e5cf3dp-20);
    p = SBM_FMA_f64(p, x, -0x1.f4d25bf9af03ap-17);
    p = SBM_FMA_f64(p, x, 0x1.f9a326f7ac5b1p-14);
    p = SBM_FMA_f64(p, x, -0x1.c02db40035f1ep-11);
    p = SBM_FMA_f64(p, x, 0x1.565bcd0e6a2eep-8);
    p = SBM_FMA_f64(p, x, -0x1.b82ce31288b47p-6);
    p = SBM_FMA_f64(p, x, 0x1.ce2f21a042be2p-4);
    p = SBM_FMA_f64(p, x, -0x1.812746b0379e7p-2);
    p = SBM_FMA_f64(p, x, 0x1.06eba8214db69p-3);
    return p;
}

SBP_FUNCTION float sbm_erf_far_terms_f32(float x) {
    float p = 0x1.45ac78p-24f;
    p = SBM_FMA_f32(p, x, -0x1.623bb4p-19f);
    p = SBM_FMA_f32(p, x, 0x1.4294b8p-15f);
    p = SBM_FMA_f32(p, x, -0x1.60b9e8p-12f);
    p = SBM_FMA_f32(p, x, 0x1.10db56p-9f);
    p = SBM_FMA_f32(p, x, -0x1.4b1db6p-7f);
    p = SBM_FMA_f32(p, x, 0x1.54b582p-5f);
    p = SBM_FMA_f32(p, x, 0x1.afaaeap-1f);
    p = SBM_FMA_f32(p, x, 0x1.51c9b4p+1f);
    p = SBM_FMA_f32(p, x, 0x1.d97fcp+0f);
    return p;
}

SBP_FUNCTION double sbm_erf_far_terms_f64(double x) {
    double p = -0x1.75649084e1011p-61;
    p = SBM_FMA_f64(p, x, 0x1.8d0d29d006b87p-55);
    p = SBM_FMA_f64(p, x, -0x1.913dbcbb12d01p-50);
    p = SBM_FMA_f64(p, x, 0x1.008216f71dcd1p-45);
    p = SBM_FMA_f64(p, x, -0x1.d20a4540fc216p-42);
    p = SBM_FMA_f64(p, x, 0x1.40371e7a2446ep-38);
    p = SBM_FMA_f64(p, x, -0x1.59c5972f9f599p-35);
    p = SBM_FMA_f64(p, x, 0x1.2c9125e1b2aecp-32);
    p = SBM_FMA_f64(p, x, -0x1.aa93dcd58382bp-30);
    p = SBM_FMA_f64(p, x, 0x1.eff781c1708ffp-28);
    p = SBM_FMA_f64(p, x, -0x1.d266a2db206b5p-26);
    p = SBM_FMA_f64(p, x, 0x1.510101dec624bp-24);
    p = SBM_FMA_f64(p, x, -0x1.2feec7b774bbbp-23);
    p = SBM_FMA_f64(p, x, -0x1.735cf80bb1065p-24);
    p = SBM_FMA_f64(p, x, 0x1.0d000d5d55ee6p-19);
    p = SBM_FMA_f64(p, x, -0x1.41056b0ff21b6p-17);
    p = SBM_FMA_f64(p, x, 0x1.c7421ff8a5e2ep-16);
    p = SBM_FMA_f64(p, x, -0x1.b8b429140e99fp-16);
    p = SBM_FMA_f64(p, x, -0x1.f1b5246353919p-13);
    p = SBM_FMA_f64(p, x, 0x1.033f6b1b00967p-9);
    p = SBM_FMA_f64(p, x, -0x1.48c9d41b9efbap-7);
    p = SBM_FMA_f64(p, x, 0x1.5477f09d0dd43p-5);
    p = SBM_FMA_f64(p, x, 0x1.afabc11a289aap-1);
    p = SBM_FMA_f64(p, x, 0x1.51c9b0006c245p+1);
    p = SBM_FMA_f64(p, x, 0x1.d97fbf27aa2a1p+0);
    return p;
}

SBP_FUNCTION double sbm_erfcx_slope_terms_f64(double x) {
    double p = -0x1.fcb08efa9eaap-4;
    p = SBM_FMA_f64(p, x, 0x1.692595956294ap-2);
    p = SBM_FMA_f64(p, x, -0x1.eec780992f802p-2);
    p = SBM_FMA_f64(p, x, 0x1.8c0dd5e6f715p-2);
    p = SBM_FMA_f64(p, x, -0x1.83af791878473p-4);
    p = SBM_FMA_f64(p, x, -0x1.159c3fd49b5bbp-3);
    return p;
}

SBP_FUNCTION double sbm_erfcx_terms_f64(double x) {
    double p = -0x1.8eb2a1852d879p-29;
    p = SBM_FMA_f64(p, x, -0x1.d0fb4d136df8bp-27);
    p = SBM_FMA_f64(p, x, 0x1.18e5df31a8d52p-25);
    p = SBM_FMA_f64(p, x, 0x1.c302a82ca3ee9p-24);
    p = SBM_FMA_f64(p, x, -0x1.21bcf9351064ep-23);
    p = SBM_FMA_f64(p, x, -0x1.4d136e47d6041p-21);
    p = SBM_FMA_f64(p, x, 0x1.7ca24a2137711p-22);
    p = SBM_FMA_f64(p, x, 0x1.d259c98bcf11ap-19);
    p = SBM_FMA_f64(p, x, -0x1.889f54dd0eca2p-21);
    p = SBM_FMA_f64(p, x, -0x1.513e725c50888p-16);
    p = SBM_FMA_f64(p, x, 0x1.4c2a057222c96p-18);
    p = SBM_FMA_f64(p, x, 0x1.065a49aab4427p-13);
    p = SBM_FMA_f64(p, x, -0x1.b91289cd20839p-14);
    p = SBM_FMA_f64(p, x, -0x1.98db519452589p-11);
    p = SBM_FMA_f64(p, x, 0x1.ef1bdd778bafep-10);
    p = SBM_FMA_f64(p, x, 0x1.4b884e460b4cep-9);
    p = SBM_FMA_f64(p, x, -0x1.8574c40c0958ep-6);
    p = SBM_FMA_f64(p, x, 0x1.17ca2877f09cap-4);
    p = SBM_FMA_f64(p, x, -0x1.e88b803a48a41p-4);
    p = SBM_FMA_f64(p, x, 0x1.098366a5b46c9p-3);
    p = SBM_FMA_f64(p, x, -0x1.85a15c58aa60fp-5);
    p = SBM_FMA_f64(p, x, -0x1.15c084bb9e8f3p-3);
    return p;
}

SBP_FUNCTION double sbm_sin_terms_f64(double x) {
    double p = -0x1.ab17d404de5b3p-41;
    p = SBM_FMA_f64(p, x, 0x1.61217f0b800d5p-33);
    p = SBM_FMA_f64(p, x, -0x1.ae645412c560cp-26);
    p = SBM_FMA_f64(p, x, 0x1.71de3a546095bp-19);
    p = SBM_FMA_f64(p, x, -0x1.a01a01a019938p-13);
    p = SBM_FMA_f64(p, x, 0x1.111111111111p-7);
    p = SBM_FMA_f64(p, x, -0x1.5555555555555p-3);
    return p;
}

SBP_FUNCTION double sbm_cos_terms_f64(double x) {
    double p = -0x1.907da367a37cbp-37;
    p = SBM_FMA_f64(p, x, 0x1.1eeb68e93b64cp-29);
    p = SBM_FMA_f64(p, x, -0x1.27e4fa17da09ep-22);
    p = SBM_FMA_f64(p, x, 0x1.a01a019f4eb01p-16);
    p = SBM_FMA_f64(p, x, -0x1.6c16c16c16967p-10);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-5);
    return p;
}

SBP_FUNCTION double sbm_sinh_terms_f64(double x) {
    double p = 0x1.328de90012662p-57;
    p = SBM_FMA_f64(p, x, 0x1.952654734b725p-49);
    p = SBM_FMA_f64(p, x, 0x1.ae7f44a89136cp-41);
    p = SBM_FMA_f64(p, x, 0x1.61246136ddcbp-33);
    p = SBM_FMA_f64(p, x, 0x1.ae64567f56d72p-26);
    p = SBM_FMA_f64(p, x, 0x1.71de3a556c724p-19);
    p = SBM_FMA_f64(p, x, 0x1.a01a01a01a01ap-13);
    p = SBM_FMA_f64(p, x, 0x1.1111111111111p-7);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-3);
    return p;
}

SBP_FUNCTION double sbm_atan_terms_f64(double x) {
    double p = 0x1.099b06d6970b6p-6;
    p = SBM_FMA_f64(p, x, -0x1.1aa666f09b96bp-5);
    p = SBM_FMA_f64(p, x, 0x1.74a6bab668569p-5);
    p = SBM_FMA_f64(p, x, -0x1.ac6e76f07c2c2p-5);
    p = SBM_FMA_f64(p, x, 0x1.e1986d992455ap-5);
    p = SBM_FMA_f64(p, x, -0x1.110e75a26d5e5p-4);
    p = SBM_FMA_f64(p, x, 0x1.3b1391d2d73adp-4);
    p = SBM_FMA_f64(p, x, -0x1.745d1654d473ep-4);
    p = SBM_FMA_f64(p, x, 0x1.c71c71c2d5a6ap-4);
    p = SBM_FMA_f64(p, x, -0x1.249249248d40ep-3);
    p = SBM_FMA_f64(p, x, 0x1.999999999994fp-3);
    p = SBM_FMA_f64(p, x, -0x1.5555555555555p-2);
    return p;
}

SBP_FUNCTION double sbm_asin_terms_f64(double x) {
    double p = 0x1.e529c6fce9bb4p-6;
    p = SBM_FMA_f64(p, x, -0x1.3b416bb7d9257p-6);
    p = SBM_FMA_f64(p, x, 0x1.406192d124629p-6);
    p = SBM_FMA_f64(p, x, 0x1.8f193743418ffp-9);
    p = SBM_FMA_f64(p, x, 0x1.31622469ce5adp-7);
    p = SBM_FMA_f64(p, x, 0x1.3b49de7121487p-7);
    p = SBM_FMA_f64(p, x, 0x1.7b027ee1dd585p-7);
    p = SBM_FMA_f64(p, x, 0x1.c990ad3d8fdcap-7);
    p = SBM_FMA_f64(p, x, 0x1.1c4efce23019fp-6);
    p = SBM_FMA_f64(p, x, 0x1.6e8ba123e494cp-6);
    p = SBM_FMA_f64(p, x, 0x1.f1c71c7a52ba3p-6);
    p = SBM_FMA_f64(p, x, 0x1.6db6db6dac1ep-5);
    p = SBM_FMA_f64(p, x, 0x1.3333333333388p-4);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-3);
    return p;
}

SBP_FUNCTION double sbm_asinh_terms_f64(double x) {
    double p = 0x1.3aea190ec9c4cp-10;
    p = SBM_FMA_f64(p, x, -0x1.c4d1e35fafe2fp-9);
    p = SBM_FMA_f64(p, x, 0x1.6b898216ec2dep-8);
    p = SBM_FMA_f64(p, x, -0x1.cf0b87411ad1cp-8);
    p = SBM_FMA_f64(p, x, 0x1.115bdce54befp-7);
    p = SBM_FMA_f64(p, x, -0x1.3fa631285b5dp-7);
    p = SBM_FMA_f64(p, x, 0x1.7a81f729025f6p-7);
    p = SBM_FMA_f64(p, x, -0x1.c9993672d2f98p-7);
    p = SBM_FMA_f64(p, x, 0x1.1c4ec2917266dp-6);
    p = SBM_FMA_f64(p, x, -0x1.6e8ba2d619e4dp-6);
    p = SBM_FMA_f64(p, x, 0x1.f1c71c716e95ap-6);
    p = SBM_FMA_f64(p, x, -0x1.6db6db6db66d6p-5);
    p = SBM_FMA_f64(p, x, 0x1.333333333333p-4);
    p = SBM_FMA_f64(p, x, -0x1.5555555555555p-3);
    return p;
}

SBP_FUNCTION double sbm_erfinv_terms_f64(double x) {
    double p = 0x1.23df63e7acca5p-43;
    p = SBM_FMA_f64(p, x, -0x1.2b66369ebb928p-38);
    p = SBM_FMA_f64(p, x, 0x1.69debc89b11dcp-35);
    p = SBM_FMA_f64(p, x, 0x1.e2ad07665c7a2p-33);
    p = SBM_FMA_f64(p, x, -0x1.1a4f7393efdf2p-27);
    p = SBM_FMA_f64(p, x, 0x1.31ee377a65d7cp-24);
    p = SBM_FMA_f64(p, x, -0x1.ad14af7bf2097p-23);
    p = SBM_FMA_f64(p, x, -0x1.5b5926e278ca5p-21);
    p = SBM_FMA_f64(p, x, 0x1.87e665fee44e1p-20);
    p = SBM_FMA_f64(p, x, 0x1.8bd5afcbff7afp-15);
    p = SBM_FMA_f64(p, x, -0x1.0d53541b08dafp-13);
    p = SBM_FMA_f64(p, x, -0x1.320bf4e99d194p-9);
    p = SBM_FMA_f64(p, x, 0x1.7a72a4aec62b8p-7);
    p = SBM_FMA_f64(p, x, 0x1.db29fb85daca1p-3);
    p = SBM_FMA_f64(p, x, 0x1.c5bf891b05918p-1);
    return p;
}

SBP_FUNCTION double sbm_erfinv_far_terms_f64(double x) {
    double p = -0x1.25b8a7a3d181ep-27;
    p = SBM_FMA_f64(p, x, 0x1.02266f23a716dp-21);
    p = SBM_FMA_f64(p, x, -0x1.9e5b09d10191cp-17);
    p = SBM_FMA_f64(p, x, 0x1.9167c9aa658c4p-13);
    p = SBM_FMA_f64(p, x, -0x1.0543831391b0ep-9);
    p = SBM_FMA_f64(p, x, 0x1.e11000e31eb6ap-7);
    p = SBM_FMA_f64(p, x, -0x1.40bab54c64899p-4);
    p = SBM_FMA_f64(p, x, 0x1.37426abc94fcep-2);
    p = SBM_FMA_f64(p, x, -0x1.b23f1a71d0f85p-1);
    p = SBM_FMA_f64(p, x, 0x1.a44f97ee2f9f9p+0);
    p = SBM_FMA_f64(p, x, -0x1.05800251bfb8cp+1);
    p = SBM_FMA_f64(p, x, 0x1.30ecefbcba146p+1);
    p = SBM_FMA_f64(p, x, -0x1.f1bbbf5a0bbb2p-2);
    return p;
}

SBP_FUNCTION double sbm_lgamma_one_terms_f64(double x) {
    double p = 0x1.bdb3d7629dd5ep-3;
    p = SBM_FMA_f64(p, x, -0x1.cc35b376ce28p-3);
    p = SBM_FMA_f64(p, x, -0x1.3046d605c1822p-3);
    p = SBM_FMA_f64(p, x, 0x1.3914b3aa0e424p-3);
    p = SBM_FMA_f64(p, x, 0x1.1ef5d11df4a3dp-3);
    p = SBM_FMA_f64(p, x, -0x1.28eb1f4f52ce4p-3);
    p = SBM_FMA_f64(p, x, 0x1.b4fc9a43dac9fp-7);
    p = SBM_FMA_f64(p, x, -0x1.db7126487ed8p-7);
    p = SBM_FMA_f64(p, x, 0x1.d2f7f4a6085fbp-5);
    p = SBM_FMA_f64(p, x, -0x1.ea4aa627b4073p-5);
    p = SBM_FMA_f64(p, x, 0x1.be79bd2aebac5p-5);
    p = SBM_FMA_f64(p, x, -0x1.d8fbcda10e84fp-5);
    p = SBM_FMA_f64(p, x, 0x1.007509e47a025p-4);
    p = SBM_FMA_f64(p, x, -0x1.118acc50ec441p-4);
    p = SBM_FMA_f64(p, x, 0x1.248e72b0a7186p-4);
    p = SBM_FMA_f64(p, x, -0x1.3b14e848a2d53p-4);
    p = SBM_FMA_f64(p, x, 0x1.556b3fe9a66f6p-4);
    p = SBM_FMA_f64(p, x, -0x1.748ca0044fd2dp-4);
    p = SBM_FMA_f64(p, x, 0x1.9a01e02e1bc0ep-4);
    p = SBM_FMA_f64(p, x, -0x1.c8066cfb76ec6p-4);
    p = SBM_FMA_f64(p, x, 0x1.010b36b799ac3p-3);
    p = SBM_FMA_f64(p, x, -0x1.2703a1e53cd44p-3);
    p = SBM_FMA_f64(p, x, 0x1.5b40cb0ff7e2cp-3);
    p = SBM_FMA_f64(p, x, -0x1.a8b9c17a91284p-3);
    p = SBM_FMA_f64(p, x, 0x1.151322ac7d8e9p-2);
    p = SBM_FMA_f64(p, x, -0x1.9a4d55beab37cp-2);
    p = SBM_FMA_f64(p, x, 0x1.a51a6625307d3p-1);
    p = SBM_FMA_f64(p, x, -0x1.2788cfc6fb619p-1);
    return p;
}

SBP_FUNCTION double sbm_lgamma_two_terms_f64(double x) {
    double p = -0x1.1be56b7e101c6p-23;
    p = SBM_FMA_f64(p, x, 0x1.2b4bb069ee6a9p-22);
    p = SBM_FMA_f64(p, x, -0x1.d06b46182e294p-22);
    p = SBM_FMA_f64(p, x, 0x1.edf317afe0c72p-21);
    p = SBM_FMA_f64(p, x, -0x1.125408d7ee6ebp-19);
    p = SBM_FMA_f64(p, x, 0x1.2640a5e8ab73ep-18);
    p = SBM_FMA_f64(p, x, -0x1.3cb5f201754a6p-17);
    p = SBM_FMA_f64(p, x, 0x1.5806d7786fbc2p-16);
    p = SBM_FMA_f64(p, x, -0x1.78de85fa0bf74p-15);
    p = SBM_FMA_f64(p, x, 0x1.a127dd231f4b2p-14);
    p = SBM_FMA_f64(p, x, -0x1.d3fd4bda4f97bp-13);
    p = SBM_FMA_f64(p, x, 0x1.0b36af3424c5p-11);
    p = SBM_FMA_f64(p, x, -0x1.38ac5c2c96006p-10);
    p = SBM_FMA_f64(p, x, 0x1.7add6eae5b8fdp-9);
    p = SBM_FMA_f64(p, x, -0x1.e404fc218ecffp-8);
    p = SBM_FMA_f64(p, x, 0x1.51322ac7d7fd2p-6);
    p = SBM_FMA_f64(p, x, -0x1.13e001a557607p-4);
    p = SBM_FMA_f64(p, x, 0x1.4a34cc4a60fa7p-2);
    p = SBM_FMA_f64(p, x, 0x1.b0ee6072093cep-2);
    return p;
}

SBP_FUNCTION double sbm_stirling_terms_f64(double x) {
    double p = -0x1.55b3a71b66a2ep-6;
    p = SBM_FMA_f64(p, x, 0x1.96db40614b193p-8);
    p = SBM_FMA_f64(p, x, -0x1.f5ff2fdcdf048p-10);
    p = SBM_FMA_f64(p, x, 0x1.b94f6d6592192p-11);
    p = SBM_FMA_f64(p, x, -0x1.38137ec070147p-11);
    p = SBM_FMA_f64(p, x, 0x1.a01a019ee0dbep-11);
    p = SBM_FMA_f64(p, x, -0x1.6c16c16c16b29p-9);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-4);
    return p;
}

SBP_FUNCTION double sbm_digamma_terms_f64(double x) {
    double p = 0x1.105c65c377d32p+1;
    p = SBM_FMA_f64(p, x, -0x1.b59a48f6f7f9bp-2);
    p = SBM_FMA_f64(p, x, 0x1.54b3a200e8e4dp-4);
    p = SBM_FMA_f64(p, x, -0x1.5991e0f9ff368p-6);
    p = SBM_FMA_f64(p, x, 0x1.f07c120a33491p-8);
    p = SBM_FMA_f64(p, x, -0x1.1111110aa9604p-8);
    p = SBM_FMA_f64(p, x, 0x1.041041040eaa9p-8);
    p = SBM_FMA_f64(p, x, -0x1.111111111111p-7);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-4);
    return p;
}

SBP_FUNCTION double sbm_power_terms_f64(double x) {
    double p = 0x1.b8f089728de3fp-5;
    p = SBM_FMA_f64(p, x, 0x1.ac476873b326p-5);
    p = SBM_FMA_f64(p, x, 0x1.e1f81e418e626p-5);
    p = SBM_FMA_f64(p, x, 0x1.1110df430665dp-4);
    p = SBM_FMA_f64(p, x, 0x1.3b13b1bdcfb31p-4);
    p = SBM_FMA_f64(p, x, 0x1.745d174510f8dp-4);
    p = SBM_FMA_f64(p, x, 0x1.c71c71c71cffap-4);
    p = SBM_FMA_f64(p, x, 0x1.2492492492491p-3);
    p = SBM_FMA_f64(p, x, 0x1.999999999999ap-3);
    return p;
}

SBP_FUNCTION double sbm_atanh_terms_f64(double x) {
    double p = 0x1.cff32677aa2f2p-3;
    p = SBM_FMA_f64(p, x, -0x1.79de6d69a866cp-3);
    p = SBM_FMA_f64(p, x, 0x1.4f3162758726ep-3);
    p = SBM_FMA_f64(p, x, -0x1.7b097a148d046p-8);
    p = SBM_FMA_f64(p, x, 0x1.bff5d5842ce7fp-5);
    p = SBM_FMA_f64(p, x, 0x1.76524ce0b6671p-5);
    p = SBM_FMA_f64(p, x, 0x1.b116e91f2dcfep-5);
    p = SBM_FMA_f64(p, x, 0x1.e1b6c1f3ca95dp-5);
    p = SBM_FMA_f64(p, x, 0x1.1112632e765f2p-4);
    p = SBM_FMA_f64(p, x, 0x1.3b13a3184d90ap-4);
    p = SBM_FMA_f64(p, x, 0x1.745d17a833b94p-4);
    p = SBM_FMA_f64(p, x, 0x1.c71c71c58156bp-4);
    p = SBM_FMA_f64(p, x, 0x1.249249249409cp-3);
    p = SBM_FMA_f64(p, x, 0x1.9999999999982p-3);
    p = SBM_FMA_f64(p, x, 0x1.5555555555555p-2);
    return p;
}

#endif
