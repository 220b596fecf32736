//! What events do to the files of a trace, as far as later requests find it.

use super::clock::positive;
use super::operands::{AT_END, MOST_BYTES, NOT_AT_END, Operands};
use super::tree_state::{Held, Kind, NodeId, TreeState};
use replayer_trace::{Event, Op};
use std::collections::BTreeMap;

const CREAT: u32 = 0o100;
const TRUNC: u32 = 0o1000;
const APPEND: u32 = 0o2000;
const TMPFILE: u32 = 0o20_200_000;
const KEEP_SIZE: i64 = 1;
const EXCHANGE: i64 = 2;

impl TreeState<'_> {
    /// Let an event happen. One that failed did nothing.
    pub(crate) fn take(&mut self, event: &Event) {
        if event.result < 0 {
            return;
        }
        match event.op {
            Op::Open | Op::Inherit => self.open(event),
            Op::Close | Op::CloseExit => {
                if let Some(file) = event.file {
                    self.held.remove(&file);
                }
            }
            _ if event.path.is_some() => self.named(event),
            Op::Link => self.link_open(event),
            _ => self.used(event),
        }
    }

    fn open(&mut self, event: &Event) {
        let (Some(row), Some(file)) = (event.path, event.file) else {
            return;
        };
        let Some(path) = self.path_map.path(row) else {
            return;
        };
        let flags = Operands(event).lenient_flags(u32::MAX);
        let found = self.find(path);
        let node = match found {
            Some(_) if is_nameless(flags) => {
                self.add_nameless(Kind::File, Operands(event).permissions())
            }
            None if flags & CREAT != 0 => {
                let mode = Operands(event).permissions();
                match self.behind_links(path) {
                    Some((directory, name)) => self.add(directory, &name, Kind::File, mode),
                    None => self.make(path, Kind::File, Some(mode)),
                }
            }
            None => return,
            Some(node) => node,
        };
        if flags & TRUNC != 0
            && let Some(node) = self.nodes.get_mut(node)
        {
            node.size = 0;
        }
        // Only what was open before the trace is not at its begin.
        let offset = Operands(event).some_offset().ok().flatten().unwrap_or(0);
        let held = Held {
            node,
            path: row,
            flags,
            offset,
        };
        self.held.insert(file, held);
    }

    fn named(&mut self, event: &Event) {
        let Some(path) = event.path.and_then(|row| self.path_map.path(row)) else {
            return;
        };
        let mode = Some(Operands(event).permissions());
        match event.op {
            Op::Mkdir => {
                self.make(path, Kind::Directory(BTreeMap::new()), mode);
            }
            // A file stands in for a fifo, a socket or a device.
            Op::Mknod => {
                self.make(path, Kind::File, mode);
            }
            Op::Symlink => {
                let text = event.text.as_deref().unwrap_or_default();
                self.make(path, Kind::Link(text.into()), None);
            }
            Op::Unlink | Op::Rmdir => {
                if let Some((directory, name)) = self.home(path) {
                    self.leave(directory, name);
                }
            }
            Op::Rename | Op::Link => self.moved(path, event),
            Op::Truncate | Op::Meanwhile => {
                if let Some(id) = self.find(path) {
                    self.set_size(id, positive(event.size.unwrap_or(0)));
                }
            }
            Op::Chmod => self.permit(self.find(path), mode),
            Op::Setxattr | Op::Lsetxattr => {
                self.permit(self.find(path), Operands(event).listed_mode());
            }
            _ => {}
        }
    }

    fn moved(&mut self, path: &[u8], event: &Event) {
        let to = event.to_path.and_then(|row| self.path_map.path(row));
        let homes = (self.home(path), to.and_then(|to| self.home(to)));
        let (Some((from, name)), Some((into, new_name))) = homes else {
            return;
        };
        let Some(id) = self.child(from, name) else {
            return;
        };
        if event.op == Op::Rename {
            self.leave(from, name);
            if event.flags.unwrap_or(0) & EXCHANGE != 0
                && let Some(other) = self.leave(into, new_name)
            {
                self.enter(from, name, other);
            }
        }
        self.enter(into, new_name, id);
    }

    /// What is open gets a name. If that is its first one, it can be opened by it from now on.
    fn link_open(&mut self, event: &Event) {
        let (Some(held), Some(row)) = (self.of(event.to_file), event.to_path) else {
            return;
        };
        let home = self.path_map.path(row).and_then(|path| self.home(path));
        let Some((directory, name)) = home else {
            return;
        };
        self.enter(directory, name, held.node);
        if is_nameless(held.flags) {
            self.with(event.to_file, |held| {
                held.path = row;
                held.flags &= !TMPFILE;
            });
        }
    }

    /// An event on an open file.
    fn used(&mut self, event: &Event) {
        let moved = positive(event.result);
        let to_offset = Operands(event).to_offset().ok().flatten();
        match event.op {
            Op::Read | Op::Readv => self.advance(event.file, moved),
            Op::Lseek => self.with(event.file, |held| held.offset = moved),
            Op::Meanwhile => {
                let offset = positive(event.offset.unwrap_or(0));
                self.with(event.file, |held| held.offset = offset);
            }
            Op::Write | Op::Writev | Op::Pwrite | Op::Pwritev => self.written(event, moved),
            Op::Ftruncate => {
                if let Some(held) = self.of(event.file) {
                    self.set_size(held.node, positive(event.size.unwrap_or(0)));
                }
            }
            Op::Fallocate if event.flags.unwrap_or(0) & KEEP_SIZE == 0 => {
                let size = positive(event.size.unwrap_or(0));
                let end = positive(event.offset.unwrap_or(0)).saturating_add(size);
                self.reach(event.file, end);
            }
            Op::Fchmod => {
                let mode = Operands(event).permissions();
                self.permit(self.of(event.file).map(|held| held.node), Some(mode));
            }
            Op::Fsetxattr => {
                let mode = Operands(event).listed_mode();
                self.permit(self.of(event.file).map(|held| held.node), mode);
            }
            Op::CopyFileRange | Op::Splice | Op::Sendfile => {
                if event.offset.is_none() {
                    self.advance(event.file, moved);
                }
                match to_offset {
                    Some(offset) => self.reach(event.to_file, offset.saturating_add(moved)),
                    None => self.written_at_position(event.to_file, moved),
                }
            }
            Op::Clone => {
                let from = self.of(event.file).and_then(|held| self.node(held.node));
                let size = from.map(|node| node.size);
                if let (Some(size), Some(to)) = (size, self.of(event.to_file)) {
                    self.set_size(to.node, size);
                }
            }
            _ => {}
        }
    }

    fn permit(&mut self, node: Option<NodeId>, mode: Option<u32>) {
        let node = node.and_then(|id| self.nodes.get_mut(id));
        if let (Some(node), Some(mode)) = (node, mode) {
            node.mode = mode;
        }
    }

    fn of(&self, file: Option<u32>) -> Option<Held> {
        self.held.get(&file?).copied()
    }

    fn with(&mut self, file: Option<u32>, change: impl FnOnce(&mut Held)) {
        if let Some(held) = file.and_then(|file| self.held.get_mut(&file)) {
            change(held);
        }
    }

    fn advance(&mut self, file: Option<u32>, bytes: u64) {
        self.with(file, |held| held.offset = held.offset.saturating_add(bytes));
    }

    /// A write call of any kind.
    fn written(&mut self, event: &Event, bytes: u64) {
        let Some(held) = self.of(event.file) else {
            return;
        };
        let is_placed = matches!(event.op, Op::Pwrite | Op::Pwritev);
        let at = if goes_to_end(held, event) {
            self.node(held.node).map_or(0, |node| node.size)
        } else if is_placed {
            positive(event.offset.unwrap_or(0))
        } else {
            held.offset
        };
        let end = at.saturating_add(bytes);
        if !is_placed {
            self.with(event.file, |held| held.offset = end);
        }
        self.reach(event.file, end);
    }

    /// Bytes came from another file, to where a description stands: none that appends takes them.
    fn written_at_position(&mut self, file: Option<u32>, bytes: u64) {
        self.advance(file, bytes);
        if let Some(held) = self.of(file) {
            self.reach(file, held.offset);
        }
    }

    /// A file is at least so long.
    fn reach(&mut self, file: Option<u32>, end: u64) {
        if let Some(held) = self.of(file) {
            let size = self.node(held.node).map_or(0, |node| node.size);
            self.set_size(held.node, size.max(end));
        }
    }

    fn set_size(&mut self, id: NodeId, size: u64) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.size = size.min(MOST_BYTES);
        }
    }
}

/// Whether a write goes to the end of its file: that of a description with `O_APPEND` does wherever it is placed (BUGS of pwrite(2)),
/// unless the call's own flags say otherwise.
fn goes_to_end(held: Held, event: &Event) -> bool {
    let flags = match event.op {
        Op::Writev | Op::Pwritev => Operands(event).lenient_flags(AT_END | NOT_AT_END),
        _ => 0,
    };
    flags & AT_END != 0 || held.flags & APPEND != 0 && flags & NOT_AT_END == 0
}

/// Whether flags open a file that has no name.
fn is_nameless(flags: u32) -> bool {
    flags & TMPFILE == TMPFILE
}
