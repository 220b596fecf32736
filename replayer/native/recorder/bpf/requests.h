/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of io_uring and libaio: each is kept from its submission on, and recorded as the system call that does the same when it is complete. */
#pragma once
#include "emit.h"

enum { /* asm/unistd_64.h */
	NR_READ = 0, NR_WRITE = 1, NR_CLOSE = 3, NR_PREAD64 = 17, NR_PWRITE64, NR_READV, NR_WRITEV, NR_FSYNC = 74, NR_FDATASYNC, NR_FTRUNCATE = 77,
	NR_IO_GETEVENTS = 208, NR_IO_SUBMIT, NR_FADVISE64 = 221, NR_OPENAT = 257, NR_MKDIRAT, NR_UNLINKAT = 263, NR_LINKAT = 265, NR_SYMLINKAT,
	NR_SYNC_FILE_RANGE = 277, NR_FALLOCATE = 285, NR_PREADV = 295, NR_PWRITEV, NR_RENAMEAT2 = 316, NR_PREADV2 = 327, NR_PWRITEV2,
	NR_STATX = 332, NR_IO_PGETEVENTS, NR_OPENAT2 = 437
};

/* A request that is under way: the call that it stands for, and what was read beside its numbers when it was submitted. */
struct request {
	struct task_state call;
	u64 beside[3];
	u32 process;
	u8 beside_bytes, names, flags;
};

/* Where it lies: in the kernel, or in the memory of a process. */
struct request_key {
	u64 place, process;
};

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 1 << 14);
	TYPE(key, struct request_key);
	TYPE(value, struct request);
} requests SEC(".maps");

/* The names of those that have any. */
struct request_names {
	u32 length[2];
	char text[2][PATH_BYTES];
};
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 1 << 14);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, struct request_key);
	TYPE(value, struct request_names);
} request_names SEC(".maps");

/* Room to put the names of a request together. */
struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct request_names);
} new_names SEC(".maps");

INLINE void take_call(struct request *q, s32 nr, u64 first, u64 second, u64 third, u64 fourth)
{
	q->call.nr = nr;
	q->call.args[0] = first;
	q->call.args[1] = second;
	q->call.args[2] = third;
	q->call.args[3] = fourth;
}

/* A read or write: at a position or, if that is -1, that of the file; of one piece or many. */
struct transfer {
	s64 at;
	u64 from, length;
	s32 fd;
	u32 flags;
	u8 writes, is_vector;
};

INLINE void take_transfer(struct request *q, struct transfer *t)
{
	s32 nr = t->at == -1 ? NR_READ : NR_PREAD64;

	if (t->is_vector || t->flags) {
		nr = t->flags ? NR_PREADV2 : t->at == -1 ? NR_READV : NR_PREADV;
		q->beside_bytes = 8;
		q->beside[0] = t->is_vector ? sum_iovecs(t->from, t->length) : t->length;
	}
	take_call(q, nr + t->writes, t->fd, t->from, t->is_vector || !t->flags ? t->length : 1, t->at);
	q->call.args[5] = t->flags;
}

/* Requests that stand for calls which are not known. */
INLINE void count_unknown(u64 more)
{
	struct control *c = control();
	if (c)
		__sync_fetch_and_add(&c->unknown, more);
}

/* Names behind the numbers of a record, as long as they are. */
INLINE u32 put_names(struct record *r, char *to, u32 room, struct request_names *names)
{
	u32 first = names->length[0], second = names->length[1];
	HOLD(first);
	HOLD(second);
	if (first >= room)
		first = room - 1;
	if (second >= room)
		second = room - 1;
	bpf_probe_read_kernel(to, first, names->text[0]);
	r->path = first;
	bpf_probe_read_kernel(to + first, second, names->text[1]);
	return first + second;
}

/* A record of a request with names of less than `room` bytes each. */
INLINE void put_request(struct request *q, struct request_names *names, u64 now, s64 result, u64 room)
{
	const volatile struct shape *shape;
	struct record *r;
	u32 used, more;
	char *data;

	if ((u32)q->call.nr >= MOST_CALLS)
		return;
	shape = &shapes[q->call.nr];
	r = begin(&q->call, q->process, NUMBERS + BESIDE + 2 * room, REQUEST);
	if (!r) {
		lose(now);
		return;
	}
	r->flags = q->flags;
	data = (char *)(r + 1);
	used = put_numbers(r, &q->call, shape);
	if (used > NUMBERS)
		used = NUMBERS;
	more = 0;
	if (q->beside_bytes == 8) {
		*(u64 *)(data + used) = q->beside[0];
		more = 8;
	} else if (q->beside_bytes == 24) {
		for (int i = 0; i < 3; i++)
			*(u64 *)(data + used + 8 * i) = q->beside[i];
		more = 24;
	} else if (shape->aux == STATX && bpf_get_current_task_btf()->tgid == q->process) {
		more = put_beside(r, data + used, &q->call, shape, result);
	}
	r->aux = more;
	used += more;
	if (used > NUMBERS + BESIDE)
		used = NUMBERS + BESIDE;
	if (names && room)
		used += put_names(r, data + used, room, names);
	end(r, now, result, used);
}

/* Record a request that is complete. */
OWN int complete(u64 place, u64 process, s64 result)
{
	struct request_key key = { .place = place, .process = process };
	struct request *q = bpf_map_lookup_elem(&requests, &key);
	struct request_names *names = 0;
	u64 now;

	if (!q)
		return 0;
	now = bpf_ktime_get_ns();
	if (q->names)
		names = bpf_map_lookup_elem(&request_names, &key);
	if (!names)
		put_request(q, 0, now, result, 0);
	else if (names->length[0] < SHORT && names->length[1] < SHORT)
		put_request(q, names, now, result, SHORT);
	else
		put_request(q, names, now, result, PATH_BYTES);
	if (names)
		bpf_map_delete_elem(&request_names, &key);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
