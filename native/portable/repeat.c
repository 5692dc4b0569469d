/* Images whose pixels are repeated. Each value is copied as it is, so one set of instructions is enough. */
#include <stdint.h>
#include <string.h>

#include "portable.h"
#include "threads.h"

#define REPEAT_ROW(name, T)                                                                                           \
    static void name(const T *restrict x, T *restrict out, int64_t width, int64_t across) {                           \
        if (across == 2)                                                                                              \
            for (int64_t i = 0; i < width; i++)                                                                       \
                out[2 * i] = out[2 * i + 1] = x[i];                                                                   \
        else                                                                                                          \
            for (int64_t i = 0; i < width; i++)                                                                       \
                for (int64_t k = 0; k < across; k++)                                                                  \
                    out[i * across + k] = x[i];                                                                       \
    }

REPEAT_ROW(repeat_row_32, uint32_t)
REPEAT_ROW(repeat_row_64, uint64_t)

static void share_rows(void *context, int64_t from, int64_t to) {
    const sbp_repeat_parameters *p = context;
    const int64_t size = p->is_f64 ? 8 : 4, line = p->width * p->across * size;
    char *out = (char *)p->out + from * p->down * line;
    for (; from < to; from++) {
        const char *row = out, *x = (const char *)p->x + from * p->width * size;
        if (p->is_f64)
            repeat_row_64((const uint64_t *)x, (uint64_t *)out, p->width, p->across);
        else
            repeat_row_32((const uint32_t *)x, (uint32_t *)out, p->width, p->across);
        for (int64_t k = 1; k < p->down; k++)
            memcpy(out += line, row, (size_t)line);
        out += line;
    }
}

int64_t samebits_portable_repeat(const sbp_repeat_parameters *p) {
    sbp_share_out(p->rows, 1 + 16384 / (1 + p->width * p->across * p->down), share_rows, (void *)p);
    return 0;
}
