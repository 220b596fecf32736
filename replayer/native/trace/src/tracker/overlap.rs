//! Calls that overlap in time: where the result of one shows that another, which has not returned yet, took effect before it.

use crate::call::{Args, At, Call, FileArg, FileKind, Kind, Outcome, PathArg};
use crate::constants::{
    O_ACCMODE, O_CREAT, O_EXCL, O_TMPFILE, O_TRUNC, RENAME_EXCHANGE, RENAME_NOREPLACE, SEEK_END,
};
use crate::overlaps::{Effect, Known, Proof, Subject, Touch, Use};
use crate::paths::PathId;
use crate::scope::Resolved;
use crate::tracker::Tracker;
use crate::tracker::file::UsedFile;
use crate::tracker::resolve::follows_last;
use crate::tree::listings::DOTS;
use crate::tree::{Found, NodeId};
use replayer_ops::Op;
use replayer_ops::numbers::{EACCES, EAGAIN, EEXIST, EISDIR, ENOENT, ENOTEMPTY};

/// What an entry of a listing takes at most (getdents64(2): its head, and a name of 255 bytes): one that had no room left was not whole.
const LONGEST_ENTRY_BYTES: i64 = 280;

/// System calls that may do something that results of others show.
#[rustfmt::skip]
const SHOWN_BY_OTHERS: [&[u8]; 31] = [
    b"open", b"openat", b"openat2", b"creat", b"mkdir", b"mkdirat", b"mknod", b"mknodat", b"rmdir", b"unlink", b"unlinkat", b"rename",
    b"renameat", b"renameat2", b"link", b"linkat", b"symlink", b"symlinkat", b"write", b"writev", b"pwrite64", b"pwritev", b"pwritev2",
    b"truncate", b"ftruncate", b"fallocate", b"copy_file_range", b"sendfile",
    b"flock", b"fcntl", b"fcntl64",
];

/// Whether a system call may do something that results of others show.
pub(crate) fn may_show(name: &[u8]) -> bool {
    SHOWN_BY_OTHERS.contains(&name)
}

/// Whether a system call gives files other names, or none.
pub(crate) fn moves_names(name: &[u8]) -> bool {
    name.starts_with(b"rename") || name.starts_with(b"unlink") || name == b"rmdir"
}

/// What the result of a call needs that is not known to be so.
#[derive(Debug)]
pub(crate) struct UnmetProofs([Option<Proof>; 2]);

impl Tracker {
    /// What the result of a call needs that is not known to be so. None where nothing is.
    pub(crate) fn wanting(&mut self, call: &Call<'_>) -> Option<UnmetProofs> {
        self.meet(call.task);
        let proofs = self.proofs(call);
        let wanting = proofs.map(|proof| proof.filter(|&proof| !self.is_met(proof)));
        wanting
            .iter()
            .any(Option::is_some)
            .then_some(UnmetProofs(wanting))
    }

    /// Whether a call that has not returned yet explains a result by its effect.
    pub(crate) fn explains(&mut self, call: &Call<'_>, wanting: &UnmetProofs) -> bool {
        self.meet(call.task);
        let effects = self.effects(call);
        wanting.0.into_iter().flatten().any(|proof| {
            let mut each = effects.into_iter().flatten();
            each.any(|effect| self.is_explained(proof, effect))
        })
    }

    /// Note a call whose turn has come, and the lines between which it took effect; `is_among`: others are under way.
    pub(crate) fn note_overlap(&mut self, call: &Call<'_>, span: (u64, u64), is_among: bool) {
        let searches = self.overlaps.search.is_some();
        if call.outcome == Outcome::Unknown || !self.overlaps.wants(span, is_among) {
            return;
        }
        self.meet(call.task);
        let needs = self.proofs(call);
        let is_refuted = needs.iter().flatten().any(|&need| self.is_refuted(need));
        self.overlaps.is_contradicted |= is_refuted;
        if !searches {
            return;
        }
        let does = if call.outcome.is_ok() {
            self.effects(call)
        } else {
            [None; 2]
        };
        let touch = Touch {
            task: call.task,
            span,
            needs,
            does,
            file: self.use_of(call),
            base: self.base_of(call),
            is_refuted,
        };
        if touch.is_idle() {
            return;
        }
        for path in touch.paths() {
            for name in [path, self.tree.paths.parent(path)] {
                self.note_known(name);
            }
        }
        if let Some(search) = &mut self.overlaps.search {
            search.note(&self.tree.paths, touch);
        }
    }

