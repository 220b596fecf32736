//! Requests: what a server did from one accept to the next, cut further where the user says when each one was.

pub(crate) mod windows;

use crate::requests::windows::{Window, WindowChoice, Windows};
use rustc_hash::{FxHashMap, FxHashSet};

/// The blind spot of pieces that may be of another request: the user's windows lie over each other, or over what is left of one.
pub(crate) const PIECES_GUESSED: &str = "pieces of requests in a window that is a guess";
/// The blind spot of the user's windows in which no task has an event, or which others have got.
pub(crate) const WINDOWS_WITHOUT: &str = "requests of the table without events";

/// So much later than its accept a request may begin in a table (chosen: servers log it in milliseconds, and its length as well).
const CLOCKS_NS: i64 = 2_000_000;
/// What requests are called together that nobody named.
const NOT_NAMED: &str = "(not named)";

/// What a label is called in statistics and replays: requests without a name are taken together.
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
    window: Option<WindowChoice>,
    label: Option<String>,
    start_ns: i64,
    end_ns: i64,
    rows: Option<(u32, u64, u64)>,
    events: u64,
    /// The descriptor whose close ends it. A connection that a window has cut serves others as well.
    connection: Option<i64>,
}

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

    /// A task took a connection. Which window it works in tells its first event: who logs requests lets them begin a little later.
    pub(crate) fn accepted(&mut self, task: u64, connection: i64, time_ns: i64) {
        self.finish(task);
        let open = Open::new(time_ns, None, Some(connection));
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

    /// Cut what a task does where it goes over to another window, or goes on behind its own while another one lasts. What a
    /// marker named has no window.
    fn follow_windows(&mut self, task: u64, time_ns: i64) {
        let open = self.open.get_mut(&task);
        if open.as_ref().is_some_and(|open| open.label.is_some()) {
            return;
        }
        let last = open.as_ref().and_then(|open| open.window);
        // Who serves a connection began with its request.
        let accepted = open.as_ref().filter(|open| open.connection.is_some());
        let own_until_ns =
            accepted.map_or(i64::MAX, |open| open.start_ns.saturating_add(CLOCKS_NS));
        let Some(choice) = self.windows.follow(time_ns, last, own_until_ns) else {
            return;
        };
        let is_same = last.is_none_or(|last| last.at == choice.at);
        let is_left_over =
            last.is_some_and(|last| last != choice) && !self.windows.lasts(choice.at, time_ns);
        match open {
            Some(open) if is_same && !is_left_over => open.window = Some(choice),
            left => {
                // A window that still lasts was never its own.
                if let Some(left) = left.and_then(|open| open.window.as_mut()) {
                    left.is_guess |= self.windows.lasts(left.at, time_ns);
                }
                let window = self.windows.get(choice.at).filter(|_| !is_left_over);
                let start_ns = window.map_or(time_ns, |window| window.start_ns);
                self.finish(task);
                let open = Open::new(start_ns, Some(choice), None);
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

    /// All requests, by their first event, and how many windows have none.
    pub(crate) fn into_done(mut self) -> (Vec<Request>, usize) {
        let mut open: Vec<u64> = self.open.keys().copied().collect();
        open.sort_unstable();
        for task in open {
            self.finish(task);
        }
        self.done
            .sort_by_key(|request| (request.first, request.thread));
        let windows = u32::try_from(self.windows.len()).unwrap_or(u32::MAX);
        let numbers = self.done.iter().map(|request| request.number);
        let named: FxHashSet<u32> = numbers.filter(|&number| number < windows).collect();
        let without = self.windows.len().saturating_sub(named.len());
        (self.done, without)
    }
}

impl Open {
    fn new(start_ns: i64, window: Option<WindowChoice>, connection: Option<i64>) -> Self {
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

    fn requests(windows: &[(i64, i64, &str)]) -> Requests {
        let window = |&(start_ns, end_ns, label): &(i64, i64, &str)| Window {
            start_ns,
            end_ns,
            label: label.to_owned(),
        };
        Requests::new(windows.iter().map(window).collect())
    }

    /// Label, first and last row, events, and whether it is a guess.
    type Short = (String, u64, u64, u64, bool);

    /// The pieces, and the number of windows without one.
    fn pieces(requests: Requests) -> (Vec<Short>, usize) {
        let (done, without) = requests.into_done();
        let short = |r: Request| (r.label, r.first, r.last, r.events, r.is_guess);
        (done.into_iter().map(short).collect(), without)
    }

    fn piece(label: &str, rows: (u64, u64, u64), is_guess: bool) -> Short {
        (label.to_owned(), rows.0, rows.1, rows.2, is_guess)
    }

    /// Have tasks 7 and 8 do things: the task, and when.
    fn follow(requests: &mut Requests, events: &[(u64, i64)]) {
        for (row, &(task, start)) in (0..).zip(events) {
            let thread = u32::from(task == 8);
            requests.event(task, thread, row, (start, start + 1));
        }
    }

    #[test]
    fn accept_cuts_and_windows_name() {
        let mut requests = requests(&[(0, 100, "/"), (200, 300, "/a")]);
        requests.accepted(7, 5, 50);
        requests.event(7, 0, 0, (60, 61));
        requests.event(7, 0, 1, (70, 71));
        requests.closed(7, 5, 80);
        requests.accepted(7, 5, 210);
        requests.event(7, 0, 2, (220, 221));
        requests.accepted(7, 5, 400);
        requests.event(7, 0, 3, (410, 411));
        let (done, without) = requests.into_done();
        let short = |r: &Request| {
            (
                r.number,
                r.label.clone(),
                r.first,
                r.last,
                r.start_ns,
                r.end_ns,
            )
        };
        let short: Vec<_> = done.iter().map(short).collect();
        assert_eq!(
            short,
            [
                (0, "/".to_owned(), 0, 1, 50, 80),
                (1, "/a".to_owned(), 2, 2, 210, 221),
                (2, "request-1".to_owned(), 3, 3, 400, 411)
            ]
        );
        assert_eq!(without, 0);
    }

    #[test]
    fn windows_cut_a_connection_that_stays() {
        let mut requests = requests(&[(0, 10, "a"), (10, 20, "b")]);
        requests.accepted(7, 5, 1);
        follow(&mut requests, &[(7, 2), (7, 12)]);
        let cut = [piece("a", (0, 0, 1), false), piece("b", (1, 1, 1), false)];
        assert_eq!(pieces(requests), (cut.to_vec(), 0));
    }

    #[test]
    fn a_task_keeps_its_window_while_that_lasts_whenever_the_other_one_accepts() {
        // At 49 there is no window but the other one's, and a log of requests has them begin behind the accept.
        for accept in [45, 49, 50, 51] {
            let mut requests = requests(&[(0, 100, "a"), (50, 60, "b")]);
            requests.accepted(7, 5, 5);
            requests.event(7, 0, 0, (10, 11));
            requests.accepted(8, 6, accept);
            for (row, task, start) in [(1, 8, 52), (2, 7, 55), (3, 7, 70), (4, 7, 90), (5, 8, 95)] {
                requests.event(task, u32::from(task == 8), row, (start, start + 1));
            }
            // What task 8 did behind the end of b is still of b: a is taken.
            let kept = [piece("a", (0, 4, 4), false), piece("b", (1, 5, 2), true)];
            assert_eq!(pieces(requests), (kept.to_vec(), 0), "{accept}");
        }
    }

    #[test]
    fn an_accept_before_any_window_begins_a_request_with_events() {
        let mut requests = requests(&[(0, 10, "a"), (20, 30, "b")]);
        requests.accepted(7, 5, 9);
        requests.event(7, 0, 0, (22, 23));
        assert_eq!(requests.without_events, 0);
        let (done, without) = requests.into_done();
        assert_eq!((done.len(), done[0].number, done[0].start_ns), (1, 1, 9));
        assert_eq!(without, 1);
    }

    #[test]
    fn a_task_that_looked_around_before_its_window_began_gets_it() {
        let mut requests = requests(&[(0, 100, "a"), (50, 60, "b")]);
        follow(
            &mut requests,
            &[(7, 10), (8, 49), (8, 52), (8, 58), (7, 70)],
        );
        let own = [
            piece("a", (0, 4, 2), false),
            piece("a", (1, 1, 1), true),
            piece("b", (2, 3, 2), true),
        ];
        assert_eq!(pieces(requests), (own.to_vec(), 0));
    }

    #[test]
    fn who_serves_a_connection_of_a_request_that_another_task_began_stays_with_it() {
        const MS: i64 = 1_000_000;
        // 9 takes the requests and hands them on to 7 and 8.
        for (other_begins, label) in [(50, "a"), (6, "b")] {
            let mut requests = requests(&[(0, 100 * MS, "a"), (other_begins * MS, 150 * MS, "b")]);
            requests.event(9, 2, 0, (MS, MS));
            requests.accepted(7, 5, 4 * MS + 1);
            requests.event(7, 0, 1, (5 * MS, 5 * MS));
            requests.event(7, 0, 2, (52 * MS, 52 * MS));
            requests.accepted(8, 5, 52 * MS);
            requests.event(8, 1, 3, (53 * MS, 53 * MS));
            let (done, _) = requests.into_done();
            let of_worker = |thread| {
                done.iter()
                    .rfind(|request| request.thread == thread)
                    .unwrap()
            };
            assert_eq!(of_worker(0).label, label);
            assert_eq!(of_worker(1).label, "b");
            assert!(of_worker(0).is_guess);
        }
    }

    #[test]
    fn requests_that_one_task_serves_at_once_are_told_as_a_guess_and_those_without_events_are_counted()
     {
        let mut requests = requests(&[(0, 100, "a"), (10, 20, "b"), (30, 40, "c"), (50, 50, "d")]);
        follow(&mut requests, &[(7, 5), (7, 15), (7, 35)]);
        assert_eq!(pieces(requests), (vec![piece("a", (0, 2, 3), true)], 3));
    }

    #[test]
    fn only_what_is_left_to_do_behind_the_end_of_a_window_is_a_guess() {
        let mut requests = requests(&[(0, 100, "a"), (90, 200, "b")]);
        follow(
            &mut requests,
            &[(7, 5), (8, 95), (7, 99), (7, 110), (7, 120), (8, 130)],
        );
        let left = [
            piece("a", (0, 2, 2), false),
            piece("b", (1, 5, 2), true),
            piece("a", (3, 4, 2), true),
        ];
        assert_eq!(pieces(requests), (left.to_vec(), 0));
    }
}
