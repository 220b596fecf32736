// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Records the file calls of chosen tasks: a record for each call when it returns, for each fork, exec and end of a task. */
#include "aio.h"
#include "mapped.h"
#include "uring.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

INLINE u32 number_of(struct task_struct *task, u32 nr)
{
	return (task->thread_info.status & TS_COMPAT ? COMPAT : 0) + nr;
}

INLINE void take_args(struct task_state *s, struct pt_regs *regs, u32 nr)
{
	if (nr >= COMPAT) {
		s->args[0] = (u32)regs->bx;
		s->args[1] = (u32)regs->cx;
		s->args[2] = (u32)regs->dx;
		s->args[3] = (u32)regs->si;
		s->args[4] = (u32)regs->di;
		s->args[5] = (u32)regs->bp;
	} else {
		s->args[0] = regs->di;
		s->args[1] = regs->si;
		s->args[2] = regs->dx;
		s->args[3] = regs->r10;
		s->args[4] = regs->r8;
		s->args[5] = regs->r9;
	}
	s->nr = nr;
}

/* Whether the arguments are those of a call that is worth a record. */
INLINE int is_meant(struct task_state *s, u8 filter)
{
	u32 command = s->args[1] & 127;
	if (filter == MAPS_FILE)
		return !(s->args[3] & MAP_ANONYMOUS);
	if (filter == JOINS) /* who joins a thread waits for its number: FUTEX_WAIT, FUTEX_WAIT_BITSET */
		return (command == 0 || command == 9) && (u32)s->args[2] > 2;
	if (filter == OF_SOCKETS) { /* those of socketcall that give out descriptors */
		u64 call = s->args[0];
		if (call == BIND)
			count_compat();
		return call == SOCKET_CALL || call == ACCEPT || call == SOCKETPAIR || call == ACCEPT4;
	}
	return 1;
}

/* Of the time since its last call a task has waited for a CPU so long. */
INLINE void tell_delay(struct task_state *s, struct task_struct *task)
{
	u64 delay = delay_of(task) - s->delay_ns;
	if (delay >= LEAST_DELAY && !s->waits_for_exec)
		emit_event(s, task->pid, DELAYED, 0, delay, 0);
}

SEC("tp_btf/sys_enter")
int on_enter(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	const volatile struct shape *shape;
	struct task_state *s;
	u64 nr = ctx[1], begin_ns;

	if (nr >= COMPAT) {
		if (nr >> 30 == 1 && state_of(task)) /* x32 */
			count_compat();
		return 0;
	}
	nr = number_of(task, nr);
	if (nr >= MOST_CALLS)
		return 0;
	shape = &shapes[nr];
	if (shape->recorded != RECORDED) {
		if (shape->recorded == COUNTED && state_of(task))
			count_compat();
		return 0;
	}
	s = state_of(task);
	if (!s)
		return 0;
	begin_ns = bpf_ktime_get_ns();
	s->entered_before = 0;
	tell_delay(s, task);
	take_args(s, regs, nr);
	if (!is_meant(s, shape->filter))
		s->nr = NO_CALL;
	s->start_ns = bpf_ktime_get_ns();
	s->probe_ns += s->start_ns - begin_ns;
	if (shape->filter == SUBMITS && nr >= COMPAT)
		count_unknown(s->args[1]);
	else if (shape->filter == SUBMITS)
		each_iocb(s, 0, task->tgid, s->start_ns);
	return 0;
}

SEC("tp_btf/sys_exit")
int on_return(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_state *s = state_of(task);
	u8 flags = 0;
	u64 now;

	if (!s)
		return 0;
	if (s->nr < 0) {
		/* Attached to while it was in a call, of which all is there but the begin, or a filter (seccomp) answered for the kernel. */
		u64 nr = regs->orig_ax;
		u8 was_entered = s->entered_before;
		s->entered_before = 0;
		if (nr >= COMPAT)
			return 0;
		if (!was_entered && (nr == ctx[1] || (!s->turn && !ctx[1]))) /* one that a filter kills for, or the return of a new task */
			return 0;
		nr = number_of(task, nr);
		if (nr >= MOST_CALLS || shapes[nr].recorded != RECORDED)
			return 0;
		if (!was_entered && shapes[nr].filter) /* it is not meant */
			return 0;
		take_args(s, regs, nr);
		s->start_ns = bpf_ktime_get_ns();
		flags = was_entered ? BEGUN_BEFORE : 0;
	}
	now = bpf_ktime_get_ns();
	if ((u32)s->nr < MOST_CALLS && shapes[s->nr].filter == MAPS_FILE && (s64)ctx[1] > 0)
		note_mapping(task, s->args[MAPS_FROM]);
	if (s->nr == NR_IO_SUBMIT) /* those that it did not take */
		each_iocb(s, ctx[1], task->tgid, 0);
	else if (s->nr == NR_IO_GETEVENTS || s->nr == NR_IO_PGETEVENTS)
		each_event(s, ctx[1], task->tgid);
	if (!s->waits_for_exec)
		emit(s, task->pid, now, ctx[1], flags);
	s->nr = NO_CALL;
	s->delay_ns = delay_of(task);
	s->probe_ns = bpf_ktime_get_ns() - now;
	return 0;
}

INLINE struct task_state *record_task(struct task_struct *task)
{
	struct task_state *s = bpf_task_storage_get(&tasks, task, (void *)&new_task, STORAGE_CREATE);
	met[place_of(task)] = 1;
	if (s)
		count_live(1);
	else
		lose(bpf_ktime_get_ns());
	return s;
}

