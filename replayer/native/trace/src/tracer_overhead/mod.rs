//! What tracing added to the recorded times: measured from the log itself, and taken off the gaps.
//!
//! strace stops a program at the entry and at the exit of each traced call. What it adds between the two stamps of `-T` makes
//! calls look longer. What it adds outside makes the time between two calls look longer: it prints the arguments and results there,
//! so how long that takes depends on the call. Programs make many calls back to back; the shortest gaps after each kind of
//! call are the tracer's own.

pub(crate) mod compute_time;

use crate::tracer_overhead::compute_time::{
    ComputeTime, LONG_NS, QUANTILE, Samples, leaving, low_quantile,
};
use replayer_ops::{Flag, Op};
use rustc_hash::FxHashMap;
use serde::Deserialize;

/// What a program whose calls are known showed of the tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Probe {
    /// Added to each call's duration.
    pub call_ns: i64,
    /// Added to each time between two calls.
    pub gap_ns: i64,
    /// The mean of these times in thousandths of their 5 % quantile.
    pub spread: i64,
}

/// What a user, or who captured, says about the tracing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct TracerOverhead {
    /// Added to each call's duration.
    pub call_ns: Option<i64>,
    /// Added to each time between two calls, whatever they are.
    pub gap_ns: Option<i64>,
    /// What a probe measured, for what the log does not tell.
    pub probed: Option<Probe>,
    /// How the probe was made, for people.
    pub method: String,
    /// What bounds the program's share of all gaps together.
    pub computed: Option<ComputeTime>,
}

impl TracerOverhead {
    /// What was measured of a recorder that stops no program, and nothing that the log would show: its times are the program's own.
    pub(crate) fn as_measured(&self) -> Self {
        let [call_ns, gap_ns] = self
            .probed
            .map_or([0; 2], |probe| [probe.call_ns, probe.gap_ns]);
        Self {
            call_ns: self.call_ns.or(Some(call_ns)),
            gap_ns: self.gap_ns.or(Some(gap_ns)),
            computed: None,
            ..self.clone()
        }
    }
}

/// What tracing added, by call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OverheadCosts {
    /// To each call's duration.
    pub(crate) call_ns: Option<i64>,
    /// To the time after a call that is none of those below.
    pub(crate) gap_ns: Option<i64>,
    /// To the time after an op, and after one that failed: by the op's number.
    pub(crate) after_ns: Vec<[Option<i64>; 2]>,
    /// A gap that is shorter than that is made up for by the next ones, up to so much.
    pub(crate) most_owed_ns: i64,
    /// What is to be taken off long gaps besides: those that are `LONG_NS` or more without all that.
    pub(crate) long_gap_ns: i64,
    /// So much of `gap_ns` is beside the tracer's usual cost, so that no more is left of all gaps than the program did.
    pub(crate) more_ns: i64,
    /// What the program did, where that is known.
    pub(crate) computed: Option<ComputeTime>,
    /// Where the numbers come from, for people.
    pub(crate) method: String,
}

impl OverheadCosts {
    /// What it added to the time after an event.
    pub(crate) fn after(&self, op: Op, failed: bool) -> i64 {
        if op.is(Flag::untimed) {
            return 0;
        }
        let of_op = self.after_ns.get(usize::from(op as u8));
        let known = of_op.and_then(|both| both.get(usize::from(failed)).copied().flatten());
        known.or(self.gap_ns).unwrap_or(0)
    }

    /// By op and outcome, those that are known.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Op, bool, i64)> + '_ {
        let rows = Op::ALL.iter().zip(&self.after_ns);
        rows.flat_map(|(&op, &[well, failed])| {
            let well = well.map(|ns| (op, false, ns));
            well.into_iter().chain(failed.map(|ns| (op, true, ns)))
        })
    }
}

