"""The kernels by family: functions of tensors, that call C, or the reference where there is no C."""
