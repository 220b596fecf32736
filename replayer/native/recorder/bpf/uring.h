/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* File requests of io_uring: what each opcode stands for. */
#pragma once
#include "requests.h"

struct io_cqe {
	s32 fd;
} KERNEL;
struct io_kiocb {
	u8 opcode;
	u32 flags;
	struct io_cqe cqe;
	struct io_kiocb *link;
} KERNEL;
struct io_uring_cqe {
	s32 res;
} KERNEL;
struct kiocb {
	s64 ki_pos;
} KERNEL;
struct filename {
	const char *name;
} KERNEL;
struct open_how {
	u64 flags, mode, resolve;
} KERNEL;
struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len, flags;
} KERNEL;
struct io_sync {
	s64 len, off;
	s32 flags, mode;
} KERNEL;
struct io_ftrunc {
	s64 len;
} KERNEL;
struct io_fadvise {
	u64 offset;
	u32 len, advice;
} KERNEL;
struct io_close {
	s32 fd;
	u32 file_slot;
} KERNEL;
struct io_open {
	s32 dfd;
	u32 file_slot;
	struct filename *filename;
	struct open_how how;
} KERNEL;
struct io_statx {
	s32 dfd;
	u32 flags;
	struct filename *filename;
	void *buffer;
} KERNEL;
struct io_unlink {
	s32 dfd, flags;
	struct filename *filename;
} KERNEL;
struct io_mkdir {
	s32 dfd;
	u16 mode;
	struct filename *filename;
} KERNEL;
struct io_rename {
	s32 old_dfd, new_dfd;
	struct filename *oldpath, *newpath;
	s32 flags;
} KERNEL;
struct io_link {
	s32 old_dfd, new_dfd;
	struct filename *oldpath, *newpath;
	s32 flags;
} KERNEL;

/* What a request is about lies at its begin, as its opcode says: a field of it. */
#define FIELD(type, field) ({ \
	typeof(((type *)0)->field) value = 0; \
	bpf_probe_read_kernel(&value, sizeof value, &((type *)(req))->field); \
	value; \
})

/* Whether this kernel has it. */

enum { /* io_uring_enter(2) */
	READV = 1, WRITEV, FSYNC, READ_FIXED, WRITE_FIXED, SYNC_FILE_RANGE = 8, FALLOCATE = 17, OPENAT, CLOSE, FILES_UPDATE, STATX_OP, READ, WRITE,
	FADVISE, OPENAT2 = 28, SPLICE = 30, TEE = 33, RENAMEAT = 35, UNLINKAT, MKDIRAT, SYMLINKAT, LINKAT, FSETXATTR = 41, GETXATTR = 44,
	URING_CMD = 46, READ_MULTISHOT = 49, FIXED_FD_INSTALL = 54, FTRUNCATE, READV_FIXED = 60, WRITEV_FIXED, PIPE, LAST_KNOWN = PIPE
};
#define FIXED_FILE 1 /* REQ_F_FIXED_FILE */
#define LINKED 12 /* REQ_F_LINK, REQ_F_HARDLINK */
#define DATASYNC 1 /* IORING_FSYNC_DATASYNC */
#define O_LARGEFILE 0100000 /* the kernel adds it */

/* A name of a request: the kernel has read it. */
INLINE void take_name(struct request *q, struct request_names *names, struct filename *from, int place)
{
	const char *text = 0;
	long length;

	names->length[place] = 0;
	if (!from) {
		q->flags |= place ? SECOND_NULL : PATH_NULL;
		return;
	}
	q->names = 1;
	bpf_probe_read_kernel(&text, sizeof text, &from->name);
	length = bpf_probe_read_kernel_str(names->text[place], PATH_BYTES, text);
	if (length < 1)
		q->flags |= place ? SECOND_FAULT : PATH_FAULT;
	else
		names->length[place] = length - 1;
}