    /// Note what is known of a name before the first call about it.
    fn note_known(&mut self, name: PathId) {
        if self
            .overlaps
            .search
            .as_ref()
            .is_none_or(|search| search.knows(name))
        {
            return;
        }
        let known = Known {
            there: self.is_there(name),
            entries: self.entries(name),
        };
        if let Some(search) = &mut self.overlaps.search {
            search.learn(&self.tree.paths, name, known);
        }
    }

    /// What a call that succeeded did with a file.
    fn use_of(&mut self, call: &Call<'_>) -> Option<(Subject, Use)> {
        let value = call.outcome.value()?;
        let (op, file, args) = match call.kind {
            Kind::Open { args, .. } => {
                let flags = args.flags.unwrap_or(0);
                let empties = flags & O_TRUNC != 0 && flags & O_ACCMODE != 0;
                let is_nameless = flags & O_TMPFILE == O_TMPFILE;
                let slot = Subject::Description(self.files.count());
                return (!is_nameless).then_some((slot, Use::Opens { empties }));
            }
            Kind::Path {
                op: Op::Truncate,
                path,
                args,
            } => {
                let name = Subject::Name(self.place(call, path)?);
                return Some((name, Use::Cuts(args.size?)));
            }
            Kind::Path {
                op: Op::Stat | Op::Lstat,
                path,
                args,
            } => {
                let name = Subject::Name(self.place(call, path)?);
                return Some((name, Use::is_long(size_of_file(args)?)));
            }
            Kind::File { op, file, args } => (*op, *file, args),
            Kind::TwoFiles { to, .. } => {
                let slot = Subject::Description(self.used(call.task, *to)?.slot);
                return Some((slot, Use::Alters));
            }
            _ => return None,
        };
        let file = self.used(call.task, file)?.flagged(args);
        let at = match op {
            Op::Pread | Op::Preadv | Op::Pwrite | Op::Pwritev => args.offset,
            _ => file.offset,
        };
        let uses = match op {
            Op::Read | Op::Readv | Op::Pread | Op::Preadv => Use::Sees {
                at: at?,
                got: value,
                asked: args.size.unwrap_or(value),
            },
            Op::Write | Op::Writev | Op::Pwrite | Op::Pwritev if file.appends => Use::Grows(value),
            Op::Write | Op::Writev | Op::Pwrite | Op::Pwritev => {
                at.map_or(Use::Alters, |at| Use::Reaches(at.saturating_add(value)))
            }
            Op::Lseek if args.flags == Some(SEEK_END) => {
                Use::is_long(value.saturating_sub(args.offset.unwrap_or(0)))
            }
            Op::Fstat => Use::is_long(size_of_file(args)?),
            Op::Ftruncate => Use::Cuts(args.size?),
            Op::Fallocate => Use::Alters,
            _ => return None,
        };
        Some((Subject::Description(file.slot), uses))
    }

    /// The open directory where the paths of a call begin, and its path.
    fn base_of(&mut self, call: &Call<'_>) -> Option<(u32, PathId)> {
        let file = match call.kind {
            Kind::Open { path, .. } | Kind::Path { path, .. } => match path.at {
                At::File(file) if path.text.first() != Some(&b'/') => file,
                _ => return None,
            },
            Kind::File {
                op: Op::Getdents,
                file,
                ..
            } => {
                let used = self.used(call.task, *file)?;
                return Some((used.slot, used.path));
            }
            _ => return None,
        };
        let id = self.tasks.held(call.task, file.number)?.inside()?;
        let description = self.files.get(id)?;
        Some((description.slot, description.place))
    }

    /// How many entries a directory has; None where that is not known.
    fn entries(&mut self, path: PathId) -> Option<i64> {
        let node = self.tree.find(path, false).node()?;
        self.tree.count_of_names(node)
    }

