//! Which task made which, and who waited for whom: what proves the order between the files of -ff where stamps do not tell it.

use crate::bytes::{find, from, skip_blanks, take_digits};
use crate::error::TraceError;
use crate::formats::strace::prefix::take_prefix;
use crate::formats::strace::scan::number_of_strace;
use crate::formats::{PROGRESS_LINES, Progress};
use crate::input::Input;
use crate::lines::Line;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// Whether a call makes a task.
pub(crate) fn makes_task(text: &[u8]) -> bool {
    matches!(
        name_of(text),
        b"clone" | b"clone2" | b"clone3" | b"fork" | b"vfork"
    )
}

/// The task that a call made.
fn made(text: &[u8]) -> Option<u64> {
    makes_task(text).then(|| result_of(text))?
}

/// The task that a call waited for, and that has ended.
fn awaited(text: &[u8]) -> Option<u64> {
    match name_of(text) {
        b"wait4" | b"waitpid" => {
            let lives = find(text, b"WIFSTOPPED").or(find(text, b"WIFCONTINUED"));
            lives.map_or_else(|| result_of(text), |_| None)
        }
        b"waitid" => {
            let ways = [&b"CLD_EXITED"[..], b"CLD_KILLED", b"CLD_DUMPED"];
            let at = find(text, b"si_pid=")?;
            let ended = ways.iter().any(|way| find(text, way).is_some());
            ended.then(|| task_of(from(text, at + 7)))?
        }
        _ => None,
    }
}

fn ends(text: &[u8]) -> bool {
    text.starts_with(b"+++ exited") || text.starts_with(b"+++ killed")
}

fn name_of(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b'(').next().unwrap_or_default()
}

/// The task whose number is the result.
fn result_of(text: &[u8]) -> Option<u64> {
    let at = memchr::memmem::rfind(text, b"= ")?;
    task_of(skip_blanks(from(text, at + 2)))
}

/// The number in front, as strace itself counts processes.
fn task_of(text: &[u8]) -> Option<u64> {
    let (number, rest) = take_digits(text)?;
    Some(number_of_strace(rest).unwrap_or(number))
}

/// Whether a call in a file made one of some tasks.
pub(crate) fn makes_one_of(
    path: &Path,
    tasks: &FxHashSet<u64>,
    progress: Progress<'_>,
) -> Result<bool, TraceError> {
    let mut is_found = false;
    each_text(path, progress, |text| {
        is_found |= made(text).is_some_and(|task| tasks.contains(&task));
    })?;
    Ok(is_found)
}

/// Look at all lines of a file, without their prefixes.
fn each_text(
    path: &Path,
    progress: Progress<'_>,
    mut look: impl FnMut(&[u8]),
) -> Result<(), TraceError> {
    let mut input = Input::open(path)?;
    let mut read = 0_u64;
    while input.next_line()? != Line::End {
        // None of them has been imported.
        if read.is_multiple_of(PROGRESS_LINES) && !progress(0) {
            return Err(TraceError::Interrupted);
        }
        read += 1;
        look(take_prefix(input.line()).1);
    }
    Ok(())
}

/// The lives of the tasks that have a file: a number may be used again, and its file may hold the last life or all.
pub(crate) struct Kin {
    file_of: FxHashMap<u64, usize>,
    lives: Vec<Life>,
}

/// The life of a task that stands in its file now.
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// Calls that make a task of this number and have to come before it; none of those of its first lives, where no file holds them.
    to_come: i64,
    has_ended: bool,
}

/// What a line must wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gate {
    /// The end of the task whose file this is.
    End(usize),
    /// The call that makes its own task.
    Birth,
}

/// What a line that was handled lets go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Nothing,
    /// The task of this file may begin.
    Birth(usize),
    /// Who waited for the task of its file.
    End,
}

impl Kin {
    /// Look through files, of the tasks that are told, for all that makes tasks.
    pub(crate) fn of(
        files: &[(&Path, Option<u64>)],
        progress: Progress<'_>,
    ) -> Result<Self, TraceError> {
        let tasks = files.iter().enumerate();
        let file_of: FxHashMap<u64, usize> = tasks
            .filter_map(|(index, (_, task))| Some(((*task)?, index)))
            .collect();
        let mut kin = Self {
            file_of,
            lives: vec![Life::default(); files.len()],
        };
        for (index, (path, _)) in files.iter().enumerate() {
            kin.look_through(index, path, progress)?;
        }
        Ok(kin)
    }

    fn look_through(
        &mut self,
        index: usize,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<(), TraceError> {
        let mut lives = 0;
        let mut has_ended = true;
        each_text(path, progress, |text| {
            lives += i64::from(has_ended);
            has_ended = ends(text);
            if let Some(life) = made(text).and_then(|task| self.life_of(task)) {
                life.to_come += 1;
            }
        })?;
        if let Some(life) = self.lives.get_mut(index) {
            // Of those that are to come, as many as there are lives begin one; the first life waits for its own.
            life.to_come += 1 - lives;
        }
        Ok(())
    }

    fn life_of(&mut self, task: u64) -> Option<&mut Life> {
        let index = self.file_of.get(&task)?;
        self.lives.get_mut(*index)
    }

    /// What the line of a file that stands next must wait for. A line behind an end begins the next life.
    pub(crate) fn gate(&mut self, index: usize, text: &[u8]) -> Option<Gate> {
        let life = self.lives.get_mut(index)?;
        if life.has_ended {
            *life = Life {
                to_come: life.to_come + 1,
                has_ended: false,
            };
        }
        if life.to_come > 0 {
            return Some(Gate::Birth);
        }
        let other = *self.file_of.get(&awaited(text)?)?;
        let life = self.lives.get(other)?;
        // One that is not to begin yet has a number that was waited for in an earlier life.
        let lives = life.to_come <= 0 && !life.has_ended && other != index;
        lives.then_some(Gate::End(other))
    }

    /// A line of a file was handled.
    pub(crate) fn pass(&mut self, index: usize, text: &[u8]) -> Passed {
        if ends(text) {
            self.end(index);
            return Passed::End;
        }
        let Some(task) = made(text) else {
            return Passed::Nothing;
        };
        let Some(life) = self.life_of(task) else {
            return Passed::Nothing;
        };
        life.to_come -= 1;
        let is_next = life.to_come <= 0;
        let child = self.file_of.get(&task).copied();
        child
            .filter(|_| is_next)
            .map_or(Passed::Nothing, Passed::Birth)
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
            assert_eq!(awaited(text.as_bytes()), task, "{text}");
        }
    }
}
