/* Appends to a file without ever holding a descriptor: it is opened, compared, written to and closed in one call, under
 * the interpreter's lock. No Python code runs in between, so no thread and no signal handler of the user's script can
 * close the descriptor and open a file of its own under the same number. */
#include "reader.h"

#ifdef _WIN32

PyObject *sb_append(PyObject *module, PyObject *args) {
    (void)module;
    (void)args;
    PyErr_SetString(PyExc_NotImplementedError, "append is for POSIX systems");
    return NULL;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The script's own limits are for the script: one more descriptor, as far as the hard limit goes. */
static int open_above_limit(const char *path, int flags) {
    struct rlimit own, lifted;
    if (getrlimit(RLIMIT_NOFILE, &own) || own.rlim_cur == RLIM_INFINITY || own.rlim_cur >= own.rlim_max)
        return errno = EMFILE, -1;
    lifted = own;
    lifted.rlim_cur = own.rlim_max - own.rlim_cur > 16 ? own.rlim_cur + 16 : own.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &lifted))
        return errno = EMFILE, -1;
    int descriptor = open(path, flags), error = errno;
    setrlimit(RLIMIT_NOFILE, &own);
    errno = error;
    return descriptor;
}

static int open_file(const char *path) {
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int descriptor;
    do
        descriptor = open(path, flags);
    while (descriptor < 0 && errno == EINTR);
    return descriptor < 0 && errno == EMFILE ? open_above_limit(path, flags) : descriptor;
}

/* Writing past RLIMIT_FSIZE would raise SIGXFSZ. 0, or an error number; *own is what has to be put back. */
static int lift_size_limit(off_t end, struct rlimit *own, int *lifted) {
    struct rlimit more;
    *lifted = 0;
    if (getrlimit(RLIMIT_FSIZE, own) || own->rlim_cur == RLIM_INFINITY || (rlim_t)end <= own->rlim_cur)
        return 0;
    more = *own;
    more.rlim_cur = own->rlim_max;
    if ((own->rlim_max != RLIM_INFINITY && (rlim_t)end > own->rlim_max) || setrlimit(RLIMIT_FSIZE, &more))
        return EFBIG;
    *lifted = 1;
    return 0;
}

static int write_all(int descriptor, const char *data, Py_ssize_t length) {
    while (length > 0) {
        ssize_t done = write(descriptor, data, (size_t)length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        data += done;
        length -= done;
    }
    return 0;
}

typedef struct {
    const char *bytes;
    Py_ssize_t length;
} span;

/* All of the data or none of it: what a full disk took is cut off again. */
static int append_whole(int descriptor, off_t size, span data) {
    struct rlimit own;
    int lifted, error = lift_size_limit(size + (off_t)data.length, &own, &lifted);
    if (!error)
        error = write_all(descriptor, data.bytes, data.length);
    if (lifted)
        setrlimit(RLIMIT_FSIZE, &own);
    if (error && ftruncate(descriptor, size))
        return error;
    return error;
}

typedef struct {
    unsigned long long device, inode, size;
    span head;
} identity;

/* A file system gives the inode of a removed file to the next one, so the size and the first bytes count too. */
static int check_identity(int descriptor, const identity *own) {
    struct stat status;
    char head[64];
    if (fstat(descriptor, &status))
        return errno;
    if (!S_ISREG(status.st_mode) || (unsigned long long)status.st_dev != own->device ||
        (unsigned long long)status.st_ino != own->inode || (unsigned long long)status.st_size != own->size ||
        own->head.length > (Py_ssize_t)sizeof head)
        return ESTALE;
    if (pread(descriptor, head, (size_t)own->head.length, 0) != own->head.length)
        return ESTALE;
    return memcmp(head, own->head.bytes, (size_t)own->head.length) ? ESTALE : 0;
}

static int append(const char *path, const identity *own, span data) {
    int error, descriptor = open_file(path);
    if (descriptor < 0)
        return errno;
    error = check_identity(descriptor, own);
    if (!error)
        error = append_whole(descriptor, (off_t)own->size, data);
    close(descriptor);
    return error;
}

PyObject *sb_append(PyObject *module, PyObject *args) {
    PyObject *path = NULL;
    identity own;
    span data;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&(KKKy#)y#", PyUnicode_FSConverter, &path, &own.device, &own.inode, &own.size,
                          &own.head.bytes, &own.head.length, &data.bytes, &data.length))
        return NULL;
    int error = append(PyBytes_AsString(path), &own, data);
    Py_DECREF(path);
    return PyLong_FromLong(error);
}

#endif
