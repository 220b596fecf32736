/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records, put into the ring. */
#pragma once
#include "state.h"

#define PATH_BYTES 4096 /* of the longest path, with its end: PATH_MAX */

INLINE void fill(struct record *r, struct task_state *s, u32 task, u8 kind)
{
	r->nr = s->nr;
	r->kind = kind;
	r->flags = 0;
	r->aux = r->args = r->path = 0;
	r->task = task;
	r->turn = s->turn;
	r->start_ns = s->start_ns;
	r->probe_ns = kind == CALL ? s->probe_ns : 0;
}

INLINE void conclude(struct record *r, u64 now, s64 result, u32 used)
{
	r->duration_ns = now - r->start_ns;
	r->result = result;
	r->size = sizeof(struct record) + used;
}

/* A record in the ring, which takes all of its room there. */
INLINE struct record *begin(struct task_state *s, u32 task, u64 room, u8 kind)
{
	struct record *r = bpf_ringbuf_reserve(&ring, sizeof(struct record) + room, 0);
	if (r)
		fill(r, s, task, kind);
	return r;
}

INLINE void end(struct record *r, u64 now, s64 result, u32 used)
{
	conclude(r, now, result, used);
	bpf_ringbuf_submit(r, NO_WAKEUP);
}

/* A record in the room of its task, which is copied into the ring. */
INLINE struct record *begin_aside(struct task_state *s, u32 task)
{
	struct record *r = (void *)((struct task *)s)->room;
	fill(r, s, task, CALL);
	return r;
}

INLINE void end_aside(struct record *r, u64 now, s64 result, u32 used)
{
	u32 size = sizeof(struct record) + used;

	conclude(r, now, result, used);
	HOLD(size);
	if (size > sizeof ((struct task *)0)->room)
		size = sizeof ((struct task *)0)->room;
	if (bpf_ringbuf_output(&ring, r, size, NO_WAKEUP))
		lose(now);
}

/* Numbers first. Returns how many bytes they take. */
INLINE u32 put_numbers(struct record *r, struct task_state *s, const volatile struct shape *shape)
{
	u64 *to = (u64 *)(r + 1);
	u32 count = shape->args;
#pragma unroll
	for (int i = 0; i < 6; i++) {
		u32 from = shape->arg[i];
		to[i] = s->args[from < 6 ? from : 0];
	}
	if (count > 6)
		count = 6;
	r->args = count;
	return count * 8;
}

/* The bytes of all iovecs, up to IOV_MAX of them. -1 where one cannot be read. */
OWN s64 sum_iovecs(u64 from, u32 count)
{
	u64 sum = 0;
	for (u32 i = 0; i < 1024; i++) {
		struct iovec one;
		if (i >= count)
			break;
		if (bpf_probe_read_user(&one, sizeof one, (void *)(from + 16 * (u64)i)))
			return -1;
		sum += one.length;
	}
	return sum;
}

OWN s64 sum_compat_iovecs(u64 from, u32 count)
{
	u64 sum = 0;
	for (u32 i = 0; i < 1024; i++) {
		u32 one[2];
		if (i >= count)
			break;
		if (bpf_probe_read_user(one, sizeof one, (void *)(from + 8 * (u64)i)))
			return -1;
		sum += one[1];
	}
	return sum;
}

/* Some of the entries of a list, whose lengths stand at a place of each. Returns where the next one is, and in its upper half how many they were;
 * -1 where one cannot be read. */
OWN s64 count_some(u64 from, u32 at, u32 bytes, u32 place)
{
	u32 i;
	for (i = 0; i < MOST_ENTRIES; i++) {
		u16 length = 0;
		if (at >= bytes)
			break;
		if (bpf_probe_read_user(&length, 2, (void *)(from + at + place)) || !length)
			return -1;
		at += length;
	}
	return (u64)i << 32 | at;
}

/* The entries of a list. -1 where there are more than can be counted. */
OWN s64 count_entries(u64 from, u32 bytes, u32 place)
{
	u32 at = 0;
	s64 count = 0;
	for (u32 i = 0; i < MOST_COUNTS; i++) {
		s64 more = count_some(from, at, bytes, place);
		if (more < 0)
			return -1;
		count += more >> 32;
		at = more;
		if (at >= bytes)
			return count;
	}
	return -1;
}

INLINE u64 arg(struct task_state *s, u32 at)
{
	return at < 6 ? s->args[at] : 0;
}

INLINE u32 counted(struct record *r, char *to, s64 value)
{
	*(s64 *)to = value;
	if (value < 0)
		r->flags |= AUX_PART;
	return 8;
}

