//! Requests: what a server did from one accept to the next, cut further where the user says when each one was.

use rustc_hash::FxHashMap;

/// A time span that the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// On the log's clock.
    pub start_ns: i64,
    /// On the log's clock; excluded.
    pub end_ns: i64,
    /// What to call it.
    pub label: String,
}

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
}

#[derive(Debug, Clone)]
struct Open {
    window: Option<usize>,
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
    windows: Vec<Window>,
    open: FxHashMap<u64, Open>,
    done: Vec<Request>,
    unnamed: u32,
    pub(crate) without_events: u64,
}

impl Requests {
    pub(crate) fn new(mut windows: Vec<Window>) -> Self {
        windows.sort_by_key(|window| window.start_ns);
        Self {
            windows,
            ..Self::default()
        }
    }

    /// A task took a connection.
    pub(crate) fn accepted(&mut self, task: u64, connection: i64, time_ns: i64) {
        self.finish(task);
        self.open.insert(
            task,
            Open::new(time_ns, self.window_at(time_ns), Some(connection)),
        );
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
        if self.open.is_empty() && self.windows.is_empty() {
            return;
        }
        let (start_ns, end_ns) = times;
        let window = self.window_at(start_ns);
        let window_start = window
            .and_then(|at| self.windows.get(at))
            .map(|window| window.start_ns);
        match self.open.get_mut(&task) {
            Some(open) if open.window.is_none() && open.label.is_none() => open.window = window,
            Some(open) if open.label.is_none() && window.is_some() && open.window != window => {
                self.finish(task);
                self.open.insert(
                    task,
                    Open::new(window_start.unwrap_or(start_ns), window, None),
                );
            }
            None if window.is_some() => {
                self.open.insert(
                    task,
                    Open::new(window_start.unwrap_or(start_ns), window, None),
                );
            }
            _ => {}
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

    fn window_at(&self, time_ns: i64) -> Option<usize> {
        // The latest window that has begun, and has not ended.
        let begun = self
            .windows
            .partition_point(|window| window.start_ns <= time_ns);
        let at = begun.checked_sub(1)?;
        self.windows
            .get(at)
            .filter(|window| time_ns < window.end_ns)
            .map(|_| at)
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
        let named = open.window.and_then(|at| Some((at, self.windows.get(at)?)));
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
    fn new(start_ns: i64, window: Option<usize>, connection: Option<i64>) -> Self {
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
}
