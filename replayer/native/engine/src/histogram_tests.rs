#![expect(
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "exact sums are compared"
)]

use super::*;
use hdrhistogram::serialization::Deserializer;
use proptest::prelude::*;

fn reference(values: &[u64]) -> Hdr<u64> {
    let mut histogram = Hdr::new_with_bounds(1, 2 * HIGHEST_NS, 3).unwrap();
    for value in values {
        histogram.record((*value).min(HIGHEST_NS)).unwrap();
    }
    histogram
}

fn packed(histogram: &Hdr<u64>) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    serializer.serialize(histogram, &mut packed).unwrap();
    packed
}

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for value in values {
        histogram.record(*value, 1);
    }
    histogram
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    let value = prop_oneof![0..5000_u64, 0..10_000_000_u64, 0..=HIGHEST_NS, any::<u64>()];
    prop::collection::vec(value, 0..200)
}

proptest! {
    #[test]
    fn buckets_are_those_of_hdrhistogram(ns in 0..=HIGHEST_NS) {
        let histogram = reference(&[HIGHEST_NS]);
        let lowest = value_of(bucket_of(ns));
        prop_assert_eq!(lowest, histogram.lowest_equivalent(ns));
        prop_assert_eq!(value_of(bucket_of(ns) + 1), histogram.next_non_equivalent(ns));
    }

    #[test]
    fn draining_loses_nothing(first in values(), second in values()) {
        let mut counts = Counts::default();
        let mut drained = Histogram::default();
        for values in [&first, &second] {
            for value in values {
                counts.record(*value);
            }
            counts.drain_into(&mut drained);
            prop_assert!(counts.is_empty());
        }
        prop_assert_eq!(drained, recorded(&[first, second].concat()));
    }

    #[test]
    fn what_is_packed_is_read_by_hdrhistogram_and_the_other_way_round(values in values()) {
        let (ours, theirs) = (recorded(&values), reference(&values));
        let read: Hdr<u64> = Deserializer::new().deserialize(&mut ours.to_v2().as_slice()).unwrap();
        prop_assert!(read.iter_recorded().eq(theirs.iter_recorded()));
        prop_assert_eq!(unpack(&packed(&theirs)).unwrap(), ours);
    }

    #[test]
    fn sums_are_those_of_hdrhistogram(parts in prop::collection::vec(values(), 0..4)) {
        let wanted = reference(&parts.concat());
        let parts: Vec<Histogram> = parts.iter().map(|values| recorded(values)).collect();
        let found: Histogram = parts.iter().collect();
        let mut added = Histogram::default();
        for part in &parts {
            added.add(part);
        }
        prop_assert_eq!(&added, &found);
        let buckets = wanted.iter_recorded().map(|each| (each.value_iterated_to(), each.count_at_value()));
        prop_assert!(found.buckets().into_iter().eq(buckets));
        prop_assert_eq!((found.count(), found.min(), found.max()), (wanted.len(), wanted.min(), wanted.max()));
        prop_assert_eq!(wanted.highest_equivalent(found.max_at_least()), found.max());
        prop_assert!((found.mean() - wanted.mean()).abs() <= wanted.mean() * 1e-12);
        prop_assert!((found.stdev() - wanted.stdev()).abs() <= wanted.max() as f64 * 1e-9);
    }

    #[test]
    fn a_histogram_is_split_between_two_buckets(values in values(), at: u64) {
        let whole = recorded(&values);
        let (below, above) = whole.split(at);
        prop_assert!(below.max_at_least() <= at);
        prop_assert!(above.count() == 0 || above.min() > at);
        prop_assert_eq!([&below, &above].into_iter().collect::<Histogram>(), whole);
    }

    #[test]
    fn damaged_forms_are_refused_or_read(values in values(), at: prop::sample::Index, byte: u8) {
        let mut packed = recorded(&values).to_v2();
        let place = at.index(packed.len());
        packed[place] ^= byte;
        let _ = unpack(&packed);
        packed.truncate(place);
        prop_assert!(unpack(&packed).is_err());
    }
}

#[test]
fn other_resolutions_are_refused() {
    let coarse = Hdr::<u64>::new_with_bounds(1, HIGHEST_NS, 2).unwrap();
    let reason = unpack(&packed(&coarse)).unwrap_err();
    assert_eq!(reason, "its precision must be 3 digits, got 2");
    let units = Hdr::<u64>::new_with_bounds(1000, HIGHEST_NS, 3).unwrap();
    assert_eq!(
        unpack(&packed(&units)).unwrap_err(),
        "its lowest value must be 1"
    );
}

#[test]
fn a_percentile_of_a_round_number_of_samples_is_none_beyond_it() {
    let mut counts = Histogram::default();
    for thousands in 1..=300_u64 {
        // The slowest thousandth, and all others.
        counts.record(1000, 999);
        counts.record(9000, 1);
        assert!(counts.percentile(99.9) < 1010, "{thousands},000 samples");
        assert!(counts.percentile(99.91) > 8000, "{thousands},000 samples");
    }
    assert!(counts.percentile(100.0) > 8000);
    assert!(counts.percentile(0.0) < 1010);
}

#[test]
fn a_sum_is_rounded_once() {
    let sum = |terms: &[f64]| exact_sum(terms.iter().copied());
    assert_eq!(sum(&[]), 0.0);
    assert_eq!(sum(&[1e16, 1.0, -1e16]), 1.0);
    assert_eq!(sum(&[0.1; 10]), 1.0);
    // Half-way between two floats, and a little more, or less.
    let (half, little) = (2.0_f64.powi(-53), 2.0_f64.powi(-120));
    assert_eq!(sum(&[1.0, half]), 1.0);
    assert_eq!(sum(&[1.0, half, little]), 1.0 + f64::EPSILON);
    assert_eq!(
        sum(&[1.0 + f64::EPSILON, half, -little]),
        1.0 + f64::EPSILON
    );
}
