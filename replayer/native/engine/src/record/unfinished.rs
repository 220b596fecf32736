//! What users had not finished who are given up on: cut off, and at least as old as it was then.

use super::{Recorder, Sample};
use crate::ops::{CANCELLED, LAG, SERVICE, TRANSACTION};
use crate::thread_state::{Doing, ThreadState};

impl Recorder {
    /// Record what a user does who is given up on: its call and its transaction are cut off, and have lasted until now at least.
    pub(crate) fn record_unfinished(
        &self,
        thread_state: &ThreadState,
        doing: Option<Doing>,
        now_ns: u64,
    ) {
        let open = thread_state.transaction();
        // Of a call that nobody times it is not known whether the transaction waits for it.
        if doing.is_some_and(|doing| !doing.timed)
            || open.scheduled && self.began_before_measured(open.began_ns)
        {
            return;
        }
        let call = doing.map(|doing| (doing.op, now_ns.saturating_sub(doing.since_ns)));
        let whole = open.intended_ns.map(|intended_ns| {
            let lag_ns = open.began_ns.saturating_sub(intended_ns);
            let service_ns = now_ns
                .saturating_sub(open.began_ns)
                .saturating_sub(open.aside_ns);
            let latency_ns = service_ns.saturating_add(lag_ns);
            [
                (TRANSACTION, latency_ns),
                (SERVICE, service_ns),
                (LAG, lag_ns),
            ]
        });
        let times = call.into_iter().chain(whole.into_iter().flatten());
        let mut samples = times
            .map(|(op, ns)| Sample {
                ns,
                end_ns: now_ns,
                bytes: 0,
                transaction: open.transaction,
                op,
                outcome: CANCELLED,
                expected: true,
            })
            .collect();
        self.shard_on(thread_state.target())
            .flush_kept(&mut samples, |_| ());
    }
}

#[cfg(test)]
mod tests {
    use crate::histogram;
    use crate::ops::Op;
    use crate::record::RowData;
    use crate::record::tests::hour;
    use crate::thread_state::{Place, ThreadState, UnderWay};
    use std::borrow::Cow;

    /// What is recorded of a user that is given up on, as (op, outcome, longest) with the transaction's name.
    fn unfinished(
        open: UnderWay,
        doing: impl FnOnce(&ThreadState),
    ) -> Vec<(String, Cow<'static, str>, u64)> {
        let recorder = hour(None);
        recorder.begin_segment(0, 0, 0);
        let thread_state = ThreadState::new(7);
        thread_state.begin_transaction(open);
        doing(&thread_state);
        recorder.record_unfinished(&thread_state, thread_state.doing(), 10_000);
        recorder.end_segment(None);
        let totals = recorder.totals();
        let longest = |row: &RowData| histogram::unpack(&row.histogram).unwrap().max();
        let told = |row: &RowData| {
            (
                format!("{}/{}", row.key.transaction, row.key.op),
                row.key.outcome.clone(),
                longest(row),
            )
        };
        totals.iter().map(told).collect()
    }

    fn open(scheduled: bool) -> UnderWay {
        UnderWay {
            transaction: 1,
            scheduled,
            intended_ns: Some(8_500),
            began_ns: 8_800,
            aside_ns: 200,
        }
    }

    #[test]
    fn what_hangs_is_recorded_as_old_as_it_is_without_what_was_put_aside() {
        let found = unfinished(open(false), |thread_state| {
            thread_state.enter(Op::Stat, Place::NOWHERE, 9_000);
        });
        let expected = [
            ("login/stat", 1_000),
            ("login/transaction", 1_300),
            ("login/transaction.lag", 300),
            ("login/transaction.service", 1_000),
        ];
        let mut found: Vec<_> = found
            .iter()
            .map(|(op, outcome, ns)| (op.as_str(), &**outcome, *ns))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected.map(|(op, ns)| (op, "cancelled", ns)));
    }

    #[test]
    fn of_calls_that_nobody_times_and_of_the_warm_up_nothing_is_recorded() {
        let recorder = hour(None);
        recorder.begin_segment(0, 0, 0);
        let thread_state = ThreadState::new(7);
        thread_state.begin_transaction(open(false));
        thread_state.show(Op::Unlink, Place::NOWHERE, || {
            recorder.record_unfinished(&thread_state, thread_state.doing(), 10_000);
        });
        recorder.end_segment(None);
        assert!(recorder.totals().is_empty());
        // It began before the measured phase did, by a schedule.
        let early =
            |thread_state: &ThreadState| thread_state.enter(Op::Stat, Place::NOWHERE, 9_000);
        assert!(unfinished(open(true), early).is_empty());
    }
}
