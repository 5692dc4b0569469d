#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "libraries.h"

#ifdef __linux__

#include <link.h>
#include <string.h>

/* Names that a library needs which takes tensors from Python objects or calls torch's C++ or stable C interface, and of
 * the one package that reads tensors through DLPack's C exchange. */
static const char *const names[] = {"libtorch", "libc10", "N3c10", "N2at6", "THPVariable", "aoti_torch", "TVMFFI"};

/* Libraries that only register operators. */
static const char *const known[] = {"/torchvision/", "/functorch/"};

static int is_known(const sb_libraries *self, const char *path) {
    if (!strncmp(path, self->torch, strlen(self->torch)))
        return 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(path, known[i]))
            return 1;
    return 0;
}

typedef struct {
    const char *text;
    size_t length;
} names_of;

/* The names that the dynamic section of a library refers to. */
static names_of find_names(const struct dl_phdr_info *info) {
    names_of found = {NULL, 0};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) /* glibc has made an address of it, musl has not */
            found.text = (const char *)(entry->d_un.d_ptr + (entry->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr : 0));
        if (entry->d_tag == DT_STRSZ)
            found.length = entry->d_un.d_val;
    }
    return found;
}

static int is_made_for_torch(const struct dl_phdr_info *info) {
    const names_of found = find_names(info);
    for (size_t i = 0; found.text && i < sizeof names / sizeof *names; i++)
        if (memmem(found.text, found.length, names[i], strlen(names[i])))
            return 1;
    return 0;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *argument) {
    sb_libraries *self = argument;
    (void)size;
    const char *path = info->dlpi_name ? info->dlpi_name : "";
    if (!*path || is_known(self, path)) /* the program itself, and what the kernel provides, have no path */
        return 0;
    return self->foreign = is_made_for_torch(info);
}

/* Ends the walk at the first library, which is all that is needed. */
static int count_loads(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    *(uint64_t *)argument = info->dlpi_adds;
    return 1;
}

int sb_has_foreign(sb_libraries *self) {
    uint64_t loads = 0;
    if (self->foreign || !*self->torch)
        return 1;
    dl_iterate_phdr(count_loads, &loads);
    if (loads != self->loads) {
        dl_iterate_phdr(look_at, self);
        self->loads = loads;
    }
    return self->foreign;
}

typedef struct {
    unsigned long long unloads, first, count;
    int found;
} walk;

static int walk_on(struct dl_phdr_info *info, size_t size, void *argument) {
    walk *self = argument;
    (void)size;
    self->unloads = info->dlpi_subs;
    if (self->count++ >= self->first && !self->found)
        self->found = is_made_for_torch(info);
    return 0;
}

PyObject *sb_libraries_from(PyObject *Py_UNUSED(module), PyObject *args) {
    walk found = {0};
    if (!PyArg_ParseTuple(args, "K", &found.first))
        return NULL;
    dl_iterate_phdr(walk_on, &found);
    return Py_BuildValue("KKO", found.unloads, found.count, found.found ? Py_True : Py_False);
}

#else

PyObject *sb_libraries_from(PyObject *Py_UNUSED(module), PyObject *args) {
    unsigned long long first;
    if (!PyArg_ParseTuple(args, "K", &first))
        return NULL;
    return Py_BuildValue("KKO", 0ull, 0ull, Py_True);
}

int sb_has_foreign(sb_libraries *self) {
    (void)self;
    return 1;
}

#endif
