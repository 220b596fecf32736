//! Histograms of nanoseconds: a dense one for the hot path, `HdrHistogram` for everything after it.
//!
//! Both have the same buckets: 3 significant digits, 1 ns to 24 h, so that nothing is lost between them.

use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram as Hdr};
use std::io::Read;

/// 24 h, the highest value that is told apart; longer ones count as this.
pub(crate) const HIGHEST_NS: u64 = 24 * 3600 * 1_000_000_000;
/// 3 digits need 2 * 10^3 single units, rounded up to a power of two (`HdrHistogram`'s sub-buckets).
const SUB_BUCKETS: u64 = 2048;
/// Half of them, as a power of two: the buckets that each doubling of the value adds.
const HALF_MAGNITUDE: u32 = 10;
const DIGITS: u8 = 3;
/// Buckets that are looked at together when counts are drained (chosen: a cache line).
const STRETCH: usize = 16;
/// The longest V2 form: a header of 40 bytes and at most 9 bytes a bucket, of which there are 38 * 1024.
const LONGEST_V2: u64 = 40 + 9 * 38 * 1024;
const COMPRESSED_COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// Position of a value's bucket.
fn bucket_of(ns: u64) -> usize {
    let doublings = (64 - SUB_BUCKETS.ilog2()) - (ns | (SUB_BUCKETS - 1)).leading_zeros();
    #[expect(clippy::cast_possible_truncation, reason = "below 2048 by the shift")]
    let in_bucket = (ns >> doublings) as usize;
    ((doublings as usize) << HALF_MAGNITUDE) + in_bucket
}

/// Lowest value of the bucket at a position.
fn value_of(bucket: usize) -> u64 {
    let doublings = (bucket >> HALF_MAGNITUDE).saturating_sub(1);
    ((bucket - (doublings << HALF_MAGNITUDE)) as u64) << doublings
}

/// Counts of the hot path: grows with the values it meets, and knows which part of it was touched.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    buckets: Vec<u32>,
    /// The buckets touched since it was last drained are `low..high`.
    low: usize,
    high: usize,
}

impl Counts {
    /// Count a value. Allocates only when it is twice as high as any before.
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        let bucket = bucket_of(ns.min(HIGHEST_NS));
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count = count.saturating_add(1);
            self.touch(bucket);
        } else {
            self.grow_and_record(bucket);
        }
    }

    #[inline]
    fn touch(&mut self, bucket: usize) {
        if self.is_empty() {
            self.low = bucket;
            self.high = bucket + 1;
        } else {
            self.low = self.low.min(bucket);
            self.high = self.high.max(bucket + 1);
        }
    }

    #[cold]
    fn grow_and_record(&mut self, bucket: usize) {
        let step = 1 << HALF_MAGNITUDE;
        self.buckets.resize((bucket / step + 1) * step, 0);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count = 1;
        }
        self.touch(bucket);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.high == 0
    }

    /// Move all counts into a histogram, and keep the memory.
    pub(crate) fn drain_into(&mut self, histogram: &mut Hdr<u64>) {
        let touched = self.buckets.get_mut(self.low..self.high);
        // Most buckets are empty: a stretch of them is passed over at once.
        let stretches = touched.unwrap_or_default().chunks_mut(STRETCH);
        for (from, stretch) in (self.low..).step_by(STRETCH).zip(stretches) {
            if stretch.iter().fold(0, |any, count| any | *count) == 0 {
                continue;
            }
            for (bucket, count) in (from..).zip(stretch).filter(|(_, count)| **count != 0) {
                record(histogram, value_of(bucket), u64::from(*count));
                *count = 0;
            }
        }
        self.low = 0;
        self.high = 0;
    }
}

/// An empty histogram that grows with its values.
pub(crate) fn empty() -> Hdr<u64> {
    let Ok(mut histogram) = Hdr::new(DIGITS) else {
        unreachable!("3 digits are within the 0 to 5 that it takes")
    };
    histogram.auto(true);
    histogram
}

/// Add one histogram to another; both have this file's buckets, so nothing can be out of range.
pub(crate) fn add<T: Counter>(sum: &mut Hdr<T>, other: &Hdr<T>) {
    let added = sum.add(other);
    debug_assert!(
        added.is_ok(),
        "an auto-resizing histogram takes every value"
    );
}

