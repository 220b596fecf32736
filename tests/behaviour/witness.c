/* Makes file calls in a directory and says which: the witness of what a capture must contain.
 *
 * argv[1]: the directory; argv[2]: a file outside of it that the account is written to, one line a
 * call: process, name of the system call, result (an error as its negative number).
 * All calls are made by number, so that no C library chooses others for them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char account[1 << 16];
static size_t length;

static long told(const char *name, long result) {
    long value = result < 0 ? -errno : result;
    length += snprintf(account + length, sizeof account - length, "%d %s %ld\n", getpid(), name, value);
    return result;
}
#define CALL(name, ...) told(#name, syscall(SYS_##name, __VA_ARGS__))

static void tell(const char *path) {
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(file, account, length) != (ssize_t)length) exit(3);
    close(file);
    length = 0;
}

static void names(void) {
    static const char *odd[] = {"two \"quotes\"", "line\nbreak", "b\\ack", "<angle>, (bracket) = 3", "\xff\xfe raw", "\xc3\xa9\t"};
    for (size_t at = 0; at < sizeof odd / sizeof *odd; at++) {
        int file = CALL(openat, AT_FDCWD, odd[at], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        CALL(write, file, "odd", 3);
        CALL(close, file);
    }
    char deep[4001] = {0};
    for (int at = 0; at < 4000; at++) deep[at] = at % 200 == 199 ? '/' : 'd';
    CALL(openat, AT_FDCWD, deep, O_RDONLY, 0);
    char component[300] = {0};
    memset(component, 'n', 299);
    CALL(openat, AT_FDCWD, component, O_RDONLY, 0);
}

static void data(void) {
    char buffer[8192] = {0};
    struct iovec parts[2] = {{buffer, 100}, {buffer, 200}};
    int file = CALL(openat, AT_FDCWD, "data", O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0644);
    CALL(write, file, buffer, 5000);
    CALL(pwrite64, file, buffer, 1000, 6000);
    CALL(writev, file, parts, 2);
    CALL(lseek, file, 0, SEEK_SET);
    CALL(read, file, buffer, 4096);
    CALL(pread64, file, buffer, 4096, 6500);
    CALL(readv, file, parts, 2);
    int twin = CALL(dup, file);
    CALL(read, twin, buffer, 10);
    CALL(close, twin);
    CALL(ftruncate, file, 4000);
    CALL(fsync, file);
    int copy = CALL(openat, AT_FDCWD, "copy", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    off_t zero = 0, start = 0;
    CALL(copy_file_range, file, &zero, copy, &start, 1500, 0);
    zero = 0;
    CALL(sendfile, copy, file, &zero, 700);
    void *mapped = (void *)CALL(mmap, NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    account[0] += *(char *)mapped; /* a page fault that no tracer sees */
    CALL(close, copy);
    CALL(unlink, "copy");
    CALL(fstat, file, &(struct stat){0});
    CALL(unlink, "data");
    CALL(read, file, buffer, 10); /* open and without a name */
    CALL(close, file);
    CALL(read, 900, buffer, 10);
}

static void directories(void) {
    char buffer[4096];
    CALL(mkdir, "one", 0755);
    CALL(mkdir, "two", 0755);
    CALL(mkdir, "two", 0755);
    CALL(chdir, "one");
    int file = CALL(openat, AT_FDCWD, "moving", O_CREAT | O_WRONLY, 0644);
    CALL(close, file);
    CALL(rename, "moving", "../two/moved");
    CALL(symlink, "../two/moved", "link");
    CALL(readlink, "link", buffer, sizeof buffer);
    CALL(stat, "link", (struct stat *)buffer);
    CALL(chdir, "..");
    CALL(access, "two/moved", R_OK);
    CALL(access, "nothing", R_OK);
    int directory = CALL(openat, AT_FDCWD, "two", O_RDONLY | O_DIRECTORY, 0);
    while (CALL(getdents64, directory, buffer, sizeof buffer) > 0) {}
    CALL(unlinkat, directory, "moved", 0);
    CALL(close, directory);
    CALL(rmdir, "two");
    CALL(unlink, "one/link");
    CALL(rmdir, "one");
}

static void children(const char *path) {
    int file = CALL(openat, AT_FDCWD, "lock", O_CREAT | O_RDWR, 0644);
    CALL(flock, file, LOCK_EX);
    int pipes[2];
    if (pipe(pipes)) exit(4);
    pid_t child = fork();
    if (child == 0) {
        length = 0; /* what the parent did is the parent's to tell */
        access("/replayer/request/child", F_OK);
        int own = CALL(openat, AT_FDCWD, "lock", O_RDWR, 0);
        CALL(write, pipes[1], "!", 1);
        CALL(flock, own, LOCK_EX); /* waits: its line is cut in two */
        CALL(write, file, "child", 5); /* at the parent's offset */
        CALL(close, own);
        access("/replayer/request/end", F_OK);
        tell(path);
        _exit(0);
    }
    char byte;
    CALL(read, pipes[0], &byte, 1);
    usleep(100000);
    CALL(write, file, "parent", 6);
    CALL(flock, file, LOCK_UN);
    int status;
    waitpid(child, &status, 0);
    CALL(lseek, file, 0, SEEK_CUR);
    CALL(fcntl, file, F_SETFD, FD_CLOEXEC);
}

int main(int count, char **words) {
    if (count < 3 || chdir(words[1])) return 2;
    access("/replayer/request/witness", F_OK);
    names();
    data();
    directories();
    children(words[2]);
    access("/replayer/request/end", F_OK);
    tell(words[2]);
    return 0;
}
