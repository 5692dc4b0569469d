#include "lstm.h"
#include "math_functions.h"

/* Where a number is written over another one, each depends on its own place only. */
#if defined(__clang__)
#define LSTM_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define LSTM_APART _Pragma("GCC ivdep")
#endif
#define LSTM_EACH(count) LSTM_APART for (int64_t u = 0; u < (count); u++)

#define T float
#define LSTM(name) SBP(lstm_##name##_f32)
#define M(name) sbm_##name##_f32
#include "lstm_typed.h"
#undef T
#undef LSTM
#undef M
#define T double
#define LSTM(name) SBP(lstm_##name##_f64)
#define M(name) sbm_##name##_f64
#include "lstm_typed.h"
#undef T
#undef LSTM
#undef M

const sbp_lstm_table SBP(lstm) = {
    {SBP(lstm_forward_f32), SBP(lstm_backward_f32), SBP(lstm_add_f32)},
    {SBP(lstm_forward_f64), SBP(lstm_backward_f64), SBP(lstm_add_f64)},
};