/* Requests with names. Returns whether it is one whose call is known. */
INLINE int take_named(struct request *q, struct request_names *names, struct io_kiocb *req, u8 opcode)
{
	struct filename *first = 0, *second = 0;
	u8 has_second = 0;

	switch (opcode) {
	case OPENAT:
	case OPENAT2:
		if (FIELD(struct io_open, file_slot)) /* into a table of the ring: it gives out no descriptor */
			return 0;
		first = FIELD(struct io_open, filename);
		q->beside[0] = FIELD(struct io_open, how.flags) & ~(u64)O_LARGEFILE;
		q->beside[1] = FIELD(struct io_open, how.mode);
		q->beside[2] = FIELD(struct io_open, how.resolve);
		q->beside_bytes = opcode == OPENAT ? 0 : 24;
		take_call(q, opcode == OPENAT ? NR_OPENAT : NR_OPENAT2, FIELD(struct io_open, dfd), 0, q->beside[0], q->beside[1]);
		break;
	case STATX_OP:
		first = FIELD(struct io_statx, filename);
		take_call(q, NR_STATX, FIELD(struct io_statx, dfd), 0, FIELD(struct io_statx, flags), 0);
		q->call.args[4] = (u64)FIELD(struct io_statx, buffer);
		break;
	case UNLINKAT:
		first = FIELD(struct io_unlink, filename);
		take_call(q, NR_UNLINKAT, FIELD(struct io_unlink, dfd), 0, FIELD(struct io_unlink, flags), 0);
		break;
	case MKDIRAT:
		first = FIELD(struct io_mkdir, filename);
		take_call(q, NR_MKDIRAT, FIELD(struct io_mkdir, dfd), 0, FIELD(struct io_mkdir, mode), 0);
		break;
	case RENAMEAT:
		first = FIELD(struct io_rename, oldpath);
		second = FIELD(struct io_rename, newpath);
		has_second = 1;
		take_call(q, NR_RENAMEAT2, FIELD(struct io_rename, old_dfd), 0, FIELD(struct io_rename, new_dfd), 0);
		q->call.args[4] = FIELD(struct io_rename, flags);
		break;
	case LINKAT:
		first = FIELD(struct io_link, oldpath);
		second = FIELD(struct io_link, newpath);
		has_second = 1;
		take_call(q, NR_LINKAT, FIELD(struct io_link, old_dfd), 0, FIELD(struct io_link, new_dfd), 0);
		q->call.args[4] = FIELD(struct io_link, flags);
		break;
	case SYMLINKAT:
		first = FIELD(struct io_link, oldpath);
		second = FIELD(struct io_link, newpath);
		has_second = 1;
		take_call(q, NR_SYMLINKAT, 0, FIELD(struct io_link, new_dfd), 0, 0);
		break;
	default:
		return 0;
	}
	take_name(q, names, first, 0);
	names->length[1] = 0;
	if (has_second)
		take_name(q, names, second, 1);
	return 1;
}

/* Requests about a descriptor alone. Returns whether it is one whose call is known. */
INLINE int take_plain(struct request *q, struct io_kiocb *req, u8 opcode, s32 fd)
{
	struct transfer transfer = { .fd = fd };

	switch (opcode) {
	case WRITE:
	case WRITE_FIXED:
	case WRITEV:
	case WRITEV_FIXED:
		transfer.writes = 1;
	case READ:
	case READ_FIXED:
	case READV:
	case READV_FIXED:
		transfer.is_vector = opcode == READV || opcode == READV_FIXED || opcode == WRITEV || opcode == WRITEV_FIXED;
		transfer.at = FIELD(struct io_rw, kiocb.ki_pos);
		transfer.from = FIELD(struct io_rw, addr);
		transfer.length = FIELD(struct io_rw, len);
		transfer.flags = FIELD(struct io_rw, flags);
		take_transfer(q, &transfer);
		return 1;
	case FSYNC:
		take_call(q, FIELD(struct io_sync, flags) & DATASYNC ? NR_FDATASYNC : NR_FSYNC, fd, 0, 0, 0);
		return 1;
	case SYNC_FILE_RANGE:
		take_call(q, NR_SYNC_FILE_RANGE, fd, FIELD(struct io_sync, off), FIELD(struct io_sync, len), FIELD(struct io_sync, flags));
		return 1;
	case FALLOCATE:
		take_call(q, NR_FALLOCATE, fd, FIELD(struct io_sync, mode), FIELD(struct io_sync, off), FIELD(struct io_sync, len));
		return 1;
	case FTRUNCATE:
		if (!EXISTS(struct io_ftrunc, len))
			return 0;
		take_call(q, NR_FTRUNCATE, fd, FIELD(struct io_ftrunc, len), 0, 0);
		return 1;
	case FADVISE:
		take_call(q, NR_FADVISE64, fd, FIELD(struct io_fadvise, offset), FIELD(struct io_fadvise, len), FIELD(struct io_fadvise, advice));
		return 1;
	case CLOSE:
		take_call(q, NR_CLOSE, FIELD(struct io_close, fd), 0, 0, 0);
		return !FIELD(struct io_close, file_slot);
	}
	return 0;
}

