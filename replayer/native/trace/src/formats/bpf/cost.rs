//! What recording costs between two calls: from the shortest times between calls that a log has.

use super::record::{Record, RecordKind};
use super::source::Records;
use crate::error::TraceError;
use std::collections::HashMap;
use std::path::Path;

/// Fewer gaps prove nothing (chosen).
const FEWEST: usize = 1_000;

/// So many gaps are enough, the first ones (chosen: reading them takes 0.1 s).
const MOST: usize = 1_000_000;

/// One gap in so many is shorter than what gaps cost: programs mostly make some calls right after each other. Measured: of tar and cp the
/// 20th is within 20 % of what has to be taken off, so that what is left is the CPU time that they take outside of the kernel.
const SHORTEST_OF: usize = 20;

/// What a log shows of gaps between calls of one task that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapCost {
    /// Gaps.
    pub count: usize,
    /// What the shortest of them have beside what the probe tells of it: the way into the kernel's hooks and back.
    pub untold_ns: u64,
    /// What the probe itself took, as it tells with each call: the median.
    pub told_ns: u64,
}

/// What gaps cost in a log. None where it has too few of them.
///
/// # Errors
/// The log cannot be read, or is damaged.
pub fn gap_cost(log: &Path) -> Result<Option<GapCost>, TraceError> {
    let (mut untold, mut told) = (Vec::new(), Vec::new());
    let mut ends_ns: HashMap<u32, u64> = HashMap::new();
    let mut records = Records::open(log)?;
    while let Some(bytes) = records
        .as_mut()
        .map(Records::next_record)
        .transpose()?
        .flatten()
    {
        let Some(record) = Record::read(bytes).filter(|record| record.kind == RecordKind::Call)
        else {
            continue;
        };
        if let Some(end_ns) = ends_ns.insert(record.task, record.end_ns()) {
            let gap_ns = record.start_ns.saturating_sub(end_ns);
            let probe_ns = u64::from(record.probe_ns);
            untold.push(gap_ns.saturating_sub(probe_ns));
            told.push(probe_ns);
        }
        if told.len() >= MOST {
            break;
        }
    }
    let count = told.len();
    Ok((count >= FEWEST).then(|| GapCost {
        count,
        untold_ns: part(untold, SHORTEST_OF),
        told_ns: part(told, 2),
    }))
}

/// The value below which one in so many lies.
fn part(mut of: Vec<u64>, one_in: usize) -> u64 {
    let place = of.len() / one_in;
    if place >= of.len() {
        return 0;
    }
    *of.select_nth_unstable(place).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::bpf::{MAGIC, attached_record};

    /// Calls of a task, of 100 ns each, so long after each other, of which the probe took a part.
    fn log(calls: u64, gap_ns: u64, probe_ns: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = [&MAGIC[..], &[0; 8]].concat();
        for call in 0..calls {
            let mut record = attached_record(7, 7, call * (100 + gap_ns));
            record[4] = 0;
            record[24..32].copy_from_slice(&100_u64.to_le_bytes());
            record[40..44].copy_from_slice(&probe_ns.to_le_bytes());
            bytes.extend(record);
        }
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn a_gap_costs_what_the_probe_tells_and_what_it_cannot() {
        let found = gap_cost(log(1_001, 700, 300).path()).unwrap();
        let cost = GapCost {
            count: 1_000,
            untold_ns: 400,
            told_ns: 300,
        };
        assert_eq!(found, Some(cost));
        assert_eq!(gap_cost(log(1_000, 700, 300).path()).unwrap(), None);
    }

    #[test]
    fn it_is_what_the_shortest_gaps_have() {
        assert_eq!(part((1..=100).rev().collect(), SHORTEST_OF), 6);
        assert_eq!(part(Vec::new(), 2), 0);
    }
}