/// Calls that cost about 100 ns untraced on any machine, without touching a file system.
const CHEAP: [Op; 3] = [Op::Lseek, Op::Fcntl, Op::Fstat];
/// What such a call, or what a program does between two calls at least, costs untraced (measured: 60 to 300 ns).
const CHEAP_NS: i64 = 150;
/// More than this was not the tracer: a bound on estimates (chosen; strace 6.1 adds 3 to 9 µs, on a busy machine 6 to 21 µs).
const MOST_NS: i64 = 50_000;
/// No call takes the tracer so many times as long as another, in hundredths (chosen; measured with strace 6.1: 155 between read and openat).
const WIDEST: i64 = 180;
/// The mean in thousandths of the 5 % quantile, where nothing but the tracer is seen (measured with strace 6.1: 1093 to 1160), and at
/// most where no probe has shown more (it does on a busy machine: 1250 to 1470 on two CPUs), and ever.
const USUAL_SPREAD: i64 = 1_100;
const WIDE_SPREAD: i64 = 1_250;
const WIDEST_SPREAD: i64 = 3_000;
/// The spread that one gap of so many lies below: kinds of calls behind which programs compute have more (chosen).
const SPREAD_SHARE: usize = 4;
/// How much of gaps that are shorter than the tracer's usual time the next ones make up for
/// (chosen: above what the noise of 100,000 gaps adds up to, 6 ms with a standard deviation of 20 µs).
const MOST_OWED_NS: i64 = 10_000_000;
/// So many gaps show what the tracer takes besides: of fewer, starts of processes are a large part (chosen; a shell's five commands
/// have 600).
const MANY_GAPS: usize = 1_000;
/// Kinds of calls that are no events (chosen); the others share one.
const MOST_NAMES: usize = 64;

/// What kind of call it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class(usize);

