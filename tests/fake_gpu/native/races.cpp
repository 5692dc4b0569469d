#include "races.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace races {

enum class Access { read, write, add /* atomic */, copy /* that happens later */ };

/* When and by whom a byte was accessed. A moment is a time between two barriers of one block; moments of all launches are
 * numbered one after the other, from 1 on. */
struct Byte {
    uint64_t written = 0, read = 0, read_by_others = 0; /* moments; the last: by a block that ended before */
    uint16_t writer = 0, reader = 0;
    Access write = Access::write;
    bool has_readers = false; /* several threads read in the moment `read` */
};

static const uintptr_t PAGE = 4096;
static const size_t MOST_PAGES = 16384; /* 2.7 GB of what is known, at the beginning of a launch */
using Page = std::array<Byte, PAGE>;

using fake::Range;

struct Grid {
    std::vector<Range> own, variables; /* of the library: shared memory of a fixed size */
    Range dynamic;
    uint64_t moment = 0, of_launch = 0, of_block = 0;
    unsigned thread = 0;
    bool is_running = false;
    std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
    uintptr_t last_number = 0;
    Page *last_page = nullptr;
    std::string found, told;
};

static Grid &grid() {
    static Grid one;
    return one;
}

void begin_launch(std::initializer_list<Span> own, Span shared) {
    Grid &g = grid();
    g.own = {fake::own_stack()};
    for (const Span &span : own)
        g.own.push_back(fake::range_of(span));
    g.dynamic = fake::range_of(shared);
    if (g.variables.empty())
        g.variables = fake::segments_of(&g, PF_W);
    if (g.pages.size() > MOST_PAGES) {
        g.pages.clear();
        g.last_page = nullptr;
    }
    g.of_launch = g.moment + 1;
}

void begin_block() {
    Grid &g = grid();
    g.of_block = ++g.moment;
}

void take_turn(unsigned thread) {
    grid().thread = thread;
    grid().is_running = true;
}

void end_turn() { grid().is_running = false; }

void pass_barrier() { grid().moment++; }

static void tell(const char *what, uintptr_t address, unsigned other, const void *code) {
    Grid &g = grid();
    if (!g.found.empty())
        return;
    Dl_info place{};
    dladdr(code, &place);
    char text[240];
    snprintf(text, sizeof text, "%s (thread %u; thread %u before it; address %#zx, code at %#zx of the library)", what,
             g.thread, other, (size_t)address, (size_t)((uintptr_t)code - (uintptr_t)place.dli_fbase));
    g.found = text;
}

void diverge() { tell("the threads of a block came to different places", 0, 0, nullptr); }

static bool has(const std::vector<Range> &ranges, uintptr_t address) {
    for (const Range &range : ranges)
        if (range.has(address))
            return true;
    return false;
}

static Byte &byte_at(Grid &g, uintptr_t address) {
    const uintptr_t number = address / PAGE;
    if (!g.last_page || number != g.last_number) {
        auto &page = g.pages[number];
        if (!page)
            page = std::make_unique<Page>();
        g.last_page = page.get();
        g.last_number = number;
    }
    return (*g.last_page)[address % PAGE];
}

/* Whether nothing orders an access of that moment, by that thread or by several, and one that happens now. */
static bool is_at_once(const Grid &g, uint64_t moment, uint64_t first, unsigned thread, bool is_several) {
    if (moment < first)
        return false;
    return moment < g.of_block || (moment == g.moment && (is_several || thread != g.thread));
}

static void look_at(Grid &g, uintptr_t address, Access access, const void *code) {
    const bool is_shared = g.dynamic.has(address) || has(g.variables, address);
    const uint64_t first = is_shared ? g.of_block : g.of_launch; /* other blocks have shared memory of their own */
    Byte &byte = byte_at(g, address);
    const bool is_write = access != Access::read;
    if (!is_write && g.dynamic.has(address) && byte.written < g.of_block)
        tell("a thread reads shared memory that nobody wrote to", address, g.thread, code);
    if (!is_write && byte.written >= first && byte.write == Access::copy)
        tell("a thread reads what a copy has not brought yet", address, byte.writer, code);
    const bool are_sums = byte.write == Access::add && access == Access::add;
    if (!are_sums && is_at_once(g, byte.written, first, byte.writer, false))
        tell(is_write ? "two threads write at once" : "a thread reads what another writes at once", address, byte.writer,
             code);
    if (is_write && (byte.read_by_others >= first || is_at_once(g, byte.read, first, byte.reader, byte.has_readers)))
        tell("a thread writes what another reads at once", address, byte.reader, code);
    if (is_write) {
        byte.written = g.moment;
        byte.writer = (uint16_t)g.thread;
        byte.write = access;
    } else {
        if (byte.read >= first && byte.read < g.of_block)
            byte.read_by_others = byte.read;
        byte.has_readers = byte.read == g.moment && (byte.has_readers || byte.reader != g.thread);
        byte.read = g.moment;
        byte.reader = (uint16_t)g.thread;
    }
}

static void look(uintptr_t address, size_t size, Access access, const void *code) {
    Grid &g = grid();
    if (!g.is_running || has(g.own, address))
        return;
    for (size_t i = 0; i < size; i++)
        look_at(g, address + i, access, code);
}

void add_at(const void *address, size_t size) {
    look(reinterpret_cast<uintptr_t>(address), size, Access::add, __builtin_return_address(0));
}

void begin_copy(const void *to, const void *from, size_t size) {
    const void *const code = __builtin_return_address(0);
    const auto source = reinterpret_cast<uintptr_t>(from), target = reinterpret_cast<uintptr_t>(to);
    if ((source | target) % size)
        tell("a copy of more bytes than its addresses are multiples of", (source | target), grid().thread, code);
    if (from)
        look(source, size, Access::read, code);
    look(target, size, Access::copy, code);
}

} // namespace races

const char *races_found() {
    races::Grid &g = races::grid();
    g.told = g.found;
    g.found.clear();
    return g.told.c_str();
}

/* What the compiler makes each access call (-fsanitize=thread); the library is linked without the sanitizer's own. */
#define READ(name, size)                                                                                               \
    void name(void *at) { races::look((uintptr_t)at, size, races::Access::read, __builtin_return_address(0)); }
#define WRITE(name, size)                                                                                              \
    void name(void *at) { races::look((uintptr_t)at, size, races::Access::write, __builtin_return_address(0)); }
#define BOTH(size) READ(__tsan_read##size, size) WRITE(__tsan_write##size, size)
#define UNALIGNED(size) READ(__tsan_unaligned_read##size, size) WRITE(__tsan_unaligned_write##size, size)

extern "C" {

BOTH(1)
BOTH(2)
BOTH(4)
BOTH(8)
BOTH(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)

void __tsan_read_range(void *at, size_t size) {
    races::look((uintptr_t)at, size, races::Access::read, __builtin_return_address(0));
}
void __tsan_write_range(void *at, size_t size) {
    races::look((uintptr_t)at, size, races::Access::write, __builtin_return_address(0));
}

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
unsigned char __tsan_atomic8_load(const volatile unsigned char *at, int) { return *at; }

} /* extern "C" */
