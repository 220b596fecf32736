//! No calls at all: where nothing is real, a replay asks for nothing.

use super::answer::Answer;
use super::how::How;
use super::null::Null;
use super::places::{At, Links, Places};
use super::scratch::Scratch;
use crate::program::Owner;
use crate::replay::program::Times;
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::RawFd;

/// Players do not call where `REAL` is false; who does is told so.
macro_rules! unreal {
    ($($name:ident($($operand:ty),*) -> $value:ty;)+) => {
        $(unreal!(@one $name ($($operand),*) $value);)+
    };
    (@one $name:ident ($a:ty) $v:ty) => { fn $name(&self, _: $a) -> Answer<$v> { Err(Errno::NOSYS) } };
    (@one $name:ident ($a:ty, $b:ty) $v:ty) => { fn $name(&self, _: $a, _: $b) -> Answer<$v> { Err(Errno::NOSYS) } };
    (@one $name:ident ($a:ty, $b:ty, $c:ty) $v:ty) => { fn $name(&self, _: $a, _: $b, _: $c) -> Answer<$v> { Err(Errno::NOSYS) } };
}

impl Places for Null {
    unreal! {
        open_at(At<'_>, How) -> RawFd;
        stat_at(At<'_>, Links) -> u64;
        statx_at(At<'_>, Links, u32) -> u64;
        access_at(At<'_>, u32, u32) -> u64;
        look_up(At<'_>) -> u64;
        statfs(&CStr) -> u64;
        mkdir_at(At<'_>, u32) -> u64;
        mknod_at(At<'_>, u32) -> u64;
        rmdir_at(At<'_>) -> u64;
        unlink_at(At<'_>) -> u64;
        readlink_at(At<'_>, Scratch) -> u64;
        rename_at(At<'_>, At<'_>, u32) -> u64;
        link_at(At<'_>, At<'_>, u32) -> u64;
        link_open(RawFd, At<'_>) -> u64;
        symlink_at(&CStr, At<'_>) -> u64;
        chmod_at(At<'_>, u32) -> u64;
        chown_at(At<'_>, Owner, Links) -> u64;
        utimens_at(At<'_>, Times, Links) -> u64;
        get_attribute((&CStr, Links), &CStr, Scratch) -> u64;
        set_attribute((&CStr, Links), &CStr, (&[u8], u32)) -> u64;
        remove_attribute((&CStr, Links), &CStr) -> u64;
        list_attributes((&CStr, Links), Scratch) -> u64;
    }
}
