"""Which ops look names up, move data or make files."""

__all__ = ["MAKING", "PATH_OPS", "READING", "RECORDED_AS", "TO_THE_END", "UNTIMED", "WRITING"]

PATH_OPS = frozenset(
    (
        *("open", "stat", "lstat", "access", "mkdir", "rmdir", "unlink", "rename", "link"),
        *("symlink", "readlink", "truncate", "chmod", "chown", "utimens"),
    )
)
"""Ops that fail when a name is not there. Those on xattrs fail when an attribute is not."""

# Ops of traces, see replayer/trace/FORMAT.md.
READING = frozenset({"read", "readv", "pread", "preadv", "sendfile"})
WRITING = frozenset({"write", "writev", "pwrite", "pwritev", "copy_file_range"})
UNTIMED = frozenset({"inherit", "meanwhile", "close_exit", "exit"})
"""No calls of the recorded program: made between the timed ones."""
RECORDED_AS = {"close_dup": "close"}
MAKING = frozenset({"open", "mkdir", "symlink", "link", "mknod"})
"""An open may create: a bound, since a census does not tell which one does."""
TO_THE_END = frozenset({"copy_file_range", "sendfile"})
"""Ops of plans that are repeated until a call moves nothing."""
