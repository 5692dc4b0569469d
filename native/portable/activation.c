#include "activation.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_activation_table, activation)

#define PIECE 1024 /* values at a time where an input is one value: that many copies of it are an input */

typedef struct {
    const sbp_activation_parameters *p;
    const double *f64;                    /* what the function takes beside its inputs */
    float f32[SBP_ACTIVATION_PARAMETERS]; /* the same, rounded */
} activation_job;

#define DEFINE_SHARE(name, type, precision)                                                                           \
    static void name(void *context, int64_t from, int64_t to) {                                                      \
        const activation_job *job = context;                                                                          \
        const sbp_activation_parameters *p = job->p;                                                                  \
        type pieces[SBP_ACTIVATION_INPUTS][PIECE];                                                                    \
        const int is_any_single = p->is_single[0] || p->is_single[1] || p->is_single[2];                              \
        const int64_t most = is_any_single ? PIECE : to - from, filled = to - from < PIECE ? to - from : PIECE;       \
        for (int i = 0; i < SBP_ACTIVATION_INPUTS; i++)                                                               \
            if (p->is_single[i])                                                                                      \
                for (int64_t k = 0; k < filled; k++)                                                                  \
                    pieces[i][k] = *(const type *)p->inputs[i];                                                       \
        for (; from < to; from += most) {                                                                             \
            const type *in[SBP_ACTIVATION_INPUTS];                                                                    \
            for (int i = 0; i < SBP_ACTIVATION_INPUTS; i++)                                                           \
                in[i] = p->is_single[i] ? pieces[i] : (const type *)p->inputs[i] + from;                              \
            activation_now()->precision[p->function](in[0], in[1], in[2], job->precision, (type *)p->out + from,      \
                                                     to - from < most ? to - from : most);                            \
        }                                                                                                             \
    }
DEFINE_SHARE(share_f32, float, f32)
DEFINE_SHARE(share_f64, double, f64)

int64_t samebits_portable_activation(const sbp_activation_parameters *p) {
    activation_job job = {p, p->numbers, {0}};
    for (int i = 0; i < SBP_ACTIVATION_PARAMETERS; i++)
        job.f32[i] = (float)p->numbers[i];
    sbp_share_out(p->numel, 8192, p->is_f64 ? share_f64 : share_f32, &job);
    return 0;
}
