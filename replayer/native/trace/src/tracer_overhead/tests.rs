use super::*;
use compute_time::{MANY_SAMPLES, Untraced};

const OPEN: Class = Class(2 * Op::Open as usize);

#[test]
fn each_kind_of_call_has_a_cost_of_its_own() {
    let mut estimator = OverheadEstimator::new();
    let poll = estimator.class_of_other("poll");
    for at in 0..100 {
        estimator.after(Class::of_event(Op::Read, false), 10_150 + at * 20);
        estimator.after(OPEN, 15_150 + at * 500);
        estimator.after(Class::of_event(Op::Open, true), 150_000);
        estimator.after(poll, 12_150);
        estimator.took(Op::Lseek, Some(3_000 + at * 100));
    }
    let costs = estimator.costs(&TracerOverhead::default());
    assert_eq!(costs.call_ns, Some(3_350));
    // Of poll, whose gaps do not spread at all.
    assert_eq!(costs.gap_ns, Some(12_000));
    assert_eq!(costs.after(Op::Read, false), 10_100);
    assert_eq!(costs.after(Op::Open, false), 17_500);
    // What comes after these is the program's: no call takes the tracer so long.
    assert_eq!(costs.after(Op::Open, true), 10_250 * 180 / 100 - 150);
    assert_eq!(costs.after(Op::Close, false), 12_000);
    assert_eq!(costs.after(Op::CloseExit, false), 0);
    assert_eq!(costs.each().count(), 3);
}

#[test]
fn the_mean_of_what_spreads_least_is_taken_off() {
    let mut estimator = OverheadEstimator::new();
    for at in 0..100 {
        estimator.after(
            Class::of_event(Op::Read, false),
            if at < 90 { 10_150 } else { 20_150 },
        );
        estimator.after(OPEN, 10_150 + at * 1_000);
    }
    let costs = estimator.costs(&TracerOverhead::default());
    assert_eq!(costs.after(Op::Read, false), 10_000 * 1_098 / 1_000);
}

#[test]
fn few_calls_do_not_say_how_far_the_tracer_spreads_and_its_hiccups_count() {
    let mut estimator = OverheadEstimator::new();
    for at in 0..1000 {
        let hiccup_ns = if at % 100 == 0 { 100_000 } else { 0 };
        let gap_ns = 10_150 + at % 10 * 500 + hiccup_ns;
        estimator.after(Class::of_event(Op::Read, false), gap_ns);
        estimator.after(OPEN, gap_ns + at % 10 * 5_000);
    }
    for _ in 0..MANY_SAMPLES {
        estimator.after(Class::of_event(Op::Mkdir, false), 10_150);
    }
    let after_read_ns = |spread| {
        let asked = TracerOverhead {
            probed: Some(Probe {
                call_ns: 3_000,
                gap_ns: 8_000,
                spread,
            }),
            ..TracerOverhead::default()
        };
        estimator.costs(&asked).after(Op::Read, false)
    };
    assert_eq!(after_read_ns(1_400), 13_200);
    // No more than a probe has shown, or than is usual anywhere.
    assert_eq!(after_read_ns(1_300), 13_000);
    assert_eq!(after_read_ns(0), 12_500);
}

#[test]
fn the_tracer_is_taken_at_its_usual_speed_even_if_it_is_fast_for_a_while() {
    let mut estimator = OverheadEstimator::new();
    for at in 0..1000 {
        let base_ns = if at < 200 { 8_150 } else { 20_150 };
        estimator.after(Class::of_event(Op::Read, false), base_ns + at % 10 * 10);
    }
    let costs = estimator.costs(&TracerOverhead::default());
    let after_read_ns = costs.after(Op::Read, false);
    assert!((17_000..20_100).contains(&after_read_ns), "{after_read_ns}");
}

