//! What an import counted: the figures of trace.json and of the report.

use crate::tree::NodeId;
use replayer_ops::{Flag, Op, errno_name};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Names that are counted apart; a log may not decide how much memory an import takes (chosen).
const MOST_NAMES: usize = 1024;

/// Something counted by name.
#[derive(Debug, Default, Clone)]
pub(crate) struct ByName(FxHashMap<String, u64>);

impl ByName {
    pub(crate) fn add(&mut self, name: &str) {
        if let Some(count) = self.0.get_mut(name) {
            *count += 1;
        } else if self.0.len() < MOST_NAMES {
            self.0.insert(name.to_owned(), 1);
        } else {
            *self.0.entry("others".to_owned()).or_default() += 1;
        }
    }

    /// Add what was counted elsewhere, if it is anything.
    pub(crate) fn add_all(&mut self, name: &str, count: usize) {
        for _ in 0..count {
            self.add(name);
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(crate) fn json(&self) -> Value {
        // A map of serde_json sorts its keys.
        let map: Map<String, Value> = self
            .0
            .iter()
            .map(|(name, count)| (name.clone(), json!(count)))
            .collect();
        Value::Object(map)
    }
}

/// A line that was not understood.
#[derive(Debug, Clone)]
pub(crate) struct Sampled {
    pub(crate) place: String,
    pub(crate) text: String,
}

/// Pages of files that were touched through mappings.
#[derive(Debug, Default)]
pub(crate) struct MappedPages {
    /// Those that had to be mapped first.
    pub(crate) touched: u64,
    /// Of these, those that were written for others to see.
    pub(crate) written: u64,
    pub(crate) files: FxHashSet<NodeId>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) lines: u64,
    pub(crate) not_understood: u64,
    pub(crate) samples: Vec<Sampled>,
    /// Lines that say something besides calls: signals, endings, strace's own.
    pub(crate) notices: u64,
    pub(crate) calls: u64,
    /// Calls that were cut by the begin or the end of the log.
    pub(crate) cut_calls: ByName,
    /// Calls printed twice because a signal came: the first is dropped.
    pub(crate) restarted: u64,
    pub(crate) time_went_back: u64,
    pub(crate) ops: BTreeMap<Op, u64>,
    pub(crate) errors: BTreeMap<u16, u64>,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Calls below the roots that are state: followed, not replayed.
    pub(crate) followed: ByName,
    /// Calls below the roots that no event can stand for.
    pub(crate) not_representable: ByName,
    pub(crate) out_of_scope: ByName,
    /// Calls whose path the log does not show.
    pub(crate) no_path: ByName,
    /// Relative paths of tasks whose working directory is not known.
    pub(crate) unknown_directory: ByName,
    /// Calls on descriptors that the log does not open and does not show.
    pub(crate) unknown_file: ByName,
    pub(crate) blind: ByName,
    pub(crate) pages: MappedPages,
    /// Requests of `io_uring` and libaio that became calls.
    pub(crate) asynchronous: usize,
    /// Descriptors whose file turned out to be another.
    pub(crate) files_corrected: u64,
    /// Descriptors that were open before the trace.
    pub(crate) inherited: u64,
    pub(crate) links_out: u64,
}

/// Lines kept as samples.
const SAMPLES: usize = 20;
/// Bytes of a line that a sample shows (chosen).
const SAMPLE_BYTES: usize = 200;

impl Counts {
    /// Count a line that was not understood; the first ones are kept.
    pub(crate) fn strange(&mut self, file: &str, line: u64, text: &[u8]) {
        self.not_understood += 1;
        if self.samples.len() < SAMPLES {
            let shown = text.get(..SAMPLE_BYTES).unwrap_or(text);
            self.samples.push(Sampled {
                place: format!("{file}:{line}"),
                text: String::from_utf8_lossy(shown).into_owned(),
            });
        }
    }

    pub(crate) fn event(&mut self, op: Op, result: i64) {
        *self.ops.entry(op).or_default() += 1;
        if result < 0 {
            let number = u16::try_from(result.saturating_neg()).unwrap_or(u16::MAX);
            *self.errors.entry(number).or_default() += 1;
        }
    }

    /// Calls of the traced program that became events.
    pub(crate) fn represented(&self) -> u64 {
        let calls = self
            .ops
            .iter()
            .filter(|(op, _)| !op.is(Flag::untimed) && **op != Op::MmapRead);
        calls.map(|(_, count)| count).sum()
    }

    pub(crate) fn json(&self) -> Value {
        let represented = self.represented();
        let below = represented + self.followed.total() + self.not_representable.total();
        json!({
            "lines": self.lines,
            "lines_not_understood": self.not_understood,
            "lines_not_understood_first": self.samples.iter()
                .map(|sample| json!({"at": sample.place, "text": sample.text})).collect::<Vec<_>>(),
            "notices": self.notices,
            "calls": self.calls,
            "calls_below_roots": below,
            "calls_as_events": represented,
            "calls_followed": self.followed.json(),
            "calls_not_representable": self.not_representable.json(),
            "calls_out_of_scope": self.out_of_scope.json(),
            "calls_without_path": self.no_path.json(),
            "calls_with_unknown_directory": self.unknown_directory.json(),
            "calls_with_unknown_file": self.unknown_file.json(),
            "calls_cut": self.cut_calls.json(),
            "calls_asynchronous": self.asynchronous,
            "calls_restarted": self.restarted,
            "time_went_back": self.time_went_back,
            "ops": self.ops.iter().map(|(op, count)| (op.name().to_owned(), json!(count))).collect::<Map<_, _>>(),
            "errors": self.errors.iter()
                .map(|(&number, count)| (errno_name(number).to_owned(), json!(count))).collect::<Map<_, _>>(),
            "pages_touched": self.pages.touched,
            "pages_written": self.pages.written,
            "files_mapped": self.pages.files.len(),
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "files_open_before": self.inherited,
            "files_corrected": self.files_corrected,
            "links_out_of_roots": self.links_out,
        })
    }
}
