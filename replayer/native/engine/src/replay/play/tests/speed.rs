use super::*;
use crate::replay::program::Call;
use std::io::Write as _;

/// So many looks at one name, a millisecond apart.
fn tape(ground: &Ground, events: u64) -> Tape {
    std::fs::create_dir(ground.run().join("t")).unwrap();
    let mut tape = Tape::new(1);
    let at = tape.at("t");
    for number in 0..events {
        tape.add(0, ReplayCall::Plain(Call::Stat { at }), Recorded::Well);
        let scheduled = tape.lanes[0].last_mut().unwrap();
        scheduled.start_ns = number * 1_000_000;
        scheduled.gap_ns = 1_000_000;
    }
    tape
}

#[test]
fn think_times_are_kept_between_the_events_of_a_lane() {
    let ground = Ground::new();
    let tape = tape(&ground, 20);
    let begin_ns = now_ns();
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show(&tape.replay_program(), ReplayPace::Closed, 1, &thread_state);
    assert!(shown.is_clean());
    assert!(now_ns() - begin_ns >= 20_000_000);
}

#[test]
fn events_at_their_recorded_times_are_never_early_and_tell_how_late_they_are() {
    let (ground, log) = Ground::new().logged();
    let tape = tape(&ground, 20);
    let begin_ns = now_ns() - ground.setting.begin_ns;
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show(&tape.replay_program(), ReplayPace::Timed, 1, &thread_state);
    assert!(shown.is_clean());
    let bytes = std::fs::read_dir(log).unwrap().next().unwrap().unwrap();
    assert_eq!(bytes.file_name(), "u0-p0-l0.events");
    #[expect(clippy::disallowed_methods, reason = "a file that the test has made")]
    let bytes = std::fs::read(bytes.path()).unwrap();
    for (number, record) in (0_u64..).zip(bytes.chunks(24)) {
        let start_ns = u64::from_le_bytes(record[8..16].try_into().unwrap());
        assert!(start_ns >= begin_ns + number * 1_000_000);
    }
    let rows = ground.totals();
    let lag = rows.iter().find(|row| row.key.op == "event.lag").unwrap();
    let lags = crate::histogram::unpack(&lag.histogram).unwrap();
    assert_eq!(lags.count(), 20);
}

#[test]
fn a_broken_off_sleep_ends_the_performance() {
    let ground = Ground::new();
    let mut tape = tape(&ground, 2);
    tape.lanes[0][1].start_ns = 3_600_000_000_000;
    let thread_state = Arc::new(ThreadState::new(0));
    thread_state.raise(crate::thread_state::CUT);
    let shown = ground.show(&tape.replay_program(), ReplayPace::Timed, 1, &thread_state);
    assert_eq!(shown.result, Err(Halt::Cut));
}

/// Like the begin of a PHP page: look-ups that fail, some that go well, a file opened, looked at, read and closed.
fn page(ground: &Ground) -> Tape {
    let mut tape = Tape::new(1);
    for number in 0..300 {
        let name = format!("t/wp-content/plugins/some-plugin/part-{number}.php");
        ground.write(&name, 3000);
        let there = tape.at(&name);
        let missing = tape.at(&format!("{name}.missing"));
        for _ in 0..4 {
            tape.add(
                0,
                ReplayCall::Plain(Call::Stat { at: missing }),
                Recorded::Error(2),
            );
            tape.add(
                0,
                ReplayCall::Plain(Call::Lstat { at: there }),
                Recorded::Well,
            );
        }
        let open = ReplayCall::Plain(Call::Open {
            at: there,
            slot: Some(0),
            flags: 0,
            mode: 0,
            resolve: 0,
        });
        tape.add(0, open, Recorded::Well);
        tape.add(
            0,
            ReplayCall::Plain(Call::Fstat { slot: 0 }),
            Recorded::Well,
        );
        let read = ReplayCall::Read(DataCall {
            slot: 0,
            size: 8192,
            offset: None,
            vector: None,
        });
        tape.add(0, read, Recorded::Exactly(3000));
        tape.add(
            0,
            ReplayCall::Plain(Call::Close { slot: 0 }),
            Recorded::Well,
        );
    }
    tape
}

#[test]
#[ignore = "measures this machine"]
fn own_cost_of_an_event() {
    let ground = Ground::new();
    let tape = page(&ground);
    let replay_program = tape.replay_program();
    let events = f64::from(u32::try_from(tape.rows).unwrap());
    let each = |ns: u64| f64::from(u32::try_from(ns).unwrap()) / events;
    let measure = |kind: &str| {
        let thread_state = Arc::new(ThreadState::new(0));
        let shown = match kind {
            "null" => {
                ground.show_in::<Null>(&replay_program, ReplayPace::Asap, 1000, &thread_state)
            }
            "guarded" => {
                ground.show_in::<Guarded>(&replay_program, ReplayPace::Asap, 1000, &thread_state)
            }
            _ => ground.show_in::<Jailed>(&replay_program, ReplayPace::Asap, 1000, &thread_state),
        };
        assert!(shown.is_clean());
        let (ns, in_call_ns) = shown.fastest;
        let own = each(ns - in_call_ns);
        format!(
            "{kind}: {:.1} ns an event, {own:.1} ns of it not in the call\n",
            each(ns)
        )
    };
    let kinds = ["null", "jailed", "guarded"].map(measure).concat();
    let plans = (0..50).map(|_| crate::overhead::overhead_ns(20_000).unwrap());
    let plan = plans.fold(f64::MAX, f64::min);
    let text = format!("{kinds}an op of a plan: {plan:.1} ns\n");
    std::io::stdout().write_all(text.as_bytes()).unwrap();
}
