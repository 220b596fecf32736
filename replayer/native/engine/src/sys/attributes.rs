//! Extended attributes, without copies. Whoever calls has made sure that a path stays inside.
#![expect(unsafe_code, reason = "rustix wants to write to borrowed memory")]

use super::files::length;
use super::operands::{Answer, Links};
use super::scratch::Scratch;
use std::ffi::CStr;
use std::os::fd::RawFd;

/// What an attribute belongs to: an open file, or a path and what becomes of a symlink in its last place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attributed<'a> {
    File(RawFd),
    Path(&'a CStr, Links),
}

impl Attributed<'_> {
    /// Which call it is of those on an open file, on what a path leads to, and on a link itself; and its first argument.
    fn first(self, [of_file, of_path, of_link]: [libc::c_long; 3]) -> (libc::c_long, usize) {
        match self {
            Attributed::File(file) => (of_file, usize::try_from(file).unwrap_or(usize::MAX)),
            Attributed::Path(path, Links::Follow) => (of_path, path.as_ptr().expose_provenance()),
            Attributed::Path(path, Links::Keep) => (of_link, path.as_ptr().expose_provenance()),
        }
    }

    pub(super) fn get(self, name: &CStr, buffer: Scratch) -> Answer {
        let calls = [libc::SYS_fgetxattr, libc::SYS_getxattr, libc::SYS_lgetxattr];
        let ((number, on), name) = (self.first(calls), name.as_ptr());
        // SAFETY: NUL-terminated strings and a writable buffer of this length.
        length(unsafe { libc::syscall(number, on, name, buffer.address(), buffer.len()) })
    }

    pub(super) fn set(self, name: &CStr, (value, flags): (&[u8], u32)) -> Answer {
        let calls = [libc::SYS_fsetxattr, libc::SYS_setxattr, libc::SYS_lsetxattr];
        let ((number, on), name) = (self.first(calls), name.as_ptr());
        // SAFETY: NUL-terminated strings and a readable value of this length.
        length(unsafe { libc::syscall(number, on, name, value.as_ptr(), value.len(), flags) })
    }

    pub(super) fn remove(self, name: &CStr) -> Answer {
        let calls = [
            libc::SYS_fremovexattr,
            libc::SYS_removexattr,
            libc::SYS_lremovexattr,
        ];
        let (number, on) = self.first(calls);
        // SAFETY: NUL-terminated strings.
        length(unsafe { libc::syscall(number, on, name.as_ptr()) })
    }

    pub(super) fn list(self, buffer: Scratch) -> Answer {
        let calls = [
            libc::SYS_flistxattr,
            libc::SYS_listxattr,
            libc::SYS_llistxattr,
        ];
        let (number, on) = self.first(calls);
        // SAFETY: a NUL-terminated path and a writable buffer of this length.
        length(unsafe { libc::syscall(number, on, buffer.address(), buffer.len()) })
    }
}
