//! Calls that overlap in time: where the result of one shows that another, which has not returned yet, took effect before it.

use crate::call::{Args, Call, FileArg, Kind, Outcome, PathArg};
use crate::constants::{O_CREAT, O_EXCL, O_TMPFILE, RENAME_EXCHANGE, RENAME_NOREPLACE, SEEK_END};
use crate::op::Op;
use crate::paths::PathId;
use crate::scope::Hit;
use crate::tracker::Tracker;
use crate::tracker::file::Used;
use crate::tree::{Found, NodeId};
use replayer_ops::numbers::{EEXIST, EISDIR, ENOENT, ENOTEMPTY};

/// What must have been so when a call took effect.
#[derive(Debug, Clone, Copy)]
enum Proof {
    There(PathId),
    Missing(PathId),
    /// A directory without entries.
    Empty(PathId),
    /// A directory with entries.
    Filled(PathId),
    /// A file with so many bytes.
    Long(NodeId, i64),
}

/// What a call does if it succeeds.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Makes(PathId),
    Removes(PathId),
    Lengthens(NodeId),
}

/// Whether a system call may do something that results of others show.
pub(crate) fn may_show(name: &[u8]) -> bool {
    matches!(
        name,
        b"open"
            | b"openat"
            | b"openat2"
            | b"creat"
            | b"mkdir"
            | b"mkdirat"
            | b"mknod"
            | b"mknodat"
            | b"rmdir"
            | b"unlink"
            | b"unlinkat"
            | b"rename"
            | b"renameat"
            | b"renameat2"
            | b"link"
            | b"linkat"
            | b"symlink"
            | b"symlinkat"
            | b"write"
            | b"writev"
            | b"pwrite64"
            | b"pwritev"
            | b"pwritev2"
    )
}

/// What the result of a call needs that is not known to be so.
#[derive(Debug)]
pub(crate) struct Wanting([Option<Proof>; 2]);

impl Tracker {
    /// What the result of a call needs that is not known to be so. None where nothing is.
    pub(crate) fn wanting(&mut self, call: &Call<'_>) -> Option<Wanting> {
        self.meet(call.task);
        let proofs = self.proofs(call);
        let wanting = proofs.map(|proof| proof.filter(|&proof| !self.is_met(proof)));
        wanting
            .iter()
            .any(Option::is_some)
            .then_some(Wanting(wanting))
    }

