#include "digest.h"

#include <stdlib.h>
#include <string.h>

#include "digest_blocks.h"
#include "digest_gather.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read from memory as they are: use the torch back end on a big-endian machine"
#endif

#if defined(__unix__) || defined(__APPLE__)
#define SB_THREADS 1
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#endif

/* Blocks gathered at once from a strided tensor: several rows of a matrix, yet within the second-level cache. */
#define SB_PANEL 64
/* Below this many blocks, starting a thread costs more than it saves. */
#define SB_THREAD_BLOCKS 2048
/* The same for threads that run already and wait for work. */
#define SB_SHARED_THREAD_BLOCKS 256
#define SB_MAX_THREADS 64

int samebits_digest_abi(void) { return SB_DIGEST_ABI; }

static const sb_isa *active_isa; /* set once before use, and by tests: one pointer, so any thread sees a whole value */

static const sb_isa *isa(void) {
    const sb_isa *active = active_isa;
    return active ? active : (active_isa = sb_find_isa(""));
}

int samebits_digest_select(const char *name) {
    const sb_isa *isa_named = sb_find_isa(name);
    if (isa_named)
        active_isa = isa_named;
    return isa_named != NULL;
}

const char *samebits_digest_isa(void) { return isa()->name; }

/* ---- one tensor */

typedef struct {
    const unsigned char *data;
    uint64_t header, n_bytes;
    const uint64_t *sizes, *next;
} descriptor;

static descriptor parse(const uint64_t *words) {
    descriptor d = {(const unsigned char *)(uintptr_t)words[0], words[1], 0, words + 2, NULL};
    const unsigned n = SB_N_DIMS(d.header);
    d.n_bytes = (uint64_t)1 << SB_SHIFT(d.header);
    for (unsigned i = 0; i < n; i++)
        d.n_bytes *= d.sizes[i];
    d.next = d.sizes + (SB_STRIDED(d.header) ? 2 * n : n);
    return d;
}

static uint64_t n_blocks(uint64_t n_bytes) { return (n_bytes + SB_BLOCK - 1) / SB_BLOCK; }

static void dense_range(const unsigned char *data, uint64_t n_bytes, uint64_t from, uint64_t to, sb_sums *sums) {
    const uint64_t whole = n_bytes / SB_BLOCK;
    const uint64_t end = to < whole ? to : whole;
    if (from < end)
        isa()->blocks(data + SB_BLOCK * from, (size_t)(end - from), from, sums);
    if (to > whole) {
        unsigned char last[SB_BLOCK];
        const size_t rest = (size_t)(n_bytes % SB_BLOCK);
        memcpy(last, data + SB_BLOCK * whole, rest);
        memset(last + rest, 0, SB_BLOCK - rest);
        isa()->blocks(last, 1, whole, sums);
    }
}

static void strided_range(const sb_view *view, uint64_t n_bytes, uint64_t from, uint64_t to, sb_sums *sums) {
    unsigned char panel[SB_PANEL * SB_BLOCK];
    for (uint64_t block = from; block < to; block += SB_PANEL) {
        const uint64_t end = to - block < SB_PANEL ? to : block + SB_PANEL;
        const uint64_t begin_byte = block * SB_BLOCK;
        const uint64_t end_byte = end * SB_BLOCK < n_bytes ? end * SB_BLOCK : n_bytes;
        const size_t length = (size_t)(end_byte - begin_byte);
        sb_gather(view, (int64_t)(begin_byte >> view->shift), (int64_t)(length >> view->shift), panel);
        memset(panel + length, 0, (size_t)((end - block) * SB_BLOCK) - length);
        isa()->blocks(panel, (size_t)(end - block), block, sums);
    }
}

/* Adds blocks from .. to - 1 of a tensor to `sums`. */
static void digest_range(const descriptor *d, uint64_t from, uint64_t to, sb_sums *sums) {
    if (from >= to)
        return;
    if (SB_STRIDED(d->header)) {
        sb_view view;
        const unsigned n = SB_N_DIMS(d->header);
        sb_view_init(&view, d->data, SB_SHIFT(d->header), n, d->sizes, d->sizes + n);
        if (!sb_view_is_dense(&view)) {
            strided_range(&view, d->n_bytes, from, to, sums);
            return;
        }
    }
    dense_range(d->data, d->n_bytes, from, to, sums);
}

static void close_to(const descriptor *d, const sb_sums *sums, uint64_t *out) {
    const sb_fold f = sb_close(sums, d->n_bytes, SB_CODE(d->header), SB_N_DIMS(d->header), d->sizes);
    out[0] = f.h0;
    out[1] = f.h1;
}

