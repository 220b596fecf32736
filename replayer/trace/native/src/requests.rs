//! Requests: what a server did from one accept to the next, cut further where the user says when each one was.

use crate::windows::{Choice, Window, Windows};
use rustc_hash::FxHashMap;

/// The blind spot of windows that lie over each other.
pub(crate) const GUESSED: &str = "pieces of requests in a window that is a guess";

/// What requests are called together that nobody named.
const NOT_NAMED: &str = "(not named)";

/// What a label is called in censuses and replays: requests without a name are taken together.
#[must_use]
pub fn label_name(label: &str) -> &str {
    let number = label.strip_prefix("request-");
    match number {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => NOT_NAMED,
        _ => label,
    }
}

/// A piece of one thread's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) number: u32,
    pub(crate) label: String,
    pub(crate) thread: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) events: u64,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// The window that it is called after could be another one.
    pub(crate) is_guess: bool,
}

#[derive(Debug, Clone)]
struct Open {
    window: Option<Choice>,
    label: Option<String>,
    start_ns: i64,
    end_ns: i64,
    rows: Option<(u32, u64, u64)>,
    events: u64,
    connection: Option<i64>,
}

/// Requests so far.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    windows: Windows,
    open: FxHashMap<u64, Open>,
    done: Vec<Request>,
    unnamed: u32,
    pub(crate) without_events: u64,
}

impl Requests {
    pub(crate) fn new(windows: Vec<Window>) -> Self {
        Self {
            windows: Windows::new(windows),
            ..Self::default()
        }
    }

    /// A task took a connection.
    pub(crate) fn accepted(&mut self, task: u64, connection: i64, time_ns: i64) {
        self.finish(task);
        let window = self.windows.follow(time_ns, None);
        let open = Open::new(time_ns, window, Some(connection));
        self.open.insert(task, open);
    }

    /// A descriptor was closed: the end of the request, if it was its connection.
    pub(crate) fn closed(&mut self, task: u64, fd: i64, time_ns: i64) {
        if let Some(open) = self.open.get_mut(&task)
            && open.connection == Some(fd)
        {
            open.connection = None;
            open.end_ns = time_ns;
        }
    }

    /// A marker: the task begins something named, or ends it.
    pub(crate) fn marked(&mut self, task: u64, label: &str, time_ns: i64) {
        self.finish(task);
        if !label.is_empty() && label != "end" {
            let mut open = Open::new(time_ns, None, None);
            open.label = Some(label.to_owned());
            self.open.insert(task, open);
        }
    }

    /// A task has an event.
    pub(crate) fn event(&mut self, task: u64, thread: u32, row: u64, times: (i64, i64)) {
        let (start_ns, end_ns) = times;
        if self.windows.len() > 0 {
            self.follow_windows(task, start_ns);
        }
        if let Some(open) = self.open.get_mut(&task) {
            let first = open.rows.map_or(row, |(_, first, _)| first);
            open.rows = Some((thread, first, row));
            open.events += 1;
            if open.connection.is_some() || open.events == 1 || open.window.is_some() {
                open.end_ns = open.end_ns.max(end_ns);
            }
        }
    }

    /// Cut what a task does where its window is over and another one has begun. What a marker named has no window.
    fn follow_windows(&mut self, task: u64, time_ns: i64) {
        let open = self.open.get_mut(&task);
        if open.as_ref().is_some_and(|open| open.label.is_some()) {
            return;
        }
        let last = open.as_ref().and_then(|open| open.window);
        let Some(choice) = self.windows.follow(time_ns, last) else {
            return;
        };
        match (open, last) {
            (Some(open), None) => open.window = Some(choice),
            (Some(open), Some(last)) if last.at == choice.at => open.window = Some(choice),
            _ => {
                let start_ns = self.windows.get(choice.at).map(|window| window.start_ns);
                self.finish(task);
                let open = Open::new(start_ns.unwrap_or(time_ns), Some(choice), None);
                self.open.insert(task, open);
            }
        }
    }

