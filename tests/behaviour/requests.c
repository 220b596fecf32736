/* Makes file requests of io_uring, one after another and side by side, without a library. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEPTH 8

static int ring;
static char *queues;
static struct io_uring_params params;
static struct io_uring_sqe *entries;

static struct io_uring_sqe *next(int opcode, int fd, const void *at, unsigned length, unsigned long offset)
{
	unsigned *tail = (unsigned *)(queues + params.sq_off.tail), mask = *(unsigned *)(queues + params.sq_off.ring_mask);
	unsigned *array = (unsigned *)(queues + params.sq_off.array), place = *tail & mask;
	struct io_uring_sqe *entry = &entries[place];

	memset(entry, 0, sizeof *entry);
	entry->opcode = opcode;
	entry->fd = fd;
	entry->addr = (unsigned long)at;
	entry->len = length;
	entry->off = offset;
	array[place] = place;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return entry;
}

/* Submit so many, wait for all of them, and return the result of the last. */
static int done(unsigned count)
{
	unsigned *head = (unsigned *)(queues + params.cq_off.head), mask = *(unsigned *)(queues + params.cq_off.ring_mask);
	struct io_uring_cqe *results = (void *)(queues + params.cq_off.cqes);
	int result = 0;

	syscall(SYS_io_uring_enter, ring, count, count, IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, 0, 0);
	for (; count; count--) {
		result = results[*head & mask].res;
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	}
	return result;
}

int main(int count, char **args)
{
	static char data[DEPTH][4096];
	struct iovec pieces[2] = { { data[0], 1000 }, { data[1], 2000 } };
	struct open_how how = { .flags = O_RDONLY };
	struct statx seen;
	char name[3000];
	int fd, other;

	params.flags = count > 1 && !strcmp(args[1], "polled") ? IORING_SETUP_SQPOLL : 0;
	ring = syscall(SYS_io_uring_setup, DEPTH, &params);
	if (ring < 0)
		return 77;
	queues = mmap(0, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	entries = mmap(0, DEPTH * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);

	next(IORING_OP_MKDIRAT, AT_FDCWD, "made", 0755, 0);
	printf("mkdirat %d\n", done(1));
	next(IORING_OP_OPENAT, AT_FDCWD, "made/one", 0644, 0)->open_flags = O_CREAT | O_RDWR;
	fd = done(1);
	next(IORING_OP_WRITE, fd, data, 4096, 0);
	done(1);
	next(IORING_OP_WRITEV, fd, pieces, 2, 4096);
	printf("writev %d\n", done(1));
	next(IORING_OP_WRITE, fd, "abc", 3, -1); /* at the position of the file, which is 0 */
	done(1);
	next(IORING_OP_READ, fd, data, 10, -1);
	printf("read %d\n", done(1));
	next(IORING_OP_FALLOCATE, fd, (void *)16384, 0, 0);
	done(1);
	for (int i = 0; i < DEPTH; i++)
		next(i % 2 ? IORING_OP_READ : IORING_OP_WRITE, fd, data[i], 512, 8192 + 512 * i);
	done(DEPTH);
	next(IORING_OP_FSYNC, fd, 0, 0, 0);
	next(IORING_OP_FSYNC, fd, 0, 0, 0)->fsync_flags = IORING_FSYNC_DATASYNC;
	done(2);
	/* A chain: each begins when the one before has ended. */
	next(IORING_OP_WRITE, fd, data, 100, 20000)->flags = IOSQE_IO_LINK;
	next(IORING_OP_FSYNC, fd, 0, 0, 0)->flags = IOSQE_IO_LINK;
	next(IORING_OP_CLOSE, fd, 0, 0, 0);
	done(3);
	next(IORING_OP_STATX, AT_FDCWD, "made/one", STATX_BASIC_STATS, (unsigned long)&seen)->statx_flags = 0;
	printf("statx %d\n", done(1));
	next(IORING_OP_STATX, AT_FDCWD, "made/none", STATX_BASIC_STATS, (unsigned long)&seen);
	printf("statx %d\n", done(1));
	next(IORING_OP_LINKAT, AT_FDCWD, "made/one", AT_FDCWD, (unsigned long)"made/two");
	done(1);
	next(IORING_OP_SYMLINKAT, AT_FDCWD, "one", 0, (unsigned long)"made/link");
	done(1);
	next(IORING_OP_RENAMEAT, AT_FDCWD, "made/two", AT_FDCWD, (unsigned long)"made/three");
	done(1);
	next(IORING_OP_OPENAT2, AT_FDCWD, "made/three", sizeof how, (unsigned long)&how);
	other = done(1);
	read(other, data, 5);
	next(IORING_OP_CLOSE, other, 0, 0, 0);
	done(1);
	/* A long name, which is there, by detours. */
	strcpy(name, "made");
	while (strlen(name) < 2900)
		strcat(name, "/../made/.");
	strcat(name, "/three");
	next(IORING_OP_STATX, AT_FDCWD, name, STATX_BASIC_STATS, (unsigned long)&seen);
	printf("statx %d\n", done(1));
	next(IORING_OP_UNLINKAT, AT_FDCWD, "made/three", 0, 0);
	done(1);
	next(IORING_OP_NOP, -1, 0, 0, 0);
	done(1);
	return 0;
}
