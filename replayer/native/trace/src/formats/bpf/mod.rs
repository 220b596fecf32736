//! Recordings of the probe: its records become the lines that strace would have written, and are imported as those.
//!
//! So there is one decoder for each call, and one search for the order of calls that overlapped. The records say more: every time is exact,
//! and none is missing that the recorder does not know of.

mod attached;
mod cost;
mod delays;
mod lanes;
mod pages;
mod record;
mod shape;
mod source;
mod survey;
mod table;
mod text;
mod words;

use crate::error::TraceError;
use crate::formats::strace::importer;
use crate::formats::{Applicability, Clock, Format, Progress};
use crate::input::Input;
use crate::tracker::Tracker;
pub use cost::{GapCost, gap_cost};
pub use record::{
    HEAD_BYTES, MAGIC, Record, RecordKind, attached_record, begin_at, end_record, set_turn,
};
use source::Records;
use survey::Survey;
pub use table::{LIBAIO, RINGS, call_names, probe_table};
use text::LogText;

pub(crate) const FORMAT: Format = Format {
    name: "bpf",
    is_applicable,
    import,
    is_exact: true,
};

fn is_applicable(head: &[u8]) -> Applicability {
    if head.starts_with(&MAGIC) {
        Applicability::Yes
    } else if MAGIC.starts_with(head) {
        Applicability::NeedMore
    } else {
        Applicability::No
    }
}

/// Import recordings, beside lines of strace.
fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    let mut lines = Vec::with_capacity(inputs.len());
    for input in inputs {
        let Some(records) = Records::open(&input.path)? else {
            lines.push(input);
            continue;
        };
        let survey = Records::open(&input.path)?.map(Survey::of).transpose()?;
        let survey = survey.unwrap_or_default();
        tracker.counts.asynchronous += survey.requests.known;
        let blind = &mut tracker.counts.blind;
        blind.add_all(LOST, usize::try_from(survey.lost).unwrap_or(usize::MAX));
        blind.add_all(CUT, usize::from(!survey.is_whole));
        blind.add_all(COMPAT, usize::try_from(survey.compat).unwrap_or(usize::MAX));
        tracker.sees_pages |= survey.sees_pages;
        tracker.knows_descriptors = true;
        tracker.holds_up_callers = true;
        let requests = &survey.requests;
        for (place, name) in ["io_uring", "libaio"].into_iter().enumerate() {
            if !requests.are_recorded.get(place).copied().unwrap_or(false) {
                let count = requests.submissions.get(place).copied().unwrap_or(0);
                blind.add_all(name, count);
            }
        }
        blind.add_all(
            UNKNOWN,
            usize::try_from(requests.unknown).unwrap_or(usize::MAX),
        );
        lines.push(Input::of(
            input.path.clone(),
            Box::new(LogText::of(records, survey)),
        ));
    }
    importer::import(lines, tracker, progress)
}

const LOST: &str = "calls that the recorder lost: the trace ends before the first of them";
const CUT: &str = "recorder ended before the recording: the last calls are missing";
const UNKNOWN: &str = "requests of io_uring or libaio that no call stands for";
const COMPAT: &str = "calls of 32-bit programs that are not recorded";
