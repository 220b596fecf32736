/* Runs a command without one system call: CALL ends with ERROR, as filters have it that are older than the call or do not permit it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset /* headers of older systems */
#define SYS_landlock_create_ruleset 444
#endif

int main(int count, char **words) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ERROR),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 2;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 2;
    execvp(words[1], words + 1);
    return 2;
}
