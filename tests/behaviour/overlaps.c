/* Sixteen processes that keep files in one directory and clean it up at the same time, as workers do that keep sessions in files.
 *
 * Each opens files, by few names, and locks, reads and writes them; then it lists the directory, looks at each file and removes some.
 * What one finds another may be removing. All works in the working directory.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 16, ROUNDS = 12, NAMES = 24 };

static void keep(unsigned *seed, int alone) {
    char name[32], text[64] = "n|i:1;";
    snprintf(name, sizeof name, "sess_%02d", rand_r(seed) % NAMES);
    int file = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | (alone ? O_EXCL : 0), 0600);
    if (file < 0) return;
    flock(file, LOCK_EX);
    if (pread(file, text, sizeof text, 0) < 0 || pwrite(file, text, 6, 0) != 6) exit(3);
    close(file);
}

static void clean(unsigned *seed) {
    DIR *all = opendir(".");
    struct dirent *entry;
    struct stat found;
    while (all && (entry = readdir(all))) {
        if (strncmp(entry->d_name, "sess_", 5)) continue;
        if (stat(entry->d_name, &found) == 0 && rand_r(seed) % 2) unlink(entry->d_name);
    }
    closedir(all);
}

static void move(unsigned *seed) {
    char from[32], to[32];
    snprintf(from, sizeof from, "sess_%02d", rand_r(seed) % NAMES);
    snprintf(to, sizeof to, "sess_%02d", rand_r(seed) % NAMES);
    rename(from, to);
}

static void work(unsigned seed) {
    for (int round = 0; round < ROUNDS; round++) {
        keep(&seed, 0);
        keep(&seed, 1);
        move(&seed);
        clean(&seed);
    }
    _exit(0);
}

int main(void) {
    int failed = 0, status;
    for (int worker = 0; worker < WORKERS; worker++)
        if (fork() == 0) work(worker + 1);
    while (wait(&status) > 0) failed |= status;
    return failed != 0;
}
