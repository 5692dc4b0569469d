#include "windows.h"

int sb_make_axes(sb_axis *axes) {
    const int64_t all = axes[0].outputs + axes[1].outputs;
    int64_t *memory = PyMem_Malloc((size_t)(3 * all) * sizeof *memory);
    if (!memory)
        return 0;
    for (int d = 0; d < 2; memory += 3 * axes[d++].outputs) {
        axes[d].first = memory;
        axes[d].end = memory + axes[d].outputs;
        axes[d].count = memory + 2 * axes[d].outputs;
    }
    return 1;
}

void sb_free_axes(sb_axis *axes) { PyMem_Free(axes[0].first); }

int sb_read_planes(PyObject *object, sb_view *view) {
    int64_t expected = 1;
    if (!sb_read(object, view) || !view->numel || view->dims < 3)
        return 0;
    for (int64_t i = view->dims - 1; i > view->dims - 4 && i >= 0; i--) {
        if (view->sizes[i] != 1 && view->strides[i] != expected)
            return 0;
        expected *= view->sizes[i];
    }
    return view->is_contiguous || (view->dims == 4 && view->strides[0] >= expected);
}

int sb_call_window(const sb_axis *axes, const sb_view *one, int64_t divisor, void *wide, void *narrow) {
    static const int64_t none = 0, single = 1;
    const int64_t plane = one->sizes[one->dims - 2] * one->sizes[one->dims - 1], channels = one->sizes[one->dims - 3];
    const int64_t of_channels = channels * axes[0].size * axes[1].size;
    const sbp_window_parameters p = {.is_f64 = one->is_f64,
                                     .is_backward = one->data == narrow,
                                     .wide = wide,
                                     .narrow = narrow,
                                     .planes = one->numel / plane,
                                     .channels = channels,
                                     .sample_step = one->data == wide && one->dims == 4 ? one->strides[0] : of_channels,
                                     .divisor = divisor,
                                     .size = {1, axes[0].size, axes[1].size},
                                     .outputs = {1, axes[0].outputs, axes[1].outputs},
                                     .first = {&none, axes[0].first, axes[1].first},
                                     .end = {&single, axes[0].end, axes[1].end},
                                     .counts = {&single, axes[0].count, axes[1].count}};
    return SB_CALL(window, &p, p.planes * (axes[0].size * axes[1].size + axes[0].outputs * axes[1].outputs));
}