/* Once for each task: it may end while it is attached to. */
INLINE void count_end(struct task_state *s)
{
	if (__sync_lock_test_and_set(&s->is_live, 0))
		count_live(-1);
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	struct task_state *s = state_of(parent), *own;

	if (!s) {
		struct control *c = control();
		if (!c || !c->launcher || c->launcher != parent->pid)
			return 0;
		c->launcher = 0;
		own = record_task(child);
		if (own)
			own->waits_for_exec = 1;
		return 0;
	}
	if (s->waits_for_exec || !record_task(child))
		return 0;
	copy_mapping(parent, child);
	emit_event(s, parent->pid, FORK, 0, child->pid, child->tgid);
	return 0;
}

/* With the path, which the task's own memory has no more. */
INLINE int emit_exec(struct task_state *s, struct task_struct *task, u32 before, struct linux_binprm *program, u32 room)
{
	u64 now = bpf_ktime_get_ns();
	struct record *r = begin(s, task->pid, 8 + (u64)room, EXEC);
	long length;

	if (!r) {
		lose(now);
		return 1;
	}
	*(u64 *)(r + 1) = before;
	r->args = 1;
	length = bpf_probe_read_kernel_str((char *)(r + 1) + 8, room, program->filename);
	if (length >= room && room < LONG) {
		bpf_ringbuf_discard(r, NO_WAKEUP);
		return 0;
	}
	if (length < 1)
		length = 1;
	if (length > room)
		length = room;
	r->path = length - 1;
	r->start_ns = now;
	end(r, now, 0, 8 + length - 1);
	return 1;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *program = (void *)ctx[2];
	struct task_state *s = state_of(task);

	if (!s)
		return 0;
	s->waits_for_exec = 0;
	forget_mapping(task, s);
	if (!emit_exec(s, task, ctx[1], program, SHORT))
		emit_exec(s, task, ctx[1], program, LONG);
	s->turn++;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_state *s = state_of(task);

	if (!s)
		return 0;
	if (!s->waits_for_exec)
		emit_event(s, task->pid, EXIT, task->exit_code, task->tgid, 0);
	if (task->pid == task->tgid)
		forget_mapping(task, s);
	s->nr = NO_CALL;
	count_end(s);
	return 0;
}

/* Begin to record all threads of the processes that are wanted. */
SEC("iter/task")
int attach_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *s;
	u32 process;

	if (!task)
		return 0;
	process = task->tgid;
	if (!bpf_map_lookup_elem(&wanted, &process) || state_of(task))
		return 0;
	s = record_task(task);
	if (s && task->flags & PF_EXITING) { /* nobody may tell of its end any more */
		count_end(s);
	} else if (s) {
		s->delay_ns = delay_of(task);
		emit_event(s, task->pid, ATTACHED, 0, process, 0);
		s->entered_before = 1;
	}
	return 0;
}

INLINE u64 closes_on_exec(struct task_struct *task, u32 fd)
{
	u64 word = 0;
	bpf_probe_read_kernel(&word, 8, task->files->fdt->close_on_exec + fd / 64);
	return word >> (fd % 64) & 1;
}

/* A record of an open file: descriptor, position, flags, which description it is, size and number of its inode, and path. */
INLINE void emit_file(struct task_struct *task, u32 fd, struct file *file, char *path, u32 room)
{
	struct task_state none = { .nr = NO_CALL };
	u64 now = bpf_ktime_get_ns();
	struct record *r;
	long length;
	u64 *to;

	none.start_ns = now;
	r = begin(&none, task->pid, NUMBERS + (u64)room, FILE);
	if (!r) {
		lose(now);
		return;
	}
	to = (u64 *)(r + 1);
	to[0] = fd;
	to[1] = file->f_pos;
	to[2] = file->f_flags | (closes_on_exec(task, fd) ? O_CLOEXEC : 0);
	to[3] = (u64)file;
	to[4] = file->f_inode->i_size;
	to[5] = file->f_inode->i_ino;
	r->args = 6;
	length = bpf_probe_read_kernel_str(to + 6, room, path);
	if (length < 1)
		length = 1;
	if (length > room)
		length = room;
	r->path = length - 1;
	end(r, now, file->f_inode->i_mode, NUMBERS + length - 1);
}

/* Tell of the open files of the processes that are wanted. */
SEC("iter/task_file")
int tell_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct task_state none = { .nr = NO_CALL };
	struct name *name;
	u32 process, first = 0;
	long length;

	if (!task || !file) {
		emit_event(&none, 0, LOOKED, 0, 0, 0);
		return 0;
	}
	process = task->tgid;
	if (!bpf_map_lookup_elem(&wanted, &process))
		return 0;
	name = bpf_map_lookup_elem(&names, &first);
	if (!name)
		return 0;
	length = bpf_d_path(&file->f_path, name->text, sizeof name->text);
	if (length < 1)
		return 0;
	if (length <= SHORT)
		emit_file(task, ctx->fd, file, name->text, SHORT);
	else
		emit_file(task, ctx->fd, file, name->text, LONG);
	return 0;
}

/* Tell of calls that have not returned. */
SEC("iter/task")
int tell_pending(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *s;

	if (!task)
		return 0;
	s = state_of(task);
	if (s && s->nr >= 0 && !s->waits_for_exec)
		emit_event(s, task->pid, PENDING, 0, 0, 0);
	return 0;
}
