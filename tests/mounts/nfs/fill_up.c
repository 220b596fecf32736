/* Preloaded into the guest's kernel, which is an ordinary process here and sets the registers of its own processes by ptrace.
 * On a processor with more register state than that kernel knows of, the host accepts nothing shorter than all of it (EFAULT).
 * So every such request is filled up to the length that the host has, with the state beyond left at its beginning. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PEEK_FIRST = 1, PEEK_LAST = 3, GET_REGISTERS = 0x4204, SET_REGISTERS = 0x4205 };
enum { ROOM = 1 << 16 };

static long ask(long request, long process, long address, void *data) {
    return syscall(SYS_ptrace, request, process, address, data);
}

/* How long the state is that the host takes; 0 if it does not say. */
static size_t whole(long process) {
    static size_t length;
    static char room[ROOM];
    struct iovec all = {room, sizeof room};
    if (!length && !ask(GET_REGISTERS, process, NT_X86_XSTATE, &all)) length = all.iov_len;
    return length;
}

long ptrace(long request, long process, long address, void *data) {
    static char room[ROOM];
    if (request >= PEEK_FIRST && request <= PEEK_LAST) { /* as the C library has it: the word is returned */
        long word, answer = ask(request, process, address, &word);
        if (answer < 0) return -1;
        errno = 0;
        return word;
    }
    if (request == SET_REGISTERS && address == NT_X86_XSTATE) {
        struct iovec *given = data;
        size_t length = whole(process);
        if (given->iov_len < length && length <= sizeof room) {
            struct iovec filled = {room, length};
            memset(room, 0, length);
            memcpy(room, given->iov_base, given->iov_len);
            return ask(request, process, address, &filled);
        }
    }
    return ask(request, process, address, data);
}
