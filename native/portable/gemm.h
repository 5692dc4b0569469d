/* Matrix products. See "Contractions" in docs/reference/portable-numerics.md.
 *
 * c[i][j] = sum over k of a[k][i] b[k][j], i in 0 .. m-1, j in 0 .. n-1. The lines of operand a are the rows of c,
 * those of operand b its columns. An operand is a matrix with any strides, or a function that writes panels of it:
 * so a convolution packs straight from its image (implicit GEMM).
 *
 * A panel is `width` consecutive lines, for a range of k, in the order in which the kernel reads them:
 *     out[(k - k_from) * width + (line - first line of the panel)]
 * and panels follow each other: panel p of a call begins at out + p * (k_to - k_from) * width.
 */
#ifndef SAMEBITS_PORTABLE_GEMM_H
#define SAMEBITS_PORTABLE_GEMM_H

#include <stdint.h>

#define SBP_K_BLOCK 128

/* Writes the panels of lines from .. to-1, for k_from .. k_to-1, of one matrix of the batch. `from` is a multiple of
 * `width` away from the first line of the caller's share, not of the matrix; only the last panel may have fewer lines
 * than `width`: its other lines do not matter, but should be zeros. `out` has room for 64 elements more than the panels,
 * which may be overwritten. It may be called by several threads at once, and several times for the same panel.
 * k_to - k_from is at most SBP_K_PANEL; k_from is a multiple of it, or of the most blocks of k_block that fit into it. */
typedef void (*sbp_pack)(const void *context, int64_t batch, int64_t k_from, int64_t k_to, int64_t from, int64_t to,
                         int64_t width, void *out);

#define SBP_K_PANEL 512

typedef struct {
    sbp_pack pack;       /* NULL: a matrix with the strides below */
    const void *context; /* of pack */
    const void *data;
    int64_t line, k, batch; /* strides in elements */
    const char *panels;     /* NULL, or all of it as sbp_pack_columns left it */
    int64_t width;          /* of these panels */
} sbp_operand;

/* The scaling of each product, as "Contractions" says: product * alpha + self * beta. For none: alpha 1, self
 * NULL. `self` has strides in elements, 0 where it is broadcast: a bias of the columns has row 0, column 1. */
typedef struct {
    double alpha, beta;
    const void *self;
    int64_t row, column, batch;
} sbp_epilogue;

/* c overlaps no operand. c_column is 1 in the fast case. `k_block`: how many k a chain has, at most SBP_K_BLOCK; 0 stands
 * for that. */
typedef struct {
    int64_t is_f64, batches, m, n, k;
    sbp_operand a, b;
    void *c;
    int64_t c_row, c_column, c_batch; /* strides in elements */
    sbp_epilogue epilogue;
    int64_t k_block;
} sbp_product;

/* The product, on as many threads as are allowed: 0, or SBP_NO_MEMORY with c undefined. */
int sbp_multiply(const sbp_product *p);

/* The same for rows m_from .. m_to-1 and columns n_from .. n_to-1 of one matrix of the batch, on the calling thread
 * (inside a caller's own sharing out). */
int sbp_multiply_part(const sbp_product *p, int64_t batch, int64_t m_from, int64_t m_to, int64_t n_from, int64_t n_to);

/* Packs operand b, a matrix, once for all products that p is used for with another a and c. Returns the memory, which is
 * to be freed after them, or NULL without memory. */
void *sbp_pack_columns(sbp_product *p);

/* What packs matrices: its context is an sbp_operand with strides. */
sbp_pack sbp_pack_of_matrix(int64_t is_f64);

/* Rows of the largest tile: rows are best shared out among threads in multiples of it. */
int64_t sbp_tile_rows(int64_t is_f64);

/* ---- What a variant gives ---- */

/* One block of k, at most SBP_K_BLOCK, for a tile of c: `rows` (1 .. table's rows) x `vectors` * lanes columns, from packed panels; b's rows are b_row elements
 * apart. `first`: c is written, else added to. */
typedef void (*sbp_tile)(int64_t k, const void *a, int64_t a_width, const void *b, int64_t b_row, void *c, int64_t c_row,
                         int first);

#define SBP_MOST_ROWS 8
#define SBP_MOST_VECTORS 3

typedef struct {
    int64_t size, rows, vectors, lanes; /* of an element in bytes; of the largest tile; columns in a vector */
    const sbp_tile (*tiles)[SBP_MOST_VECTORS]; /* [rows - 1][vectors - 1] */
    sbp_pack pack; /* of an sbp_operand with strides: its context is the operand */
    void (*finish)(const sbp_product *p, int64_t batch, int64_t m_from, int64_t m_to, int64_t n_from, int64_t n_to);
    /* out[i * out_step] = sum over k of matrix[i * line + k * step] * vector[k], i in 0 .. count-1; one of line and
     * step is 1. */
    void (*gemv)(int64_t count, int64_t k, const void *matrix, int64_t line, int64_t step, const void *vector, void *out,
                 int64_t out_step);
} sbp_gemm_kernels;

typedef struct {
    const sbp_gemm_kernels *f32, *f64;
} sbp_gemm_table;

#endif