    fn proofs(&mut self, call: &Call<'_>) -> [Option<Proof>; 2] {
        match call.kind {
            Kind::Open { path, args, .. } => {
                let flags = args.flags.unwrap_or(0);
                let Some(place) = self.place(call, path) else {
                    return [None; 2];
                };
                if flags & O_CREAT == 0 || flags & O_TMPFILE == O_TMPFILE {
                    proofs_of_use(place, call.outcome)
                } else {
                    self.proofs_of_making(place, call.outcome, flags & O_EXCL != 0)
                }
            }
            Kind::Path { op, path, .. } => match (self.place(call, path), op) {
                (None, _) => [None; 2],
                (Some(place), Op::Mkdir | Op::Mknod | Op::Symlink) => {
                    self.proofs_of_making(place, call.outcome, true)
                }
                (Some(place), Op::Rmdir) => proofs_of_rmdir(place, call.outcome),
                (Some(place), Op::Stat | Op::Lstat) if call.outcome.is_ok() => {
                    [Some(Proof::There(place)), self.proof_of_length(call)]
                }
                (Some(place), _) => proofs_of_use(place, call.outcome),
            },
            Kind::TwoPaths { op, path, to, args } => {
                let both = [path, to].map(|path| self.place(call, path));
                let is_alone = *op == Op::Link || args.flags.unwrap_or(0) & RENAME_NOREPLACE != 0;
                match both {
                    [Some(from), Some(to)] => {
                        self.proofs_of_pair([from, to], call.outcome, is_alone)
                    }
                    // Of a descriptor's file, or of one outside: what ENOENT means is not known.
                    [None, Some(to)] if call.outcome != Outcome::Error(ENOENT) => {
                        self.proofs_of_making(to, call.outcome, is_alone)
                    }
                    _ => [None; 2],
                }
            }
            Kind::File {
                op: Op::Getdents,
                file,
                args,
            } => [self.proof_of_listing(call, *file, args), None],
            Kind::File {
                op: Op::Flock | Op::Lock,
                file,
                ..
            } => [self.proof_of_holder(call, *file), None],
            Kind::File { .. } => [self.proof_of_length(call), None],
            _ => [None; 2],
        }
    }

    /// Of a call that makes a name, which may not be there if it is `alone`.
    fn proofs_of_making(&self, place: PathId, outcome: Outcome, alone: bool) -> [Option<Proof>; 2] {
        let parent = self.tree.paths.parent(place);
        match outcome {
            Outcome::Value(_) => [
                Some(Proof::There(parent)),
                alone.then_some(Proof::Missing(place)),
            ],
            Outcome::Error(ENOENT) => [Some(Proof::Missing(parent)), None],
            Outcome::Error(EEXIST) => [Some(Proof::There(place)), None],
            _ => [None; 2],
        }
    }

    /// Of a call that gives a name to what has another one; `alone`: nothing may have it yet.
    fn proofs_of_pair(
        &mut self,
        [from, to]: [PathId; 2],
        outcome: Outcome,
        alone: bool,
    ) -> [Option<Proof>; 2] {
        let parent = self.tree.paths.parent(to);
        match outcome {
            Outcome::Value(_) if alone => [Proof::There(from), Proof::Missing(to)].map(Some),
            Outcome::Value(_) => [Proof::There(from), Proof::There(parent)].map(Some),
            Outcome::Error(ENOENT) => [Some(Proof::EitherMissing(from, parent)), None],
            Outcome::Error(EEXIST) => [Proof::There(from), Proof::There(to)].map(Some),
            Outcome::Error(ENOTEMPTY) => [Proof::There(from), Proof::Filled(to)].map(Some),
            _ => [None; 2],
        }
    }

    /// A directory that cannot be listed has been removed. A listing that has one part tells how many entries there are.
    fn proof_of_listing(
        &mut self,
        call: &Call<'_>,
        file: FileArg<'_>,
        args: &Args<'_>,
    ) -> Option<Proof> {
        let used = self.used(call.task, file)?;
        let node = self.tree.find(used.path, false).node()?;
        if Some(node) != used.node {
            return None;
        }
        match call.outcome {
            Outcome::Error(ENOENT) => Some(Proof::Missing(used.path)),
            Outcome::Value(bytes) => {
                let is_whole = used.offset == Some(0)
                    && bytes.saturating_add(LONGEST_ENTRY_BYTES) <= args.size?;
                let count = args.entries?.saturating_sub(DOTS);
                (is_whole && count >= 0).then_some(Proof::Count(used.path, count))
            }
            _ => None,
        }
    }

