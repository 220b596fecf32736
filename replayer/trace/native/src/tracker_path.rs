//! Calls that name files by path: what they teach about the tree, and the events they become.

use crate::call::{Args, Call, FileKind, OnExec, Outcome, PathArg};
use crate::constants::{
    AT_SYMLINK_FOLLOW, O_ACCMODE, O_APPEND, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_TMPFILE,
    O_TRUNC, S_IFMT, S_IFREG,
};
use crate::error::TraceError;
use crate::formats::strace::value::NOW;
use crate::infer::Placed;
use crate::op::{Class, Op};
use crate::order::{Access, Seat};
use crate::paths::PathId;
use crate::scope::{Hit, Spot};
use crate::tasks::Held;
use crate::tracker::{Fate, On, Tracker};
use crate::tree::{Found, NodeId};

impl Tracker {
    /// Take an open: the descriptor that it returned means something from now on.
    pub(crate) fn open(
        &mut self,
        call: &Call<'_>,
        path: &PathArg<'_>,
        args: &Args<'_>,
        shown: Option<&[u8]>,
    ) -> Result<Fate, TraceError> {
        let (mut hit, slot) = self.resolve(call.task, path);
        if !matches!(hit, Hit::Inside(_)) {
            // A link outside of the roots may lead into them.
            if let Some(Spot::Inside(path)) = shown.and_then(|shown| self.locate_shown(shown)) {
                hit = Hit::Inside(path);
            }
        }
        let Hit::Inside(place) = hit else {
            self.open_outside(call, path, args);
            return Ok(self.drop_call(call, hit));
        };
        let flags = args.flags.unwrap_or(0);
        let file = call.outcome.value().map(|_| self.files.count());
        let on = On {
            path: Some(place),
            file,
            to_file: slot,
            ..On::default()
        };
        let seat = if args.mode.is_some() {
            let mut masked = args.clone();
            self.mask_mode(call.task, &mut masked);
            self.emit(call, Op::Open, on, &masked)?
        } else {
            self.emit(call, Op::Open, on, args)?
        };
        if let Outcome::Error(number) = call.outcome {
            self.learn_failure(Op::Open, place, number, flags);
            self.order_names(seat, place, Access::Read);
            return Ok(Fate::Event);
        }
        let known = self.tree.nodes.len();
        let placed = self.learn_open(place, flags);
        let created = flags & O_CREAT != 0 && self.tree.nodes.len() > known;
        self.order_names(seat, place, if created { Access::Write } else { Access::Read });
        let node = placed.map(|(node, _)| node);
        let id = self.files.add(place, node, shown.unwrap_or_default());
        if let Some(description) = self.files.get_mut(id) {
            description.appends = flags & O_APPEND != 0;
        }
        self.order.file(file.unwrap_or(0), Access::Write);
        if flags & O_TRUNC != 0 && flags & O_ACCMODE != 0 {
            if let Some(node) = node {
                self.tree.resized(node, 0);
                self.order.data(node, (0, i64::MAX), Access::Write);
            }
            self.usage.changed(place);
        }
        self.usage.opened(place, seat.thread);
        let fd = call.outcome.value().unwrap_or(0);
        self.hold_new(call.task, fd, Held::Inside(id), on_exec(flags));
        Ok(Fate::Event)
    }

    fn open_outside(&mut self, call: &Call<'_>, path: &PathArg<'_>, args: &Args<'_>) {
        let Some(fd) = call.outcome.value() else {
            return;
        };
        let on_exec = on_exec(args.flags.unwrap_or(0));
        let spot = self.outside_of(call.task, path);
        let kept = match spot {
            // Only a directory above a root can lead into it.
            Spot::Outside(absolute) if self.leads_to_root(&absolute) => Some(absolute),
            _ => None,
        };
        self.hold_new(call.task, fd, Held::Outside(kept), on_exec);
    }

