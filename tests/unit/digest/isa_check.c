/* Compares every instruction set of this machine with the scalar version, over lengths, offsets and strides, and
 * prints a digest of all digests, which has to be the same on every machine. Built by test_c_library.py, also with
 * sanitizers (buffers are exactly as large as they may be read) and for other processors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"

#define MAX_TENSORS 4000
static uint64_t expected[2 * MAX_TENSORS], found[2 * MAX_TENSORS];
static uint64_t state = 1;

static uint64_t next_random(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 24;
}

static unsigned char *random_buffer(size_t n) {
    unsigned char *p = malloc(n ? n : 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)next_random();
    return p;
}

static void digest_one(const uint64_t *words, size_t n_words, uint64_t *out, int threads) {
    const int64_t status = samebits_digest_to(words, n_words, 1, out);
    if (status == 1)
        samebits_digest_threaded(words, n_words, 1, out, threads);
    else if (status != 0)
        abort();
}

/* Digests a fixed series of tensors; returns how many. */
static size_t run(uint64_t *out, int threads) {
    size_t count = 0;
    state = 1;
    for (size_t length = 0; length < 2600; length += 1 + length / 40) {
        unsigned char *p = random_buffer(length + 3);
        for (size_t offset = 0; offset < 4; offset += 3) { /* dense, aligned and not */
            const uint64_t words[3] = {(uintptr_t)(p + offset), 2 | 0 << 8 | 1 << 20, length};
            digest_one(words, sizeof words / 8, out + 2 * count++, threads);
        }
        free(p);
    }
    for (unsigned shift = 0; shift < 5; shift++) /* transposed matrices, and every other column of them */
        for (int i = 0; i < 120; i++) {
            const uint64_t rows = 1 + next_random() % 90, cols = 1 + next_random() % 90, step = 1 + i % 2;
            unsigned char *p = random_buffer((size_t)(rows * cols) << shift);
            const uint64_t words[6] = {(uintptr_t)p, 2 | shift << 8 | 1 << 12 | 2 << 20, cols, (rows + step - 1) / step,
                                       1, cols * step};
            digest_one(words, sizeof words / 8, out + 2 * count++, threads);
            free(p);
        }
    for (int i = 0; i < 60; i++) { /* three dimensions in any order, stride 0 among them */
        const uint64_t a = 1 + next_random() % 12, b = 1 + next_random() % 12, c = 1 + next_random() % 40;
        unsigned char *p = random_buffer((size_t)(a * b * c) * 4);
        const uint64_t words[10] = {(uintptr_t)p, 12 | 2 << 8 | 1 << 12 | 4 << 20, b, 3, c, a, c, 0, 1, b * c};
        digest_one(words, sizeof words / 8, out + 2 * count++, threads);
        free(p);
    }
    const uint64_t sizes[3] = {3000001, 5 << 20, 1 << 21}; /* threads share these */
    for (int i = 0; i < 3; i++) {
        unsigned char *p = random_buffer(sizes[i]);
        const uint64_t words[3] = {(uintptr_t)p, 2 | 1 << 20, sizes[i]};
        digest_one(words, sizeof words / 8, out + 2 * count++, threads);
        free(p);
    }
    const uint64_t null[3] = {0, 2 | 1 << 20, 5};
    if (samebits_digest_to(null, 3, 1, out + 2 * count) != -1 || count > MAX_TENSORS)
        abort();
    uint64_t *few = malloc(4 * sizeof *few); /* two sizes and two strides are wanted: only two of them are there */
    memcpy(few, (uint64_t[4]){(uintptr_t)few, 2 | 1 << 12 | 2 << 20, 1, 1}, 4 * sizeof *few);
    for (size_t n_words = 0; n_words <= 4; n_words++)
        if (samebits_digest_to(few, n_words, 1, out + 2 * count) != SB_MALFORMED ||
            samebits_digest_threaded(few, n_words, 1, out + 2 * count, threads) != SB_MALFORMED)
            abort();
    free(few);
    if (samebits_digest_to(null, 3, 0, out + 2 * count) != SB_MALFORMED)
        abort();
    return count;
}

int main(void) {
    static const char *const names[] = {"scalar", "neon", "avx2", "avx512"};
    size_t count = 0;
    for (int i = 0; i < 4; i++) {
        if (!samebits_digest_select(names[i]))
            continue;
        if (i == 0)
            count = run(expected, 1);
        run(found, 1 + i);
        if (memcmp(expected, found, 16 * count)) {
            printf("%s differs from scalar\n", names[i]);
            return 1;
        }
        printf("%s ", samebits_digest_isa());
    }
    const uint64_t words[3] = {(uintptr_t)expected, 2 | 1 << 20, 16 * count};
    digest_one(words, 3, found, 1);
    printf("%zu %016llx%016llx\n", count, (unsigned long long)found[0], (unsigned long long)found[1]);
    return 0;
}
