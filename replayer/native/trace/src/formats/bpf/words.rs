//! A record in the words of strace, which its importer reads: every argument is decoded in one place, there.

use super::record::{
    BEGUN_BEFORE, PART, PATH_FAULT, PATH_NULL, Record, SECOND_FAULT, SECOND_NULL, i64_at, u32_at,
    u64_at,
};
use super::shape::is_number;
use super::table::{RecordedCall, is_compat};
use std::io::Write;

/// Which arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// Those that were there when the call was entered.
    Entry,
    /// The others.
    Return,
}

/// What stands for an argument that is not known.
const UNKNOWN: &[u8] = b"0x1";
const PAGE: u64 = 4096; // mmap2(2)
const O_CREATES: u64 = 0x40 | 0x40_0000;
/// Commands of fcntl without an argument: `F_GETFD`, `F_GETFL`, `F_GETOWN`, `F_GETSIG`, `F_GETLEASE`, `F_GETPIPE_SZ`, `F_GET_SEALS`.
const ASKING: [u64; 7] = [1, 3, 9, 11, 1025, 1032, 1034];
/// Names of the commands of ioctl that mean something to the importer.
#[rustfmt::skip]
const IOCTLS: [(u64, &str); 12] = [
    (0x2, "FIGETBSZ"), (0x5401, "TCGETS"), (0x5413, "TIOCGWINSZ"), (0x541b, "FIONREAD"), (0x5450, "FIONCLEX"), (0x5451, "FIOCLEX"),
    (0x4004_9409, "FICLONE"), (0x4020_940d, "FICLONERANGE"), (0x801c_581f, "FS_IOC_FSGETXATTR"), (0x802c_542a, "TCGETS2"),
    (0x8008_6601, "FS_IOC_GETFLAGS"), (0xc020_660b, "FS_IOC_FIEMAP"),
];

fn is_output(letter: u8) -> bool {
    b"S=+~nPw%erE".contains(&letter)
}

/// Write arguments; those of `Entry` end in a comma where others follow.
pub(super) fn write_args(out: &mut Vec<u8>, call: &RecordedCall, record: &Record<'_>, part: Part) {
    let mut numbers = 0;
    let mut paths = 0;
    let mut before = 0;
    let mut is_behind_output = false;
    for (at, &letter) in call.letters.iter().enumerate() {
        is_behind_output |= is_output(letter);
        let value = record.number_at(numbers);
        numbers += usize::from(is_number(letter));
        let (own, place) = (paths, at);
        paths += usize::from(letter == b's');
        match part {
            Part::Entry if is_behind_output => return,
            Part::Return if !is_behind_output => {
                before = value;
                continue;
            }
            _ => {}
        }
        let begin = out.len();
        let has_written = match letter {
            b's' => write_path(out, record, own),
            _ if is_number(letter) => write_number(out, record, letter, (value, before)),
            _ => write_beside(out, record, letter, place),
        };
        before = value;
        if !has_written {
            out.truncate(begin);
            continue;
        }
        if at + 1 < call.letters.len() && !is_left_out(call, record, at + 1, value) {
            out.extend_from_slice(b", ");
        }
    }
}

/// Whether strace leaves out an argument, the last one, for what the one before it is.
fn is_left_out(call: &RecordedCall, record: &Record<'_>, at: usize, before: u64) -> bool {
    match call.letters.get(at) {
        Some(b'm') => before & O_CREATES == 0,
        Some(b'L') => record.beside.is_empty() && ASKING.contains(&before),
        _ => false,
    }
}

fn write_path(out: &mut Vec<u8>, record: &Record<'_>, place: usize) -> bool {
    let (text, fault, null) = match place {
        0 => (record.path, PATH_FAULT, PATH_NULL),
        _ => (record.second, SECOND_FAULT, SECOND_NULL),
    };
    if record.flags & null != 0 {
        out.extend_from_slice(b"NULL");
    } else if record.flags & fault != 0 || record.flags & PART != 0 {
        out.extend_from_slice(UNKNOWN);
    } else {
        write_string(out, text);
    }
    true
}

/// A string between quotes, with an octal escape for all but plain ASCII.
pub(super) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        if matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>') {
            out.push(byte);
        } else {
            let digits = [6, 3, 0].map(|bits| b'0' + (byte >> bits & 7));
            out.push(b'\\');
            out.extend_from_slice(&digits);
        }
    }
    out.push(b'"');
}