/* ---- many tensors. One that has the memory of the one before it, as the output of a `view` has that of its input,
 * has its sums too: only what closes the digest differs. The caller may know the sums of others. */

/* Tensors by their descriptors. `sums` has those of each, and `known` tells which of them are there before; both may be
 * NULL. */
typedef struct {
    const uint64_t *words;
    size_t count;
    sb_sums *sums;
    const unsigned char *known;
} batch;

static int is_dense(const descriptor *d) {
    sb_view view;
    const unsigned n = SB_N_DIMS(d->header);
    if (!SB_STRIDED(d->header))
        return 1;
    sb_view_init(&view, d->data, SB_SHIFT(d->header), n, d->sizes, d->sizes + n);
    return sb_view_is_dense(&view);
}

typedef struct {
    const uint64_t *words; /* the next descriptor */
    const unsigned char *data;
    uint64_t n_bytes;
    const unsigned char *known; /* of the next, or NULL */
    int dense, repeats, settled;
} walk;

static walk walk_of(const batch *b) { return (walk){b->words, NULL, 0, b->known, 0, 0, 0}; }

/* The next descriptor; `repeats` tells whether its sums are those of the one before, `settled` whether there is nothing
 * to read: they are, or they are known. */
static descriptor step(walk *w) {
    const descriptor d = parse(w->words);
    const int dense = is_dense(&d), known = w->known && *w->known;
    const int repeats = !known && dense && w->dense && d.data == w->data && d.n_bytes == w->n_bytes;
    *w = (walk){d.next, d.data, d.n_bytes, w->known ? w->known + 1 : NULL, dense, repeats, known || repeats};
    return d;
}

/* The words of the descriptor at `words`; more than `left` if those do not hold one. */
static uint64_t length_of(const uint64_t *words, size_t left) {
    return left < 2 ? 2 : 2 + (uint64_t)SB_N_DIMS(words[1]) * (SB_STRIDED(words[1]) ? 2 : 1);
}

/* The sum of their bytes to `total`; 0, or -1 - i for the first tensor that cannot be read, or SB_MALFORMED. */
static int64_t measure(const uint64_t *words, size_t n_words, size_t count, uint64_t *total) {
    const uint64_t *const end = words + n_words;
    int64_t problem = 0;
    *total = 0;
    for (size_t i = 0; i < count; i++) {
        if (length_of(words, (size_t)(end - words)) > (uint64_t)(end - words))
            return SB_MALFORMED;
        const descriptor d = parse(words);
        if (d.n_bytes > 0 && d.data == NULL && !problem)
            problem = -1 - (int64_t)i;
        *total += d.n_bytes;
        words = d.next;
    }
    return words == end ? problem : SB_MALFORMED;
}

/* `out` may be the descriptors: one has two words or more, so that those ahead stay whole. */
static void digest_each(const batch *b, uint64_t *out) {
    walk w = walk_of(b);
    sb_sums sums = {{0}, {0}};
    for (size_t i = 0; i < b->count; i++) {
        const descriptor d = step(&w);
        if (w.settled && !w.repeats)
            sums = b->sums[i];
        else if (!w.repeats) {
            sums = (sb_sums){{0}, {0}};
            digest_range(&d, 0, n_blocks(d.n_bytes), &sums);
        }
        if (b->sums)
            b->sums[i] = sums;
        close_to(&d, &sums, out + 2 * i);
    }
}

static uint64_t count_blocks(const batch *b) {
    uint64_t blocks = 0;
    walk w = walk_of(b);
    for (size_t i = 0; i < b->count; i++) {
        const descriptor d = step(&w);
        blocks += w.settled ? 0 : n_blocks(d.n_bytes);
    }
    return blocks;
}

int64_t samebits_digest_to(const uint64_t *words, size_t n_words, size_t count, uint64_t *out) {
    uint64_t total;
    const int64_t problem = measure(words, n_words, count, &total);
    if (problem)
        return problem;
    if (total > SB_SHORT_BYTES)
        return 1;
    digest_each(&(batch){words, count, NULL, NULL}, out);
    return 0;
}

int64_t samebits_digest(uint64_t *words, size_t n_words, size_t count) {
    return samebits_digest_to(words, n_words, count, words);
}

#ifdef SB_THREADS

/* A share: blocks from .. to - 1 of all tensors laid end to end, those that are settled left out. */
typedef struct {
    const batch *all;
    uint64_t from, to;
} share;

static void add_sums(sb_sums *to, const sb_sums *part) {
    for (int l = 0; l < SB_SUMS; l++) {
        __atomic_fetch_add(&to->chain[l], part->chain[l], __ATOMIC_RELAXED);
        __atomic_fetch_add(&to->trail[l], part->trail[l], __ATOMIC_RELAXED);
    }
}

