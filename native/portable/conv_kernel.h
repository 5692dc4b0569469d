#include "conv.h"
#include "scratch.h"
#include "simd.h"

/* Rows of a tile: with two vectors each and a vector of either factor they fill the registers. */
#if defined(SBP_IS_AVX512)
#define CONV_ROWS 14
#elif defined(SBP_IS_AVX2)
#define CONV_ROWS 6
#elif defined(SBP_IS_NEON)
#define CONV_ROWS 12
#else
#define CONV_ROWS 4
#endif

#define T float
#define CONV(name) SBP(conv_##name##_f32)
#define V(name) vf32_##name
#define VECTOR vf32
#define LANES vf32_LANES
#include "conv_tile.h"
#include "conv_transpose.h"
#include "conv_pixels.h"
#include "conv_weight.h"
#include "conv_depthwise.h"
#include "conv_end.h"

#define T double
#define CONV(name) SBP(conv_##name##_f64)
#define V(name) vf64_##name
#define VECTOR vf64
#define LANES vf64_LANES
#include "conv_tile.h"
#include "conv_transpose.h"
#include "conv_pixels.h"
#include "conv_weight.h"
#include "conv_depthwise.h"
#include "conv_end.h"

#define CONV_STEPS(type)                                                                                              \
    {v##type##_LANES,                                                                                                  \
     CONV_ROWS,                                                                                                       \
     SBP(conv_pad_##type),                                                                                            \
     SBP(conv_pack_##type),                                                                                           \
     SBP(conv_compute_##type),                                                                                        \
     SBP(conv_compute_samples_##type),                                                                                \
     SBP(conv_weight_pad_##type),                                                                                     \
     SBP(conv_weight_pack_##type),                                                                                    \
     SBP(conv_weight_compute_##type),                                                                                 \
     SBP(conv_depthwise_pack_##type),                                                                                 \
     SBP(conv_depthwise_compute_##type)}

const sbp_conv_table SBP(conv) = {CONV_STEPS(f32), CONV_STEPS(f64)};
