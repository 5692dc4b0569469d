#include "activation.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_activation_table, activation)

#define PIECE 1024 /* values at a time where an input is one value: that many copies of it are an input */

/* words: function, is_f64, n, out, then for each input its address and whether it is one value for all outputs.
 * scalars: the parameters. Inputs that a function does not use are any of those that it does. The output may be
 * exactly one of the inputs. */
typedef struct {
    const int64_t *words;
    double parameters[SBP_ACTIVATION_PARAMETERS];
    float parameters_f32[SBP_ACTIVATION_PARAMETERS];
} activation_job;

#define DEFINE_SHARE(name, type, table, params)                                                                       \
    static void name(void *context, int64_t from, int64_t to) {                                                      \
        const activation_job *job = context;                                                                          \
        const int64_t *w = job->words;                                                                                \
        type pieces[SBP_ACTIVATION_INPUTS][PIECE];                                                                    \
        const int64_t most = w[5] | w[7] | w[9] ? PIECE : to - from, filled = to - from < PIECE ? to - from : PIECE;  \
        for (int i = 0; i < SBP_ACTIVATION_INPUTS; i++)                                                               \
            if (w[5 + 2 * i])                                                                                         \
                for (int64_t k = 0; k < filled; k++)                                                                  \
                    pieces[i][k] = *(const type *)w[4 + 2 * i];                                                       \
        for (; from < to; from += most) {                                                                             \
            const type *in[SBP_ACTIVATION_INPUTS];                                                                    \
            for (int i = 0; i < SBP_ACTIVATION_INPUTS; i++)                                                           \
                in[i] = w[5 + 2 * i] ? pieces[i] : (const type *)w[4 + 2 * i] + from;                                 \
            activation_now()->table[w[0]](in[0], in[1], in[2], job->params, (type *)w[3] + from,                      \
                                          to - from < most ? to - from : most);                                       \
        }                                                                                                             \
    }
DEFINE_SHARE(share_f32, float, f32, parameters_f32)
DEFINE_SHARE(share_f64, double, f64, parameters)

SBP_API int64_t samebits_portable_activation(const int64_t *words, const double *scalars) {
    activation_job job = {words, {0}, {0}};
    for (int i = 0; i < SBP_ACTIVATION_PARAMETERS; i++)
        job.parameters_f32[i] = (float)(job.parameters[i] = scalars[i]);
    sbp_share_out(words[2], 8192, words[1] ? share_f64 : share_f32, &job);
    return 0;
}
