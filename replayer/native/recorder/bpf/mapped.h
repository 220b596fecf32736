/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pages of files that recorded tasks touch through mappings. A fault says which address, the page cache then says of which file. */
#pragma once
#include "emit.h"

struct address_space {
	struct inode *host;
} KERNEL;

#define FAULT_WRITES 2 /* of the error code that the processor gives a fault */
#define MOST_PARENTS 64 /* of a file, that are looked at */
#define MAPS_FROM 4 /* the argument of mmap that is a descriptor */
/* What a record of a page says of it. */
enum { WRITES = 1, IN_CALL = 2 };

/* Directories by the numbers of their inodes: processes that map files below them have their faults recorded, no others. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 64);
	TYPE(key, u64);
	TYPE(value, u32);
} roots SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(map_flags, NO_PREALLOC);
	NUMBER(max_entries, 1 << 14);
	TYPE(key, u32);
	TYPE(value, u32);
} mapping SEC(".maps");

/* Whether a file lies below one of the roots. */
OWN int is_below_roots(u64 at)
{
	struct file *file = (void *)at;
	struct dentry *dentry = 0, *parent = 0;
	bpf_probe_read_kernel(&dentry, 8, &file->f_path.dentry);
	for (u32 i = 0; i < MOST_PARENTS && dentry; i++) {
		struct inode *inode = 0;
		unsigned long number = 0;
		u64 key;
		bpf_probe_read_kernel(&inode, 8, &dentry->d_inode);
		if (inode)
			bpf_probe_read_kernel(&number, 8, &inode->i_ino);
		key = number;
		if (bpf_map_lookup_elem(&roots, &key))
			return 1;
		parent = 0;
		bpf_probe_read_kernel(&parent, 8, &dentry->d_parent);
		if (parent == dentry)
			return 0;
		dentry = parent;
	}
	return 0;
}

/* A process has mapped a file. */
INLINE void note_mapping(struct task_struct *task, u64 fd)
{
	u32 process = task->tgid, yes = 1;
	u64 file = 0;
	if (bpf_map_lookup_elem(&mapping, &process))
		return;
	bpf_probe_read_kernel(&file, 8, task->files->fdt->fd + (u32)fd);
	if (file && is_below_roots(file))
		bpf_map_update_elem(&mapping, &process, &yes, 0);
}

/* A child has what its parent has mapped. */
INLINE void copy_mapping(struct task_struct *parent, struct task_struct *child)
{
	u32 process = parent->tgid, own = child->tgid, yes = 1;
	if (process != own && bpf_map_lookup_elem(&mapping, &process))
		bpf_map_update_elem(&mapping, &own, &yes, 0);
}

/* A process has nothing mapped any more. */
INLINE void forget_mapping(struct task_struct *task, struct task_state *s)
{
	u32 process = task->tgid;
	s->fault_ns = 0;
	bpf_map_delete_elem(&mapping, &process);
}

INLINE int begin_fault(u64 address, u64 code)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *s = state_of(task);
	u32 process = task->tgid;
	if (!s || !bpf_map_lookup_elem(&mapping, &process))
		return 0;
	s->fault_ns = bpf_ktime_get_ns();
	s->fault_address = address;
	s->fault_writes = code & FAULT_WRITES ? WRITES : 0;
	return 0;
}

/* A record of the fault that the task is in: address, the pages of the file that it may be, size and number of the inode, and what it does. One
 * that is tried again, when its page has been read, has another record. */
INLINE int emit_page(struct address_space *mapping, u64 first, u64 last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *s = state_of(task);
	struct inode *inode = mapping->host;
	struct record *r;
	u64 now, *to;

	if (!s || !s->fault_ns || !inode)
		return 0;
	now = bpf_ktime_get_ns();
	r = begin(s, task->pid, NUMBERS, PAGE);
	s->turn++;
	if (!r) {
		lose(now);
		return 0;
	}
	r->start_ns = s->fault_ns;
	to = (u64 *)(r + 1);
	to[0] = s->fault_address;
	to[1] = first;
	to[2] = last;
	to[3] = inode->i_size;
	to[4] = inode->i_ino;
	to[5] = s->fault_writes | (s->nr >= 0 ? IN_CALL : 0);
	r->args = 6;
	end(r, now, 0, NUMBERS);
	return 0;
}

SEC("tp_btf/page_fault_user")
int on_fault(u64 *ctx)
{
	return begin_fault(ctx[0], ctx[2]);
}

/* In a call: of the memory that it is given. */
SEC("tp_btf/page_fault_kernel")
int on_fault_in_call(u64 *ctx)
{
	return begin_fault(ctx[0], ctx[2]);
}

/* Pages that are in the cache are mapped, some around the one that is asked for. */
SEC("tp_btf/mm_filemap_map_pages")
int on_pages_mapped(u64 *ctx)
{
	return emit_page((void *)ctx[0], ctx[1], ctx[2]);
}

/* One is looked for, and read if it is not there. */
SEC("tp_btf/mm_filemap_fault")
int on_page_needed(u64 *ctx)
{
	return emit_page((void *)ctx[0], ctx[1], ctx[1]);
}
