#include "scratch.h"

#include <stdlib.h>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>

typedef struct {
    void *memory[SBP_SCRATCHES];
    size_t bytes[SBP_SCRATCHES];
    int known; /* to the key, whose destructor frees it */
} kept;

static __thread kept mine;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void let_go(void *of) {
    kept *k = of;
    for (int i = 0; i < SBP_SCRATCHES; i++) {
        free(k->memory[i]);
        k->memory[i] = NULL;
        k->bytes[i] = 0;
    }
    k->known = 0;
}

static void make_key(void) { pthread_key_create(&key, let_go); }

void *sbp_scratch(int which, size_t bytes) {
    kept *k = &mine;
    if (k->bytes[which] >= bytes && k->memory[which])
        return k->memory[which];
    if (!k->known) {
        pthread_once(&once, make_key);
        k->known = !pthread_setspecific(key, k);
    }
    const size_t rounded = (bytes + 4095) & ~(size_t)4095;
    void *fresh = NULL;
    if (posix_memalign(&fresh, 4096, rounded ? rounded : 4096))
        return NULL;
    free(k->memory[which]);
    k->memory[which] = fresh;
    k->bytes[which] = rounded;
    return fresh;
}

#define MOST_KEPT ((size_t)1 << 24)

void *sbp_borrow(int which, size_t bytes) {
    void *fresh = NULL;
    if (bytes <= MOST_KEPT)
        return sbp_scratch(which, bytes);
    return posix_memalign(&fresh, 4096, bytes) ? NULL : fresh;
}

void sbp_give_back(void *borrowed, size_t bytes) {
    if (bytes > MOST_KEPT)
        free(borrowed);
}

#endif
