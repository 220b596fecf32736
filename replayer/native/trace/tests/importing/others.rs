//! What others than the traced program did to its files meanwhile.

use crate::common;

use common::asked;
use replayer_trace::Op;

fn seen(size: u32) -> String {
    format!("fstat(3</r/log>, {{st_mode=S_IFREG|0644, st_size={size}, ...}}) = 0\n")
}

#[test]
fn a_file_that_others_append_to_grows_when_that_shows() {
    let log = format!(
        "openat(AT_FDCWD, \"/r/log\", O_RDONLY) = 3</r/log>\n\
         read(3</r/log>, \"\"..., 4096) = 100\n{}\
         read(3</r/log>, \"\"..., 4096) = 20\n\
         read(3</r/log>, \"\", 4096) = 0\n\
         pread64(3</r/log>, \"\"..., 4096, 110) = 40\n",
        seen(120)
    );
    let trace = asked(&log).import();
    let grown: Vec<_> = trace
        .events
        .iter()
        .filter(|event| event.op == Op::Meanwhile)
        .map(|event| (event.size, event.file, event.result))
        .collect();
    assert_eq!(grown, [(Some(120), None, 0), (Some(150), None, 0)]);
    assert_eq!(trace.tree(), ["r d 0", "r/log f 100"]);
    assert_eq!(
        trace.ops(),
        [
            Op::Open,
            Op::Read,
            Op::Meanwhile,
            Op::Fstat,
            Op::Read,
            Op::Read,
            Op::Meanwhile,
            Op::Pread
        ]
    );
}

#[test]
fn a_file_that_others_append_to_grows_when_it_is_looked_up() {
    let log = "stat(\"/r/log\", {st_mode=S_IFREG|0644, st_size=7, ...}) = 0\n\
               lstat(\"/r/log\", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0\n\
               stat(\"/r/log\", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0\n";
    let trace = asked(log).import();
    assert_eq!(trace.ops(), [Op::Stat, Op::Meanwhile, Op::Lstat, Op::Stat]);
    assert_eq!(trace.tree(), ["r d 0", "r/log f 7"]);
}

#[test]
fn what_the_trace_wrote_itself_is_no_growth_by_others() {
    let log = "openat(AT_FDCWD, \"/r/log\", O_RDWR|O_APPEND) = 3\n\
               fstat(3, {st_mode=S_IFREG|0644, st_size=10, ...}) = 0\n\
               write(3, \"\"..., 5) = 5\n\
               fstat(3, {st_mode=S_IFREG|0644, st_size=15, ...}) = 0\n\
               pread64(3, \"\"..., 100, 0) = 15\n";
    assert!(!asked(log).import().ops().contains(&Op::Meanwhile));
}

#[test]
fn a_read_that_stops_at_a_known_end_tells_where_its_descriptor_stood() {
    let log = format!(
        "{}read(3</r/log>, \"\"..., 4096) = 30\n\
         read(3</r/log>, \"\", 4096) = 0\n{}\
         read(3</r/log>, \"\"..., 4096) = 20\n",
        seen(200),
        seen(220)
    );
    let trace = asked(&log).import();
    let told: Vec<_> = trace
        .events
        .iter()
        .filter(|event| event.op == Op::Meanwhile)
        .map(|event| (event.offset, event.size))
        .collect();
    assert_eq!(told, [(Some(170), None), (None, Some(220))]);
    assert_eq!(trace.tree(), ["r d 0", "r/log f 200"]);
}
