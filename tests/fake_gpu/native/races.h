/* Looks for races in kernels that run on the host: some of what racecheck, synccheck and initcheck of NVIDIA's
 * compute-sanitizer look for on a GPU, and races between thread blocks too. The kernels are compiled so that each access calls races.cpp
 * (`WATCHED` in build.py), and the grid (host_grid.h) tells what its threads do.
 *
 * Two accesses to a byte race if one of them writes, if different threads make them, and if no barrier of their block lies
 * between them. Nothing orders the blocks of a launch; launches are ordered. Shuffles order no memory, as on a GPU.
 */
#ifndef FAKE_GPU_RACES_H
#define FAKE_GPU_RACES_H

#include <cstddef>
#include <initializer_list>

#include "ranges.h"

namespace races {

using fake::Span;

/* `own`: memory that belongs to the grid, or to one thread each; `shared`: dynamic shared memory, with any contents. */
void begin_launch(std::initializer_list<Span> own, Span shared);

void begin_block();
/* From here on this thread of the block runs, until its turn ends: accesses between turns are the grid's. */
void take_turn(unsigned thread);
void end_turn();
/* All threads of the block have come to a barrier. */
void pass_barrier();
/* They have come to different places: some wait at a barrier, others at a shuffle, or have ended. */
void diverge();

/* The accesses of an atomic addition. */
void add_at(const void *address, size_t size);
/* An asynchronous copy, which may happen from now on; `from` may be null. Both must be multiples of `size`. */
void begin_copy(const void *to, const void *from, size_t size);

} // namespace races

/* What was found since the last call: "" if nothing. */
extern "C" const char *races_found();

#endif
