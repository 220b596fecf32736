/* A program of 32 bits without any library: each call whose number or structures differ from those of x86-64. */
#include <asm/unistd_32.h>

long call(); /* number, up to six arguments */
__asm__("call: push %ebp; push %edi; push %esi; push %ebx; mov 20(%esp), %eax; mov 24(%esp), %ebx; mov 28(%esp), %ecx; mov 32(%esp), %edx;"
	"mov 36(%esp), %esi; mov 40(%esp), %edi; mov 44(%esp), %ebp; int $0x80; pop %ebx; pop %esi; pop %edi; pop %ebp; ret");
#define DO(name, ...) call(__NR_##name, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

enum { CREATE = 0102, DIRECTORY = 0200000, HERE = -100 };
static char room[4096];
struct part {
	char *base;
	unsigned length;
};
static struct part parts[20];
struct lock {
	short kind, whence;
	int start, length, process;
};
struct wide_lock {
	short kind, whence;
	long long start, length;
	int process;
} __attribute__((packed));

static void ask(void)
{
	DO(stat, "src/f1", room), DO(lstat, "src/link", room), DO(stat64, "src/f1", room), DO(lstat64, "src/link", room);
	DO(fstatat64, HERE, "src/f2", room, 0), DO(statx, HERE, "src/f3", 0, 0x7ff, room), DO(stat64, "none", room), DO(access, "src/f1", 4);
	DO(statfs, "src", room), DO(statfs64, "src", 84, room), DO(readlink, "src/link", room, 100), DO(getcwd, room, sizeof room);
	DO(getxattr, "src/f1", "user.none", room, 10), DO(faccessat, HERE, "src/f1", 4);
}

static void change(void)
{
	static int narrow[] = { 5, 6, 7, 8 };
	static long long wide[] = { 1, 2, 3, 4 };
	DO(utimes, "src/f1", narrow), DO(utimensat, HERE, "src/f2", narrow, 0), DO(utimensat_time64, HERE, "src/f3", wide, 0);
	DO(utime, "src/f4", narrow), DO(utimes, "src/f5", 0), DO(futimesat, HERE, "src/f5", narrow), DO(chmod, "src/f1", 0600);
	DO(chown, "src/f1", 0xffff, 2), DO(lchown32, "src/link", 1, -1), DO(chown32, "src/f2", 3, 4), DO(truncate, "src/f3", 77);
	DO(truncate64, "src/f4", 1, 1), DO(truncate64, "src/f4", 5, 0), DO(mkdir, "d", 0750), DO(rmdir, "d"), DO(rename, "src/f5", "f5");
	DO(link, "f5", "src/h5"), DO(symlink, "to", "src/s"), DO(unlink, "src/s"), DO(mknod, "pipe", 010600), DO(umask, 027);
}

static void use(void)
{
	static struct lock lock = { 1, 0, 3, 9 };
	static struct wide_lock wide = { 1, 0, 5000000000, 7 };
	long long position = 40;
	int from = 3, file, other, ends[2];

	file = DO(open, "src/f2", CREATE, 0640), other = DO(openat, HERE, "new", CREATE, 0600);
	DO(read, file, room, 10), DO(write, file, "abc", 3), DO(pread64, file, room, 5, 100, 0), DO(pwrite64, file, "xy", 2, 1, 1);
	DO(lseek, file, -5, 2), DO(_llseek, file, 0, 50, &position, 0), DO(_llseek, file, 1, 0, &position, 0), DO(lseek, file, 0, 0);
	for (int i = 0; i < 20; i++)
		parts[i].base = room, parts[i].length = i;
	DO(readv, file, parts, 20), DO(writev, file, parts, 3), DO(preadv, file, parts, 5, 9, 0), DO(pwritev2, file, parts, 3, 9, 0, 0);
	DO(fcntl, file, 6, &lock), DO(fcntl64, file, 13, &wide), DO(fcntl64, file, 3, 0), DO(flock, file, 1), DO(fsync, file);
	DO(fstat, file, room), DO(fstat64, file, room), DO(fchmod, file, 0600), DO(fchown, file, 0xffff, 1), DO(fchown32, file, 1, -1);
	position = 40;
	DO(sendfile, other, file, &from, 20), DO(sendfile64, other, file, &position, 20), DO(sendfile, other, file, 0, 20);
	DO(copy_file_range, file, &position, other, 0, 10, 0), DO(fallocate, file, 0, 5, 0, 100, 0), DO(fadvise64_64, file, 0, 0, 10, 0, 3);
	DO(sync_file_range, file, 0, 0, 10, 0, 2), DO(readahead, file, 1, 0, 50), DO(ftruncate, file, 9000), DO(ftruncate64, file, 0, 1);
	DO(mmap2, 0, 4096, 1, 1, file, 1), DO(ftruncate64, file, 12, 0), DO(dup2, file, 30), DO(write, 30, "more", 4), DO(close, 30);
	DO(pipe, ends), DO(write, ends[1], "through", 7), DO(read, ends[0], room, 7), DO(close_range, ends[0], ends[1], 0);
	DO(close, file), DO(close, other);
}

static void list(void)
{
	int here = DO(open, "src", DIRECTORY);
	while (DO(getdents, here, room, sizeof room) > 0)
		;
	DO(lseek, here, 0, 0);
	while (DO(getdents64, here, room, sizeof room) > 0)
		;
	DO(close, here);
}

static void reach(void)
{
	static unsigned short name[] = { 1, 'n' | 'a' << 8, 'm' | 'e' << 8, 0 };
	int pair[2], again, args[] = { 1, 1, 0, (int)pair };
	again = DO(socketcall, 1, args); /* its number is free after that */
	DO(close, again), DO(socketcall, 8, args), DO(write, pair[0], "ping", 4), DO(read, pair[1], room, 4);
	DO(close, pair[0]), DO(close, pair[1]), again = DO(socket, 1, 1, 0), DO(bind, again, name, 7), DO(close, again);
}

void _start(void)
{
	static char *words[] = { "cat", "src/f1", 0 }, *none[] = { 0 };
	long child;
	DO(chdir, "r");
	ask(), change(), use(), list(), reach();
	child = DO(fork, 0);
	if (!child) {
		DO(stat64, "src/f1", room);
		DO(execve, "/bin/cat", words, none);
	}
	DO(waitpid, child, 0, 0);
	DO(exit_group, 0);
}
