//! The random streams of plan format 1: `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014), exact on every machine.

pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const PACE: u64 = 0xA5A5_A5A5_A5A5_A5A5;
/// The user number of the schedule that all users share.
pub(crate) const ARRIVALS_USER: u32 = u32::MAX;

/// The finalizer of `SplitMix64`.
#[inline]
pub(crate) const fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `x` of 64 bits scaled to 0..n: `(x * n) >> 64`.
#[inline]
pub(crate) fn scale(x: u64, n: u64) -> u64 {
    let wide = (u128::from(x) * u128::from(n)) >> 64;
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// One stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    state: u64,
}

impl Stream {
    pub(crate) const fn seeded(state: u64) -> Stream {
        Stream { state }
    }

    pub(crate) fn of_ops(seed: u64, round: u16, user: u32) -> Stream {
        let of_round = mix64(seed.wrapping_add(GOLDEN.wrapping_mul(u64::from(round) + 1)));
        let of_user = mix64(of_round.wrapping_add(GOLDEN.wrapping_mul(u64::from(user) + 1)));
        Stream::seeded(of_user)
    }

    /// The stream of a stage of a pipeline, from that of its user's ops at the begin.
    pub(crate) fn of_stage(&self, pipeline: u64, stage: u64) -> Stream {
        let step = |from: u64, number: u64| {
            mix64(from.wrapping_add(GOLDEN.wrapping_mul(number.wrapping_add(1))))
        };
        Stream::seeded(step(step(self.state, pipeline), stage))
    }

    pub(crate) fn of_pace(seed: u64, round: u16, user: u32) -> Stream {
        Stream::of_ops(seed ^ PACE, round, user)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix64(self.state)
    }

    /// A draw of 0..n; 0 when n is 0.
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        scale(self.next(), n)
    }
}

/// Fisher–Yates in place, from the last down, with the stream of `seed`.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut stream = Stream::seeded(seed);
    for last in (1..items.len()).rev() {
        let other = usize::try_from(stream.below(last as u64 + 1)).unwrap_or(0);
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn goldens() -> serde_json::Value {
        serde_json::from_str(include_str!("../../../../tests/golden/streams.json")).unwrap()
    }

    fn numbers(value: &serde_json::Value) -> Vec<u64> {
        let list = value.as_array().unwrap();
        list.iter().map(|number| number.as_u64().unwrap()).collect()
    }

    #[test]
    fn streams_yield_the_golden_values() {
        for case in goldens()["streams"].as_array().unwrap() {
            let seed = case["seed"].as_u64().unwrap();
            let round = u16::try_from(case["round"].as_u64().unwrap()).unwrap();
            let user = u32::try_from(case["user"].as_u64().unwrap()).unwrap();
            let mut ops = Stream::of_ops(seed, round, user);
            let mut pace = Stream::of_pace(seed, round, user);
            for want in numbers(&case["ops"]) {
                assert_eq!(ops.next(), want);
            }
            for want in numbers(&case["pace"]) {
                assert_eq!(pace.next(), want);
            }
        }
    }

    #[test]
    fn streams_of_stages_yield_the_golden_values() {
        for case in goldens()["stages"].as_array().unwrap() {
            let number = |key: &str| case[key].as_u64().unwrap();
            let round = u16::try_from(number("round")).unwrap();
            let user = u32::try_from(number("user")).unwrap();
            let ops = Stream::of_ops(number("seed"), round, user);
            let mut stream = ops.of_stage(number("pipeline"), number("stage"));
            for want in numbers(&case["ops"]) {
                assert_eq!(stream.next(), want);
            }
        }
    }

    #[test]
    fn shuffles_yield_the_golden_order() {
        let case = &goldens()["shuffle"];
        let mut items: Vec<u64> = (0..10).collect();
        shuffle(&mut items, case["seed"].as_u64().unwrap());
        assert_eq!(items, numbers(&case["order"]));
    }

    proptest! {
        #[test]
        fn draws_stay_below_their_bound(seed: u64, bound in 1..=u64::MAX) {
            prop_assert!(Stream::seeded(seed).below(bound) < bound);
        }

        #[test]
        fn shuffles_keep_every_item(seed: u64, length in 0..200_u64) {
            let mut items: Vec<u64> = (0..length).collect();
            shuffle(&mut items, seed);
            items.sort_unstable();
            prop_assert!(items.into_iter().eq(0..length));
        }
    }
}
