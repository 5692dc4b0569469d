/* What is wrong with a device or its driver, or is to be seen of its use, as the environment of a process says. */
#ifndef FAKE_GPU_FAULTS_H
#define FAKE_GPU_FAULTS_H

namespace fake {

/* The error of a call that uses the device; 0 if there is none. FAKE_GPU_FAULT=700:40 breaks it from the fortieth call
   on: every later call has error 700, as after an error that a context does not survive. */
int fault();
/* Every later call has that error; `broken` is 0 before. */
void break_device(int error);
int broken();

/* The release of CUDA that the driver was made for, such as 13020 (FAKE_GPU_DRIVER). */
int driver_release(int otherwise);

/* The capability times ten: FAKE_GPU_CAPABILITY=120 for 12.0. */
int capability();

/* The first call that makes the driver look for devices: with FAKE_GPU_FIRST=say it says so, with `abort` the process
   ends there, and `python -X faulthandler` shows who called. */
void look_for_devices();

} // namespace fake

#endif
