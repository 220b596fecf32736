// A thread makes a folder after 0.3 s; who joins it removes that.
#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

static void *make(void *unused) {
    (void)unused;
    rmdir("none");
    usleep(300000);
    return mkdir("made", 0755) ? "failed" : NULL;
}

int main(void) {
    pthread_t thread;
    void *failed = "no thread";
    mkdir("begun", 0755);
    if (pthread_create(&thread, NULL, make, NULL) == 0) pthread_join(thread, &failed);
    return failed != NULL || rmdir("begun");
}
