/* Streams and events of a device that is not there: a stream is a thread that runs its tasks in order.
 *
 * A task begins a little late (FAKE_GPU_DELAY, in microseconds; much later in a stream that is not the default one), so
 * that code which reads a result before it asked for it sees what was there before. Streams are never ended: a process may exit, or fork, while they run.
 */
#ifndef FAKE_GPU_STREAMS_H
#define FAKE_GPU_STREAMS_H

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace fake {

using Task = std::function<void()>;
using Moment = std::chrono::steady_clock::time_point;

class Stream;

/* Tasks that streams were given while they were captured, in the order in which they were given. */
struct Graph {
    std::vector<Task> tasks;
    std::vector<Stream *> streams;
};

using GraphPointer = std::shared_ptr<Graph>;

/* A place in a stream: reached once all tasks before it are done. In a captured stream, a place in that graph. */
class Mark {
  public:
    GraphPointer graph;

    void reach();
    void wait();
    bool is_reached();
    Moment at() const { return at_; }

  private:
    std::mutex mutex_;
    std::condition_variable reached_;
    bool is_reached_ = false;
    Moment at_;
};

using MarkPointer = std::shared_ptr<Mark>;

class Stream {
  public:
    Stream(int device, int priority, int delay);
    void submit(Task task);
    MarkPointer mark();
    void wait() { mark()->wait(); }
    bool is_idle();
    /* Keeps what it is given from now on for a graph. */
    void capture(const GraphPointer &graph);
    GraphPointer captured();
    int device() const { return device_; }
    int priority() const { return priority_; }

  private:
    void work();
    void end_work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;
    GraphPointer graph_;
    bool is_busy_ = false;
    int device_, priority_, delay_;
};

/* An event, and the mark that it was last recorded at. */
struct Event {
    int device;
    MarkPointer mark;
};

/* Its streams go on as before. */
void end_capture(const GraphPointer &graph);

/* The stream of a handle; 0, 1 and 2 are the default stream of the current device. Null if there is none: it was ended. */
Stream *stream_of(void *handle);
Stream *make_stream(int priority);
/* Its handle is that of no stream from now on. False if it was none. */
bool end_stream(void *handle);
/* All streams of the current device; false if one is captured, which cannot be waited for. */
bool wait_for_device();

/* The device that calls of this thread are about. */
int &current_device();
/* Whether a context is current in this thread: that of the current device. */
bool &has_context();
int device_count();

} // namespace fake

#endif
