//! Which task made which, and who waited for whom: what proves the order between the files of -ff where stamps do not tell it.

use crate::bytes::{find, from, skip_blanks, take_digits};
use crate::error::TraceError;
use crate::formats::strace::prefix::{Stamp, take_prefix};
use crate::formats::strace::scan::number_of_strace;
use crate::formats::{PROGRESS_LINES, Progress};
use crate::input::{Input, Line};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::Path;

/// Whether a call makes a task.
pub(crate) fn makes_task(text: &[u8]) -> bool {
    matches!(
        name_of(text),
        b"clone" | b"clone2" | b"clone3" | b"fork" | b"vfork"
    )
}

/// The task that a call made.
pub(crate) fn made(text: &[u8]) -> Option<u64> {
    made_as(text).map(|made| made.task)
}

/// A number of a process: as strace counts, and as the call has it, which may be made in a namespace of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessNumber {
    task: u64,
    told: u64,
}

fn made_as(text: &[u8]) -> Option<ProcessNumber> {
    makes_task(text).then(|| result_of(text))?
}

/// The task that a call waited for, and that has ended. wait4 tells it only as the call has it.
fn awaited(text: &[u8]) -> Option<ProcessNumber> {
    match name_of(text) {
        b"wait4" | b"waitpid" => {
            let lives = find(text, b"WIFSTOPPED").or(find(text, b"WIFCONTINUED"));
            lives.map_or_else(|| result_of(text), |_| None)
        }
        b"waitid" => {
            let ways = [&b"CLD_EXITED"[..], b"CLD_KILLED", b"CLD_DUMPED"];
            let at = find(text, b"si_pid=")?;
            let ended = ways.iter().any(|way| find(text, way).is_some());
            ended.then(|| number_of(from(text, at + 7)))?
        }
        _ => None,
    }
}

pub(crate) fn ends(text: &[u8]) -> bool {
    text.starts_with(b"+++ exited") || text.starts_with(b"+++ killed")
}

fn name_of(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b'(').next().unwrap_or_default()
}

/// The process whose number is the result.
fn result_of(text: &[u8]) -> Option<ProcessNumber> {
    let at = memchr::memmem::rfind(text, b"= ")?;
    number_of(skip_blanks(from(text, at + 2)))
}

/// The number in front.
fn number_of(text: &[u8]) -> Option<ProcessNumber> {
    let (told, rest) = take_digits(text)?;
    let task = number_of_strace(rest).unwrap_or(told);
    Some(ProcessNumber { task, told })
}

/// Look at all lines of a file: the stamp of each, and what stands behind its prefix.
pub(crate) fn each_line(
    path: &Path,
    progress: Progress<'_>,
    mut look: impl FnMut(Stamp, &[u8]),
) -> Result<(), TraceError> {
    let mut input = Input::open(path)?;
    let mut read = 0_u64;
    while input.next_line()? != Line::End {
        // None of them has been imported.
        if read.is_multiple_of(PROGRESS_LINES) && !progress(0) {
            return Err(TraceError::Interrupted);
        }
        read += 1;
        let (prefix, text) = take_prefix(input.line());
        look(prefix.stamp, text);
    }
    Ok(())
}

/// The lives of the tasks that have a file: a number may be used again, and its file may hold the last life or all.
pub(crate) struct TaskLineage {
    file_of: FxHashMap<u64, usize>,
    /// The files of tasks by the file of who made them and the number that this got: in a namespace that is not strace's.
    made_as: BTreeMap<(u64, usize), usize>,
    lives: Vec<TaskLife>,
}

/// The life of a task that stands in its file now.
#[derive(Debug, Clone, Copy, Default)]
struct TaskLife {
    /// Calls that make a task of this number and have to come before it; none of those of its first lives, where no file holds them.
    to_come: i64,
    /// Calls that make one, in all lives.
    makings: i64,
    has_ended: bool,
    /// Its number in a namespace is known.
    is_numbered: bool,
}

/// What a line must wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitsFor {
    /// The end of the task whose file this is.
    End(usize),
    /// The call that makes its own task.
    Birth,
}

/// What a line that was handled lets go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Released {
    Nothing,
    /// The task of this file may begin.
    Birth(usize),
    /// Who waited for the task of its file.
    End,
}

impl TaskLineage {
    /// Look through files, of the tasks that are told, for all that makes tasks.
    pub(crate) fn of(
        files: &[(&Path, Option<u64>)],
        progress: Progress<'_>,
    ) -> Result<Self, TraceError> {
        let tasks = files.iter().enumerate();
        let file_of: FxHashMap<u64, usize> = tasks
            .filter_map(|(index, (_, task))| Some(((*task)?, index)))
            .collect();
        let mut lineage = Self {
            file_of,
            made_as: BTreeMap::new(),
            lives: vec![TaskLife::default(); files.len()],
        };
        for (index, (path, _)) in files.iter().enumerate() {
            lineage.look_through(index, path, progress)?;
        }
        Ok(lineage)
    }

