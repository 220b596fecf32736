//! Datasets: the entries of a plan, their paths in one text.

use crate::document::integer;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    Random,
    Zeros,
    /// So many percent of every 4 KiB block are zeros.
    Compressible(#[serde(deserialize_with = "integer::<_, _, 0, 100>")] u8),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Shared,
    /// One copy for each user, below `directory/uN`.
    User,
    #[serde(skip)]
    /// One copy for each user, beside the others' in the same directories: under a name of its own (`replay/names.rs`).
    Own,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum EntryKind {
    #[serde(rename = "f")]
    File,
    #[serde(rename = "d")]
    Directory,
    #[serde(rename = "l")]
    Link,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Where `directory/path\0` starts in the dataset's text.
    path: u32,
    /// Length of `directory/path` without its NUL.
    path_len: u32,
    /// Where `link\0` starts in the dataset's text; its length.
    link: u32,
    link_len: u32,
}

impl Entry {
    /// What an unbound slot and a composed name say of the entry.
    pub(crate) const UNKNOWN: Entry = Entry::nameless(EntryKind::File, 0o644);
    /// What the directory of a dataset says of itself.
    pub(crate) const ROOT: Entry = Entry::nameless(EntryKind::Directory, 0o755);

    const fn nameless(kind: EntryKind, mode: u32) -> Entry {
        Entry {
            kind,
            mode,
            size: 0,
            path: 0,
            path_len: 0,
            link: 0,
            link_len: 0,
        }
    }
}

/// NULs after the last text, so that texts may be read in words.
const PADDING: [u8; 8] = [0; 8];

/// Where an entry of scope `own` gets a user's suffix.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own {
    /// Where, in the path within the dataset, its topmost own component ends.
    pub(crate) path: u32,
    /// The same in the target of a link; 0: nowhere.
    pub(crate) link: u32,
}

/// A dataset; the paths of all entries stand in one text, so that a pick copies nothing.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) name: String,
    pub(crate) directory: String,
    pub(crate) laid_out: bool,
    pub(crate) scope: Scope,
    pub(crate) content: Content,
    pub(crate) entries: Vec<Entry>,
    /// With scope `own`: one an entry.
    own: Vec<Own>,
    text: Vec<u8>,
    /// Length of `directory/`.
    prefix: u32,
}

impl Dataset {
    pub(crate) fn new(name: String, directory: String, scope: Scope, content: Content) -> Dataset {
        let mut text = directory.clone().into_bytes();
        text.push(0);
        // Paths are at most 4000 bytes long.
        let prefix = u32::try_from(text.len()).unwrap_or(0);
        text.extend_from_slice(&PADDING);
        Dataset {
            name,
            directory,
            laid_out: false,
            scope,
            content,
            entries: Vec::new(),
            own: Vec::new(),
            text,
            prefix,
        }
    }

    /// Add an entry; `None` when the texts of a dataset exceed 4 GiB.
    pub(crate) fn push(
        &mut self,
        path: &[u8],
        kind: EntryKind,
        facts: (u64, u32),
        link: &[u8],
    ) -> Option<()> {
        self.text.truncate(self.text.len() - PADDING.len());
        let start = u32::try_from(self.text.len()).ok()?;
        self.text.extend_from_slice(self.directory.as_bytes());
        self.text.push(b'/');
        self.text.extend_from_slice(path);
        let path_len = u32::try_from(self.text.len()).ok()? - start;
        self.text.push(0);
        let link_start = u32::try_from(self.text.len()).ok()?;
        self.text.extend_from_slice(link);
        self.text.push(0);
        self.text.extend_from_slice(&PADDING);
        self.entries.push(Entry {
            kind,
            mode: facts.1,
            size: facts.0,
            path: start,
            path_len,
            link: link_start,
            link_len: u32::try_from(link.len()).ok()?,
        });
        Some(())
    }

    /// Say where the last entry gets its suffixes.
    pub(crate) fn mark(&mut self, own: Own) {
        self.own.push(own);
    }

    /// Where an entry gets its suffixes; `None` in other scopes.
    pub(crate) fn own(&self, entry: u32) -> Option<Own> {
        self.own.get(entry as usize).copied()
    }

    fn slice(&self, start: u32, len: u32) -> &[u8] {
        let start = start as usize;
        self.text
            .get(start..start + len as usize)
            .unwrap_or_default()
    }

    /// `directory/path` with its NUL (for scope `shared`: the path below the run's folder).
    #[inline]
    pub(crate) fn full_path(&self, entry: &Entry) -> &[u8] {
        self.slice(entry.path, entry.path_len + 1)
    }

    /// The path within the dataset, without a NUL.
    pub(crate) fn path<'a>(&'a self, entry: &Entry) -> &'a [u8] {
        self.slice(entry.path, entry.path_len)
            .get(self.directory.len() + 1..)
            .unwrap_or_default()
    }

    /// The path within the dataset and whatever comes after it (a NUL first, and at least 8 bytes more); its length.
    #[inline]
    pub(crate) fn path_and_more(&self, entry: &Entry) -> (&[u8], usize) {
        let prefix = self.prefix as usize;
        let rest = self.text.get(entry.path as usize + prefix..);
        (
            rest.unwrap_or_default(),
            (entry.path_len as usize).saturating_sub(prefix),
        )
    }

    /// The target of a link, with its NUL.
    pub(crate) fn link(&self, entry: &Entry) -> &[u8] {
        self.slice(entry.link, entry.link_len + 1)
    }

    /// The directory of the dataset, for scope `user` that of this user, without a NUL.
    pub(crate) fn root_of(&self, user: u32) -> Vec<u8> {
        match self.scope {
            Scope::Shared | Scope::Own => self.directory.as_bytes().to_vec(),
            Scope::User => format!("{}/u{user}", self.directory).into_bytes(),
        }
    }
}
