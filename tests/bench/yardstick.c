/*
 * The yardstick: the system calls of the engine's plans in a loop that does nothing else.
 *
 *   yardstick DIRECTORY WORK THREADS FILES PASSES CLOCK
 *
 * WORK is create, fio-create, stat, read or unlink. Thread t works on DIRECTORY/files/ut/f000000 and so on, FILES of them, in order,
 * PASSES times; paths are built before the clock starts. CLOCK is bare, or timed: then two clock reads surround every call, as
 * the engine needs them to time it. Prints the wall time in nanoseconds from the release of all threads to the last one's end.
 * DIRECTORY/files/ut must exist.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, PATH_ROOM = 64 };

struct worker {
    pthread_t thread;
    char *paths;
    char *block;
    uint64_t spent_ns;
};

static long files, passes;
static int timed;
static void (*work)(struct worker *, const char *path);
static pthread_barrier_t gate;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "yardstick: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* One system call, with or without its two clock reads; -1 ends the program. */
#define CALL(worker, what, expression)                    \
    ({                                                    \
        uint64_t begin = timed ? now_ns() : 0;            \
        long got = (expression);                          \
        if (timed) (worker)->spent_ns += now_ns() - begin; \
        if (got < 0) die(what);                           \
        (int)got;                                         \
    })

static long confined_open(const char *path, uint64_t flags, uint64_t mode) {
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static void create(struct worker *w, const char *path) {
    int fd = CALL(w, path, confined_open(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
    CALL(w, path, write(fd, w->block, BLOCK));
    CALL(w, path, close(fd));
}

static void fio_create(struct worker *w, const char *path) {
    int fd = CALL(w, path, confined_open(path, O_RDWR | O_CREAT, 0644));
    CALL(w, path, close(fd));
}

static void stat_file(struct worker *w, const char *path) {
    struct stat found;
    CALL(w, path, fstatat(AT_FDCWD, path, &found, 0));
}

static void read_file(struct worker *w, const char *path) {
    int fd = CALL(w, path, confined_open(path, O_RDONLY, 0));
    CALL(w, path, read(fd, w->block, BLOCK));
    CALL(w, path, close(fd));
}

static void unlink_file(struct worker *w, const char *path) {
    CALL(w, path, unlinkat(AT_FDCWD, path, 0));
}

static void *run(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(&gate);
    for (long pass = 0; pass < passes; pass++)
        for (long i = 0; i < files; i++) work(w, w->paths + i * PATH_ROOM);
    return NULL;
}

/* User t starts at its share of the files and goes round, as a sequential picker does. */
static void prepare(struct worker *w, long user, long users) {
    w->paths = malloc((size_t)files * PATH_ROOM);
    w->block = malloc(BLOCK);
    if (!w->paths || !w->block) die("memory");
    for (long i = 0; i < files; i++)
        snprintf(w->paths + i * PATH_ROOM, PATH_ROOM, "files/u%ld/f%06ld", user, (user * files / users + i) % files);
    for (int i = 0; i < BLOCK; i++) w->block[i] = (char)(rand() >> 7);
}

static void choose_work(const char *name) {
    static const struct { const char *name; void (*work)(struct worker *, const char *); } all[] = {
        {"create", create}, {"fio-create", fio_create}, {"stat", stat_file}, {"read", read_file}, {"unlink", unlink_file},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name)) work = all[i].work;
    if (!work) {
        errno = EINVAL;
        die(name);
    }
}

int main(int count, char **words) {
    if (count != 7) {
        fprintf(stderr, "usage: yardstick DIRECTORY WORK THREADS FILES PASSES bare|timed\n");
        return 2;
    }
    if (chdir(words[1])) die(words[1]);
    choose_work(words[2]);
    long threads = strtol(words[3], NULL, 10);
    files = strtol(words[4], NULL, 10);
    passes = strtol(words[5], NULL, 10);
    timed = !strcmp(words[6], "timed");
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    if (!workers) die("memory");
    pthread_barrier_init(&gate, NULL, (unsigned)threads + 1);
    for (long t = 0; t < threads; t++) {
        prepare(&workers[t], t, threads);
        if (pthread_create(&workers[t].thread, NULL, run, &workers[t])) die("thread");
    }
    uint64_t begin = now_ns();
    pthread_barrier_wait(&gate);
    for (long t = 0; t < threads; t++) pthread_join(workers[t].thread, NULL);
    printf("%llu\n", (unsigned long long)(now_ns() - begin));
    return 0;
}