    /// Where a path that leads outside of the roots leads.
    pub(crate) fn outside_of(&mut self, task: u64, path: &PathArg<'_>) -> Spot {
        let base = match (&path.at, path.text.first()) {
            (_, Some(b'/')) => Spot::Unknown,
            (crate::call::At::Cwd(_), _) => self.cwd(task),
            (crate::call::At::File(file), _) => match self.held(task, *file) {
                Some(Held::Outside(Some(absolute))) => Spot::Outside(absolute),
                Some(Held::Inside(id)) => {
                    self.files.get(id).map_or(Spot::Unknown, |description| Spot::Inside(description.path))
                }
                _ => Spot::Unknown,
            },
        };
        self.locate(&base, &path.text)
    }

    fn leads_to_root(&self, absolute: &[u8]) -> bool {
        self.scope.roots().any(|(root, _)| {
            absolute.is_empty() || root.starts_with(absolute) && root.get(absolute.len()) == Some(&b'/')
        })
    }

    /// The mode that a creation leaves in effect.
    fn mask_mode(&mut self, task: u64, args: &mut Args<'_>) {
        let umask = self.tasks.cwd_mut(task).map_or(0, |cwd| cwd.umask);
        args.mode = args.mode.map(|mode| mode & !umask);
    }

    /// Learn from an open that succeeded.
    fn learn_open(&mut self, path: PathId, flags: i64) -> Option<Placed> {
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        if flags & O_TMPFILE == O_TMPFILE {
            self.tree.saw(paths, path, true, FileKind::Directory, repairs)?;
            let node = self.tree.add(FileKind::Regular);
            return Some((node, None));
        }
        let exclusive = flags & O_CREAT != 0 && flags & O_EXCL != 0;
        let follow = !exclusive && flags & O_NOFOLLOW == 0;
        if flags & O_CREAT != 0 {
            let found = self.tree.find(paths, path, follow);
            if exclusive || !matches!(found, Found::Node(..)) {
                let placed = self.tree.made(paths, path, FileKind::Regular, repairs);
                let doubtful = matches!(found, Found::Unknown(..) | Found::NoDirectory { known: false, .. });
                if let (Some((node, place)), true) = (placed, doubtful) {
                    // Without O_EXCL it may have been there: a later read can prove it.
                    if let Some(node) = self.tree.node_mut(node).filter(|_| !exclusive) {
                        node.doubtful_origin = place;
                    }
                }
                self.usage.renewed(&self.scope.paths, path, true);
                return placed;
            }
        }
        let kind = if flags & O_DIRECTORY != 0 {
            FileKind::Directory
        } else {
            FileKind::Unknown
        };
        self.tree.saw(paths, path, follow, kind, repairs)
    }

    /// Take a call on one path.
    pub(crate) fn on_path(
        &mut self,
        call: &Call<'_>,
        op: Op,
        path: &PathArg<'_>,
        args: &Args<'_>,
    ) -> Result<Fate, TraceError> {
        if self.is_marker(call, op, path) {
            return Ok(Fate::Other);
        }
        let (hit, slot) = self.resolve(call.task, path);
        if op == Op::Chdir && call.outcome.is_ok() {
            self.change_directory(call.task, path, hit);
        }
        let Hit::Inside(place) = hit else {
            return Ok(self.drop_call(call, hit));
        };
        if op == Op::Mknod && args.mode.is_some_and(|mode| !matches!(mode & S_IFMT, 0 | S_IFREG)) {
            self.counts.not_representable.add("mknod (fifo, socket or device)");
            if call.outcome.is_ok() {
                self.tree.made(&self.scope.paths, place, FileKind::Special, &mut self.counts.repairs);
            }
            return Ok(Fate::Other);
        }
        let on = On {
            path: Some(place),
            to_file: slot,
            ..On::default()
        };
        let seat = if op.class() == Class::Look && op != Op::Readlink {
            self.emit(call, op, on, args)?
        } else {
            let written = self.written_args(call.task, op, place, args);
            self.emit(call, op, on, &written)?
        };
        if let Outcome::Error(number) = call.outcome {
            self.learn_failure(op, place, number, 0);
            self.order_names(seat, place, Access::Read);
            return Ok(Fate::Event);
        }
        let placed = self.learn_success(op, place, args);
        let access = if op.class() == Class::Alter { Access::Write } else { Access::Read };
        self.order_names(seat, place, access);
        self.order_nodes(op, placed);
        if op.class() == Class::Attribute {
            self.usage.changed(place);
        }
        Ok(Fate::Event)
    }