/* Whether it is about files: others wait, or use sockets. */
INLINE int is_of_file(u8 opcode)
{
	switch (opcode) {
	case READV: case WRITEV: case FSYNC: case READ_FIXED: case WRITE_FIXED: case SYNC_FILE_RANGE: case FALLOCATE: case OPENAT: case CLOSE:
	case FILES_UPDATE: case STATX_OP: case READ: case WRITE: case FADVISE: case OPENAT2: case SPLICE: case TEE: case RENAMEAT:
	case UNLINKAT: case MKDIRAT: case SYMLINKAT: case LINKAT: case FSETXATTR: case FSETXATTR + 1: case FSETXATTR + 2: case GETXATTR:
	case URING_CMD: case READ_MULTISHOT: case FIXED_FD_INSTALL: case FTRUNCATE: case READV_FIXED: case WRITEV_FIXED: case PIPE:
		return 1;
	}
	return opcode > LAST_KNOWN;
}

INLINE int has_names(u8 opcode)
{
	return opcode == OPENAT || opcode == OPENAT2 || opcode == STATX_OP || (opcode >= RENAMEAT && opcode <= LINKAT);
}

/* It was submitted: by a recorded task, or by the kernel's thread that polls for its process. */
SEC("tp_btf/io_uring_submit_req")
int on_submit(u64 *ctx)
{
	struct io_kiocb *req = (void *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *s = state_of(task);
	struct request_key key = { .place = (u64)req };
	struct request q = { .call.nr = NO_CALL };
	struct request_names *names;
	u32 first = 0;
	u8 opcode;

	if (!s) {
		s = state_of(task->group_leader);
		if (!s)
			return 0;
	}
	opcode = req->opcode;
	if (s->waits_for_exec || !is_of_file(opcode))
		return 0;
	if (bpf_map_lookup_elem(&requests, &key)) /* it was asked to complete in silence, and its place is used again */
		count_unknown(1);
	q.process = task->tgid;
	q.call.start_ns = bpf_ktime_get_ns();
	if (has_names(opcode)) {
		names = bpf_map_lookup_elem(&new_names, &first);
		if (!names || !take_named(&q, names, req, opcode))
			goto unknown;
		if (q.names && bpf_map_update_elem(&request_names, &key, names, 0))
			goto unknown;
	} else if ((req->flags & FIXED_FILE && opcode != CLOSE) || !take_plain(&q, req, opcode, req->cqe.fd)) {
		goto unknown;
	}
	if (bpf_map_update_elem(&requests, &key, &q, 0))
		goto unknown;
	return 0;
unknown:
	count_unknown(1);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

INLINE int completed(struct io_kiocb *req, s64 result)
{
	struct request_key key = {};
	struct request *next;

	complete((u64)req, 0, result);
	/* What is linked to it begins now. */
	if (req && FIELD(struct io_kiocb, flags) & LINKED) {
		key.place = (u64)FIELD(struct io_kiocb, link);
		next = bpf_map_lookup_elem(&requests, &key);
		if (next)
			next->call.start_ns = bpf_ktime_get_ns();
	}
	return 0;
}

SEC("tp_btf/io_uring_complete")
int on_complete(u64 *ctx)
{
	struct io_uring_cqe *cqe = (void *)ctx[2];
	return completed((void *)ctx[1], cqe->res);
}

/* Before Linux 6.14 */
SEC("tp_btf/io_uring_complete")
int on_complete_by_value(u64 *ctx)
{
	return completed((void *)ctx[1], (s32)ctx[3]);
}
