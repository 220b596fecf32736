//! Times in which a task waited for a CPU between two calls, and how much of them a replay is not to keep.
//!
//! A replay makes the calls, and looks at the clock during short pauses, as a computing program would use its CPU: so its threads wait
//! for each other's CPUs again. In long pauses it sleeps: nobody has to wait for what was computed there. Of each wait that part is
//! taken off which the recorded tasks spent in the former way, of all their time around then.

use super::record::{Record, RecordKind};
use rustc_hash::FxHashMap;

/// A replay looks at the clock for so long: `MARGIN_NS` of its engine. A longer call has mostly waited for something else than a CPU.
const LOOKED_NS: u64 = 50_000;
/// Time is looked at in windows of so long, or longer ones if there were more of them (chosen: some slices of a scheduler).
const WINDOW_NS: u64 = 10_000_000;
const MOST_WINDOWS: usize = 1 << 16;

/// What the recorded tasks did with their time.
#[derive(Debug)]
pub(super) struct CpuUse {
    tasks: FxHashMap<u32, SinceCall>,
    begin_ns: Option<u64>,
    window_ns: u64,
    windows: Vec<Window>,
}

/// What all tasks did in a window of time; once that is summed up, until its end.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "units stand last")]
struct Window {
    /// In calls and short pauses.
    kept_ns: i64,
    /// In long pauses that began or ended in it.
    slept_ns: i64,
    /// How much more than in the one before in those that did not.
    change_ns: i64,
}

/// Where a task stands since its last call.
#[derive(Debug, Clone, Copy, Default)]
struct SinceCall {
    end_ns: u64,
    delay_ns: u64,
}

impl Default for CpuUse {
    fn default() -> Self {
        Self {
            tasks: FxHashMap::default(),
            begin_ns: None,
            window_ns: WINDOW_NS,
            windows: Vec::new(),
        }
    }
}

impl CpuUse {
    /// Take the next record of the file.
    pub(super) fn take(&mut self, record: &Record<'_>) {
        match record.kind {
            RecordKind::Delayed => {
                let delay_ns = &mut self.tasks.entry(record.task).or_default().delay_ns;
                *delay_ns = delay_ns.saturating_add(record.number_at(0));
            }
            RecordKind::Call => self.take_call(record),
            RecordKind::Exit => {
                self.tasks.remove(&record.task);
            }
            _ => {}
        }
    }

    fn take_call(&mut self, record: &Record<'_>) {
        let now = SinceCall {
            end_ns: record.end_ns(),
            delay_ns: 0,
        };
        self.keep(record.start_ns, record.duration_ns.min(LOOKED_NS));
        let last = self.tasks.insert(record.task, now);
        let Some(last) = last.filter(|last| last.end_ns > 0) else {
            return;
        };
        let pause_ns = record.start_ns.saturating_sub(last.end_ns);
        let own_ns = pause_ns.saturating_sub(last.delay_ns);
        if own_ns <= LOOKED_NS {
            self.keep(record.start_ns, own_ns);
        } else {
            self.sleep(last.end_ns, record.start_ns, own_ns);
        }
    }

    fn keep(&mut self, at_ns: u64, ns: u64) {
        let place = self.make_window(at_ns);
        if let Some(window) = self.windows.get_mut(place) {
            window.kept_ns += as_signed(ns);
        }
    }

    /// Sleep for so long in all, evenly over a time.
    fn sleep(&mut self, from_ns: u64, to_ns: u64, ns: u64) {
        let last = self.make_window(to_ns);
        let first = self.place(from_ns).min(last);
        let part = |of_ns: u64| as_signed(part(ns, of_ns, to_ns - from_ns));
        let begins = [first + 1, last].map(|place| self.begin_of(place));
        let [in_first, in_last] = match last - first {
            0 => [ns, 0].map(as_signed),
            _ => [begins[0].saturating_sub(from_ns), to_ns - begins[1]].map(part),
        };
        let in_each = if last - first > 1 {
            part(self.window_ns)
        } else {
            0
        };
        for (place, slept_ns, change_ns) in [
            (first, in_first, 0),
            (first + 1, 0, in_each),
            (last, in_last, -in_each),
        ] {
            if let Some(window) = self.windows.get_mut(place) {
                window.slept_ns += slept_ns;
                window.change_ns += change_ns;
            }
        }
    }

    fn begin_of(&self, place: usize) -> u64 {
        let since_ns = u64::try_from(place)
            .unwrap_or(0)
            .saturating_mul(self.window_ns);
        self.begin_ns.unwrap_or(0).saturating_add(since_ns)
    }

    fn place(&self, at_ns: u64) -> usize {
        let since_ns = at_ns.saturating_sub(self.begin_ns.unwrap_or(at_ns));
        usize::try_from(since_ns / self.window_ns).unwrap_or(usize::MAX)
    }

    /// The window of a time, which is there afterwards, and the one behind it.
    fn make_window(&mut self, at_ns: u64) -> usize {
        self.begin_ns.get_or_insert(at_ns);
        while self.place(at_ns) >= MOST_WINDOWS {
            self.window_ns *= 2;
            let pairs = self.windows.chunks(2);
            self.windows = pairs.map(Window::joined).collect();
        }
        let place = self.place(at_ns);
        if self.windows.len() < place + 2 {
            self.windows.resize(place + 2, Window::default());
        }
        place
    }

