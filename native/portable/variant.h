/* All kernels, for the instruction set that the including file has chosen. SBP(name) gives each name its suffix. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "accumulate_kernel.h"
#include "activation_kernel.h"
#include "attention_kernel.h"
#include "batch_norm_kernel.h"
#include "conv_kernel.h"
#include "elementwise_kernel.h"
#include "fft_kernel.h"
#include "gemm_kernel.h"
#include "jacobi_kernel.h"
#include "linalg_kernel.h"
#include "lstm_kernel.h"
#include "norm_kernel.h"
#include "optimizer_kernel.h"
#include "pairs_kernel.h"
#include "random_kernel.h"
#include "root_kernel.h"
#include "softmax_kernel.h"
#include "window_kernel.h"
