#include "fft.h"
#include "simd.h"

/* Of a loop whose outputs are none of its inputs. */
#if defined(__clang__)
#define FFT_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define FFT_APART _Pragma("GCC ivdep")
#endif

#define T float
#define F(name) SBP(fft_##name##_f32)
#define V(name) vf32_##name
#define FMA fmaf
#define LANES SBP_FFT_LANES_F32
#include "fft_stages.h"
#include "fft_places.h"
#undef T
#undef F
#undef V
#undef FMA
#undef LANES

#define T double
#define F(name) SBP(fft_##name##_f64)
#define V(name) vf64_##name
#define FMA fma
#define LANES SBP_FFT_LANES_F64
#include "fft_stages.h"
#include "fft_places.h"
#undef T
#undef F
#undef V
#undef FMA
#undef LANES

const sbp_fft_table SBP(fft) = {{SBP(fft_lanes_f32), SBP(fft_one_f32)}, {SBP(fft_lanes_f64), SBP(fft_one_f64)}};
#undef FFT_APART
