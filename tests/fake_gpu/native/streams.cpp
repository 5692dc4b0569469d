#include "streams.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace fake {

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

int device_count() {
    static const int count = number_of("FAKE_GPU_COUNT", 1);
    return count;
}

int &current_device() {
    static thread_local int device = 0;
    return device;
}

bool &has_context() {
    static thread_local bool has = false;
    return has;
}

void Mark::reach() {
    std::lock_guard<std::mutex> lock(mutex_);
    at_ = std::chrono::steady_clock::now();
    is_reached_ = true;
    reached_.notify_all();
}

void Mark::wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    reached_.wait(lock, [this] { return is_reached_; });
}

bool Mark::is_reached() {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_reached_;
}

Stream::Stream(int device, int priority, int delay) : device_(device), priority_(priority), delay_(delay) {
    std::thread([this] { work(); }).detach();
}

void Stream::submit(Task task) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (graph_) {
        graph_->tasks.push_back(std::move(task));
        return;
    }
    tasks_.push_back(std::move(task));
    changed_.notify_one();
}

MarkPointer Stream::mark() {
    auto mark = std::make_shared<Mark>();
    mark->graph = captured();
    if (!mark->graph)
        submit([this, mark] {
            end_work(); /* first: who waited for the mark may ask whether the stream is idle */
            mark->reach();
        });
    return mark;
}

void Stream::capture(const GraphPointer &graph) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (graph && !graph_)
        graph->streams.push_back(this);
    graph_ = graph;
}

GraphPointer Stream::captured() {
    std::lock_guard<std::mutex> lock(mutex_);
    return graph_;
}

void end_capture(const GraphPointer &graph) {
    for (Stream *stream : graph->streams)
        stream->capture(nullptr);
    graph->streams.clear();
}

bool Stream::is_idle() {
    std::lock_guard<std::mutex> lock(mutex_);
    return tasks_.empty() && !is_busy_;
}

void Stream::end_work() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_busy_ = false;
}

void Stream::work() {
    current_device() = device_;
    for (;;) {
        Task task;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            is_busy_ = false;
            changed_.wait(lock, [this] { return !tasks_.empty(); });
            is_busy_ = true;
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        if (delay_ > 0)
            usleep((unsigned)delay_);
        task();
    }
}

static const int LATER = 30; /* how many times later the tasks of other streams are than those of the default one */

static int delay() {
    static const int found = number_of("FAKE_GPU_DELAY", 100);
    return found;
}

/* All streams, leaked: their threads outlive the destructors of a process that exits. */
struct Streams {
    std::mutex mutex;
    std::vector<Stream *> all;
    std::set<const void *> made; /* and not ended */
    std::map<int, Stream *> defaults;
};

static Streams &streams() {
    static Streams *const found = new Streams;
    return *found;
}

Stream *make_stream(int priority) {
    Streams &known = streams();
    std::lock_guard<std::mutex> lock(known.mutex);
    known.all.push_back(new Stream(current_device(), priority, LATER * delay()));
    known.made.insert(known.all.back());
    return known.all.back();
}

bool end_stream(void *handle) {
    Streams &known = streams();
    std::lock_guard<std::mutex> lock(known.mutex);
    return known.made.erase(handle) == 1;
}

static Stream *default_stream() {
    Streams &known = streams();
    std::lock_guard<std::mutex> lock(known.mutex);
    Stream *&stream = known.defaults[current_device()];
    if (!stream)
        known.all.push_back(stream = new Stream(current_device(), 0, delay()));
    return stream;
}

Stream *stream_of(void *handle) {
    const auto number = reinterpret_cast<uintptr_t>(handle);
    if (number <= 2)
        return default_stream();
    Streams &known = streams();
    std::lock_guard<std::mutex> lock(known.mutex);
    return known.made.count(handle) ? static_cast<Stream *>(handle) : nullptr;
}

static std::vector<Stream *> streams_of_device() {
    std::vector<Stream *> found;
    Streams &known = streams();
    std::lock_guard<std::mutex> lock(known.mutex);
    for (Stream *stream : known.all)
        if (stream->device() == current_device())
            found.push_back(stream);
    return found;
}

bool wait_for_device() {
    bool is_captured = false;
    std::vector<MarkPointer> marks; /* all of them first: each stream is late, and they are so together */
    for (Stream *stream : streams_of_device()) {
        if (stream->captured())
            is_captured = true;
        else if (!stream->is_idle())
            marks.push_back(stream->mark());
    }
    for (const MarkPointer &mark : marks)
        mark->wait();
    return !is_captured;
}

} // namespace fake
