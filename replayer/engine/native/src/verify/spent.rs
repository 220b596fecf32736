//! The time that verifying took: it is no part of what is measured.

/// Time spent on verifying in a transaction, and what of it lies before its last call.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "all of them are times")]
pub(crate) struct Spent {
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
    /// All of this segment that was not told yet.
    pub(super) untold_ns: u64,
}

impl Spent {
    /// Some was spent, when the last call of the transaction had ended at a time.
    pub(crate) fn add(&mut self, ns: u64, latest_ns: u64) {
        self.turn(latest_ns);
        self.after_ns += ns;
        self.debt_ns = self.debt_ns.saturating_add(ns);
        self.untold_ns += ns;
    }

    fn turn(&mut self, latest_ns: u64) {
        if latest_ns > self.mark_ns {
            self.before_ns += std::mem::take(&mut self.after_ns);
            self.mark_ns = latest_ns;
        }
    }

    /// A transaction begins: when it would have been intended to if its user had not been kept by verifying.
    pub(crate) fn begin(&mut self, intended_ns: u64, start_ns: u64) -> u64 {
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
    pub(crate) fn end(&mut self, latest_ns: u64, now_ns: u64) -> u64 {
        self.turn(latest_ns);
        self.free_ns = now_ns;
        std::mem::take(&mut self.before_ns)
    }
}
