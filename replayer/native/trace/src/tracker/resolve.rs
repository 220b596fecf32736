//! Where paths of calls lead: from which directory, through which links, and what is counted where they lead nowhere.

use crate::bytes::take_digits;
use crate::call::{At, Call, Ending, FileArg, Kind, Outcome, PathArg};
use crate::constants::follows_to_open;
use crate::paths::PathId;
use crate::scope::{Location, Resolved, is_below, normal};
use crate::tasks::{FdTarget, Mounted};
use crate::tracker::{Disposition, Tracker};
use crate::tree::{Entry, Found};
use replayer_ops::numbers::{EEXIST, EISDIR, ENOENT, ENOTDIR};
use replayer_ops::{Class, Op};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Why a call is left out that asks for a directory by what its path ends with, and fails for it.
pub(crate) const FOR_ITS_ENDING: &str = "path that ends in a slash or dots";
/// Why a call is left out that goes through a file that is none of bytes.
pub(crate) const SPECIAL: &str = "fifo, socket or device";
/// Why a call is left out whose failure may be one of what lies outside.
pub(crate) const FAILED_OUTSIDE: &str = "failed outside of the roots";

/// Calls by relative names, where the directory that they begin at is not known.
const NOWHERE: &str = "calls by names in a directory that is not known";
/// Mounts change what names mean, and are not followed.
const MOUNTED_OVER: &str = "mounts on names below the roots";
const MOUNTED_ELSEWHERE: &str = "mounts of files below the roots elsewhere";