/// Record a value, longer ones than 24 h as 24 h.
pub(crate) fn record(histogram: &mut Hdr<u64>, ns: u64, count: u64) {
    if count != 0 {
        // Not the saturating form, which clamps instead of growing.
        let recorded = histogram.record_n(ns.min(HIGHEST_NS), count);
        debug_assert!(
            recorded.is_ok(),
            "an auto-resizing histogram takes every value"
        );
    }
}

/// Makes the compressed V2 form, reusing its buffers.
#[derive(Default)]
pub(crate) struct Packer {
    serializer: V2DeflateSerializer,
    packed: Vec<u8>,
}

impl Packer {
    /// The compressed V2 form of a histogram.
    pub(crate) fn pack(&mut self, histogram: &Hdr<u64>) -> &[u8] {
        self.packed.clear();
        // Fails only for counts above i64::MAX and for a writer that fails, which a Vec does not.
        if self
            .serializer
            .serialize(histogram, &mut self.packed)
            .is_err()
        {
            self.packed.clear();
        }
        &self.packed
    }
}

/// The histogram of a compressed V2 form, or what is wrong with it.
pub(crate) fn unpack(packed: &[u8]) -> Result<Hdr<u64>, String> {
    let body = packed
        .strip_prefix(&COMPRESSED_COOKIE)
        .and_then(|rest| rest.get(4..))
        .ok_or("it does not begin like a compressed V2 histogram")?;
    // Inflated here and with a bound, so that a few bytes cannot ask for gigabytes.
    let mut plain = Vec::new();
    ZlibDecoder::new(body)
        .take(LONGEST_V2 + 1)
        .read_to_end(&mut plain)
        .map_err(|error| format!("it does not inflate: {error}"))?;
    check_header(&plain)?;
    let mut histogram: Hdr<u64> = Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| format!("it does not decode: {error}"))?;
    histogram.auto(true);
    Ok(histogram)
}

/// Refuse other resolutions, other units and lengths that lie.
fn check_header(plain: &[u8]) -> Result<(), String> {
    let word = |at: usize| -> Option<u64> {
        let bytes: [u8; 4] = plain.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    let payload = plain.len().saturating_sub(40) as u64;
    if word(4) != Some(payload) {
        return Err(format!(
            "its length does not fit its {payload} bytes of counts"
        ));
    }
    match (word(12), word(16), word(20)) {
        (Some(3), Some(0), Some(1)) => Ok(()),
        (Some(digits), _, _) if digits != 3 => {
            Err(format!("its precision must be 3 digits, got {digits}"))
        }
        _ => Err("its lowest value must be 1".to_owned()),
    }
}

/// An HDR histogram of nanoseconds: 3 significant digits, 1 ns to 24 h.
#[derive(Clone, Debug)]
pub struct Histogram(Hdr<u64>);

/// One part in 10^12 is taken off before rounding up, as in reports: 99.9 % of 1,000 samples are 999, and not, through the last bit
/// of a float, all of them.
const ROUNDING: f64 = 1.0 - 1e-12;

impl Default for Histogram {
    fn default() -> Self {
        Self(empty())
    }
}

impl Histogram {
    /// The histogram of a compressed V2 form.
    ///
    /// # Errors
    /// It is none; the words say why.
    pub fn from_v2(packed: &[u8]) -> Result<Self, String> {
        unpack(packed).map(Self)
    }

    /// The compressed V2 form.
    #[must_use]
    pub fn to_v2(&self) -> Vec<u8> {
        Packer::default().pack(&self.0).to_vec()
    }

    /// Count a value so many times; longer ones than 24 h as 24 h.
    pub fn record(&mut self, value_ns: u64, count: u64) {
        record(&mut self.0, value_ns, count);
    }

    /// Add another one.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.0, &other.0);
    }

    /// The highest value equivalent to the sample at a percentile; 0 when empty.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let value = self.0.value_at_percentile(percent * ROUNDING);
        self.0.highest_equivalent(value)
    }

    /// (value, count) of every recorded bucket, ascending; the value is the bucket's highest equivalent.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let recorded = self.0.iter_recorded();
        recorded
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect()
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The lowest value.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.0.min()
    }

    /// The highest value.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The standard deviation.
    #[must_use]
    pub fn stdev(&self) -> f64 {
        self.0.stdev()
    }
}

#[cfg(test)]
#[path = "histogram_tests.rs"]
mod tests;
