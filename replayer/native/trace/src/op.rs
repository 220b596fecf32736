//! The ops that events are made of, by the names they have in the tables.

use crate::constants::{O_CREAT, O_EXCL, O_NOFOLLOW};

macro_rules! ops {
    ($($variant:ident $name:literal $class:ident,)*) => {
        /// What an event does. The names are those of the table `events`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the name says it; FORMAT.md says the rest")]
        pub enum Op {
            $($variant,)*
        }

        impl Op {
            /// Every op, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in tables and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What it does to the tree.
            pub(crate) const fn class(self) -> Class {
                match self {
                    $(Self::$variant => Class::$class,)*
                }
            }
        }
    };
}

/// What an op does to the tree: what ordering, labels and inference ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Looks a name up.
    Look,
    /// Looks a name up, and changes what it means.
    Alter,
    /// Changes attributes of what a name means.
    Attribute,
    /// Uses a descriptor without changing the file.
    Use,
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Changes attributes through a descriptor.
    Mark,
    /// Ends a descriptor, or a thread.
    End,
}

ops! {
    Access "access" Look,
    Chdir "chdir" Look,
    Chmod "chmod" Attribute,
    Chown "chown" Attribute,
    Clone "clone" Write,
    Close "close" End,
    CloseDup "close_dup" Use,
    CloseExit "close_exit" End,
    CopyFileRange "copy_file_range" Write,
    Exit "exit" End,
    Fadvise "fadvise" Use,
    Fallocate "fallocate" Write,
    Fchmod "fchmod" Mark,
    Fchown "fchown" Mark,
    Fcntl "fcntl" Use,
    Fdatasync "fdatasync" Use,
    Fgetxattr "fgetxattr" Use,
    Flistxattr "flistxattr" Use,
    Flock "flock" Use,
    Fremovexattr "fremovexattr" Mark,
    Fsetxattr "fsetxattr" Mark,
    Fstat "fstat" Use,
    Fstatfs "fstatfs" Use,
    Fsync "fsync" Use,
    Ftruncate "ftruncate" Write,
    Futimens "futimens" Mark,
    Getdents "getdents" Read,
    Getxattr "getxattr" Look,
    Inherit "inherit" Look,
    Ioctl "ioctl" Use,
    Lchown "lchown" Attribute,
    Lgetxattr "lgetxattr" Look,
    Link "link" Alter,
    Listxattr "listxattr" Look,
    Llistxattr "llistxattr" Look,
    Lock "lock" Use,
    Lremovexattr "lremovexattr" Attribute,
    Lseek "lseek" Use,
    Lsetxattr "lsetxattr" Attribute,
    Lstat "lstat" Look,
    Lutimens "lutimens" Attribute,
    Meanwhile "meanwhile" Use,
    Mkdir "mkdir" Alter,
    Mknod "mknod" Alter,
    Mmap "mmap" Read,
    Open "open" Look,
    Pread "pread" Read,
    Preadv "preadv" Read,
    Pwrite "pwrite" Write,
    Pwritev "pwritev" Write,
    Read "read" Read,
    Readahead "readahead" Use,
    Readlink "readlink" Look,
    Readv "readv" Read,
    Removexattr "removexattr" Attribute,
    Rename "rename" Alter,
    Rmdir "rmdir" Alter,
    Sendfile "sendfile" Read,
    Setxattr "setxattr" Attribute,
    Splice "splice" Read,
    Stat "stat" Look,
    Statfs "statfs" Look,
    Symlink "symlink" Alter,
    SyncFileRange "sync_file_range" Use,
    Syncfs "syncfs" Use,
    Truncate "truncate" Attribute,
    Unlink "unlink" Alter,
    Utimens "utimens" Attribute,
    Write "write" Write,
    Writev "writev" Write,
}

impl Op {
    /// The op of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// Whether it was put in by the importer: no call of the traced program.
    #[must_use]
    pub const fn is_synthetic(self) -> bool {
        matches!(
            self,
            Self::Inherit | Self::CloseExit | Self::Exit | Self::Meanwhile
        )
    }

    /// Whether a symlink in the last place is followed.
    pub(crate) const fn follows(self) -> bool {
        !matches!(
            self,
            Self::Lchown
                | Self::Lgetxattr
                | Self::Link
                | Self::Llistxattr
                | Self::Lremovexattr
                | Self::Lsetxattr
                | Self::Lstat
                | Self::Lutimens
                | Self::Mkdir
                | Self::Mknod
                | Self::Readlink
                | Self::Rename
                | Self::Rmdir
                | Self::Symlink
                | Self::Unlink
        )
    }

    /// Whether it moves the offset of its description.
    pub(crate) const fn moves(self) -> bool {
        matches!(
            self,
            Self::Getdents | Self::Lseek | Self::Read | Self::Readv | Self::Write | Self::Writev
        )
    }
}

/// Whether an open follows a symlink in the last place (`open(2)`).
pub(crate) fn follows_to_open(flags: i64) -> bool {
    let makes_anew = flags & O_CREAT != 0 && flags & O_EXCL != 0;
    flags & O_NOFOLLOW == 0 && !makes_anew
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_op() {
        for &op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(op));
        }
        assert_eq!(Op::from_name("fork"), None);
    }
}
