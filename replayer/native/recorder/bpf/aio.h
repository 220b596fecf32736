/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of libaio: taken when io_submit is entered, complete when io_getevents hands them out. */
#pragma once
#include "requests.h"

#define MOST_IOCBS 1024 /* that one call submits, or hands out */

enum { PREAD, PWRITE, FSYNC_IOCB, FDSYNC, PREADV = 7, PWRITEV }; /* linux/aio_abi.h */

struct iocb {
	u64 data;
	u32 key, rw_flags;
	u16 opcode, priority;
	s32 fd;
	u64 from, length;
	s64 at;
};
struct io_event {
	u64 data, iocb;
	s64 result, more;
};

INLINE void take_iocb(struct request_key *key, u64 now)
{
	struct request q = { .call.nr = NO_CALL, .call.start_ns = now, .process = key->process };
	struct transfer transfer = {};
	struct iocb one;

	if (bpf_probe_read_user(&one, sizeof one, (void *)key->place))
		return;
	switch (one.opcode) {
	case PREAD:
	case PWRITE:
	case PREADV:
	case PWRITEV:
		transfer.fd = one.fd;
		transfer.at = one.at;
		transfer.from = one.from;
		transfer.length = one.length;
		transfer.flags = one.rw_flags;
		transfer.is_vector = one.opcode >= PREADV;
		transfer.writes = one.opcode == PWRITE || one.opcode == PWRITEV;
		take_transfer(&q, &transfer);
		break;
	case FSYNC_IOCB:
	case FDSYNC:
		take_call(&q, one.opcode == FDSYNC ? NR_FDATASYNC : NR_FSYNC, one.fd, 0, 0, 0);
		break;
	default: /* others wait for descriptors */
		return;
	}
	if (bpf_map_update_elem(&requests, key, &q, 0))
		count_unknown(1);
}

/* One of those that are submitted, or that were not. */
OWN int iocb_at(u64 place, u64 process, u64 now)
{
	struct request_key key = { .process = process };

	if (bpf_probe_read_user(&key.place, 8, (void *)place))
		return 1;
	if (now)
		take_iocb(&key, now);
	else
		bpf_map_delete_elem(&requests, &key);
	return 0;
}

INLINE void each_iocb(struct task_state *s, s64 from, u64 process, u64 now)
{
	s64 count = s->args[1];
	u64 list = s->args[2];

	if (from < 0)
		from = 0;
	for (u32 i = 0; i < MOST_IOCBS; i++) {
		if (from + i >= count)
			return;
		if (iocb_at(list + 8 * (from + i), process, now))
			return;
	}
	if (now)
		count_unknown(count - MOST_IOCBS);
}

OWN int event_at(u64 place, u64 process)
{
	struct io_event event;

	if (bpf_probe_read_user(&event, sizeof event, (void *)place))
		return 1;
	return complete(event.iocb, process, event.result);
}

INLINE void each_event(struct task_state *s, s64 count, u64 process)
{
	u64 list = s->args[3];

	for (u32 i = 0; i < MOST_IOCBS; i++) {
		if (i >= count || event_at(list + 32 * (u64)i, process))
			return;
	}
}
