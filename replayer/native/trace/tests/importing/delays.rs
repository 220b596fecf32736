//! Times without a CPU between two calls, which are no pauses of the task.

use crate::common::asked;

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
