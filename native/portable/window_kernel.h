#include "window.h"

#define SBP_WINDOW_LOOPS(body)                                                                                         \
    for (int64_t z = 0; z < w->outputs[0]; z++)                                                                        \
        for (int64_t y = 0; y < w->outputs[1]; y++)                                                                    \
            for (int64_t x = 0; x < w->outputs[2]; x++, narrow++) {                                                    \
                const int64_t all = w->count[0][z] * w->count[1][y] * w->count[2][x];                                  \
                const int64_t divisor = w->divisor ? w->divisor : all;                                                 \
                body                                                                                                   \
            }

#define SBP_WINDOW_EACH(body)                                                                                          \
    for (int64_t i = w->first[0][z]; i < w->end[0][z]; i++)                                                            \
        for (int64_t j = w->first[1][y]; j < w->end[1][y]; j++) {                                                      \
            const int64_t row = (i * w->size[1] + j) * w->size[2];                                                     \
            for (int64_t k = w->first[2][x]; k < w->end[2][x]; k++)                                                    \
                body;                                                                                                  \
        }

#define SBP_WINDOWS(suffix, type)                                                                                      \
    static void SBP(window_mean_##suffix)(const sbp_window *w, void *wide_, void *narrow_) {                           \
        const type *wide = wide_;                                                                                      \
        type *narrow = narrow_;                                                                                        \
        SBP_WINDOW_LOOPS({                                                                                             \
            type sum = 0;                                                                                              \
            SBP_WINDOW_EACH(sum += wide[row + k])                                                                      \
            *narrow = sum / (type)divisor;                                                                             \
        })                                                                                                             \
    }                                                                                                                  \
    static void SBP(window_spread_##suffix)(const sbp_window *w, void *wide_, void *narrow_) {                         \
        type *wide = wide_;                                                                                            \
        const type *narrow = narrow_;                                                                                  \
        SBP_WINDOW_LOOPS({                                                                                             \
            const type share = *narrow / (type)divisor;                                                                \
            SBP_WINDOW_EACH(wide[row + k] += share)                                                                    \
        })                                                                                                             \
    }

SBP_WINDOWS(f32, float)
SBP_WINDOWS(f64, double)

const sbp_window_table SBP(window) = {{SBP(window_mean_f32), SBP(window_spread_f32)},
                                      {SBP(window_mean_f64), SBP(window_spread_f64)}};
