//! Extended attributes by path, without copies. Whoever calls has made sure that the path stays inside.
#![expect(unsafe_code, reason = "rustix wants to write to borrowed memory")]

use super::files::length;
use super::operands::{Answer, Links};
use super::scratch::Scratch;
use std::ffi::CStr;

/// A path and what becomes of a symlink in its last place.
type On<'a> = (&'a CStr, Links);

pub(super) fn get((path, links): On<'_>, name: &CStr, buffer: Scratch) -> Answer {
    let number = match links {
        Links::Follow => libc::SYS_getxattr,
        Links::Keep => libc::SYS_lgetxattr,
    };
    let (path, name) = (path.as_ptr(), name.as_ptr());
    // SAFETY: NUL-terminated strings and a writable buffer of this length.
    length(unsafe { libc::syscall(number, path, name, buffer.address(), buffer.len()) })
}

pub(super) fn set((path, links): On<'_>, name: &CStr, value: (&[u8], u32)) -> Answer {
    let number = match links {
        Links::Follow => libc::SYS_setxattr,
        Links::Keep => libc::SYS_lsetxattr,
    };
    let (path, name, (value, flags)) = (path.as_ptr(), name.as_ptr(), value);
    // SAFETY: NUL-terminated strings and a readable value of this length.
    length(unsafe { libc::syscall(number, path, name, value.as_ptr(), value.len(), flags) })
}

pub(super) fn remove((path, links): On<'_>, name: &CStr) -> Answer {
    let number = match links {
        Links::Follow => libc::SYS_removexattr,
        Links::Keep => libc::SYS_lremovexattr,
    };
    // SAFETY: NUL-terminated strings.
    length(unsafe { libc::syscall(number, path.as_ptr(), name.as_ptr()) })
}

pub(super) fn list((path, links): On<'_>, buffer: Scratch) -> Answer {
    let number = match links {
        Links::Follow => libc::SYS_listxattr,
        Links::Keep => libc::SYS_llistxattr,
    };
    // SAFETY: a NUL-terminated path and a writable buffer of this length.
    length(unsafe { libc::syscall(number, path.as_ptr(), buffer.address(), buffer.len()) })
}