    /// All records were taken: have each window tell the sum until its end.
    pub(super) fn sum_up(&mut self) {
        let mut until = Window::default();
        for window in &mut self.windows {
            until.kept_ns += window.kept_ns;
            until.change_ns += window.change_ns;
            until.slept_ns += window.slept_ns + until.change_ns;
            *window = until;
        }
    }

    fn until(&self, place: Option<usize>) -> Window {
        let known = place.and_then(|place| self.windows.get(place).or(self.windows.last()));
        known.copied().unwrap_or_default()
    }

    /// What of a wait for a CPU comes again in a replay: of so long a one until then.
    pub(super) fn comes_again(&self, delay_ns: u64, until_ns: u64) -> u64 {
        let before = self.place(until_ns.saturating_sub(delay_ns)).checked_sub(1);
        let [before, until] = [before, Some(self.place(until_ns))].map(|place| self.until(place));
        let since = |until: i64, before: i64| u64::try_from(until - before).unwrap_or(0);
        let kept_ns = since(until.kept_ns, before.kept_ns);
        let slept_ns = since(until.slept_ns, before.slept_ns);
        part(delay_ns, kept_ns, kept_ns.saturating_add(slept_ns))
    }
}

impl Window {
    /// Two windows as one of twice the length, in which twice as much is slept at the same pace.
    fn joined(pair: &[Self]) -> Self {
        let [first, second] = [0, 1].map(|at| pair.get(at).copied().unwrap_or_default());
        Self {
            kept_ns: first.kept_ns + second.kept_ns,
            slept_ns: first.slept_ns + second.slept_ns - second.change_ns,
            change_ns: 2 * (first.change_ns + second.change_ns),
        }
    }
}

/// So much of it as these are of all.
fn part(ns: u64, of: u64, all: u64) -> u64 {
    let part = u128::from(ns) * u128::from(of) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

fn as_signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::bpf::attached_record;

    /// Take a record of task 7: its kind, begin and duration in µs, and the number that it keeps.
    fn take(uses: &mut CpuUse, kind: u8, [start, took, number]: [u64; 3]) {
        let mut bytes = attached_record(7, 0, start * 1_000);
        bytes[4] = kind;
        bytes[24..32].copy_from_slice(&(took * 1_000).to_le_bytes());
        bytes[48..56].copy_from_slice(&(number * 1_000).to_le_bytes());
        uses.take(&Record::read(&bytes).unwrap());
    }

    const CALL: u8 = 0;
    const EXIT: u8 = 3;
    const DELAYED: u8 = 11;
    const MS: u64 = 1_000_000;

    #[test]
    fn waits_come_again_as_far_as_a_replay_keeps_its_cpus() {
        let mut uses = CpuUse::default();
        assert_eq!(uses.comes_again(1_000, MS), 0);
        take(&mut uses, CALL, [100, 10, 0]);
        take(&mut uses, DELAYED, [5_000, 0, 3_000]);
        take(&mut uses, DELAYED, [5_000, 0, 1_870]);
        take(&mut uses, CALL, [5_000, 10, 0]); // 20 µs of its own
        take(&mut uses, CALL, [5_130, 0, 0]); // 120 µs, in which a replay sleeps
        uses.sum_up();
        assert_eq!(uses.comes_again(1_000, 5 * MS), 250);
        assert_eq!(
            uses.comes_again(1_000, 500 * MS),
            0,
            "nothing is known of then"
        );
    }

    #[test]
    fn what_counts_is_what_was_done_around_then() {
        let mut uses = CpuUse::default();
        for busy in [0, 2_000_000] {
            for call in 0..500 {
                take(&mut uses, CALL, [busy + 100 * call, 60, 0]);
            }
        }
        uses.sum_up();
        let [kept, slept] = [30, 1_000].map(|at| uses.comes_again(1_000, at * MS));
        assert_eq!((kept, slept), (1_000, 0));
        let half = uses.comes_again(40 * MS, 2_025 * MS);
        assert!((15 * MS..30 * MS).contains(&half), "{half}");
    }

    #[test]
    fn a_day_has_no_more_windows_than_an_hour() {
        let mut uses = CpuUse::default();
        for second in 0..100_000 {
            take(&mut uses, CALL, [second * 1_000_000, 10, 0]);
        }
        uses.sum_up();
        assert!(uses.windows.len() <= MOST_WINDOWS + 1);
        let part = uses.comes_again(1_000_000_000, 50_000_000 * MS);
        assert!(
            (5_000..20_000).contains(&part),
            "{part} of 10 µs in each second"
        );
    }

    #[test]
    fn a_call_that_waits_for_something_else_counts_as_a_short_one_and_a_task_of_a_number_is_not_the_next()
     {
        let mut uses = CpuUse::default();
        take(&mut uses, CALL, [100, 1_000_000, 0]);
        take(&mut uses, EXIT, [1_000_200, 0, 0]);
        take(&mut uses, CALL, [9_000_000, 0, 0]);
        take(&mut uses, CALL, [9_000_150, 0, 0]);
        uses.sum_up();
        assert_eq!(
            uses.comes_again(9_000_000_000, 9_000_200_000),
            2_250_000_000
        );
    }
}