    /// Who is refused a lock shows that another one has it.
    fn proof_of_holder(&mut self, call: &Call<'_>, file: FileArg<'_>) -> Option<Proof> {
        let is_refused = matches!(call.outcome, Outcome::Error(EAGAIN | EACCES));
        let used = self.used(call.task, file).filter(|_| is_refused)?;
        Some(Proof::Held(used.node?, used.slot))
    }

    /// A read, a stat, or a seek to the end tells how long the file was.
    fn proof_of_length(&mut self, call: &Call<'_>) -> Option<Proof> {
        let (subject, Use::Sees { at, got, asked }) = self.use_of(call)? else {
            return None;
        };
        let node = match (subject, call.kind) {
            (Subject::Name(place), _) => self.tree.find(place, false).node(),
            (_, Kind::File { file, .. }) => self.used(call.task, *file)?.node,
            _ => None,
        };
        let end = at.saturating_add(got);
        let least = if got > 0 { end } else { 0 };
        let most = if got < asked { end } else { i64::MAX };
        Some(Proof::Length(node?, least, most))
    }

    fn effects(&mut self, call: &Call<'_>) -> [Option<Effect>; 2] {
        match call.kind {
            Kind::Open { path, args, .. } if args.flags.unwrap_or(0) & O_CREAT != 0 => {
                [self.place(call, path).map(Effect::Makes), None]
            }
            Kind::Path { op, path, .. } => {
                let place = self.place(call, path);
                match op {
                    Op::Mkdir | Op::Mknod | Op::Symlink => [place.map(Effect::Makes), None],
                    Op::Unlink | Op::Rmdir => [place.map(Effect::Removes), None],
                    _ => [None; 2],
                }
            }
            Kind::TwoPaths { args, .. } if args.flags.unwrap_or(0) & RENAME_EXCHANGE != 0 => {
                [None; 2]
            }
            Kind::TwoPaths { op, path, to, .. } => {
                let makes = self.place(call, to).map(Effect::Makes);
                let from = self.place(call, path);
                let source = match op {
                    Op::Rename => from.map(Effect::Removes),
                    _ => from.map(Effect::Keeps),
                };
                [makes, source]
            }
            Kind::File { file, .. } if call.kind.has_lock() => {
                let used = self.used(call.task, *file);
                let lock = used.and_then(|used| Some(Effect::Locks(used.node?, used.slot)));
                [lock, None]
            }
            Kind::File { op, file, .. } => {
                let writes = matches!(op, Op::Write | Op::Writev | Op::Pwrite | Op::Pwritev);
                let used = self.used(call.task, *file).filter(|_| writes);
                let node = used.and_then(|used| used.node);
                [node.map(Effect::Lengthens), None]
            }
            _ => [None; 2],
        }
    }

    /// Whether a proof is known to hold. Entries that are not known explain a result only where no call does.
    fn is_met(&mut self, proof: Proof) -> bool {
        let holds = self.holds(proof);
        match proof {
            Proof::Count(..) => holds != Some(false),
            _ => holds == Some(true),
        }
    }

    fn is_refuted(&mut self, proof: Proof) -> bool {
        self.holds(proof) == Some(false)
    }

    /// Whether a proof holds now; None where that is not known.
    fn holds(&mut self, proof: Proof) -> Option<bool> {
        match proof {
            Proof::There(path) => self.is_there(path),
            Proof::Missing(path) => self.is_there(path).map(|there| !there),
            Proof::EitherMissing(one, other) => {
                match [one, other].map(|path| self.is_there(path)) {
                    [Some(false), _] | [_, Some(false)] => Some(true),
                    [Some(true), Some(true)] => Some(false),
                    _ => None,
                }
            }
            Proof::Empty(path) => self.entries(path).map(|count| count == 0),
            Proof::Filled(path) => self.entries(path).map(|count| count > 0),
            Proof::Count(path, count) => self.entries(path).map(|known| known == count),
            Proof::Held(node, slot) => self.is_held_by_another(node, slot).then_some(true),
            Proof::Length(node, least, most) => {
                let known = self.tree.size(node);
                // It may be longer than is known.
                let is_open = known < least && !self.tree.size_is_certain(node);
                (!is_open).then_some(least <= known && known <= most)
            }
        }
    }

