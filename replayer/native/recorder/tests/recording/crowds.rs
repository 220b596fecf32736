//! Many processes, more than the ring holds, and calls that are not recorded.

use crate::common::{
    command, imported, lay_out, open_recorder_with, record_with_probe, scratch, told, wait_until,
};
use std::fs;

#[test]
fn of_ten_thousand_processes_none_is_missed() {
    let home = scratch("crowd");
    lay_out(&home);
    let script = "i=0; while [ $i -lt 10000 ]; do (: < r/src/f1); i=$((i+1)); done";
    let Some(log) = record_with_probe(&home, &["sh", "-c", script]) else {
        return;
    };
    let told = told(&home, &log, "bpf");
    let opens = told
        .threads
        .iter()
        .filter(|thread| thread.iter().any(|deed| deed.starts_with("open r/src/f1")));
    assert_eq!(opens.count(), 10_000);
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_trace_ends_before_the_first_record_that_was_lost() {
    let home = scratch("lost");
    lay_out(&home);
    let log = home.join("log.bpf");
    let Some(mut recorder) = open_recorder_with(&log, 1 << 12) else {
        return;
    };
    recorder.arm().unwrap();
    let script = "import os\nfor number in range(200_000): os.stat('r')";
    command(&home, &["python3", "-S", "-E", "-c", script])
        .spawn()
        .unwrap()
        .wait()
        .unwrap();
    wait_until(|| recorder.progress().unwrap().live == 0);
    recorder.finish().unwrap();
    let lost = recorder.progress().unwrap().lost;
    assert!(lost > 0);
    let document = imported(&home, &log, "bpf");
    let blind = document["blind_spots"].as_object().unwrap();
    let count = blind
        .iter()
        .find(|(name, _)| name.contains("recorder lost"))
        .unwrap()
        .1;
    assert_eq!(count.as_u64().unwrap(), lost);
    let stats = document["counts"]["ops"]["stat"].as_u64().unwrap_or(0);
    assert!(stats < 200_000, "{stats}");
    fs::remove_dir_all(&home).unwrap();
}

/// Makes a call of i386 that nobody makes any more, oldstat: `mov eax, 18; int 0x80; ret`.
const COMPAT: &str = r#"
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes([0xB8, 18, 0, 0, 0, 0xCD, 0x80, 0xC3]))
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
for _ in range(3):
    ctypes.CFUNCTYPE(ctypes.c_int)(address)()
open("r/survived", "w")
"#;

#[test]
fn calls_of_32_bit_programs_that_are_not_recorded_are_counted_as_a_blind_spot() {
    let home = scratch("compat");
    lay_out(&home);
    let words = ["python3", "-S", "-E", "-c", COMPAT];
    let Some(log) = record_with_probe(&home, &words) else {
        return;
    };
    if !home.join("r/survived").exists() {
        eprintln!("skipped: this kernel has no calls of i386");
        return;
    }
    let document = imported(&home, &log, "bpf");
    let blind = &document["blind_spots"]["calls of 32-bit programs that are not recorded"];
    assert_eq!(blind, 3);
    fs::remove_dir_all(&home).unwrap();
}