impl Tracker {
    /// Where a relative path of a call begins, and the description of that directory.
    fn base(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> (Location, Option<u32>) {
        let file = match path.at {
            At::Cwd(None) => return (self.cwd(call.task), None),
            At::Cwd(Some(shown)) => return (self.shown_cwd(call.task, shown), None),
            At::File(file) => file,
        };
        match self.held(call.task, file) {
            Some(FdTarget::Inside(id)) => {
                let Some(description) = self.files.get(id) else {
                    return (Location::Unknown, None);
                };
                let (place, slot) = (description.place, description.slot);
                if let (Some(node), true) = (description.node, walks_from_base(call, path)) {
                    self.tree.was_entered(node);
                }
                (Location::Inside(place), Some(slot))
            }
            Some(FdTarget::Outside(Some(absolute))) => (Location::Outside(absolute), None),
            // What it is cannot be told, but no directory below a root.
            Some(FdTarget::Outside(None) | FdTarget::Pipe(_)) => {
                (Location::Outside(Rc::from(&b"-"[..])), None)
            }
            Some(FdTarget::Lost(_)) | None => (Location::Unknown, None),
        }
    }

    /// The working directory as `-y` shows it, from now on.
    fn shown_cwd(&mut self, task: u64, shown: &[u8]) -> Location {
        let known = self.tasks.cwd_mut(task);
        if let Some(cwd) = known.filter(|cwd| cwd.shown == *shown) {
            return cwd.location.clone();
        }
        let location = self.locate_shown(task, shown);
        let location = location.unwrap_or(Location::Unknown);
        if let Some(mut cwd) = self.tasks.cwd_mut(task) {
            cwd.shown = shown.to_vec();
            cwd.location = location.clone();
        }
        location
    }

    pub(crate) fn cwd(&mut self, task: u64) -> Location {
        self.tasks
            .cwd_mut(task)
            .map_or(Location::Unknown, |cwd| cwd.location.clone())
    }

    /// The spot of a path that `-y` shows of a task; None where it shows no path.
    pub(crate) fn locate_shown(&mut self, task: u64, shown: &[u8]) -> Option<Location> {
        let text = crate::formats::strace::value::unescape(shown);
        let rest = text.strip_prefix(b"/")?;
        let Some(mounted) = self.tasks.mounted(task) else {
            return Some(self.locate(&Location::Unknown, &text));
        };
        let begin = self.locate(&Location::Unknown, &mounted.begin);
        let location = self.locate(&begin, rest);
        Some(self.uncovered(task, location))
    }

    /// Say what a task has mounted, and on which names below roots that is something else.
    pub(crate) fn give_mounts(&mut self, task: u64, begin: &[u8], names: &[String]) {
        let own = normal(begin).unwrap_or_default();
        let given = names.iter().filter_map(|name| normal(name.as_bytes()));
        let known = self.scope.entrances().map(|(name, _)| name.to_vec());
        let names: BTreeSet<_> = given.chain(known).collect();
        let mut covers = Vec::new();
        for name in names.iter().filter(|name| is_below(name, &own)) {
            let found = self.scope.entrances().find(|(known, _)| known == name);
            let found = found.map(|(_, place)| place);
            // By the name above, as if nothing were mounted on it.
            if let Some(place) = self.scope.covered(&mut self.tree, name) {
                covers.push((place, found));
            }
        }
        covers.sort_by_key(|(place, _)| std::cmp::Reverse(self.tree.paths.depth(*place)));
        let begin = Box::from(begin);
        self.tasks.give_mounts(task, Mounted { begin, covers });
    }

    /// Where a place is for a task: on something that it has mounted there, perhaps.
    fn uncovered(&mut self, task: u64, location: Location) -> Location {
        let Location::Inside(place) = location else {
            return location;
        };
        let Some(mounted) = self.tasks.mounted(task) else {
            return location;
        };
        let paths = &mut self.tree.paths;
        let mut covers = mounted.covers.iter();
        let Some(&(cover, below)) = covers.find(|(at, _)| paths.is_at_or_below(place, *at)) else {
            return location;
        };
        let below = below.and_then(|below| paths.moved(place, cover, below));
        below.map_or_else(
            || {
                let begin = mounted.begin.strip_prefix(b"/").unwrap_or_default();
                Location::Outside(Rc::from([begin, &self.tree.paths.text(place)].join(&b'/')))
            },
            Location::Inside,
        )
    }

    /// The same of what a path has led to.
    fn resolved_uncovered(&mut self, task: u64, resolved: Resolved) -> Resolved {
        let Resolved::Inside(place) = resolved else {
            return resolved;
        };
        match self.uncovered(task, Location::Inside(place)) {
            Location::Inside(place) => Resolved::Inside(place),
            Location::Outside(_) | Location::Unknown => Resolved::Outside,
        }
    }

    pub(crate) fn locate(&mut self, base: &Location, text: &[u8]) -> Location {
        self.scope.locate(&mut self.tree, base, text)
    }

    /// Where a path of a call leads, and the description of the directory it begins at.
    pub(crate) fn resolve(
        &mut self,
        call: &Call<'_>,
        path: &PathArg<'_>,
    ) -> (Resolved, Option<u32>) {
        if let Some(resolved) = self.through_proc(call, path) {
            return (resolved, None);
        }
        let absolute = path.text.first() == Some(&b'/');
        let ((base, text), slot) = if absolute {
            (self.below_root(call.task, &path.text), None)
        } else {
            let (base, slot) = self.base(call, path);
            ((base, &*path.text), slot)
        };
        if path.text.is_empty() {
            return (empty(&base), None);
        }
        let resolved = self.scope.resolve(&mut self.tree, &base, text);
        let resolved = self.resolved_uncovered(call.task, resolved);
        let resolved = match resolved {
            Resolved::Outside if absolute && follows_last(call.kind) && call.outcome.is_ok() => {
                self.behind_link(&base, text)
            }
            Resolved::Inside(place)
                if path.ending() != Ending::Name && !names_entries(call.kind) =>
            {
                Resolved::Inside(self.tree.link_target(place).unwrap_or(place))
            }
            resolved => resolved,
        };
        let resolved = match resolved {
            Resolved::Inside(place) if call.outcome.is_ok() && is_where_it_begins(&path.text) => {
                self.unless_removed(place)
            }
            resolved => resolved,
        };
        (resolved, slot.filter(|_| !absolute))
    }

    /// Where a name outside of the roots leads, to calls that follow it.
    fn behind_link(&mut self, base: &Location, text: &[u8]) -> Resolved {
        let name = text
            .strip_prefix(b"/")
            .filter(|_| *base == Location::Unknown);
        let place = name.and_then(|name| self.scope.linked(&mut self.tree, name));
        place.map_or(Resolved::Outside, Resolved::Inside)
    }

    pub(crate) fn is_below_roots(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> bool {
        let (resolved, _) = self.resolve(call, path);
        matches!(resolved, Resolved::Inside(_) | Resolved::Empty)
    }

    /// A directory that one works in and that has been removed answers to `.`, and to nothing else.
    fn unless_removed(&mut self, place: PathId) -> Resolved {
        let is_gone = match self.tree.find(place, true) {
            Found::Absent(at, name) | Found::NoDirectory { at, name, .. } => {
                self.tree.entry(at, name) == Some(Entry::Absent)
            }
            _ => false,
        };
        if is_gone {
            Resolved::Nameless
        } else {
            Resolved::Inside(place)
        }
    }

    pub(crate) fn outside_of(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> Location {
        let (base, text) = match path.text.first() {
            Some(b'/') => self.below_root(call.task, &path.text),
            _ => (self.base(call, path).0, &*path.text),
        };
        let location = self.locate(&base, text);
        self.uncovered(call.task, location)
    }

    /// Where an absolute path of a task begins, and the rest of it: no `..` leads out of a root.
    pub(crate) fn below_root<'p>(&mut self, task: u64, text: &'p [u8]) -> (Location, &'p [u8]) {
        let changed = self.tasks.have_roots.then(|| self.tasks.cwd_mut(task));
        let Some(root) = changed.flatten().and_then(|cwd| cwd.root.clone()) else {
            return (Location::Unknown, text);
        };
        let mut rest = text;
        loop {
            rest = match rest {
                [b'/', more @ ..] | [b'.', b'/', more @ ..] | [b'.', b'.', b'/', more @ ..] => more,
                [b'.', b'.'] => &[],
                _ => break,
            };
        }
        (root, if rest.is_empty() { b"." } else { rest })
    }

    /// A task has another root from now on, and those that share it, or all on the same mounts.
    pub(crate) fn change_root(&mut self, call: &Call<'_>, path: &PathArg<'_>) {
        let root = match self.outside_of(call, path) {
            Location::Inside(place) => {
                self.counts.followed.add(call.name);
                Location::Inside(self.tree.link_target(place).unwrap_or(place))
            }
            Location::Unknown => {
                self.counts.blind.add(call.name);
                Location::Unknown
            }
            outside @ Location::Outside(_) => outside,
        };
        self.tasks.have_roots = true;
        let first = Location::Outside(Rc::from(&b""[..]));
        let changed = Some(root.clone()).filter(|root| *root != first);
        let is_of_all = matches!(call.kind, Kind::PivotRoot(_));
        let Some((before, mounts)) = self.tasks.cwd_mut(call.task).map(|mut cwd| {
            let before = cwd.root.clone();
            cwd.root.clone_from(&changed);
            (before, cwd.mounts)
        }) else {
            return;
        };
        let standing = before.clone().unwrap_or(first);
        let all = self.tasks.cwds_mut().filter(|_| is_of_all);
        for mut cwd in all.filter(|cwd| cwd.mounts == mounts && cwd.root == before) {
            cwd.root.clone_from(&changed);
            if cwd.location == standing {
                cwd.location = root.clone();
            }
        }
    }

    /// `/proc/self/fd/7` names what the descriptor holds, to calls that follow it; to others it is a link in /proc.
    fn through_proc(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> Option<Resolved> {
        match self.held_through_proc(call.task, &path.text)? {
            _ if !follows_last(call.kind) => Some(Resolved::Outside),
            FdTarget::Inside(id) => Some(self.resolved_description(id)),
            FdTarget::Outside(_) | FdTarget::Pipe(_) => Some(Resolved::Outside),
            FdTarget::Lost(_) => Some(Resolved::Nameless),
        }
    }

    /// Whether a path begins at an open directory that has been removed: what has its name by now is another one.
    pub(crate) fn begins_in_removed(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> bool {
        match path.at {
            At::File(file) if path.text.first() != Some(&b'/') => {
                matches!(self.held(call.task, file), Some(FdTarget::Inside(id))
                    if matches!(self.resolved_description(id), Resolved::Nameless))
            }
            _ => false,
        }
    }

    /// What a path that names an open description leads to.
    pub(crate) fn resolved_description(&mut self, id: u32) -> Resolved {
        let Some(description) = self.files.get(id).filter(|open| !open.nameless) else {
            return Resolved::Nameless;
        };
        let (place, node) = (description.place, description.node);
        let ends = [true, false].map(|follow| self.tree.find(place, follow));
        let is_gone = node.is_some_and(|node| {
            ends.iter().all(|found| match found {
                Found::Node(found, _) => *found != node,
                Found::Absent(..) => true,
                _ => false,
            })
        });
        if is_gone {
            Resolved::Nameless
        } else {
            Resolved::Inside(place)
        }
    }

    /// What a path through /proc to a descriptor leads to: one of its own process, or of another one that is known.
    pub(crate) fn held_through_proc(&mut self, task: u64, text: &[u8]) -> Option<FdTarget> {
        let (owner, number) = descriptor_in_proc(text)?;
        if let Some(owner) = owner {
            self.tasks.get(owner)?;
        }
        self.tasks.held(owner.unwrap_or(task), number)
    }

    /// Count a call that means a file of the trace and is no event.
    pub(crate) fn leave_out(&mut self, call: &Call<'_>, why: &str) -> Disposition {
        let name = format!("{} ({why})", call.name);
        self.counts.not_representable.add(&name);
        Disposition::Other
    }

    /// Count a call that is none of the trace's.
    pub(crate) fn count_dropped(&mut self, call: &Call<'_>, resolved: Resolved) -> Disposition {
        match resolved {
            Resolved::Outside | Resolved::Inside(_) => self.counts.out_of_scope.add(call.name),
            Resolved::Unknown => {
                self.counts.unknown_directory.add(call.name);
                if self.knows_descriptors && call.outcome.is_ok() {
                    self.counts.blind.add(NOWHERE);
                }
            }
            Resolved::Nameless => return self.leave_out(call, "file without a name"),
            Resolved::Empty => return self.leave_out(call, "empty path"),
            Resolved::TooLong => return self.leave_out(call, "path too long"),
        }
        Disposition::Other
    }

    /// Take a call that mounts something, or takes a mount away: names below the roots may mean other files from then on.
    pub(crate) fn mounted(
        &mut self,
        call: &Call<'_>,
        from: Option<&PathArg<'_>>,
        at: Option<&PathArg<'_>>,
    ) -> Disposition {
        let [from, at] = [from, at].map(|path| path.map(|path| self.outside_of(call, path)));
        let is_below = |location: &Option<Location>| matches!(location, Some(Location::Inside(_)));
        if !call.outcome.is_ok() || from == at || !(is_below(&from) || is_below(&at)) {
            self.counts.out_of_scope.add(call.name);
            return Disposition::Other;
        }
        let what = if is_below(&at) {
            MOUNTED_OVER
        } else {
            MOUNTED_ELSEWHERE
        };
        self.counts.blind.add(what);
        self.counts.not_representable.add(call.name);
        Disposition::Other
    }

    pub(crate) fn unsupported(
        &mut self,
        call: &Call<'_>,
        path: Option<&PathArg<'_>>,
        file: Option<FileArg<'_>>,
    ) -> Disposition {
        let inside = path.is_some_and(|path| self.is_below_roots(call, path));
        let held = file
            .filter(|_| !inside)
            .and_then(|file| self.held(call.task, file));
        if inside || matches!(held, Some(FdTarget::Inside(_))) {
            self.counts.not_representable.add(call.name);
        } else {
            self.counts.out_of_scope.add(call.name);
        }
        Disposition::Other
    }
}

/// Whether a call with one side outside of the roots may have failed for what is there: of that too little is known.
///
/// A name that is taken is laid out; calls between file systems are left out when the trace is replayed.
pub(crate) fn fails_elsewhere(outcome: Outcome) -> bool {
    use replayer_ops::numbers::{EEXIST, EXDEV};
    matches!(outcome, Outcome::Error(number) if !matches!(number, EEXIST | EXDEV))
}

/// The descriptor that a path through /proc names, and of which process: `/proc/self/fd/7`, `/proc/4711/fd/7`.
fn descriptor_in_proc(text: &[u8]) -> Option<(Option<u64>, i64)> {
    let own = [
        &b"/proc/self/fd/"[..],
        b"/proc/thread-self/fd/",
        b"/dev/fd/",
    ];
    let rest = own.iter().find_map(|own| text.strip_prefix(*own));
    let (owner, rest) = if let Some(rest) = rest {
        (None, rest)
    } else {
        let (owner, rest) = take_digits(text.strip_prefix(b"/proc/")?)?;
        (Some(owner), rest.strip_prefix(b"/fd/")?)
    };
    let (number, rest) = take_digits(rest)?;
    rest.is_empty()
        .then_some((owner, i64::try_from(number).ok()?))
}

/// Whether a path names the directory that it begins at: `.`, or `./`.
fn is_where_it_begins(text: &[u8]) -> bool {
    let mut parts = text.split(|&byte| byte == b'/');
    parts.next() == Some(b".") && parts.all(|part| matches!(part, b"" | b"."))
}

/// Where an empty path leads, by where it begins: no file of the trace is meant.
fn empty(base: &Location) -> Resolved {
    match base {
        Location::Inside(_) => Resolved::Empty,
        Location::Outside(_) => Resolved::Outside,
        Location::Unknown => Resolved::Unknown,
    }
}

/// Whether a call shows that what its path begins at is a directory: a name was looked up in it.
fn walks_from_base(call: &Call<'_>, path: &PathArg<'_>) -> bool {
    let looked = matches!(
        call.outcome,
        Outcome::Value(_) | Outcome::Error(ENOENT | EEXIST)
    );
    looked && !path.text.is_empty()
}

/// Whether a call goes on to where a symlink in the last place leads.
pub(crate) fn follows_last(kind: &Kind<'_>) -> bool {
    match kind {
        Kind::Open { args, .. } => follows_to_open(args.flags.unwrap_or(0)),
        Kind::Path { op, .. } => op.follows(),
        // The source of a link may be: what a descriptor names has been looked at before (`named_by_descriptor`).
        Kind::TwoPaths { .. } => false,
        _ => true,
    }
}

/// Whether a call is about names themselves: a slash behind a symlink's does not lead it to where the symlink leads.
fn names_entries(kind: &Kind<'_>) -> bool {
    match kind {
        Kind::TwoPaths { .. } => true,
        Kind::Path { op, .. } => op.class() == Class::Alter,
        _ => false,
    }
}

/// Whether a call may have failed for what its path ends with. Places have names: without the slash it would succeed.
pub(crate) fn fails_for_ending(
    op: Op,
    path: &PathArg<'_>,
    outcome: Outcome,
    creates: bool,
) -> bool {
    let Outcome::Error(number) = outcome else {
        return false;
    };
    let alters = op.class() == Class::Alter || creates;
    match path.ending() {
        Ending::Name => false,
        Ending::Slash if number == ENOENT => matches!(op, Op::Link | Op::Mknod | Op::Symlink),
        Ending::Slash => matches!(number, EISDIR | ENOTDIR),
        Ending::Dots => alters || number == ENOTDIR,
    }
}