    fn is_explained(&mut self, proof: Proof, effect: Effect) -> bool {
        let paths = &self.tree.paths;
        match (effect, proof) {
            (Effect::Makes(made), Proof::There(path)) => {
                paths.is_at_or_below(path, made) && self.is_there(made) != Some(true)
            }
            (Effect::Removes(removed), Proof::Missing(_) | Proof::EitherMissing(..)) => {
                let is_below = |path| paths.is_at_or_below(path, removed);
                proof.paths().any(is_below) && self.is_there(removed) != Some(false)
            }
            (Effect::Removes(removed), Proof::Empty(directory)) => {
                paths.parent(removed) == directory && self.is_there(removed) != Some(false)
            }
            (Effect::Makes(made), Proof::Filled(directory)) => {
                paths.parent(made) == directory && self.is_there(made) != Some(true)
            }
            (Effect::Makes(made), Proof::Count(directory, count)) => {
                paths.parent(made) == directory
                    && self.is_there(made) == Some(false)
                    && self.entries(directory) < Some(count)
            }
            (Effect::Removes(removed), Proof::Count(directory, count)) => {
                paths.parent(removed) == directory
                    && self.is_there(removed) == Some(true)
                    && self.entries(directory) > Some(count)
            }
            (Effect::Locks(node, slot), Proof::Held(held, other)) => node == held && slot != other,
            (Effect::Lengthens(node), Proof::Length(needed, least, _)) => {
                node == needed && self.tree.size(node) < least
            }
            _ => false,
        }
    }

    fn is_held_by_another(&self, node: NodeId, slot: u32) -> bool {
        let holders = self.holders.get(&node).into_iter().flatten();
        holders.into_iter().any(|&holder| holder != slot)
    }

    /// Whether a name is there; None where that is not known.
    fn is_there(&mut self, path: PathId) -> Option<bool> {
        match self.tree.find(path, false) {
            Found::Node(..) => Some(true),
            Found::Absent(..) | Found::NoDirectory { known: true, .. } => Some(false),
            _ => None,
        }
    }

    /// The name that a path leads to, behind a symlink that the call follows.
    fn place(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> Option<PathId> {
        let Resolved::Inside(place) = self.resolve(call, path).0 else {
            return None;
        };
        let target = follows_last(call.kind).then(|| self.tree.link_target(place));
        Some(target.flatten().unwrap_or(place))
    }

    /// What a descriptor means, as far as calls before have told.
    fn used(&mut self, task: u64, file: FileArg<'_>) -> Option<UsedFile> {
        let id = self.tasks.held(task, file.number)?.inside()?;
        self.files.get(id).map(UsedFile::of)
    }
}

/// How long a stat found a file to be; of what is none, sizes say nothing.
fn size_of_file(args: &Args<'_>) -> Option<i64> {
    let seen = args.seen.filter(|seen| seen.kind == FileKind::Regular);
    seen?.size
}

fn proofs_of_rmdir(place: PathId, outcome: Outcome) -> [Option<Proof>; 2] {
    match outcome {
        Outcome::Value(_) => [Proof::There(place), Proof::Empty(place)].map(Some),
        Outcome::Error(ENOENT) => [Some(Proof::Missing(place)), None],
        Outcome::Error(EEXIST | ENOTEMPTY) => [Proof::There(place), Proof::Filled(place)].map(Some),
        _ => [None; 2],
    }
}

/// Of a call that needs a name to be there.
fn proofs_of_use(place: PathId, outcome: Outcome) -> [Option<Proof>; 2] {
    match outcome {
        Outcome::Value(_) | Outcome::Error(EISDIR) => [Some(Proof::There(place)), None],
        Outcome::Error(ENOENT) => [Some(Proof::Missing(place)), None],
        _ => [None; 2],
    }
}