#[test]
fn what_was_given_is_kept_and_too_few_samples_prove_nothing() {
    let mut estimator = OverheadEstimator::new();
    estimator.after(OPEN, 9);
    let given = TracerOverhead {
        call_ns: Some(2_700),
        gap_ns: Some(7_000),
        ..TracerOverhead::default()
    };
    let costs = estimator.costs(&given);
    assert_eq!((costs.call_ns, costs.gap_ns), (Some(2_700), Some(7_000)));
    assert_eq!(costs.after(Op::Open, false), 7_000);
    let costs = estimator.costs(&TracerOverhead::default());
    assert_eq!((costs.call_ns, costs.gap_ns), (None, None));
    assert_eq!(costs.after(Op::Open, false), 0);
    let probed = TracerOverhead {
        probed: Some(Probe {
            call_ns: 3_000,
            gap_ns: 8_000,
            spread: 1_000,
        }),
        method: "a probe".to_owned(),
        ..TracerOverhead::default()
    };
    let costs = estimator.costs(&probed);
    assert_eq!((costs.call_ns, costs.gap_ns), (Some(3_000), Some(8_000)));
    assert!(costs.method.ends_with("a probe"));
}

#[test]
fn names_are_bounded() {
    let mut estimator = OverheadEstimator::new();
    for number in 0..1_000 {
        let class = estimator.class_of_other(&format!("call{number}"));
        estimator.after(class, 1);
    }
    assert_eq!(estimator.pools.len(), 2 * OPS + MOST_NAMES + 1);
}

#[test]
fn as_much_is_left_of_all_gaps_as_the_program_had_cpu_time() {
    let mut estimator = OverheadEstimator::new();
    let read = Class::of_event(Op::Read, false);
    for at in 0..1_000_i64 {
        let computing_ns = if at % 10 == 0 { 100_000 } else { 0 };
        estimator.after(read, 10_150 + at % 7 * 2_000 + computing_ns);
    }
    let left = |user_ns: i64, calls| {
        let asked = TracerOverhead {
            computed: Some(while_recorded(user_ns + calls * 700, calls)),
            ..TracerOverhead::default()
        };
        let costs = estimator.costs(&asked);
        assert_eq!(costs.most_owed_ns, 0);
        let cost_ns = costs.after(Op::Read, false);
        let gaps = estimator.pools.get(read.0).unwrap().gaps.iter();
        gaps.map(|gap| (gap - cost_ns).max(0)).sum::<i64>()
    };
    for user_ns in [0, 1_000_000, 10_000_000] {
        let off_ns = left(user_ns, 1_000) - user_ns;
        assert!(off_ns.abs() <= 1_000, "{user_ns}: {off_ns}");
    }
    // More is believed as far as ticks prove it.
    let shown_ns = left(20_000_000, 1_000);
    assert!((13_000_000..15_000_000).contains(&shown_ns), "{shown_ns}");
    let (user_ns, calls) = (2_300_000_000, 100_000);
    let proven_ns = user_ns - (1 + 2 * 15) * 10_000_000;
    let off_ns = left(user_ns, calls) - proven_ns / 100;
    assert!(off_ns.abs() <= 1_000, "{off_ns}");
}

#[test]
fn what_a_long_gap_was_filled_with_is_nobodys_guess() {
    let mut estimator = OverheadEstimator::new();
    let read = Class::of_event(Op::Read, false);
    for at in 0..1_000 {
        estimator.after(read, 10_150 + at % 7 * 100);
    }
    let alone = estimator
        .costs(&TracerOverhead::default())
        .after(Op::Read, false);
    estimator.after(read, 5_000_000_000);
    let asked = TracerOverhead {
        computed: Some(while_recorded(1_000_000_000, 1_000)),
        ..TracerOverhead::default()
    };
    assert_eq!(estimator.costs(&asked).after(Op::Read, false), alone);
}

/// What is known of a recording: the tracer's own part is in it, and the kernel's ticks tell it roughly.
fn while_recorded(user_ns: i64, calls: i64) -> ComputeTime {
    ComputeTime {
        user_ns,
        calls,
        untraced: None,
    }
}

