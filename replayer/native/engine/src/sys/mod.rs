//! The only room that calls the kernel. What a call means is decided elsewhere.

mod access_list;
mod answer;
mod attributes;
pub(crate) mod below;
pub(crate) mod controls;
mod counter;
mod doorbell;
mod files;
mod folder;
mod guarded;
mod guarded_places;
mod how;
mod jailed;
mod jailed_places;
mod kernel;
mod naming;
mod null;
mod null_places;
mod places;
pub(crate) mod replayed;
mod resident;
mod scratch;
mod text;
mod threads;

pub(crate) use access_list::{ACCESS_LIST, access_list, is_list};
pub(crate) use answer::{Answer, LockRange};
pub(crate) use counter::{counter, counter_is_the_clock};
pub(crate) use doorbell::Doorbell;
pub use folder::machine_caches_dropped;
pub(crate) use folder::{Folder, file_limit_raised, open_directory, open_sink};
pub(crate) use guarded::Guarded;
pub(crate) use how::How;
pub(crate) use jailed::Jailed;
pub(crate) use kernel::Kernel;
pub(crate) use null::Null;
pub(crate) use places::{At, Links, Places};
pub(crate) use resident::{cached_bytes, write_out};
pub(crate) use scratch::{OwnScratch, Scratch, ScratchPool};
pub(crate) use text::{Prefix, Text, c_path};
pub(crate) use threads::{
    can_jail, install_wake_signal, own_folder_state, prepare_thread, thread_id, wake_thread,
};
