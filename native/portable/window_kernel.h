#include "simd.h"
#include "window.h"

#define T float
#define W(name) SBP(window_##name##_f32)
#include "window_typed.h"
#undef T
#undef W
#define T double
#define W(name) SBP(window_##name##_f64)
#include "window_typed.h"
#undef T
#undef W

const sbp_window_table SBP(window) = {{SBP(window_mean_f32), SBP(window_spread_f32)},
                                      {SBP(window_mean_f64), SBP(window_spread_f64)}};