impl Class {
    pub(crate) fn of_event(op: Op, failed: bool) -> Self {
        Self(2 * usize::from(op as u8) + usize::from(failed))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastCall {
    pub(crate) class: Class,
    pub(crate) end_ns: i64,
    /// Calls of the whole log that had ended then.
    pub(crate) calls: u64,
}

/// Gaps and durations of the first calls of a log, until what the tracing cost is told from them.
#[derive(Debug)]
pub(crate) struct OverheadEstimator {
    /// By class: those of ops, then those of other calls.
    pools: Vec<Samples>,
    names: FxHashMap<String, usize>,
    cheap: Samples,
}

const OPS: usize = Op::ALL.len();

impl OverheadEstimator {
    pub(crate) fn new() -> Self {
        let mut pools = Vec::new();
        pools.resize_with(2 * OPS, Samples::default);
        Self {
            pools,
            names: FxHashMap::default(),
            cheap: Samples::default(),
        }
    }

    /// The class of a call that is no event.
    pub(crate) fn class_of_other(&mut self, name: &str) -> Class {
        if let Some(&class) = self.names.get(name) {
            return Class(class);
        }
        let class = 2 * OPS + self.names.len().min(MOST_NAMES);
        if self.names.len() < MOST_NAMES {
            self.names.insert(name.to_owned(), class);
        }
        if self.pools.len() <= class {
            self.pools.resize_with(class + 1, Samples::default);
        }
        Class(class)
    }

    /// So long after a call of that class the next one of its thread was entered.
    pub(crate) fn after(&mut self, class: Class, gap_ns: i64) {
        if let Some(pool) = self.pools.get_mut(class.0).filter(|_| gap_ns > 0) {
            pool.add(gap_ns);
        }
    }

    pub(crate) fn took(&mut self, op: Op, duration_ns: Option<i64>) {
        if let Some(duration_ns) = duration_ns.filter(|_| CHEAP.contains(&op)) {
            self.cheap.add(duration_ns);
        }
    }

    /// What the tracing cost, unless somebody said it.
    pub(crate) fn costs(&self, asked: &TracerOverhead) -> OverheadCosts {
        let is_given = asked.call_ns.is_some() && asked.gap_ns.is_some();
        if is_given && !asked.method.is_empty() {
            return OverheadCosts {
                call_ns: asked.call_ns,
                gap_ns: asked.gap_ns,
                most_owed_ns: MOST_OWED_NS,
                method: asked.method.clone(),
                ..OverheadCosts::default()
            };
        }
        let (call_ns, of_calls) = self.call(asked);
        let mut costs = OverheadCosts {
            call_ns,
            most_owed_ns: MOST_OWED_NS,
            computed: asked.computed,
            ..OverheadCosts::default()
        };
        let of_gaps = self.fill_in_gaps(&mut costs, asked);
        costs.method = format!(
            "durations of lseek, fcntl and fstat: {of_calls}; times between two calls: {of_gaps}"
        );
        costs
    }

    fn call(&self, asked: &TracerOverhead) -> (Option<i64>, String) {
        let count = self.cheap.count;
        let low = low_quantile(self.cheap.gaps.clone(), QUANTILE);
        match (asked.call_ns, low, asked.probed) {
            (Some(asked), _, _) => (Some(asked), "given".to_owned()),
            (_, Some(low), _) => {
                let method =
                    format!("the 5 % quantile of {count} in this trace, less {CHEAP_NS} ns");
                (Some((low - CHEAP_NS).clamp(0, MOST_NS)), method)
            }
            (_, None, Some(probe)) => (Some(probe.call_ns), asked.method.clone()),
            (_, None, None) => (None, too_few(count)),
        }
    }

    fn fill_in_gaps(&self, costs: &mut OverheadCosts, asked: &TracerOverhead) -> String {
        costs.gap_ns = asked.gap_ns;
        if asked.gap_ns.is_some() {
            return "given".to_owned();
        }
        let known = self.known(asked);
        let count: usize = self.pools.iter().map(|pool| pool.count).sum();
        if known.is_empty() || count < QUANTILE {
            costs.gap_ns = asked.probed.map(|probe| probe.gap_ns);
            return costs
                .gap_ns
                .map_or_else(|| too_few(count), |_| asked.method.clone());
        }
        let others = known.iter().filter(|(class, _)| *class >= 2 * OPS);
        let mean_of_others = self.mean(others);
        costs.gap_ns = mean_of_others.or_else(|| self.mean(known.iter()));
        let mut offset_ns = 0;
        if let Some(computed) = asked.computed {
            costs.most_owed_ns = 0; // what is left of all gaps is known, so none makes up for another
            (offset_ns, costs.long_gap_ns) = self.offsets(computed, &known);
            if count >= MANY_GAPS {
                costs.more_ns = offset_ns.max(0);
                costs.gap_ns = costs.gap_ns.map(|ns| ns + costs.more_ns);
            }
        }
        costs.after_ns = vec![[None; 2]; OPS];
        for &(class, ns) in &known {
            let both = costs.after_ns.get_mut(class / 2);
            if let Some(place) = both.and_then(|both| both.get_mut(class % 2)) {
                *place = Some((ns + offset_ns).max(0));
            }
        }
        let bounded = asked.computed.map_or(String::new(), |computed| {
            let ms = as_ms(computed.user_ns);
            let left = format!(", so that what the program had of {ms} ms of CPU time is left");
            computed.untraced.map_or(left.clone(), |untraced| {
                format!(
                    "{left}: the mean of {} runs without the tracer",
                    untraced.runs
                )
            })
        });
        format!(
            "the 5 % quantile after each kind of call, less {CHEAP_NS} ns, and their usual spread, of {count} in this trace{bounded}"
        )
    }

    fn known(&self, asked: &TracerOverhead) -> Vec<(usize, i64)> {
        let lows = self.pools.iter().map(Samples::low).enumerate();
        let lows: Vec<(usize, i64)> = lows
            .filter_map(|(class, low)| Some((class, low?)))
            .collect();
        let well_known = lows
            .iter()
            .filter(|(class, _)| self.count(*class) >= QUANTILE);
        let cheapest = well_known.map(|(_, low)| *low).min();
        let most = cheapest.map_or(MOST_NS, |low| {
            (low.saturating_mul(WIDEST) / 100).min(MOST_NS)
        });
        let mut known = lows;
        for (_, low) in &mut known {
            *low = ((*low).min(most) - CHEAP_NS).max(0);
        }
        let spread = self.spread().unwrap_or(USUAL_SPREAD);
        let widest = asked.probed.map_or(0, |probe| probe.spread);
        let spread = spread.clamp(1000, widest.clamp(WIDE_SPREAD, WIDEST_SPREAD));
        for (_, ns) in &mut known {
            *ns = *ns * spread / 1000;
        }
        known
    }

    /// What is to be taken off each gap beside the usual costs, so that as much is left as the program had CPU time, and off long ones
    /// besides.
    ///
    /// Long gaps stay as they are where nobody knows whether the program computed or waited there: it may have had all of that time in
    /// them, or none. Where runs without the tracer tell how long it waited, no more than that and its CPU time is left of them.
    fn offsets(&self, computed: ComputeTime, known: &[(usize, i64)]) -> (i64, i64) {
        let (mut rests, mut long, mut count) = (Vec::new(), Vec::new(), 0_i64);
        for &(class, cost_ns) in known {
            for gap_ns in self.pools.get(class).map_or(&[][..], |pool| &pool.gaps) {
                count += 1;
                let rest_ns = gap_ns - cost_ns;
                if rest_ns < LONG_NS {
                    rests.push(rest_ns);
                } else {
                    long.push(rest_ns);
                }
            }
        }
        let in_long_ns = |off_ns: i64| {
            let lefts = long.iter().map(|rest_ns| (rest_ns - off_ns).max(0));
            lefts.fold(0_i64, i64::saturating_add)
        };
        let long_gap_ns = computed.most_in_long_ns().map_or(0, |most_ns| {
            if in_long_ns(0) > most_ns {
                leaving(long.clone(), most_ns)
            } else {
                0
            }
        });
        let long_ns = in_long_ns(long_gap_ns);
        let most_ns = computed.most_beside_ns(count, long_ns);
        let least_ns = computed.least_ns(count).saturating_sub(long_ns).max(0);
        let shown_ns: i64 = rests.iter().map(|&rest| rest.max(0)).sum();
        if (least_ns..=most_ns).contains(&shown_ns) {
            return (0, long_gap_ns);
        }
        let offset_ns = leaving(rests, shown_ns.clamp(least_ns, most_ns.max(least_ns)));
        (offset_ns, (long_gap_ns - offset_ns).max(0))
    }

    /// How much longer the tracer takes in the mean than at its fastest.
    fn spread(&self) -> Option<i64> {
        let spreads = self.pools.iter();
        let mut spreads: Vec<_> = spreads
            .filter_map(|pool| Some((pool.spread()?, pool.count)))
            .collect();
        spreads.sort_unstable();
        let enough = spreads.iter().map(|(_, count)| count).sum::<usize>() / SPREAD_SHARE;
        let mut below = 0;
        let reached = spreads.iter().find(|(_, count)| {
            below += count;
            below > enough
        });
        reached.map(|(spread, _)| *spread)
    }

    fn count(&self, class: usize) -> usize {
        self.pools.get(class).map_or(0, |pool| pool.count)
    }

    fn mean<'a>(&self, known: impl Iterator<Item = &'a (usize, i64)>) -> Option<i64> {
        let (count, sum) = known.fold((0_i64, 0_i64), |(count, sum), &(class, ns)| {
            let calls = i64::try_from(self.count(class)).unwrap_or(i64::MAX);
            (
                count.saturating_add(calls),
                sum.saturating_add(calls.saturating_mul(ns)),
            )
        });
        sum.checked_div(count)
    }
}

/// Milliseconds: to a tenth, unless they are a sum of ticks.
fn as_ms(ns: i64) -> String {
    let (whole, rest) = (ns / 1_000_000, ns % 1_000_000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", rest / 100_000)
}

fn too_few(count: usize) -> String {
    format!("not known, {count} samples are too few; nothing is subtracted")
}

#[cfg(test)]
mod tests;
