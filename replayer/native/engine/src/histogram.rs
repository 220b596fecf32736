//! Histograms of nanoseconds: a dense one for the hot path, and a sparse one for everything after it.
//!
//! Both have `HdrHistogram`'s buckets: 3 significant digits, 1 ns to 24 h, so that nothing is lost between them.

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
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
/// Up to 2^47 ns, 39 hours.
const MOST_BUCKETS: usize = 38 << HALF_MAGNITUDE;
const HEADER_BYTES: usize = 40;
/// The longest V2 form: at most 9 bytes a bucket.
const LONGEST_V2: u64 = (HEADER_BYTES + 9 * MOST_BUCKETS) as u64;
const COOKIE: u64 = 0x1c84_9313;
const COMPRESSED_COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// The width of a value's bucket, as a power of two.
fn doublings(ns: u64) -> u32 {
    (64 - SUB_BUCKETS.ilog2()) - (ns | (SUB_BUCKETS - 1)).leading_zeros()
}

/// The width of a value's bucket.
fn width(ns: u64) -> u64 {
    1 << doublings(ns)
}

/// The highest value of a bucket that begins there.
fn highest(lowest: u64) -> u64 {
    lowest + width(lowest) - 1
}

/// Position of a value's bucket.
fn bucket_of(ns: u64) -> usize {
    let doublings = doublings(ns);
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
    pub(crate) fn drain_into(&mut self, histogram: &mut Histogram) {
        let touched = self.buckets.get_mut(self.low..self.high);
        // Most buckets are empty: a stretch of them is passed over at once.
        let stretches = touched.unwrap_or_default().chunks_mut(STRETCH);
        for (from, stretch) in (self.low..).step_by(STRETCH).zip(stretches) {
            if stretch.iter().fold(0, |any, count| any | *count) == 0 {
                continue;
            }
            for (bucket, count) in (from..).zip(stretch).filter(|(_, count)| **count != 0) {
                let cell = (value_of(bucket), u64::from(*count));
                histogram.cells.push(cell);
                *count = 0;
            }
        }
        histogram.settle();
        self.low = 0;
        self.high = 0;
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
    pub(crate) fn pack(&mut self, histogram: &Histogram) -> &[u8] {
        self.packed.clear();
        let packed = Hdr::new(DIGITS).ok().and_then(|mut counts: Hdr<u64>| {
            counts.auto(true);
            // The highest first: it makes room for the others.
            for (lowest, count) in histogram.cells.iter().rev() {
                counts.record_n(*lowest, *count).ok()?;
            }
            self.serializer.serialize(&counts, &mut self.packed).ok()
        });
        // Fails only for counts above i64::MAX: a Vec takes all that is written, and every value has a bucket.
        if packed.is_none() {
            self.packed.clear();
        }
        &self.packed
    }
}

/// The histogram of a compressed V2 form, or what is wrong with it.
///
/// Decoded here, as few of the thousands of buckets are filled: `HdrHistogram` would make and look at all of them.
pub(crate) fn unpack(packed: &[u8]) -> Result<Histogram, String> {
    let body = packed
        .strip_prefix(&COMPRESSED_COOKIE)
        .and_then(|rest| rest.get(4..))
        .ok_or("its header is not that of a compressed V2 histogram")?;
    // Inflated with a bound, so that a few bytes cannot ask for gigabytes.
    let mut plain = Vec::new();
    ZlibDecoder::new(body)
        .take(LONGEST_V2 + 1)
        .read_to_end(&mut plain)
        .map_err(|error| format!("it cannot be decompressed: {error}"))?;
    check_header(&plain)?;
    let mut bytes = plain.iter().copied().skip(HEADER_BYTES).peekable();
    let (mut cells, mut bucket) = (Vec::new(), 0);
    while bytes.peek().is_some() {
        let number = zigzag(&mut bytes).ok_or("its last count is truncated")?;
        if number > 0 {
            cells.push((value_of(bucket), number.unsigned_abs()));
        }
        // A number below 0 stands for that many empty buckets.
        let passed = usize::try_from(number.min(-1).unsigned_abs()).unwrap_or(MOST_BUCKETS);
        bucket = bucket.saturating_add(passed);
        if bucket > MOST_BUCKETS {
            return Err("its values are longer than 39 hours".to_owned());
        }
    }
    Ok(Histogram { cells })
}

/// The next number, a `ZigZag` LEB128 of at most 9 bytes, the last of which is whole.
fn zigzag(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut coded = 0;
    for place in 0..9 {
        let byte = u64::from(bytes.next()?);
        if place == 8 || byte < 0x80 {
            coded |= byte << (7 * place);
            break;
        }
        coded |= (byte & 0x7f) << (7 * place);
    }
    Some((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed())
}

/// Refuse other resolutions, other units and lengths that lie.
fn check_header(plain: &[u8]) -> Result<(), String> {
    let word = |at: usize| -> Option<u64> {
        let bytes: [u8; 4] = plain.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    if word(0) != Some(COOKIE) {
        return Err("its header is not that of a V2 histogram".to_owned());
    }
    let payload = plain.len().saturating_sub(HEADER_BYTES) as u64;
    if word(4) != Some(payload) {
        return Err(format!(
            "its length differs from its {payload} bytes of counts"
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

/// An HDR histogram of nanoseconds, 3 significant digits, 1 ns to 24 h: only buckets that hold something take memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The lowest value and the count of each such bucket, ascending.
    cells: Vec<(u64, u64)>,
}

/// One part in 10^12 is taken off before rounding up, as in reports: 99.9 % of 1,000 samples are 999, and not, through the last bit
/// of a float, all of them.
const ROUNDING: f64 = 1.0 - 1e-12;

impl<'a> FromIterator<&'a Histogram> for Histogram {
    /// The sum, as if every value had been recorded into one.
    fn from_iter<I: IntoIterator<Item = &'a Self>>(parts: I) -> Self {
        let cells = parts
            .into_iter()
            .flat_map(|part| part.cells.iter().copied());
        let mut sum = Self {
            cells: cells.collect(),
        };
        sum.settle();
        sum
    }
}

impl Histogram {
    /// The histogram of a compressed V2 form.
    ///
    /// # Errors
    /// It is none; the words say why.
    pub fn from_v2(packed: &[u8]) -> Result<Self, String> {
        unpack(packed)
    }

    /// The compressed V2 form.
    #[must_use]
    pub fn to_v2(&self) -> Vec<u8> {
        Packer::default().pack(self).to_vec()
    }

    /// Count a value so many times; longer ones than 24 h as 24 h.
    pub fn record(&mut self, value_ns: u64, count: u64) {
        let lowest = value_of(bucket_of(value_ns.min(HIGHEST_NS)));
        match self.cells.binary_search_by_key(&lowest, |cell| cell.0) {
            _ if count == 0 => {}
            Ok(place) => {
                if let Some(cell) = self.cells.get_mut(place) {
                    cell.1 = cell.1.saturating_add(count);
                }
            }
            Err(place) => self.cells.insert(place, (lowest, count)),
        }
    }

    /// Add another one.
    pub fn add(&mut self, other: &Self) {
        self.cells.extend_from_slice(&other.cells);
        self.settle();
    }

    /// Forget all, and keep the memory.
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
    }

    /// Sort the buckets, which come in ascending runs, and make one of those that are the same.
    fn settle(&mut self) {
        self.cells.sort_by_key(|cell| cell.0);
        self.cells.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
    }

    /// The buckets up to the one that holds a value, and those above.
    #[must_use]
    pub fn split(&self, value_ns: u64) -> (Self, Self) {
        let place = self.cells.partition_point(|cell| cell.0 <= value_ns);
        let (below, above) = self.cells.split_at(place);
        let of = |cells: &[(u64, u64)]| Self {
            cells: cells.to_vec(),
        };
        (of(below), of(above))
    }

    /// The highest value equivalent to the sample at a percentile; 0 when empty.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is at most the count"
    )]
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = percent / 100.0 * self.count() as f64 * ROUNDING;
        let mut left = (rank.ceil() as u64).max(1);
        let found = self.cells.iter().find(|(_, count)| {
            let is_there = left <= *count;
            left = left.saturating_sub(*count);
            is_there
        });
        found
            .or(self.cells.last())
            .map_or(0, |cell| highest(cell.0))
    }

    /// (value, count) of every recorded bucket, ascending; the value is the bucket's highest equivalent.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let cells = self.cells.iter();
        cells
            .map(|(lowest, count)| (highest(*lowest), *count))
            .collect()
    }

    /// How many values were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self.cells.iter().map(|cell| cell.1);
        counts.fold(0, u64::saturating_add)
    }

    /// The lowest value of the first bucket; 0 when empty.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.cells.first().map_or(0, |cell| cell.0)
    }

    /// The highest value of the last bucket; 0 when empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.cells.last().map_or(0, |cell| highest(cell.0))
    }

    /// The lowest value of the last bucket: what the longest took at least; 0 when empty.
    #[must_use]
    pub fn max_at_least(&self) -> u64 {
        self.cells.last().map_or(0, |cell| cell.0)
    }

    /// The mean of the buckets' middles; 0 when empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean_of(|middle| middle)
    }

    /// The standard deviation of the buckets' middles from their mean; 0 when empty.
    #[must_use]
    pub fn stdev(&self) -> f64 {
        let mean = self.mean();
        self.mean_of(|middle| (middle - mean) * (middle - mean))
            .sqrt()
    }

    /// The mean of something of each value, by a sum that no order of additions and no CPU rounds otherwise.
    #[expect(clippy::cast_precision_loss, reason = "a mean is a float")]
    fn mean_of(&self, of: impl Fn(f64) -> f64) -> f64 {
        if self.cells.is_empty() {
            return 0.0;
        }
        let terms = self
            .cells
            .iter()
            .map(|(lowest, count)| of((lowest + width(*lowest) / 2) as f64) * *count as f64);
        exact_sum(terms) / self.count() as f64
    }
}

/// The sum of numbers, rounded once: J. Shewchuk, 'Adaptive Precision Floating-Point Arithmetic' (1997), as Python's `math.fsum`.
#[expect(clippy::float_cmp, reason = "whether a sum is exact is asked")]
fn exact_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for term in terms {
        let mut high = term;
        partials.retain_mut(|partial| {
            let (large, small) = if high.abs() < partial.abs() {
                (*partial, high)
            } else {
                (high, *partial)
            };
            high = large + small;
            *partial = small - (high - large);
            *partial != 0.0
        });
        partials.push(high);
    }
    let mut rest = partials.into_iter().rev();
    let mut sum = rest.next().unwrap_or_default();
    while let Some(partial) = rest.next() {
        let before = sum;
        sum = before + partial;
        let lost = partial - (sum - before);
        if lost != 0.0 {
            // Half-way between two floats: what follows says to which of them.
            let follows = rest.next().unwrap_or_default();
            let doubled = lost * 2.0;
            if follows * lost > 0.0 && (sum + doubled) - sum == doubled {
                sum += doubled;
            }
            break;
        }
    }
    sum
}

#[cfg(test)]
#[path = "histogram_tests.rs"]
mod tests;
