//! Extended attributes, without copies. Whoever calls has made sure that a path stays inside. Access control lists are those that say no
//! more than a mode does: acl(5), `linux/posix_acl_xattr.h`.
#![expect(unsafe_code, reason = "rustix wants to write to borrowed memory")]

use super::files::length;
use super::operands::{Answer, Links};
use super::scratch::Scratch;
use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::LazyLock;

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

/// The attribute that holds one.
pub(crate) const ACCESS_LIST: &CStr = c"system.posix_acl_access";
/// The attribute of a directory that holds the list of what will be made in it.
const DEFAULT_LIST: &CStr = c"system.posix_acl_default";

/// Whether an attribute is a list: without it, the mode alone says who may do what.
pub(crate) fn is_list(name: &[u8]) -> bool {
    name == ACCESS_LIST.to_bytes() || name == DEFAULT_LIST.to_bytes()
}

/// By the nine bits of a mode.
static LISTS: LazyLock<Box<[[u8; 28]]>> = LazyLock::new(|| (0..0o1000).map(list_of).collect());

/// The list that says the same as a mode: what programs set that copy modes and lists.
pub(crate) fn access_list(mode: u32) -> &'static [u8] {
    let list = LISTS.get((mode & 0o777) as usize);
    list.map_or(&[], |list| list)
}

fn list_of(mode: u32) -> [u8; 28] {
    const NOBODY: [u8; 4] = [0xFF; 4];
    let mut list = [0; 28];
    let (version, entries) = list.split_at_mut(4);
    version.copy_from_slice(&2_u32.to_le_bytes());
    // The owner, the group, all others.
    let tags = [(1_u16, 6), (4, 3), (0x20, 0)];
    for (entry, (tag, shift)) in entries.chunks_exact_mut(8).zip(tags) {
        let allowed = u16::try_from(mode >> shift & 7).unwrap_or(0);
        let [t0, t1] = tag.to_le_bytes();
        let [a0, a1] = allowed.to_le_bytes();
        let [n0, n1, n2, n3] = NOBODY;
        entry.copy_from_slice(&[t0, t1, a0, a1, n0, n1, n2, n3]);
    }
    list
}