    /// A task waits for its next connection, or has ended.
    pub(crate) fn finish(&mut self, task: u64) {
        let Some(open) = self.open.remove(&task) else {
            return;
        };
        let Some((thread, first, last)) = open.rows else {
            self.without_events += 1;
            return;
        };
        let choice = open.window;
        let named = choice.and_then(|choice| Some((choice.at, self.windows.get(choice.at)?)));
        let (number, label) = match (named, open.label) {
            (Some((at, window)), _) => {
                (u32::try_from(at).unwrap_or(u32::MAX), window.label.clone())
            }
            (None, label) => {
                self.unnamed += 1;
                let number = u32::try_from(self.windows.len()).unwrap_or(0) + self.unnamed - 1;
                (
                    number,
                    label.unwrap_or_else(|| format!("request-{}", self.unnamed)),
                )
            }
        };
        self.done.push(Request {
            number,
            label,
            thread,
            first,
            last,
            events: open.events,
            start_ns: open.start_ns,
            end_ns: open.end_ns.max(open.start_ns),
            is_guess: choice.is_some_and(|choice| choice.is_guess),
        });
    }

    /// All requests, by their first event.
    pub(crate) fn into_done(mut self) -> Vec<Request> {
        let mut open: Vec<u64> = self.open.keys().copied().collect();
        open.sort_unstable();
        for task in open {
            self.finish(task);
        }
        self.done
            .sort_by_key(|request| (request.first, request.thread));
        self.done
    }
}

impl Open {
    fn new(start_ns: i64, window: Option<Choice>, connection: Option<i64>) -> Self {
        Self {
            window,
            label: None,
            start_ns,
            end_ns: start_ns,
            rows: None,
            events: 0,
            connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_cuts_and_windows_name() {
        let window = |start_ns, end_ns, label: &str| Window {
            start_ns,
            end_ns,
            label: label.to_owned(),
        };
        let mut requests = Requests::new(vec![window(0, 100, "/"), window(200, 300, "/a")]);
        requests.accepted(7, 5, 50);
        requests.event(7, 0, 0, (60, 61));
        requests.event(7, 0, 1, (70, 71));
        requests.closed(7, 5, 80);
        requests.accepted(7, 5, 210);
        requests.event(7, 0, 2, (220, 221));
        requests.accepted(7, 5, 400);
        requests.event(7, 0, 3, (410, 411));
        let done = requests.into_done();
        let short: Vec<_> = done
            .iter()
            .map(|r| {
                (
                    r.number,
                    r.label.as_str(),
                    r.first,
                    r.last,
                    r.start_ns,
                    r.end_ns,
                )
            })
            .collect();
        assert_eq!(
            short,
            [
                (0, "/", 0, 1, 50, 80),
                (1, "/a", 2, 2, 210, 221),
                (2, "request-1", 3, 3, 400, 411)
            ]
        );
    }

    #[test]
    fn windows_cut_a_connection_that_stays() {
        let window = |start_ns, end_ns, label: &str| Window {
            start_ns,
            end_ns,
            label: label.to_owned(),
        };
        let mut requests = Requests::new(vec![window(0, 10, "a"), window(10, 20, "b")]);
        requests.accepted(7, 5, 1);
        requests.event(7, 0, 0, (2, 3));
        requests.event(7, 0, 1, (12, 13));
        let done = requests.into_done();
        let short: Vec<_> = done
            .iter()
            .map(|r| (r.label.as_str(), r.first, r.last))
            .collect();
        assert_eq!(short, [("a", 0, 0), ("b", 1, 1)]);
    }

    #[test]
    fn a_task_keeps_its_window_while_that_lasts() {
        let window = |start_ns, end_ns, label: &str| Window {
            start_ns,
            end_ns,
            label: label.to_owned(),
        };
        let mut requests = Requests::new(vec![window(0, 100, "a"), window(50, 60, "b")]);
        requests.accepted(7, 5, 5);
        requests.event(7, 0, 0, (10, 11));
        requests.accepted(8, 6, 50);
        for (row, task, start) in [(1, 8, 52), (2, 7, 55), (3, 7, 70), (4, 7, 90), (5, 8, 95)] {
            let thread = u32::from(task == 8);
            requests.event(task, thread, row, (start, start + 1));
        }
        let done = requests.into_done();
        let short: Vec<_> = done
            .iter()
            .map(|r| (r.label.as_str(), r.first, r.last, r.events, r.is_guess))
            .collect();
        // What task 8 did behind the end of b is still of b: a is taken.
        assert_eq!(short, [("a", 0, 4, 4, false), ("b", 1, 5, 2, true)]);
    }
}
