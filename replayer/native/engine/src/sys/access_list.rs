//! Access control lists that say no more than a mode does: acl(5), `linux/posix_acl_xattr.h`.

use std::ffi::CStr;
use std::sync::LazyLock;

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
