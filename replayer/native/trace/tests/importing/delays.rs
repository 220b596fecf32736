//! Times without a CPU between two calls, which are no pauses of the task.

use crate::common::asked;
use replayer_trace::Probe;
use replayer_trace::bpf::{MAGIC, attached_record, call_names, end_record, set_turn};

/// The pause in µs before a call that a task makes so long after another one, less so much.
fn pause_us(elapsed: i64, delays: &[i64]) -> i64 {
    let start = format!("1 1700000001.{elapsed:06}");
    let told = delays.iter();
    let told: Vec<String> = told
        .map(|delay| format!("{start} +++ delayed {delay}000 +++\n"))
        .collect();
    let told = told.concat();
    let mut asked = asked(format!(
        "1 1700000001.000000 access(\"/r/a\", F_OK) = 0 <0.000000>\n\
         {told}{start} access(\"/r/b\", F_OK) = 0 <0.000000>\n\
         1 1700000002.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n",
    ));
    asked.request.overhead.call_ns = Some(0);
    asked.request.overhead.gap_ns = Some(0);
    let trace = asked.import();
    assert_eq!(trace.events.len(), 3);
    let last_ns = (1_000_000 - elapsed) * 1_000;
    assert_eq!(trace.events[2].gap_ns, last_ns, "it is taken off once");
    trace.events[1].gap_ns / 1_000
}

#[test]
fn a_pause_is_without_what_the_task_waited_for_a_cpu() {
    assert_eq!(pause_us(30, &[]), 30);
    assert_eq!(pause_us(30, &[20]), 10);
    assert_eq!(pause_us(9_000, &[5_000, 3_960]), 40);
    assert_eq!(pause_us(30, &[40]), 0, "the clocks differ a little");
}

#[test]
fn who_was_started_late_because_its_parent_had_no_cpu_begins_without_that() {
    let mut asked = asked(
        "1 1700000001.000000 access(\"/r/a\", F_OK) = 0 <0.001000>\n\
         1 1700000001.100000 +++ delayed 80000000 +++\n\
         1 1700000001.100000 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD|CLONE_SIGHAND) = 2 <0.000000>\n\
         2 1700000001.150000 +++ delayed 40000000 +++\n\
         2 1700000001.150000 access(\"/r/b\", F_OK) = 0 <0.000010>\n",
    );
    asked.request.overhead.call_ns = Some(0);
    asked.request.overhead.gap_ns = Some(0);
    let after_ns = asked.import().events[1].after_ns;
    assert_eq!(after_ns, Some(149_000_000 - 80_000_000 - 40_000_000));
}

/// A log of the probe: a task looks for a file twice, the second time 5 µs after the first one, of which the probe took so much.
fn probed(probe_ns: u32) -> Vec<u8> {
    let mut log = [MAGIC, 1_700_000_000_000_000_000_i64.to_le_bytes()].concat();
    let number = call_names().position(|call| call.is_some_and(|(name, _)| name == "access"));
    let number = u16::try_from(number.unwrap()).unwrap();
    for (turn, path) in (0_u16..).zip([b"/r/a", b"/r/b"]) {
        let mut record = attached_record(1, 0, 1_000_000 + 6_000 * u64::from(turn));
        record[2..4].copy_from_slice(&number.to_le_bytes());
        record[4..8].copy_from_slice(&[0, 0, 0, 2]);
        record[14..16].copy_from_slice(&4_u16.to_le_bytes());
        record[24..32].copy_from_slice(&1_000_u64.to_le_bytes());
        record[40..44].copy_from_slice(&probe_ns.to_le_bytes());
        record.extend(path);
        let length = u16::try_from(record.len()).unwrap();
        record[..2].copy_from_slice(&length.to_le_bytes());
        set_turn(&mut record, turn);
        log.extend(record);
    }
    [log, end_record(2_000_000, [0; 5])].concat()
}

#[test]
fn what_the_probe_itself_took_is_no_pause() {
    let gap_ns = |probe_ns| {
        let mut asked = asked(probed(probe_ns));
        asked.request.format = Some("bpf".to_owned());
        asked.request.overhead.probed = Some(Probe {
            call_ns: 0,
            gap_ns: 400,
            spread: 1_000,
        });
        asked.import().events[1].gap_ns
    };
    assert_eq!([0, 900, 9_000].map(gap_ns), [4_600, 3_700, 0]);
}