fn write_number(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    letter: u8,
    (value, before): (u64, u64),
) -> bool {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the kernel takes the lower half of the register"
    )]
    let low = value as u32;
    let done = match letter {
        b'd' => write!(out, "{}", low.cast_signed()),
        b'j' => return false,
        b'J' => write!(out, "{}", (value << 32 | before).cast_signed()),
        b'H' => write!(out, "{}", (before << 32 | value).cast_signed()),
        b'p' => write!(out, "0x{:x}", value.wrapping_mul(PAGE)),
        b'z' if low & 0xffff == 0xffff => write!(out, "-1"),
        b'z' => write!(out, "{}", low & 0xffff),
        b'l' if is_compat(record.number) => write!(out, "{}", low.cast_signed()),
        b'l' => write!(out, "{}", value.cast_signed()),
        b'u' => write!(out, "{value}"),
        b'm' if before & O_CREATES == 0 => return false,
        b'o' | b'm' => write!(out, "0{low:o}"),
        b'q' => match IOCTLS.iter().find(|(own, _)| *own == u64::from(low)) {
            Some((_, name)) => write!(out, "{name}"),
            None => write!(out, "0x{low:x}"),
        },
        b'f' => write!(out, "FUTEX_WAIT"),
        b'L' if !record.beside.is_empty() => {
            let lock = record.beside;
            let kinds = u32_at(lock, 0);
            let [start, length] = match lock.len() {
                12 => [4, 8].map(|at| narrow(lock, at)),
                20 => [4, 12].map(|at| i64_at(lock, at)),
                _ => [8, 16].map(|at| i64_at(lock, at)),
            };
            let [kind, whence] = [kinds & 0xffff, kinds >> 16];
            write!(
                out,
                "{{l_type=0x{kind:x}, l_whence=0x{whence:x}, l_start={start}, l_len={length}}}"
            )
        }
        b'L' if ASKING.contains(&before) => return false,
        b'k' => write!(out, "0x{low:x}"),
        _ => write!(out, "0x{value:x}"),
    };
    done.is_ok()
}

/// What was read beside the numbers; something that is known to be unknown where it was not.
fn write_beside(out: &mut Vec<u8>, record: &Record<'_>, letter: u8, place: usize) -> bool {
    let beside = record.beside;
    let done = match letter {
        b'a' if record.flags & SECOND_NULL == 0 && !record.second.is_empty() => {
            out.extend_from_slice(b"{sa_family=AF_UNIX, sun_path=");
            write_string(out, record.second);
            write!(out, "}}")
        }
        b'S' if record.result >= 0 && record.flags & SECOND_FAULT == 0 => {
            let text = record.second;
            write_string(out, text.strip_suffix(b"\0").unwrap_or(text));
            Ok(())
        }
        b'*' | b'O' => match i64_at(beside, if place == 3 { 8 } else { 0 }) {
            ..0 => write!(out, "NULL"),
            // The call has moved it.
            offset => write!(out, "[{}]", offset - record.result.max(0)),
        },
        b'T' | b'V' | b'N' | b'U' if beside.is_empty() => write!(out, "NULL"),
        b'n' | b'e' if record.result == 0 => write!(out, "0x1 /* 0 entries */"),
        _ if beside.is_empty() => out.write_all(UNKNOWN),
        _ => write_structure(out, beside, letter),
    };
    done.is_ok()
}

