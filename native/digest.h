/* The digest of tensors in CPU memory. Plain C ABI, called through ctypes; docs/reference/digest.md is the definition.
 *
 * A descriptor is a run of 64-bit words: address, header, sizes, and, if SB_STRIDED, strides in elements.
 * Descriptors follow each other without gaps. Little-endian machines only.
 */
#ifndef SAMEBITS_DIGEST_H
#define SAMEBITS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SB_API __declspec(dllexport)
#else
#define SB_API __attribute__((visibility("default")))
#endif

/* Changes with any change to this file, so that a stale library is never used. */
#define SB_DIGEST_ABI 4

/* Header: bits 0-7 dtype code, 8-11 log2 of the bytes of an element, 12 strided, 20-27 number of dimensions.
 * Others are ignored. */
#define SB_CODE(header) ((header)&0xFF)
#define SB_SHIFT(header) ((unsigned)((header) >> 8 & 0xF))
#define SB_STRIDED(header) ((header) >> 12 & 1)
#define SB_N_DIMS(header) ((unsigned)((header) >> 20 & 0xFF))

SB_API int samebits_digest_abi(void);

/* Uses one instruction set from now on: "avx512", "avx2", "neon", "scalar", or "" for the best. 0 if it cannot. */
SB_API int samebits_digest_select(const char *isa);

SB_API const char *samebits_digest_isa(void);

/* More than this in one call is left to samebits_digest_threaded: until then a caller may hold a lock (the GIL). */
#define SB_SHORT_BYTES (1 << 19)

/* The result, with nothing done, when `n_words` words are not the descriptors of `count` tensors. */
#define SB_MALFORMED INT64_MIN

/* Digests `count` tensors on the calling thread: 16 bytes each, written over the start of the descriptors.
 * Returns 0; or 1, nothing done, when they have more than SB_SHORT_BYTES together; or -1 - i, nothing done,
 * when tensor i has contents but no address; or SB_MALFORMED. */
SB_API int64_t samebits_digest(uint64_t *descriptors, size_t n_words, size_t count);

/* The same with the digests in `out`, which is separate memory. */
SB_API int64_t samebits_digest_to(const uint64_t *descriptors, size_t n_words, size_t count, uint64_t *out);

/* Threads to share, those of a running OpenMP library: its GOMP_parallel (libgomp's documented entry for compiled
 * code: runs a function on a team of threads), NULL for threads of our own. Forked children do not use it. */
typedef void (*sb_parallel)(void (*function)(void *), void *argument, unsigned threads, unsigned flags);
SB_API void samebits_digest_share_threads(sb_parallel parallel);

/* The same without a limit, on up to `threads` threads: shared ones, or some that live for this call only. */
SB_API int64_t samebits_digest_threaded(const uint64_t *descriptors, size_t n_words, size_t count, uint64_t *out,
                                        int threads);

/* What is known of some tensors: their sums, SB_SUM_WORDS words each, which close to the digest of any shape and dtype of
 * the same bytes. Those of tensors that are not `known` are filled in. Threads as above; 0 keeps to the limit. */
#define SB_SUM_WORDS 16
typedef struct {
    uint64_t *sums;
    const unsigned char *known;
    int threads;
} sb_rest;

/* Reads only tensors whose sums are not known. */
SB_API int64_t samebits_digest_rest(const uint64_t *descriptors, size_t n_words, size_t count, uint64_t *out,
                                    const sb_rest *rest);

#endif