fn rehearsed(user_ns: i64, calls: i64, waited_ns: Option<i64>) -> TracerOverhead {
    TracerOverhead {
        computed: Some(ComputeTime {
            untraced: Some(Untraced {
                runs: 10,
                elapsed_ns: 1,
                waited_ns,
            }),
            ..while_recorded(user_ns, calls)
        }),
        ..TracerOverhead::default()
    }
}

/// A program that the tracer keeps for 10 to 22 µs after each call, and loses its CPU after some of them.
fn kept_and_lost(lost_ns: i64) -> OverheadEstimator {
    let mut estimator = OverheadEstimator::new();
    for at in 0..1_000_i64 {
        let lost_ns = if at % 100 == 7 { lost_ns } else { 0 };
        estimator.after(
            Class::of_event(Op::Read, false),
            10_150 + at % 7 * 2_000 + lost_ns,
        );
    }
    estimator
}

/// What is left of all gaps, as a reader of the trace takes it.
fn left_of(estimator: &OverheadEstimator, asked: &TracerOverhead) -> i64 {
    let costs = estimator.costs(asked);
    let cost_ns = costs.after(Op::Read, false);
    let pool = estimator
        .pools
        .get(Class::of_event(Op::Read, false).0)
        .unwrap();
    let lefts = pool.gaps.iter().map(|gap| match gap - cost_ns {
        left_ns if left_ns >= LONG_NS => left_ns - costs.long_gap_ns,
        left_ns => left_ns,
    });
    lefts.map(|left_ns| left_ns.max(0)).sum()
}

#[test]
fn runs_without_the_tracer_say_what_is_left_of_all_gaps() {
    for user_ns in [0, 500_000, 8_000_000] {
        let off_ns = left_of(&kept_and_lost(0), &rehearsed(user_ns, 1_000, None)) - user_ns;
        assert!(off_ns.abs() <= 1_000, "{user_ns}: {off_ns}");
    }
}

#[test]
fn what_a_program_neither_computed_nor_waited_is_taken_off_long_gaps() {
    let estimator = kept_and_lost(5_000_000);
    for (user_ns, waited_ns) in [(3_000_000, 0), (3_000_000, 9_000_000), (0, 0)] {
        let left_ns = left_of(&estimator, &rehearsed(user_ns, 1_000, Some(waited_ns)));
        let most_ns = user_ns + waited_ns;
        assert!(
            (user_ns..=most_ns + 20_000).contains(&left_ns),
            "{most_ns}: {left_ns}"
        );
    }
    // One that may have waited as long keeps them, and so does one of which that is not known.
    for waited_ns in [Some(60_000_000), None] {
        let left_ns = left_of(&estimator, &rehearsed(0, 1_000, waited_ns));
        assert!(left_ns >= 49_000_000, "{left_ns}");
    }
}

#[test]
fn what_is_taken_off_besides_is_told_apart() {
    let more_ns = |user_ns| {
        let asked = rehearsed(user_ns, 1_000, None);
        kept_and_lost(0).costs(&asked).more_ns
    };
    assert!(
        (4_000..8_000).contains(&more_ns(500_000)),
        "{}",
        more_ns(500_000)
    );
    assert_eq!(more_ns(20_000_000), 0); // it is less than what is usual: nothing more is taken off
    assert_eq!(
        kept_and_lost(0).costs(&TracerOverhead::default()).more_ns,
        0
    );
    let mut small = OverheadEstimator::new();
    for at in 0..900_i64 {
        small.after(Class::of_event(Op::Read, false), 10_150 + at % 7 * 2_000);
    }
    let costs = small.costs(&rehearsed(0, 900, None));
    let cost_ns = costs.after(Op::Read, false);
    assert_eq!(costs.more_ns, 0);
    assert!(cost_ns > costs.gap_ns.unwrap(), "{cost_ns}");
    let costs = kept_and_lost(0).costs(&rehearsed(0, 1_000, None));
    assert_eq!(costs.gap_ns, Some(costs.after(Op::Read, false)));
}
