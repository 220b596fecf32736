//! Records a command into a file, and prints what of the probe the kernel accepts: for kernels that have nothing but this program.
//!
//! `record LOG ROOT COMMAND [WORD…]`: pages are recorded that are touched through mappings of files below the root.
//! `record tell HOME LOG`: what the recording tells of the root `HOME/r`, as JSON.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it prints is what its caller asks for; the tests' module has more than it needs"
)]

#[path = "../tests/recording/common.rs"]
mod common;

use replayer_recorder::Recorder;
use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const RING_BYTES: u32 = 16 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [tell, home, log] = words.as_slice()
        && tell == "tell"
    {
        let told = common::told(Path::new(home), Path::new(log), "bpf");
        let told = serde_json::json!({
            "threads": told.threads, "tree": told.tree, "not_understood": told.not_understood,
        });
        println!("{told}");
        return Ok(());
    }
    let [log, root, program, rest @ ..] = words.as_slice() else {
        return Err("usage: record LOG ROOT COMMAND [WORD…]".into());
    };
    let mut recorder = Recorder::open(Path::new(log), RING_BYTES, u64::MAX)?;
    for (what, why) in recorder.left_out() {
        println!("left out: {what}: {why}");
    }
    recorder.record_pages(&[std::fs::metadata(root)?.ino()])?;
    recorder.arm()?;
    let status = Command::new(program).args(rest).spawn()?.wait()?;
    while recorder.progress()?.live > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    recorder.finish()?;
    println!("lost: {}", recorder.progress()?.lost);
    println!("ended: {status}");
    Ok(())
}
