/* Waits for known times between its calls, and says how long it did: the witness of what a recording tells of pauses.
 *
 * argv[1]: a file to read; argv[2]: how often. One line for each wait: what it was to be, and what it was, in ns.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST 10000

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time); /* makes no call: the kernel maps the clock */
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int count, char **words) {
    static const long gaps[] = {1000, 5000, 20000, 100000};
    static long waited[MOST];
    long turns = count == 3 ? atol(words[2]) : 0;
    int file = open(words[1], O_RDONLY);
    char data[64];
    if (file < 0 || turns < 1 || turns > MOST) return 2;
    for (long turn = 0; turn < turns; turn++) {
        if (pread(file, data, sizeof data, 0) < 0) return 3;
        long begin = now(), end = begin;
        while (end - begin < gaps[turn % 4]) end = now();
        waited[turn] = end - begin;
    }
    if (pread(file, data, sizeof data, 0) < 0) return 3;
    for (long turn = 0; turn < turns; turn++) printf("%ld %ld\n", gaps[turn % 4], waited[turn]);
    return 0;
}