/* What is read beside the numbers of calls with no path. Returns how many bytes. */
INLINE u32 put_lists(struct record *r, char *to, struct task_state *s, const volatile struct shape *shape, s64 result)
{
	u64 from = arg(s, shape->aux_arg);
	switch (shape->aux) {
	case IOVECS:
		return counted(r, to, sum_iovecs(from, s->args[2]));
	case COMPAT_IOVECS:
		return counted(r, to, sum_compat_iovecs(from, s->args[2]));
	case ENTRIES:
	case COMPAT_ENTRIES: /* linux_dirent and linux_dirent64 have their length at 16 */
		return result > 0 ? counted(r, to, count_entries(from, result, shape->aux == ENTRIES ? 16 : 8)) : 0;
	case OFFSETS: { /* of both files, or of the only one that has any */
		u64 second = shape->aux_arg == 1 ? s->args[3] : 0;
		((s64 *)to)[0] = ((s64 *)to)[1] = -1;
		if (from && bpf_probe_read_user(to, 8, (void *)from))
			r->flags |= AUX_FAULT;
		if (second && bpf_probe_read_user(to + 8, 8, (void *)second))
			r->flags |= AUX_FAULT;
		return 16;
	}
	case COMPAT_OFFSET: {
		s32 offset = -1;
		if (from && bpf_probe_read_user(&offset, 4, (void *)from))
			r->flags |= AUX_FAULT;
		((s64 *)to)[0] = ((s64 *)to)[1] = offset;
		return 16;
	}
	case COMPAT_SOCKET: { /* its arguments, and what socketpair wrote */
		u32 args[4] = {};
		if (bpf_probe_read_user(args, s->args[0] == SOCKETPAIR ? 16 : 12, (void *)from))
			r->flags |= AUX_FAULT;
		((u64 *)to)[0] = args[0] | (u64)args[1] << 32;
		((u64 *)to)[1] = 0;
		if (s->args[0] == SOCKETPAIR && bpf_probe_read_user(to + 8, 8, (void *)(u64)args[3]))
			r->flags |= AUX_FAULT;
		return 16;
	}
	}
	return 0;
}

/* What is read beside the numbers of any call. Returns how many bytes. */
INLINE u32 put_beside(struct record *r, char *to, struct task_state *s, const volatile struct shape *shape, s64 result)
{
	char *from = (char *)arg(s, shape->aux_arg);
	long fault = 0;
	u32 size = 0;
	if (!from)
		return 0;
	switch (shape->aux) {
	case STAT: /* st_mode and st_size */
	case STAT64:
	case STATX:
	case COMPAT_STAT:
		if (result != 0)
			return 0;
		if (shape->aux == STAT64) {
			*(u64 *)to = 0;
			fault = bpf_probe_read_user(to, 4, from + 16) | bpf_probe_read_user(to + 8, 8, from + 44);
		} else if (shape->aux == COMPAT_STAT) {
			((u64 *)to)[0] = ((u64 *)to)[1] = 0;
			fault = bpf_probe_read_user(to, 2, from + 8) | bpf_probe_read_user(to + 8, 4, from + 20);
		} else { /* one read is cheaper than two */
			u64 found[4];
			found[3] = 0; /* of statx, which it is not read for: the verifier of Linux 5.15 sees no difference */
			fault = bpf_probe_read_user(found, shape->aux == STAT ? 32 : 24, from + 24);
			((u64 *)to)[0] = shape->aux == STAT ? (u32)found[0] : found[0] >> 32 & 0xffff;
			((u64 *)to)[1] = shape->aux == STAT ? found[3] : found[2];
		}
		size = 16;
		break;
	case LOCK: { /* struct flock of fcntl's commands that have one */
		u32 command = s->args[1];
		if (command - 5 > 2 && command - 12 > 2 && command - 36 > 2)
			return 0;
		if (s->nr < COMPAT)
			size = 24;
		else /* struct compat_flock, and compat_flock64, which is packed */
			size = command < 8 ? 12 : 20;
		fault = bpf_probe_read_user(to, size, from);
		break;
	}
	case ACCESS_LIST: { /* system.posix_acl_*, of three entries: no more than a mode. Values of other attributes are data. */
		s64 length = result > 0 ? result : (s64)s->args[3];
		char name[16];
		if (length != 28 || bpf_probe_read_user(name, 16, (void *)s->args[1]) || *(u64 *)name != SYSTEM_P || *(u64 *)(name + 8) != OSIX_ACL)
			return 0;
		fault = bpf_probe_read_user(to, 28, from);
		size = 28;
		break;
	}
	case BYTES_32:
		fault = bpf_probe_read_user(to, 32, from);
		size = 32;
		break;
	case BYTES_24:
		fault = bpf_probe_read_user(to, 24, from);
		size = 24;
		break;
	case BYTES_16:
		fault = bpf_probe_read_user(to, 16, from);
		size = 16;
		break;
	case BYTES_8:
	case FOUND_8:
	case FOUND_4: /* what a call that succeeded has written */
		if (shape->aux != BYTES_8 && result < 0)
			return 0;
		*(u64 *)to = 0;
		fault = bpf_probe_read_user(to, shape->aux == FOUND_4 ? 4 : 8, from);
		size = 8;
		break;
	}
	if (fault)
		r->flags |= AUX_FAULT;
	return fault ? 0 : size;
}

