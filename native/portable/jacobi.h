/* Jacobi rotations of rows. See "Eigenvalues and singular values" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_JACOBI_H
#define SAMEBITS_PORTABLE_JACOBI_H

#include <stdint.h>

/* Pairs whose angles are computed side by side: one waits for divisions and roots, several overlap. */
enum { SBP_JACOBI_PAIRS = 16 };

/* One matrix while it is rotated. Rows that change places do so by their addresses. `width` and `length` are whole
 * multiples of the 16 lanes of a reduction; what fills rows up is zeros, which stay zeros. */
typedef struct {
    double **rows;
    int64_t width, length; /* of W; of the whole row */
    int64_t partner;       /* where products find their second factor: 0 for W itself, else where J begins */
    double limit;          /* of |g|, with a partner */
    double tolerance;      /* of the cosine, without */
} sbp_jacobi;

typedef struct {
    /* Rotates `count` (at most SBP_JACOBI_PAIRS) pairs, the first one of rows `first` and `first` + 1, and has the two
     * of each change places. Returns whether one needed it. */
    int (*pairs)(const sbp_jacobi *j, int64_t first, int64_t count);
} sbp_jacobi_table;

#endif
