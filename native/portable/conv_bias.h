/* The gradient of a bias: a sum as "Reductions" has it, over (sample, position). */

#define CHUNK 256

static T CONV(chunk_sum)(const T *x) {
    T lane[16] = {0};
    for (int i = 0; i < CHUNK; i += 16)
        for (int l = 0; l < 16; l++)
            lane[l] += x[i + l];
    for (int h = 8; h; h /= 2)
        for (int l = 0; l < h; l++)
            lane[l] += lane[l + h];
    return lane[0];
}

/* Part: one channel. */
static void CONV(bias)(void *job, int64_t from, int64_t to) {
    sbp_conv_bias *c = job;
    const int64_t all = c->samples * c->positions, chunks = (all + CHUNK - 1) / CHUNK;
    T *sums = malloc((size_t)(chunks + 1) * sizeof(T)), filled[CHUNK];
    if (!sums) {
        c->failed = 1;
        return;
    }
    for (int64_t channel = from; channel < to; channel++) {
        for (int64_t chunk = 0; chunk < chunks; chunk++) {
            const int64_t start = chunk * CHUNK, end = start + CHUNK < all ? start + CHUNK : all;
            memset(filled, 0, sizeof filled); /* a lane is never -0, so more +0 change nothing */
            for (int64_t i = start, run; i < end; i += run) {
                const int64_t sample = i / c->positions, position = i % c->positions;
                const T *source = (const T *)c->gradient + (sample * c->channels + channel) * c->positions + position;
                run = c->positions - position < end - i ? c->positions - position : end - i;
                memcpy(filled + (i - start), source, (size_t)run * sizeof(T));
            }
            sums[chunk] = CONV(chunk_sum)(filled);
        }
        for (int64_t n = chunks; n > 1; n = (n + 1) / 2) {
            for (int64_t i = 0; i < n / 2; i++)
                sums[i] = sums[2 * i] + sums[2 * i + 1];
            if (n % 2)
                sums[n / 2] = sums[n - 1];
        }
        ((T *)c->out)[channel] = chunks ? sums[0] : 0;
    }
    free(sums);
}
#undef CHUNK
