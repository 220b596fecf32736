/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fields of the kernel's structures and the helpers that the probe uses: offsets are those of the running kernel, by its BTF. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define OWN __attribute__((noinline)) /* verified once, by itself */
#define KERNEL __attribute__((preserve_access_index))
/* What is compared is what is used: the verifier of Linux 6.1 and before knows no bounds of copies. */
#define HOLD(value) asm volatile("" : "+r"(value))
#define EXISTS(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, value) typeof(value) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_RINGBUF = 27, MAP_TASK_STORAGE = 29 };
enum { NO_PREALLOC = 1, STORAGE_CREATE = 1, NO_WAKEUP = 1 };

struct thread_info {
	u32 status;
} KERNEL;
struct file;
struct fdtable {
	struct file **fd;
	unsigned long *close_on_exec;
} KERNEL;
struct sched_info {
	u64 run_delay;
} KERNEL;
struct files_struct {
	struct fdtable *fdt;
} KERNEL;
struct task_struct {
	struct thread_info thread_info;
	struct sched_info sched_info;
	u32 flags;
	s32 pid, tgid, exit_code;
	struct files_struct *files;
	struct task_struct *group_leader;
} KERNEL;
struct inode;
struct dentry {
	struct dentry *d_parent;
	struct inode *d_inode;
} KERNEL;
struct path {
	void *mnt;
	struct dentry *dentry;
} KERNEL;
struct inode {
	unsigned long i_ino;
	s64 i_size;
	u16 i_mode;
} KERNEL;
struct file {
	struct path f_path;
	struct inode *f_inode;
	s64 f_pos;
	u32 f_flags;
} KERNEL;
struct linux_binprm {
	const char *filename;
} KERNEL;
struct pt_regs {
	unsigned long r10, r9, r8, dx, si, di, bx, cx, bp, orig_ax;
} KERNEL;
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL;
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
} KERNEL;

struct iovec {
	u64 base, length;
};

/* bpf-helpers(7) */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*bpf_ringbuf_discard)(void *data, u64 flags) = (void *)133;
static long (*bpf_d_path)(struct path *path, char *to, u32 size) = (void *)147;
static void *(*bpf_task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
