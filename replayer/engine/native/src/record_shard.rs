//! A shard: where the samples of some users wait for the recorder.

use crate::record::Sample;

/// Samples of some users since the last cut.
#[derive(Default)]
pub(crate) struct Shard;

impl Shard {
    /// Record a batch of samples.
    pub(crate) fn flush(&self, _batch: &[Sample]) {}
}