    /// Whether a call that has not returned yet explains a result by its effect.
    pub(crate) fn explains(&mut self, call: &Call<'_>, wanting: &Wanting) -> bool {
        self.meet(call.task);
        let effects = self.effects(call);
        wanting.0.into_iter().flatten().any(|proof| {
            let mut each = effects.into_iter().flatten();
            each.any(|effect| self.is_explained(proof, effect))
        })
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
                ..
            } => [self.proof_of_removal(call, *file), None],
            Kind::File { op, file, args } => [self.proof_of_length(call, *op, *file, args), None],
            _ => [None; 2],
        }
    }

    /// Of a call that makes a name, which may not be there if it is `alone`.
    fn proofs_of_making(&self, place: PathId, outcome: Outcome, alone: bool) -> [Option<Proof>; 2] {
        let parent = self.scope.paths.parent(place);
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
        let parent = self.scope.paths.parent(to);
        match outcome {
            Outcome::Value(_) if alone => [Proof::There(from), Proof::Missing(to)].map(Some),
            Outcome::Value(_) => [Proof::There(from), Proof::There(parent)].map(Some),
            Outcome::Error(ENOENT) => {
                let either = [Proof::Missing(from), Proof::Missing(parent)];
                let is_met = either.into_iter().any(|proof| self.is_met(proof));
                either.map(|proof| Some(proof).filter(|_| !is_met))
            }
            Outcome::Error(EEXIST) => [Some(Proof::There(to)), None],
            Outcome::Error(ENOTEMPTY) => [Some(Proof::Filled(to)), None],
            _ => [None; 2],
        }
    }

    /// A directory that cannot be listed has been removed.
    fn proof_of_removal(&mut self, call: &Call<'_>, file: FileArg<'_>) -> Option<Proof> {
        let used = self.used(call.task, file)?;
        let found = self.tree.find(&self.scope.paths, used.path, false);
        let is_it = matches!(found, Found::Node(node, _) if Some(node) == used.node);
        (is_it && call.outcome == Outcome::Error(ENOENT)).then_some(Proof::Missing(used.path))
    }

    /// A read that returned something, or a seek to the end, tells how long the file was at least.
    fn proof_of_length(
        &mut self,
        call: &Call<'_>,
        op: Op,
        file: FileArg<'_>,
        args: &Args<'_>,
    ) -> Option<Proof> {
        let value = call.outcome.value().filter(|&value| value > 0)?;
        let used = self.used(call.task, file)?;
        let end = match op {
            Op::Read | Op::Readv => used.offset?.saturating_add(value),
            Op::Pread | Op::Preadv => args.offset?.saturating_add(value),
            Op::Lseek if args.flags == Some(SEEK_END) => {
                value.saturating_sub(args.offset.unwrap_or(0))
            }
            _ => return None,
        };
        Some(Proof::Long(used.node?, end))
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
                let removes = match op {
                    Op::Rename => self.place(call, path).map(Effect::Removes),
                    _ => None,
                };
                [makes, removes]
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

    fn is_met(&mut self, proof: Proof) -> bool {
        match proof {
            Proof::There(path) => self.is_there(path) == Some(true),
            Proof::Missing(path) => self.is_there(path) == Some(false),
            Proof::Long(node, end) => self.tree.size(node) >= end,
            // How many entries a directory has is not kept: the effect decides.
            Proof::Empty(_) | Proof::Filled(_) => false,
        }
    }

    fn is_explained(&mut self, proof: Proof, effect: Effect) -> bool {
        let paths = &self.scope.paths;
        match (effect, proof) {
            (Effect::Makes(made), Proof::There(path)) => {
                paths.is_at_or_below(path, made) && self.is_there(made) != Some(true)
            }
            (Effect::Removes(removed), Proof::Missing(path)) => {
                paths.is_at_or_below(path, removed) && self.is_there(removed) != Some(false)
            }
            (Effect::Removes(removed), Proof::Empty(directory)) => {
                paths.parent(removed) == directory && self.is_there(removed) != Some(false)
            }
            (Effect::Makes(made), Proof::Filled(directory)) => {
                paths.parent(made) == directory && self.is_there(made) != Some(true)
            }
            (Effect::Lengthens(node), Proof::Long(needed, _)) => node == needed,
            _ => false,
        }
    }

    /// Whether a name is there; None where that is not known.
    fn is_there(&mut self, path: PathId) -> Option<bool> {
        match self.tree.find(&self.scope.paths, path, false) {
            Found::Node(..) => Some(true),
            Found::Absent(..) | Found::NoDirectory { known: true, .. } => Some(false),
            _ => None,
        }
    }

    fn place(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> Option<PathId> {
        match self.resolve(call, path).0 {
            Hit::Inside(place) => Some(place),
            _ => None,
        }
    }

    /// What a descriptor means, as far as calls before have told.
    fn used(&mut self, task: u64, file: FileArg<'_>) -> Option<Used> {
        let id = self.tasks.held(task, file.number)?.inside()?;
        self.files.get(id).map(Used::of)
    }
}

fn proofs_of_rmdir(place: PathId, outcome: Outcome) -> [Option<Proof>; 2] {
    match outcome {
        Outcome::Value(_) => [Some(Proof::There(place)), Some(Proof::Empty(place))],
        Outcome::Error(ENOENT) => [Some(Proof::Missing(place)), None],
        Outcome::Error(EEXIST | ENOTEMPTY) => [Some(Proof::Filled(place)), None],
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
