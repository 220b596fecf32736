//! The only room that calls the kernel. What a call means is decided elsewhere.

mod attributes;
pub(crate) mod below;
pub(crate) mod controls;
mod counter;
pub(crate) mod data;
mod doorbell;
pub(crate) mod files;
mod folder;
mod guarded;
mod jailed;
mod kernel;
mod naming;
mod operands;
mod resident;
mod scratch;
mod text;
mod threads;

pub(crate) use attributes::{ACCESS_LIST, Attributed, access_list, is_list};
pub(crate) use counter::{counter, counter_is_the_clock};
pub(crate) use doorbell::Doorbell;
pub use folder::machine_caches_dropped;
pub(crate) use folder::{Folder, file_limit_raised, open_directory, open_sink};
pub(crate) use guarded::Guarded;
pub(crate) use jailed::Jailed;
pub(crate) use kernel::{Kernel, Null};
pub(crate) use operands::{Answer, At, How, Links, OPEN_FLAGS, Through, Time, Times};
pub(crate) use resident::{cached_bytes, write_out};
pub(crate) use scratch::{OwnScratch, Scratch, ScratchPool};
pub(crate) use text::{Prefix, Text, c_path};
pub(crate) use threads::{
    can_jail, install_wake_signal, own_folder_state, prepare_thread, thread_id, wake_thread,
};
