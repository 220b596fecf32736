/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is recorded, what is known of recorded tasks, and what the loader and the probe share. */
#pragma once
#include "kernel.h"

/* Kinds of records, and flags of one: record.rs */
enum { CALL, FORK, EXEC, EXIT, PENDING, END, ATTACHED, FILE, LOOKED, PAGE, REQUEST, DELAYED };
enum { PATH_FAULT = 1, SECOND_FAULT = 2, PATH_NULL = 4, SECOND_NULL = 8, AUX_FAULT = 16, AUX_PART = 32, BEGUN_BEFORE = 64 };

/* What is read beside numbers and paths: table.rs */
enum {
	NOTHING, STAT, STATX, STAT64, IOVECS, COMPAT_IOVECS, ENTRIES, LOCK, BYTES_32, BYTES_24, BYTES_16, BYTES_8,
	FOUND_8, FOUND_4, OFFSETS, TEXT, SOCKET, ACCESS_LIST, COMPAT_STAT, COMPAT_ENTRIES, COMPAT_OFFSET, COMPAT_SOCKET
};
enum { EVERY, MAPS_FILE, JOINS, OF_SOCKETS, SUBMITS };
enum { UNRECORDED, RECORDED, COUNTED };

#define MOST_CALLS 1024 /* 512 of x86-64, then 512 of i386 */
#define COMPAT 512
#define TS_COMPAT 2
#define MAP_ANONYMOUS 0x20
#define MOST_ENTRIES 2048 /* that are counted at a time: the verifier follows no more than 8,192 branches */
#define MOST_COUNTS 64
#define AF_UNIX 1
enum { SOCKET_CALL = 1, BIND = 2, ACCEPT = 5, SOCKETPAIR = 8, ACCEPT4 = 18 }; /* of socketcall(2) */
#define PF_EXITING 4
#define LEAST_DELAY 1000 /* ns that are told: what pauses are right to */
#define O_CLOEXEC 02000000
#define SYSTEM_P 0x702e6d6574737973ULL /* eight letters each, little-endian */
#define OSIX_ACL 0x6c63615f7869736fULL

/* One call: whether and how it is recorded. The loader fills the table. */
struct shape {
	u8 recorded, filter, args, arg[6], path[2], aux, aux_arg, unused[3];
};
const volatile struct shape shapes[MOST_CALLS] = {};

struct record {
	u16 size, nr;
	u8 kind, flags, aux, args;
	u32 task;
	u16 turn, path;
	u64 start_ns, duration_ns;
	s64 result;
	u32 probe_ns, unused; /* of the time since the task's last call the probe itself took so long */
};

/* What is known of a recorded task. */
struct task_state {
	u64 start_ns, args[6];
	s32 nr; /* of the call that it is in, or none */
	u16 turn; /* of its next record */
	u8 waits_for_exec, entered_before, fault_writes;
	u64 fault_ns, fault_address; /* of its last page fault: mapped.h */
	u32 is_live; /* it is counted among those that live */
	u64 delay_ns; /* that it had waited for a CPU in all when its last call returned */
	u64 probe_ns; /* that the probe has taken since then */
};
enum { NO_CALL = -1 };

/* Room behind a record: six numbers, what is beside them, and paths. */
#define NUMBERS 48
#define BESIDE 32
#define SHORT 128
#define LONG 4104

/* A recorded task, and room to put a record of it together: in the ring it then takes no more than it has. */
struct task {
	struct task_state state;
	char room[sizeof(struct record) + NUMBERS + BESIDE + 2 * SHORT];
};
const volatile struct task new_task = { .state = { .nr = NO_CALL, .is_live = 1 } };

struct {
	NUMBER(type, MAP_TASK_STORAGE);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct task);
} tasks SEC(".maps");

struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, 1 << 24);
} ring SEC(".maps");

/* What the loader and the probe tell each other. */
struct control {
	u64 lost, first_lost_ns, live, compat;
	u32 launcher, unused;
	u64 unknown; /* requests of io_uring and libaio */
};
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct control);
} controls SEC(".maps");

/* Processes to attach to. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 1 << 16);
	TYPE(key, u32);
	TYPE(value, u32);
} wanted SEC(".maps");

/* Room to put a path together. */
struct name {
	char text[4096];
};
struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct name);
} names SEC(".maps");

INLINE struct control *control(void)
{
	u32 first = 0;
	return bpf_map_lookup_elem(&controls, &first);
}

/* Whether a task with such a number, modulo their count, was ever recorded: one look at memory lets all others go. */
u8 met[1 << 16] = {};

INLINE u32 place_of(struct task_struct *task)
{
	return (u32)task->pid % sizeof met;
}

INLINE struct task_state *state_of(struct task_struct *task)
{
	return met[place_of(task)] ? bpf_task_storage_get(&tasks, task, 0, 0) : 0;
}

/* How long a task has waited for a CPU in all: 0 where the kernel does not count it. */
INLINE u64 delay_of(struct task_struct *task)
{
	return EXISTS(struct task_struct, sched_info) ? task->sched_info.run_delay : 0;
}

INLINE void lose(u64 now)
{
	struct control *c = control();
	if (!c)
		return;
	__sync_fetch_and_add(&c->lost, 1);
	if (!c->first_lost_ns || now < c->first_lost_ns)
		c->first_lost_ns = now;
}

INLINE void count_live(s64 more)
{
	struct control *c = control();
	if (c)
		__sync_fetch_and_add(&c->live, more);
}

/* A call of a 32-bit program that is not recorded. */
INLINE void count_compat(void)
{
	struct control *c = control();
	if (c)
		__sync_fetch_and_add(&c->compat, 1);
}