fn write_structure(out: &mut Vec<u8>, beside: &[u8], letter: u8) -> std::io::Result<()> {
    match letter {
        b'=' | b'+' | b'~' | b'%' => write_stat(out, beside),
        b'i' | b'I' => match i64_at(beside, 0) {
            ..0 => out.write_all(UNKNOWN),
            sum => write!(out, "[{{iov_base=0x1, iov_len={sum}}}]"),
        },
        b'n' | b'e' => match i64_at(beside, 0) {
            ..0 => out.write_all(UNKNOWN),
            count => write!(out, "0x1 /* {count} entries */"),
        },
        b'T' | b'V' => write_times(
            out,
            [0, 8, 16, 24].map(|at| i64_at(beside, at)),
            letter == b'V',
        ),
        b'N' | b'U' => write_times(
            out,
            [0, 4, 8, 12].map(|at| narrow(beside, at)),
            letter == b'U',
        ),
        b'r' => write!(out, "[{}]", i64_at(beside, 0)),
        b'E' => {
            let [first, second, one, other] = [0, 4, 8, 12].map(|at| u32_at(beside, at));
            write!(out, "0x{first:x}, 0x{second:x}, 0, [{one}, {other}]")
        }
        b't' | b'y' => {
            let [access, change] = match letter {
                b't' => [0, 8].map(|at| i64_at(beside, at)),
                _ => [0, 4].map(|at| narrow(beside, at)),
            };
            write!(out, "{{actime={access}, modtime={change}}}")
        }
        b'h' => {
            let [flags, mode, resolve] = [0, 8, 16].map(|at| u64_at(beside, at));
            write!(out, "{{flags=0x{flags:x}")
                .and_then(|()| match flags & O_CREATES | mode {
                    0 => Ok(()),
                    _ => write!(out, ", mode=0{mode:o}"),
                })
                .and_then(|()| write!(out, ", resolve=0x{resolve:x}}}"))
        }
        b'c' => write!(out, "{{flags=0x{:x}}}", u64_at(beside, 0)),
        b'P' => {
            let [first, second] = [0, 4].map(|at| u32_at(beside, at).cast_signed());
            write!(out, "[{first}, {second}]")
        }
        b'w' => match u32_at(beside, 0) {
            0xffff => write!(out, "[{{WIFCONTINUED(s)}}]"),
            status if status & 0xff == 0x7f => write!(out, "[{{WIFSTOPPED(s)}}]"),
            _ => write!(out, "[{{WIFEXITED(s)}}]"),
        },
        b'v' => {
            write_string(out, beside);
            Ok(())
        }
        _ => out.write_all(UNKNOWN),
    }
}

/// Devices have no size.
fn write_stat(out: &mut Vec<u8>, beside: &[u8]) -> std::io::Result<()> {
    const KIND: u32 = 0o170_000;
    const DEVICES: [u32; 2] = [0o020_000, 0o060_000];
    let mode = u32_at(beside, 0);
    write!(out, "{{st_mode=0{mode:o}")?;
    if !DEVICES.contains(&(mode & KIND)) {
        write!(out, ", st_size={}", i64_at(beside, 8))?;
    }
    write!(out, ", ...}}")
}

fn narrow(beside: &[u8], at: usize) -> i64 {
    i64::from(u32_at(beside, at).cast_signed())
}

/// Seconds and their parts, of two times.
fn write_times(out: &mut Vec<u8>, times: [i64; 4], are_us: bool) -> std::io::Result<()> {
    let [access, access_part, change, change_part] = times;
    let part = if are_us { "tv_usec" } else { "tv_nsec" };
    write!(
        out,
        "[{{tv_sec={access}, {part}={access_part}}}, {{tv_sec={change}, {part}={change_part}}}]"
    )
}

/// Write the result of a call, and how long it took. A task that it made has another number here where namespaces are nested.
pub(super) fn write_result(out: &mut Vec<u8>, record: &Record<'_>, made: Option<u32>) {
    const RESTARTS: std::ops::RangeInclusive<i64> = 512..=516;
    const LAST_ERROR: i64 = 4095;
    let done = match record.result.saturating_neg() {
        error if RESTARTS.contains(&error) => write!(out, ") = ? ERESTARTSYS"),
        error @ 1..=LAST_ERROR => write!(out, ") = -1 (errno {error})"),
        _ => write!(out, ") = {}", record.result),
    };
    let own = made.filter(|&made| i64::from(made) != record.result);
    let (seconds, part) = (
        record.duration_ns / 1_000_000_000,
        record.duration_ns % 1_000_000_000,
    );
    let is_begun_before = record.flags & BEGUN_BEFORE != 0;
    let _ = done
        .and_then(|()| match own {
            Some(own) => write!(out, " /* {own} in strace's PID NS */"),
            None => Ok(()),
        })
        .and_then(|()| {
            if is_begun_before {
                // How long it had taken before is not known.
                writeln!(out)
            } else {
                writeln!(out, " <{seconds}.{part:09}>")
            }
        });
}