/* A path at a place in a record of so much room. Returns its length, or `room` where it does not fit. */
INLINE u32 put_path(struct record *r, char *to, u32 room, u64 from, u8 flags)
{
	long length;
	if (!from) {
		r->flags |= flags & (PATH_NULL | SECOND_NULL);
		return 0;
	}
	length = bpf_probe_read_user_str(to, room, (void *)from);
	if (length < 1) { /* 0: an empty path, before Linux 6.13, which counts its end */
		if (length)
			r->flags |= flags & (PATH_FAULT | SECOND_FAULT);
		return 0;
	}
	if (length >= room || length > PATH_BYTES)
		return room;
	return length - 1;
}

/* What a call wrote: no path, and not ended by a zero. */
INLINE u32 put_text(struct record *r, char *to, u32 room, u64 from, s64 result)
{
	u32 length = result;
	if (result <= 0)
		return 0;
	HOLD(length);
	if (length > room)
		return room;
	if (bpf_probe_read_user(to, length, (void *)from)) {
		r->flags |= SECOND_FAULT;
		return 0;
	}
	return length;
}

/* The name of a socket in the file system. */
INLINE u32 put_socket(struct record *r, char *to, u32 room, u64 from)
{
	u16 family = 0;
	if (bpf_probe_read_user(&family, 2, (void *)from) || family != AF_UNIX) {
		r->flags |= SECOND_NULL;
		return 0;
	}
	return put_path(r, to, room, from + 2, SECOND_FAULT);
}

/* A record with paths of less than `room` bytes each. Returns 0 where one did not fit. */
INLINE int emit_paths(struct task_state *s, u32 task, u64 now, s64 result, u32 room, u8 flags)
{
	const volatile struct shape *shape;
	struct record *r;
	u32 used, more;
	char *data;

	if ((u32)s->nr >= MOST_CALLS)
		return 1;
	shape = &shapes[s->nr];
	r = room < LONG ? begin_aside(s, task) : begin(s, task, NUMBERS + BESIDE + 2 * (u64)room, CALL);
	if (!r) {
		lose(now);
		return 1;
	}
	r->flags = flags;
	data = (char *)(r + 1);
	used = put_numbers(r, s, shape);
	if (used > NUMBERS)
		used = NUMBERS;
	more = put_beside(r, data + used, s, shape, result);
	r->aux = more;
	used += more;
	if (used > NUMBERS + BESIDE)
		used = NUMBERS + BESIDE;
	if (shape->path[0]) {
		more = put_path(r, data + used, room, arg(s, shape->path[0] - 1), PATH_FAULT | PATH_NULL);
		if (more >= room)
			goto too_long;
		r->path = more;
		used += more;
	}
	if (used > NUMBERS + BESIDE + room)
		used = NUMBERS + BESIDE + room;
	more = 0;
	if (shape->path[1])
		more = put_path(r, data + used, room, arg(s, shape->path[1] - 1), SECOND_FAULT | SECOND_NULL);
	else if (shape->aux == SOCKET) /* struct sockaddr_un */
		more = put_socket(r, data + used, room, arg(s, shape->aux_arg));
	else if (shape->aux == TEXT)
		more = put_text(r, data + used, room, arg(s, shape->aux_arg), result);
	if (more >= room)
		goto too_long;
finish:
	if (room < LONG)
		end_aside(r, now, result, used + more);
	else
		end(r, now, result, used + more);
	return 1;
too_long:
	if (room < LONG)
		return 0;
	r->flags |= AUX_PART; /* the kernel refuses it, too: ENAMETOOLONG */
	more = 0;
	goto finish;
}

INLINE void emit_plain(struct task_state *s, u32 task, u64 now, s64 result, u8 flags)
{
	const volatile struct shape *shape;
	struct record *r;
	u32 used;

	if ((u32)s->nr >= MOST_CALLS)
		return;
	shape = &shapes[s->nr];
	r = begin_aside(s, task);
	r->flags = flags;
	used = put_numbers(r, s, shape);
	if (used > NUMBERS)
		used = NUMBERS;
	if (shape->aux) {
		char *to = (char *)(r + 1) + used;
		u32 more = put_lists(r, to, s, shape, result);
		if (!more)
			more = put_beside(r, to, s, shape, result);
		r->aux = more;
		used += more;
	}
	end_aside(r, now, result, used);
}

INLINE void emit(struct task_state *s, u32 task, u64 now, s64 result, u8 flags)
{
	const volatile struct shape *shape;

	if ((u32)s->nr >= MOST_CALLS)
		return;
	shape = &shapes[s->nr];
	if (!shape->path[0] && shape->aux != TEXT && shape->aux != SOCKET)
		emit_plain(s, task, now, result, flags);
	else if (!emit_paths(s, task, now, result, SHORT, flags))
		emit_paths(s, task, now, result, LONG, flags);
	s->turn++;
}

/* A record that is no call: what happened to a task, with two numbers. */
INLINE void emit_event(struct task_state *s, u32 task, u8 kind, s64 result, u64 first, u64 second)
{
	u64 now = bpf_ktime_get_ns();
	struct record *r = begin(s, task, 16, kind);
	u64 *to;

	s->turn++;
	if (!r) {
		lose(now);
		return;
	}
	to = (u64 *)(r + 1);
	to[0] = first;
	to[1] = second;
	r->args = 2;
	if (kind != PENDING)
		r->start_ns = now;
	end(r, now, result, 16);
}
