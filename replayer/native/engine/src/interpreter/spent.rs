//! Time of a user that is no part of what is measured: verifying, and laying out and removing files of a replay.

/// Such time in a transaction, what of it lies before its last call, and what later transactions were kept waiting by.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "all of them are times")]
pub(super) struct Spent {
    /// Before the last call that is known of.
    before_ns: u64,
    /// Since then.
    after_ns: u64,
    /// The end of that call.
    mark_ns: u64,
    /// All since its user last had nothing to do.
    debt_ns: u64,
    /// When its user was free again.
    free_ns: u64,
}

impl Spent {
    /// Some was spent, when the last call of the transaction had ended at a time.
    pub(super) fn add(&mut self, ns: u64, latest_ns: u64) {
        self.turn(latest_ns);
        self.after_ns += ns;
        self.debt_ns = self.debt_ns.saturating_add(ns);
    }

    fn turn(&mut self, latest_ns: u64) {
        if latest_ns > self.mark_ns {
            self.before_ns += std::mem::take(&mut self.after_ns);
            self.mark_ns = latest_ns;
        }
    }

    /// All of this transaction so far.
    pub(super) fn all_ns(&self) -> u64 {
        self.before_ns + self.after_ns
    }

    /// What of it lies before the end of the last call.
    pub(super) fn before_ns(&mut self, latest_ns: u64) -> u64 {
        self.turn(latest_ns);
        self.before_ns
    }

    /// A transaction begins: when it would have been intended to if its user had not been kept.
    pub(super) fn begin(&mut self, intended_ns: u64, start_ns: u64) -> u64 {
        self.before_ns = 0;
        self.after_ns = 0;
        self.mark_ns = start_ns;
        if intended_ns >= self.free_ns {
            self.debt_ns = 0;
        }
        let lag_ns = start_ns.saturating_sub(intended_ns);
        intended_ns + self.debt_ns.min(lag_ns)
    }

    /// It ends: how much was spent between its start and the end of its last call.
    pub(super) fn end(&mut self, latest_ns: u64) -> u64 {
        self.turn(latest_ns);
        std::mem::take(&mut self.before_ns)
    }

    /// Until now its user has done what is not timed.
    pub(super) fn busy_until(&mut self, now_ns: u64) {
        self.free_ns = now_ns;
    }

    pub(super) fn free_ns(&self) -> u64 {
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::Spent;

    #[test]
    fn time_after_the_last_call_is_not_taken_off_the_latency() {
        let mut spent = Spent::default();
        assert_eq!(spent.begin(1000, 1000), 1000);
        spent.add(50, 1100);
        spent.add(5, 1100);
        spent.add(7, 1300);
        assert_eq!((spent.all_ns(), spent.before_ns(1300)), (62, 55));
        assert_eq!(spent.end(1300), 55);
        spent.busy_until(1400);
        assert_eq!(spent.begin(1400, 1400), 1400);
        spent.add(30, 1500);
        assert_eq!(spent.end(1600), 30);
        spent.busy_until(1650);
        // Late by 100, of which 30 and 20 were spent here.
        spent.add(20, 1600);
        assert_eq!(spent.begin(1600, 1700), 1650);
    }
}