static void *digest_share(void *argument) {
    const share *s = argument;
    walk w = walk_of(s->all);
    uint64_t start = 0;
    for (size_t i = 0; i < s->all->count && start < s->to; i++) {
        const descriptor d = step(&w);
        const uint64_t blocks = w.settled ? 0 : n_blocks(d.n_bytes);
        if (start + blocks > s->from) {
            sb_sums part = {{0}, {0}};
            digest_range(&d, s->from > start ? s->from - start : 0, s->to - start < blocks ? s->to - start : blocks,
                         &part);
            add_sums(&s->all->sums[i], &part);
        }
        start += blocks;
    }
    return NULL;
}

static sb_parallel shared_threads;
static pid_t shared_in; /* a forked child has the library's state without its threads */

void samebits_digest_share_threads(sb_parallel parallel) {
    shared_threads = parallel;
    shared_in = getpid();
}

typedef struct {
    share *shares;
    int n, next;
} team;

/* Runs on every thread of a team, whose size may be less than asked for. */
static void digest_team(void *argument) {
    team *t = argument;
    for (int i; (i = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED)) < t->n;)
        digest_share(&t->shares[i]);
}

static void run_shares(share *shares, int n, int threads) {
    if (shared_threads && shared_in == getpid()) {
        team t = {shares, n, 0};
        /* As many as the other user of the library asks for: another number would make it end and start threads. */
        shared_threads(digest_team, &t, (unsigned)threads, 0);
        return;
    }
    pthread_t own[SB_MAX_THREADS];
    int started[SB_MAX_THREADS] = {0};
    sigset_t all, before; /* the program's signals stay with the program's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < n; i++)
        started[i] = pthread_create(&own[i], NULL, digest_share, &shares[i]) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    digest_share(&shares[0]);
    for (int i = 1; i < n; i++) {
        if (started[i])
            pthread_join(own[i], NULL);
        else
            digest_share(&shares[i]);
    }
}

/* Divides the blocks over threads; 0 if there are too few of them. */
static int digest_shared(const batch *b, uint64_t *out, int threads) {
    const uint64_t blocks = count_blocks(b);
    uint64_t n = blocks / (shared_threads ? SB_SHARED_THREAD_BLOCKS : SB_THREAD_BLOCKS);
    if (threads < 2 || n < 2)
        return 0;
    n = n < (uint64_t)threads ? n : (uint64_t)threads;
    n = n < SB_MAX_THREADS ? n : SB_MAX_THREADS;
    batch all = *b;
    if (!b->sums && !(all.sums = calloc(b->count, sizeof *all.sums)))
        return 0;
    for (size_t i = 0; b->sums && i < b->count; i++)
        if (!b->known[i])
            all.sums[i] = (sb_sums){{0}, {0}};
    share shares[SB_MAX_THREADS];
    for (uint64_t i = 0; i < n; i++)
        shares[i] = (share){&all, blocks / n * i, i == n - 1 ? blocks : blocks / n * (i + 1)};
    run_shares(shares, (int)n, threads);
    walk w = walk_of(&all);
    for (size_t i = 0; i < all.count; i++) {
        const descriptor d = step(&w);
        if (w.repeats)
            all.sums[i] = all.sums[i - 1];
        close_to(&d, &all.sums[i], out + 2 * i);
    }
    if (!b->sums)
        free(all.sums);
    return 1;
}

#else

void samebits_digest_share_threads(sb_parallel parallel) { (void)parallel; }

static int digest_shared(const batch *b, uint64_t *out, int threads) {
    (void)b, (void)out, (void)threads;
    return 0;
}

#endif

int64_t samebits_digest_threaded(const uint64_t *words, size_t n_words, size_t count, uint64_t *out, int threads) {
    uint64_t total;
    const batch all = {words, count, NULL, NULL};
    const int64_t problem = measure(words, n_words, count, &total);
    if (!problem && !digest_shared(&all, out, threads))
        digest_each(&all, out);
    return problem;
}

int64_t samebits_digest_rest(const uint64_t *words, size_t n_words, size_t count, uint64_t *out, const sb_rest *rest) {
    uint64_t total;
    const batch all = {words, count, (sb_sums *)rest->sums, rest->known};
    const int64_t problem = measure(words, n_words, count, &total);
    if (problem)
        return problem;
    if (!rest->threads && total > SB_SHORT_BYTES && count_blocks(&all) * SB_BLOCK > SB_SHORT_BYTES)
        return 1;
    if (!digest_shared(&all, out, rest->threads))
        digest_each(&all, out);
    return 0;
}
