use super::*;
use proptest::prelude::*;

fn reference(values: &[u64]) -> Hdr<u64> {
    let mut histogram = Hdr::new_with_bounds(1, 2 * HIGHEST_NS, 3).unwrap();
    for value in values {
        histogram.record((*value).min(HIGHEST_NS)).unwrap();
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
        let mut drained = empty();
        for values in [&first, &second] {
            for value in values {
                counts.record(*value);
            }
            counts.drain_into(&mut drained);
            prop_assert!(counts.is_empty());
        }
        let wanted = reference(&[first, second].concat());
        prop_assert_eq!(drained.len(), wanted.len());
        prop_assert_eq!((drained.min(), drained.max()), (wanted.min(), wanted.max()));
        prop_assert!(drained.iter_recorded().eq(wanted.iter_recorded()));
    }

    #[test]
    fn packing_loses_nothing(values in values()) {
        let wanted = reference(&values);
        let unpacked = unpack(Packer::default().pack(&wanted)).unwrap();
        prop_assert_eq!(unpacked.len(), wanted.len());
        prop_assert_eq!((unpacked.min(), unpacked.max()), (wanted.min(), wanted.max()));
        prop_assert!(unpacked.iter_recorded().eq(wanted.iter_recorded()));
    }

    #[test]
    fn damaged_forms_are_refused_or_read(values in values(), at: prop::sample::Index, byte: u8) {
        let mut packed = Packer::default().pack(&reference(&values)).to_vec();
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
    let reason = unpack(Packer::default().pack(&coarse)).unwrap_err();
    assert_eq!(reason, "its precision must be 3 digits, got 2");
    let units = Hdr::<u64>::new_with_bounds(1000, HIGHEST_NS, 3).unwrap();
    assert_eq!(
        unpack(Packer::default().pack(&units)).unwrap_err(),
        "its lowest value must be 1"
    );
}

#[test]
fn unpacked_histograms_still_grow() {
    let mut histogram = unpack(Packer::default().pack(&reference(&[5]))).unwrap();
    add(&mut histogram, &reference(&[HIGHEST_NS]));
    assert_eq!(histogram.len(), 2);
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
