#include "conv.h"
#include "conv_vector.h"

#define T float
#define CONV(name) SBP(conv_##name##_f32)
#define V conv_v_f32
#define LANES CONV_L_f32
#define LOAD conv_load_f32
#define STORE conv_store_f32
#define ALL conv_all_f32
#define FMA conv_fma_f32
#define ADD conv_add_f32
#define SQUARE SBP(conv_square_f32)
#include "conv_tile.h"
#include "conv_turn.h"
#include "conv_pixels.h"
#include "conv_weight.h"
#include "conv_bias.h"
#include "conv_end.h"

#define T double
#define CONV(name) SBP(conv_##name##_f64)
#define V conv_v_f64
#define LANES CONV_L_f64
#define LOAD conv_load_f64
#define STORE conv_store_f64
#define ALL conv_all_f64
#define FMA conv_fma_f64
#define ADD conv_add_f64
#define SQUARE SBP(conv_square_f64)
#include "conv_tile.h"
#include "conv_turn.h"
#include "conv_pixels.h"
#include "conv_weight.h"
#include "conv_bias.h"
#include "conv_end.h"

#define CONV_STEPS(type)                                                                                              \
    {CONV_L_##type,                                                                                                   \
     CONV_ROWS,                                                                                                       \
     SBP(conv_pad_##type),                                                                                            \
     SBP(conv_pack_##type),                                                                                           \
     SBP(conv_compute_##type),                                                                                        \
     SBP(conv_compute_samples_##type),                                                                                \
     SBP(conv_weight_pad_##type),                                                                                     \
     SBP(conv_weight_pack_##type),                                                                                    \
     SBP(conv_weight_compute_##type),                                                                                 \
     SBP(conv_bias_##type)}

const sbp_conv_table SBP(conv) = {CONV_STEPS(f32), CONV_STEPS(f64)};