    fn look_through(
        &mut self,
        index: usize,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<(), TraceError> {
        let mut lives = 0;
        let mut has_ended = true;
        each_line(path, progress, |_, text| {
            lives += i64::from(has_ended);
            has_ended = ends(text);
            let made = made_as(text);
            if let Some((made, life)) = made.and_then(|made| Some((made, self.life_of(made.task)?)))
            {
                life.to_come += 1;
                life.makings += 1;
                // Once for each file: no log decides how many are kept.
                if made.told != made.task && !life.is_numbered {
                    life.is_numbered = true;
                    let child = self.file_of.get(&made.task).copied();
                    self.made_as
                        .extend(child.map(|child| ((made.told, index), child)));
                }
            }
        })?;
        if let Some(life) = self.lives.get_mut(index) {
            // Of those that are to come, as many as there are lives begin one; the first life waits for its own.
            life.to_come += 1 - lives;
        }
        Ok(())
    }

    fn life_of(&mut self, task: u64) -> Option<&mut TaskLife> {
        let index = self.file_of.get(&task)?;
        self.lives.get_mut(*index)
    }

    /// The file of a task that a line of a file waited for: one that this made, or the only one of this number that any made.
    fn file_of(&self, index: usize, awaited: ProcessNumber) -> Option<usize> {
        if awaited.told == awaited.task {
            let own = self.made_as.get(&(awaited.told, index));
            let mut all = self
                .made_as
                .range((awaited.told, 0)..=(awaited.told, usize::MAX));
            let first = all.next().map(|(_, file)| file);
            match (own, first, all.next()) {
                (Some(own), ..) => return Some(*own),
                (None, Some(only), None) => return Some(*only),
                (None, Some(_), Some(_)) => return None,
                (None, None, _) => {}
            }
        }
        self.file_of.get(&awaited.task).copied()
    }

    /// What the line of a file that stands next must wait for. A line behind an end begins the next life.
    pub(crate) fn gate(&mut self, index: usize, text: &[u8]) -> Option<WaitsFor> {
        let life = self.lives.get_mut(index)?;
        if life.has_ended {
            *life = TaskLife {
                to_come: life.to_come + 1,
                has_ended: false,
                ..*life
            };
        }
        if life.to_come > 0 {
            return Some(WaitsFor::Birth);
        }
        let other = self.file_of(index, awaited(text)?)?;
        let life = self.lives.get(other)?;
        // One of several that is not to begin yet has a number that was waited for in an earlier life.
        let is_meant = life.to_come <= 0 || life.makings == 1;
        let lives = is_meant && !life.has_ended && other != index;
        lives.then_some(WaitsFor::End(other))
    }

    /// A line of a file was handled.
    pub(crate) fn pass(&mut self, index: usize, text: &[u8]) -> Released {
        if ends(text) {
            self.end(index);
            return Released::End;
        }
        let Some(task) = made(text) else {
            return Released::Nothing;
        };
        let Some(life) = self.life_of(task) else {
            return Released::Nothing;
        };
        life.to_come -= 1;
        let is_next = life.to_come <= 0;
        let child = self.file_of.get(&task).copied();
        child
            .filter(|_| is_next)
            .map_or(Released::Nothing, Released::Birth)
    }

    /// The next line of a file goes on although the call that should come before does not.
    pub(crate) fn give_up(&mut self, index: usize) {
        if let Some(life) = self.lives.get_mut(index) {
            life.to_come = 0;
        }
    }

    /// A file has no more lines, or its task has ended.
    pub(crate) fn end(&mut self, index: usize) {
        if let Some(life) = self.lives.get_mut(index) {
            life.has_ended = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_and_waits_name_the_task_as_strace_itself_does() {
        let of_makers = [
            ("vfork()                                 = 11", Some(11)),
            (
                "clone(child_stack=NULL, flags=SIGCHLD) = 11<sh> <0.000020>",
                Some(11),
            ),
            (
                "clone3({flags=CLONE_VM} => {parent_tid=[7]}, 88) = 2 /* 11 in strace's PID NS */",
                Some(11),
            ),
            ("fork() = ? ERESTARTNOINTR (To be restarted)", None),
            (
                "clone3({flags=0}, 88) = -1 EAGAIN (Resource temporarily unavailable)",
                None,
            ),
            ("close(11) = 11", None),
        ];
        for (text, task) in of_makers {
            assert_eq!(made(text.as_bytes()), task, "{text}");
        }
        let of_waits = [
            (
                "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11 <0.1>",
                Some(11),
            ),
            ("wait4(11, NULL, 0, NULL) = 11", Some(11)),
            (
                "wait4(-1, [{WIFCONTINUED(s)}], WCONTINUED, NULL) = 11",
                None,
            ),
            (
                "wait4(-1, 0x7ffc, WNOHANG, NULL) = -1 ECHILD (No child processes)",
                None,
            ),
            (
                "waitid(P_ALL, 0, {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=11, si_uid=0}, WEXITED, NULL) = 0",
                Some(11),
            ),
            (
                "waitid(P_ALL, 0, {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=2 /* 11 in strace's PID NS */}, WEXITED, NULL) = 0",
                Some(11),
            ),
            (
                "waitid(P_ALL, 0, {si_signo=SIGCHLD, si_code=CLD_STOPPED, si_pid=11}, WSTOPPED, NULL) = 0",
                None,
            ),
        ];
        for (text, task) in of_waits {
            let awaited = awaited(text.as_bytes());
            assert_eq!(awaited.map(|number| number.task), task, "{text}");
        }
    }
}
