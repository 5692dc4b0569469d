/* Convolutions. See "Contractions" and "Convolutions" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_CONV_H
#define SAMEBITS_PORTABLE_CONV_H

#include <stddef.h>
#include <stdint.h>

#define SBP_CONV_K_BLOCK 128
#define SBP_CONV_TAPS 9 /* of a depthwise weight, whose gradient is computed together */
#define SBP_CONV_PANELS 4 /* of two vectors each: the pixels that are computed together */

/* The outputs whose index in each dimension is start + step * j: they all have the same taps, at places of the image
 * that move by one when j does. A convolution has one such class; its transpose has one for each phase of the stride. */
typedef struct {
    int64_t count[3], start[3], step[3];
    int64_t terms;            /* of the contraction: (channel, tap) */
    int64_t *places;          /* [terms]: position in the padded image, from the pixel's own */
    int64_t *weights;         /* [terms]: position in the group's weight, from the output channel's own */
    int64_t blocks, *borders; /* [blocks + 1]: terms that make one chain */
    char *packed;             /* [groups][block][panel of output channels][term][channel] */
} sbp_conv_class;

typedef struct {
    const char *image, *weight, *bias;
    char *out;
    int64_t samples, groups;
    int64_t depth, rows;          /* channels in a group: of the image, of the output */
    int64_t size[3], out_size[3]; /* of the image, of the output */
    int64_t stride[3], before[3]; /* of the image: per step of j; zeros before it (less than none: that much is cut) */
    int64_t padded[3], phase;     /* of the padded image: sizes, and pixels in a row that a stride takes together */
    char *pixels;                 /* the padded image */
    size_t pixels_bytes;
    int64_t channel_step;         /* from a channel of the padded image to the next */
    int64_t weight_row, weight_group;
    int64_t is_weight_in_order; /* the terms of an output channel are next to each other in the weight */
    int64_t panels; /* of output channels */
    int64_t blocks; /* of pixels, of the largest class */
    int64_t run;    /* samples that a thread pads for itself; 0: all are padded before */
    int64_t is_direct; /* vectors of pixels never cross rows: they are read where they are */
    int64_t classes;
    sbp_conv_class *class_;
    int64_t failed;
} sbp_conv;

/* The gradient of a weight: rows are output channels, columns are (tap, channel) in vectors of channels. A depthwise one
 * has groups of one channel of the image; they are taken for the channels of a single group, each with its own rows. */
typedef struct {
    const char *image, *gradient;
    char *out;
    int64_t samples, groups, depth, rows, taps, terms;
    int64_t size[3], out_size[3], kernel[3], stride[3], dilation[3], before[3], padded[3];
    int64_t channel_vectors, vectors, panels; /* in a group */
    int64_t is_depthwise;
    int64_t is_gathered; /* few channels: the columns are (channel, tap), put together block by block */
    int64_t plane;       /* pixels in a padded image */
    char *pixels;        /* [sample][group][vector of channels][pixel][lane]; gathered: [sample][channel][pixel] */
    char *packed;        /* [group][block][panel][term][row]; depthwise: [row][vector of channels][term][lane] */
    size_t pixels_bytes, packed_bytes;
    int64_t *places; /* [terms] */
    int64_t failed;
} sbp_conv_weight;

typedef void (*sbp_conv_step)(void *job, int64_t from, int64_t to);

typedef struct {
    int64_t lanes, most_rows;
    sbp_conv_step pad, pack, compute, compute_samples;     /* of sbp_conv */
    sbp_conv_step weight_pad, weight_pack, weight_compute; /* of sbp_conv_weight */
    sbp_conv_step depthwise_pack, depthwise_compute;
} sbp_conv_steps;

typedef struct {
    sbp_conv_steps f32, f64;
} sbp_conv_table;

#endif