    /// What the table holds of a call's arguments.
    fn written_args<'a>(&mut self, task: u64, op: Op, place: PathId, args: &Args<'a>) -> Args<'a> {
        let mut written = args.clone();
        match op {
            Op::Mkdir | Op::Mknod => self.mask_mode(task, &mut written),
            Op::Readlink => written.text = None,
            Op::Symlink => {
                let target = args.text.clone().unwrap_or_default();
                let (_, text) = self.link_target(place, &target);
                written.text = Some(text.into());
            }
            _ => mark_now(&mut written),
        }
        written
    }

    fn learn_success(&mut self, op: Op, path: PathId, args: &Args<'_>) -> Option<Placed> {
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        match op {
            Op::Mkdir => {
                self.usage.renewed(paths, path, true);
                self.tree.made(paths, path, FileKind::Directory, repairs)
            }
            Op::Mknod => {
                self.usage.renewed(paths, path, true);
                self.tree.made(paths, path, FileKind::Regular, repairs)
            }
            Op::Rmdir | Op::Unlink => {
                self.usage.renewed(paths, path, false);
                let kind = if op == Op::Rmdir { FileKind::Directory } else { FileKind::Unknown };
                self.tree.removed(paths, path, kind, repairs)
            }
            Op::Symlink => {
                self.usage.renewed(paths, path, true);
                let placed = self.tree.made(paths, path, FileKind::Symlink, repairs)?;
                self.set_link(placed.0, path, args.text.as_deref().unwrap_or_default());
                self.order.turn();
                Some(placed)
            }
            Op::Readlink => {
                let placed = self.tree.saw(paths, path, false, FileKind::Symlink, repairs)?;
                let unknown = self.tree.node(placed.0).is_some_and(|node| node.link.is_none());
                if let Some(text) = args.text.as_deref().filter(|_| unknown) {
                    self.set_link(placed.0, path, text);
                }
                Some(placed)
            }
            Op::Chdir => self.tree.saw(paths, path, true, FileKind::Directory, repairs),
            Op::Truncate => {
                let placed = self.tree.saw(paths, path, true, FileKind::Regular, repairs)?;
                let size = args.size.unwrap_or(0);
                self.order.data(placed.0, (size, i64::MAX), Access::Write);
                self.tree.resized(placed.0, size);
                Some(placed)
            }
            _ => {
                let kind = args.seen.map_or(FileKind::Unknown, |seen| seen.kind);
                let placed = self.tree.saw(paths, path, op.follows(), kind, repairs)?;
                self.learn_seen(placed.0, args);
                Some(placed)
            }
        }
    }

    /// Learn from the result of a stat.
    pub(crate) fn learn_seen(&mut self, id: NodeId, args: &Args<'_>) {
        let Some(seen) = args.seen else {
            return;
        };
        if let (FileKind::Regular, Some(size)) = (seen.kind, seen.size) {
            self.tree.saw_size(id, size, &mut self.counts.repairs);
        }
        if let Some(node) = self.tree.node_mut(id) {
            node.mode = node.mode.or(seen.mode);
        }
    }

    /// Learn from an error.
    fn learn_failure(&mut self, op: Op, path: PathId, number: u16, flags: i64) {
        use crate::errno::{EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, ENOTEMPTY};
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        let makes = matches!(op, Op::Mkdir | Op::Symlink | Op::Mknod) || flags & O_CREAT != 0;
        let follow = op.follows() && flags & O_NOFOLLOW == 0;
        match number {
            ENOENT if makes => self.tree.missed(paths, paths.parent(path), true, repairs),
            ENOENT => self.tree.missed(paths, path, follow, repairs),
            ENOTDIR if op == Op::Rmdir || flags & O_DIRECTORY != 0 => {
                self.tree.saw(paths, path, follow, FileKind::Unknown, repairs);
            }
            ENOTDIR => self.tree.went_through_file(paths, path, repairs),
            EEXIST if makes => {
                self.tree.saw(paths, path, false, FileKind::Unknown, repairs);
            }
            EISDIR | ENOTEMPTY => {
                self.tree.saw(paths, path, follow, FileKind::Directory, repairs);
            }
            ELOOP if flags & O_NOFOLLOW != 0 => {
                self.tree.saw(paths, path, false, FileKind::Symlink, repairs);
            }
            EINVAL if op == Op::Readlink => {
                self.tree.saw(paths, path, false, FileKind::Unknown, repairs);
            }
            _ => {}
        }
    }

    /// Take a call on two paths.
    pub(crate) fn on_two_paths(
        &mut self,
        call: &Call<'_>,
        op: Op,
        both: [&PathArg<'_>; 2],
        args: &Args<'_>,
    ) -> Result<Fate, TraceError> {
        let [from, to] = both;
        let (source, slot) = self.resolve(call.task, from);
        let (target, to_slot) = self.resolve(call.task, to);
        let (source, target) = match (source, target) {
            (Hit::Inside(source), Hit::Inside(target)) => (source, target),
            (Hit::Inside(source), Hit::Outside) => match self.outside_place(call.task, to) {
                Some(target) => (source, target),
                None => return Ok(self.drop_call(call, target)),
            },
            (Hit::Outside, Hit::Inside(target)) => match self.outside_place(call.task, from) {
                Some(source) => (source, target),
                None => return Ok(self.drop_call(call, source)),
            },
            (Hit::Outside, Hit::Outside) => return Ok(self.drop_call(call, source)),
            (hit @ (Hit::Unknown | Hit::TooLong), _) | (_, hit) => return Ok(self.drop_call(call, hit)),
        };
        let on = On {
            path: Some(source),
            to_path: Some(target),
            file: to_slot,
            to_file: slot,
        };
        let seat = self.emit(call, op, on, args)?;
        if let Outcome::Error(number) = call.outcome {
            self.learn_pair_failure(source, target, number);
            self.order_names(seat, source, Access::Read);
            self.order_names(seat, target, Access::Read);
            return Ok(Fate::Event);
        }
        // The places before and after are the same: a rename changes what they mean, not where they are.
        self.order_names(seat, source, if op == Op::Rename { Access::Write } else { Access::Read });
        self.order_names(seat, target, Access::Write);
        self.learn_pair(op, source, target, args.flags.unwrap_or(0));
        Ok(Fate::Event)
    }

    fn learn_pair(&mut self, op: Op, source: PathId, target: PathId, flags: i64) {
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        let placed = match op {
            Op::Rename if flags & crate::constants::RENAME_EXCHANGE != 0 => {
                self.tree.exchanged(paths, source, target, repairs)
            }
            Op::Rename => self.tree.renamed(paths, source, target, repairs),
            _ if flags & AT_SYMLINK_FOLLOW != 0 => {
                let real = self.tree.link_target(paths, source).unwrap_or(source);
                self.tree.linked(paths, real, target, repairs)
            }
            _ => self.tree.linked(paths, source, target, repairs),
        };
        if op == Op::Rename {
            self.usage.renewed(paths, source, false);
            let moved = placed.map(|[(node, _), _]| self.tree.kind(node));
            if !matches!(moved, Some(FileKind::Regular | FileKind::Unknown)) {
                self.order.turn();
            }
        }
        self.usage.renewed(paths, target, true);
    }

    fn learn_pair_failure(&mut self, source: PathId, target: PathId, number: u16) {
        use crate::errno::{EEXIST, ENOENT, ENOTEMPTY, EXDEV};
        let repairs = &mut self.counts.repairs;
        let paths = &self.scope.paths;
        match number {
            // Either the source is missing or the directory of the target: the source, unless it is known to be there.
            ENOENT => {
                if !matches!(self.tree.find(paths, source, false), Found::Node(..)) {
                    self.tree.missed(paths, source, false, repairs);
                }
            }
            EEXIST | ENOTEMPTY => {
                self.tree.saw(paths, target, false, FileKind::Unknown, repairs);
            }
            EXDEV => self.counts.blind.add("EXDEV between file systems"),
            _ => {}
        }
    }

    /// A place in the trace for a file outside of the roots that is moved or linked in.
    fn outside_place(&mut self, task: u64, path: &PathArg<'_>) -> Option<PathId> {
        let Spot::Outside(absolute) = self.outside_of(task, path) else {
            return None;
        };
        let top = self.scope.paths.child(PathId::TOP, b".outside")?;
        let name: Vec<u8> = absolute
            .iter()
            .map(|&byte| if byte == b'/' { b'|' } else { byte })
            .collect();
        // A name may have 255 bytes: the end of the path tells more than its begin.
        let kept = name.get(name.len().saturating_sub(200)..).unwrap_or_default().to_vec();
        self.tree.ensure_directory(&self.scope.paths, top);
        self.outside += 1;
        self.scope.paths.child(top, &kept)
    }

    /// Tell the order of events which names this one looked up or changed.
    fn order_names(&mut self, _: Seat, path: PathId, access: Access) {
        match self.tree.find(&self.scope.paths, path, false) {
            Found::Node(_, Some((directory, name)))
            | Found::Absent(directory, name)
            | Found::Unknown(directory, name) => self.order.name(directory, name, access),
            Found::NoDirectory { at, name, .. } => self.order.name(at, name, Access::Read),
            Found::Node(_, None) | Found::NotDirectory | Found::Loop => {}
        }
    }

    fn order_nodes(&mut self, op: Op, placed: Option<Placed>) {
        let Some((node, _)) = placed else {
            return;
        };
        match op {
            Op::Mkdir => self.order.directory(node),
            Op::Rmdir => {
                self.order.list(node);
                self.order.directory(node);
            }
            Op::Unlink if self.tree.kind(node) == FileKind::Symlink => self.order.turn(),
            _ => {}
        }
    }

    fn change_directory(&mut self, task: u64, path: &PathArg<'_>, hit: Hit) {
        let spot = match hit {
            Hit::Inside(place) => Spot::Inside(place),
            Hit::Outside => self.outside_of(task, path),
            Hit::Unknown | Hit::TooLong => Spot::Unknown,
        };
        if let Some(cwd) = self.tasks.cwd_mut(task) {
            cwd.spot = spot;
            cwd.shown.clear();
        }
    }

    fn is_marker(&mut self, call: &Call<'_>, op: Op, path: &PathArg<'_>) -> bool {
        if op.class() != Class::Look || self.marker.is_empty() {
            return false;
        }
        let Some(label) = path.text.strip_prefix(self.marker.as_slice()) else {
            return false;
        };
        let label = String::from_utf8_lossy(label).into_owned();
        self.requests.marked(call.task, &label, call.start_ns.unwrap_or(0));
        true
    }
}

fn on_exec(flags: i64) -> OnExec {
    if flags & O_CLOEXEC != 0 {
        OnExec::Close
    } else {
        OnExec::Keep
    }
}

/// Times that are 'now' are flags in the table: 1 for the access time, 2 for the modification time.
pub(crate) fn mark_now(args: &mut Args<'_>) {
    let is_now = |time: Option<i64>| time == Some(NOW);
    let bits = i64::from(is_now(args.atime_ns)) | i64::from(is_now(args.mtime_ns)) << 1;
    if bits != 0 {
        args.flags = Some(bits);
        args.atime_ns = args.atime_ns.filter(|&time| time != NOW);
        args.mtime_ns = args.mtime_ns.filter(|&time| time != NOW);
    }
}
