"""The options of fio that a job file may have, and what their values may look like.

An allow list: what is not named here is refused, whatever a later fio makes of it. Names are those
of ``fio --cmdhelp=all`` and ``fio --enghelp=ENGINE`` of fio 3.28 to 3.33, with their aliases.
"""

from typing import Literal

Kind = Literal["plain", "time", "name", "files", "folder", "engine", "memory", "pattern", "ours"]
"""What a value is.

plain: numbers, words and lists of them. time: a whole number with a unit, or two with - between.
name: of a file that fio writes beside the data. files: ``filename``. folder: ``directory``. engine,
memory, pattern: ``ioengine``, ``mem``, ``buffer_pattern``. ours: set by replayer, the file's is
dropped.
"""

ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blockalign": "ba",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "io_limit": "io_size",
    "fill_fs": "fill_device",
    "fileoffset": "offset",
    "nr_files": "nrfiles",
    "timeout": "runtime",
    "iomem": "mem",
    "ratemin": "rate_min",
    "ratecycle": "rate_cycle",
    "wait_for_previous": "stonewall",
    "disable_bw": "disable_bw_measurement",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time",
}

_PLAIN = """
rw bs ba bsrange bssplit bs_unaligned randrepeat randseed norandommap ignore_error rw_sequencer
iodepth iodepth_batch iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low
serialize_overlap io_submit_mode size io_size filesize file_append offset offset_increment
offset_align number_ios random_generator random_distribution percentage_random allrandrepeat nrfiles
file_service_type openfiles fallocate fadvise_hint fsync fdatasync write_barrier sync_file_range
direct atomic buffered overwrite loops numjobs time_based verify_only clocksource verify do_verify
verify_interval verify_offset verify_fatal verify_async verify_backlog verify_backlog_batch
experimental_verify trim_percentage trim_verify_zero trim_backlog trim_backlog_batch lockfile
unique_filename lockmem rwmixread rwmixwrite nice prio prioclass thinktime_blocks
thinktime_blocks_type rate rate_min rate_process rate_cycle rate_ignore_thinktime rate_iops
rate_iops_min latency_percentile latency_run invalidate sync write_hint create_serialize
create_fsync create_on_open create_only allow_file_create pre_read cpumask cpus_allowed
cpus_allowed_policy numa_cpu_nodes numa_mem_policy end_fsync fsync_on_close unlink unlink_each_loop
exitall exit_what exitall_on_error stonewall thread per_job_logs bwavgtime iopsavgtime log_entries
log_avg_msec log_hist_msec log_hist_coarseness log_max_value log_offset log_prio log_compression
log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch
log_alternate_epoch_clock_id zero_buffers refill_buffers scramble_buffers buffer_compress_percentage
buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global
gtod_cpu continue_on_error error_dump kb_base hugepage-size flow_id flow flow_sleep steadystate
hipri hipri_percentage cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit fixedbufs
registerfiles sqthread_poll sqthread_poll_cpu nonvectored uncached nowait force_async userspace_reap
thp stat_type
"""

_TIMES = """
startdelay runtime ramp_time thinktime thinktime_spin thinktime_iotime max_latency latency_target
latency_window steadystate_duration steadystate_ramp_time
"""

_OURS = """
description group_reporting new_group clat_percentiles lat_percentiles slat_percentiles
percentile_list significant_figures disk_util disable_bw_measurement unit_base
block_error_percentiles unified_rw_reporting stats
"""

_LOGS = "write_bw_log write_lat_log write_iops_log write_hist_log"

ALLOWED: dict[str, Kind] = {
    **dict.fromkeys(_PLAIN.split(), "plain"),
    **dict.fromkeys(_TIMES.split(), "time"),
    **dict.fromkeys(_OURS.split(), "ours"),
    **dict.fromkeys(_LOGS.split(), "name"),
    "wait_for": "name",
    "filename": "files",
    "directory": "folder",
    "ioengine": "engine",
    "mem": "memory",
    "buffer_pattern": "pattern",
    "verify_pattern": "pattern",
}

_ENGINES = """
sync psync vsync pvsync pvsync2 io_uring libaio posixaio mmap splice falloc ftruncate filecreate
filestat filedelete null
"""

ENGINES = frozenset(_ENGINES.split())
"""Engines that work on the files of the job and on nothing else."""

FILE_CALLS = {"filecreate": "open", "filestat": "stat", "filedelete": "unlink"}
"""Engines that make one call for each file, which fio times as its ``clat`` alone; they move no
bytes, whatever fio counts."""

_LEADING_OUT = """
opendir include read_iolog write_iolog verify_state_load verify_state_save verify_dump
merge_blktrace_file filename_format read_iolog_chunked
"""
_RUNS = "it runs a program"
_SYSTEM = "it changes system settings"

REASONS = {
    **dict.fromkeys(_LEADING_OUT.split(), "it reads or writes files outside the target"),
    **dict.fromkeys(("exec_prerun", "exec_postrun", "program", "profile"), _RUNS),
    **dict.fromkeys(
        ("ioscheduler", "cgroup", "cgroup_weight", "cgroup_nodelete", "uid", "gid"), _SYSTEM
    ),
    **dict.fromkeys(
        ("disable_lat", "disable_clat", "disable_slat", "gtod_reduce"),
        "times are what a run measures",
    ),
    **dict.fromkeys(
        ("client", "server", "hostname", "trigger", "trigger-file", "trigger-remote"),
        "fio runs only on this machine",
    ),
    "fill_device": "it fills the target completely",
    "name": "the section name is the job name",
    "allow_mounted_write": "mounted devices are never written to",
    "zonemode": "zoned devices are not supported",
}
"""Why an option is refused, where that is not only because nobody has looked at it."""
