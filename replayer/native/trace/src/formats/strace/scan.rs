//! The shape of a line: a call with its arguments and result, half of one, or something that passes by.

use crate::bytes::{cut, from, skip_blanks, take_digits, take_number, take_seconds};
use crate::formats::strace::args::{ArgList, shown_length, split_args};
use replayer_ops::errno_number;

/// A line without its prefix.
#[derive(Debug)]
pub(crate) enum Shape<'a> {
    /// It lies where the caller wanted it: it is long, and most lines are calls.
    Call,
    /// `name(arguments <unfinished ...>`: everything after the bracket, so far.
    Unfinished {
        name: &'a [u8],
        head: &'a [u8],
    },
    /// `<... name resumed>rest`.
    Resumed {
        name: &'a [u8],
        rest: &'a [u8],
    },
    Exited,
    Superseded(u64),
    /// The task made this one. strace says nothing of it before the call returns: only our own recorder does.
    Forked(u64),
    /// So much of the time since its last call, in ns, was no pause of the task: only our own recorder says so.
    Delayed(u64),
    /// Signals, stops, and what strace says about itself.
    Notice,
    /// A call whose line ends in the middle: program output may have cut it.
    Cut,
    Strange,
}

/// A whole call.
#[derive(Debug, Default)]
pub(crate) struct Scanned<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) args: ArgList<'a>,
    pub(crate) result: ResultText<'a>,
}

impl<'a> Scanned<'a> {
    /// An argument; empty where there is none.
    pub(crate) fn arg(&self, place: usize) -> &'a [u8] {
        self.args.get(place)
    }
}

/// What stands behind the equals sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ResultText<'a> {
    /// None for `?`.
    pub(crate) value: Option<i64>,
    /// What strace itself calls the process, where it says that this is another number.
    pub(crate) strace_number: Option<i64>,
    pub(crate) errno: Option<u16>,
    /// What `-y` prints beside a descriptor.
    pub(crate) shown: Option<&'a [u8]>,
    /// The call will be printed again: this is not its end.
    pub(crate) restarts: bool,
    pub(crate) duration_ns: Option<i64>,
}

const UNFINISHED: &[u8] = b"<unfinished ...>";

/// Tell what a line is; a whole call goes into `call`.
pub(crate) fn scan<'a>(line: &'a [u8], call: &mut Scanned<'a>) -> Shape<'a> {
    let name_length = line
        .iter()
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'_')
        .count();
    if name_length > 0 && line.get(name_length) == Some(&b'(') {
        let name = cut(line, 0, name_length);
        return scan_call(name, from(line, name_length + 1), call);
    }
    scan_passing(line)
}

/// Scan a call from behind its opening bracket.
pub(crate) fn scan_call<'a>(name: &'a [u8], text: &'a [u8], call: &mut Scanned<'a>) -> Shape<'a> {
    // A duration ends in a digit and a bracket: most lines are told from these at once.
    if text.ends_with(b".>") || text.ends_with(b"d>") {
        if let Some(head) = text.strip_suffix(UNFINISHED) {
            return Shape::Unfinished { name, head };
        }
        if text.ends_with(b" <detached ...>") || text.ends_with(b"<pid changed to superseded>") {
            return Shape::Notice;
        }
    }
    call.name = name;
    let understood =
        split_args(text, &mut call.args).and_then(|rest| parse_result(rest, &mut call.result));
    understood.map_or(Shape::Cut, |()| Shape::Call)
}

fn scan_passing(line: &[u8]) -> Shape<'_> {
    if let Some(text) = line.strip_prefix(b"<... ") {
        return scan_resumed(text);
    }
    if let Some(text) = line.strip_prefix(b"+++ ") {
        return scan_ending(text);
    }
    let notice = (line.starts_with(b"--- ") && line.ends_with(b" ---"))
        || line.starts_with(b"strace: ")
        || (line.starts_with(b"Process ")
            && take_digits(from(line, 8)).is_some_and(|(_, rest)| {
                [&b" attached"[..], b" detached", b" resumed", b" suspended"]
                    .iter()
                    .any(|word| rest.starts_with(word))
            }))
        || line.starts_with(b"[ Process PID=")
        || line.starts_with(b"<ptrace(")
        || line.is_empty();
    if notice {
        Shape::Notice
    } else {
        Shape::Strange
    }
}

fn scan_resumed(text: &[u8]) -> Shape<'_> {
    let Some(space) = memchr::memchr(b' ', text) else {
        return Shape::Strange;
    };
    match from(text, space).strip_prefix(b" resumed>") {
        Some(rest) => Shape::Resumed {
            name: cut(text, 0, space),
            rest,
        },
        None => Shape::Strange,
    }
}

fn scan_ending(text: &[u8]) -> Shape<'_> {
    if !text.ends_with(b" +++") {
        return Shape::Strange;
    }
    if let Some(rest) = text.strip_prefix(b"forked ") {
        return take_digits(rest).map_or(Shape::Strange, |(task, _)| Shape::Forked(task));
    }
    if let Some(rest) = text.strip_prefix(b"delayed ") {
        return take_digits(rest).map_or(Shape::Strange, |(ns, _)| Shape::Delayed(ns));
    }
    if let Some(rest) = text.strip_prefix(b"superseded by execve in pid ") {
        return take_digits(rest).map_or(Shape::Strange, |(task, _)| Shape::Superseded(task));
    }
    if text.starts_with(b"exited with ") || text.starts_with(b"killed by ") {
        return Shape::Exited;
    }
    Shape::Strange
}

/// Parse ` = -1 ENOENT (No such file or directory) <0.000031>`, from behind the closing bracket.
pub(crate) fn parse_result<'a>(text: &'a [u8], result: &mut ResultText<'a>) -> Option<()> {
    let text = skip_blanks(text).strip_prefix(b"=")?;
    let (text, duration_ns) = take_duration(skip_blanks(text));
    *result = ResultText {
        duration_ns,
        ..ResultText::default()
    };
    if let Some(rest) = text.strip_prefix(b"?") {
        result.restarts = skip_blanks(rest).starts_with(b"ERESTART");
        return Some(());
    }
    let (value, rest) = take_number(text)?;
    result.value = Some(value);
    let own = number_of_strace(rest);
    result.strace_number = own.and_then(|own| i64::try_from(own).ok());
    if let Some(shown) = rest.strip_prefix(b"<") {
        let end = shown_length(shown)?;
        result.shown = Some(cut(shown, 0, end));
        return Some(());
    }
    let rest = skip_blanks(rest);
    // So a raw call prints what asks for a restart.
    if value == -1 && rest.starts_with(b"ERESTART") {
        result.restarts = true;
        return Some(());
    }
    if value < 0 && !rest.is_empty() {
        // A name that is not known must not pass for success.
        result.errno = Some(take_errno(rest)?);
    }
    Some(())
}

/// What strace itself calls a process, behind the number that this has for the traced program:
/// `2 /* 4711 in strace's PID NS */`, `2<sh> /* 4711 in strace's PID NS */`. The lines of the process bear the second.
pub(crate) fn number_of_strace(behind: &[u8]) -> Option<u64> {
    let behind = match behind.strip_prefix(b"<") {
        Some(shown) => from(shown, shown_length(shown)? + 1),
        None => behind,
    };
    let comment = skip_blanks(behind).strip_prefix(b"/* ")?;
    let (own, rest) = take_digits(comment)?;
    rest.starts_with(b" in strace's PID NS").then_some(own)
}

fn take_errno(text: &[u8]) -> Option<u16> {
    let length = text
        .iter()
        .take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b'_')
        .count();
    if length > 0 {
        return std::str::from_utf8(cut(text, 0, length))
            .ok()
            .and_then(errno_number);
    }
    // A raw call prints "(errno 2)" where the number has no name.
    let (number, _) = take_digits(text.strip_prefix(b"(errno ")?)?;
    u16::try_from(number).ok()
}

/// Split ` <0.000031>` off the end.
fn take_duration(text: &[u8]) -> (&[u8], Option<i64>) {
    let none = (text, None);
    let Some(inner) = text.strip_suffix(b">") else {
        return none;
    };
    let Some(open) = memchr::memrchr(b'<', inner) else {
        return none;
    };
    match take_seconds(from(inner, open + 1)) {
        Some((time, rest, digits)) if rest.is_empty() && digits > 0 => {
            let before = cut(text, 0, open);
            (before.strip_suffix(b" ").unwrap_or(before), Some(time))
        }
        _ if from(inner, open + 1) == b"unavailable" => (cut(text, 0, open), None),
        _ => none,
    }
}

/// What stands before a notice of a new process that strace wrote into a line of its own, as it does on stderr; and the notice.
pub(crate) fn without_notice(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    let is_notice = |&at: &usize| {
        let number = from(line, at).strip_prefix(b"strace: Process ");
        let rest = number.and_then(take_digits);
        rest.is_some_and(|(_, rest)| rest == b" attached")
    };
    match memchr::memmem::rfind(line, b"strace: Process ").filter(is_notice) {
        Some(at) => (cut(line, 0, at), Some(from(line, at))),
        None => (line, None),
    }
}

/// Whether a line is the rest of one that program output cut.
pub(crate) fn is_tail(line: &[u8]) -> bool {
    line.first() == Some(&b')') && skip_blanks(from(line, 1)).starts_with(b"= ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(line: &[u8]) -> Shape<'_> {
        scan(line, &mut Scanned::default())
    }

    fn call(line: &str) -> (String, Vec<String>, Option<i64>, Option<u16>) {
        let mut scanned = Scanned::default();
        match scan(line.as_bytes(), &mut scanned) {
            Shape::Call => (
                String::from_utf8_lossy(scanned.name).into_owned(),
                scanned
                    .args
                    .iter()
                    .map(|arg| String::from_utf8_lossy(arg).into_owned())
                    .collect(),
                scanned.result.value,
                scanned.result.errno,
            ),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_failed_lookup_has_name_arguments_and_errno() {
        let line = "access(\"/srv/lab/wp/run/www/wordpress/.maintenance\", F_OK) = -1 ENOENT (No such file or directory) <0.000004>";
        let (name, args, value, errno) = call(line);
        assert_eq!(name, "access");
        assert_eq!(
            args,
            ["\"/srv/lab/wp/run/www/wordpress/.maintenance\"", "F_OK"]
        );
        assert_eq!((value, errno), (Some(-1), Some(2)));
    }

    #[test]
    fn a_descriptor_result_keeps_its_path() {
        let line = b"openat(AT_FDCWD</srv>, \"a\", O_RDONLY) = 7</srv/a> <0.000038>";
        let mut scanned = Scanned::default();
        assert!(matches!(scan(line, &mut scanned), Shape::Call));
        assert_eq!(scanned.result.shown, Some(&b"/srv/a"[..]));
        assert_eq!(scanned.result.duration_ns, Some(38_000));
    }

    #[test]
    fn results_of_every_kind_are_read() {
        type Case = (&'static [u8], Option<i64>, Option<u16>, bool);
        let cases: [Case; 11] = [
            (b" = 0", Some(0), None, false),
            (
                b"                         = 0x562f59fea000",
                Some(0x562f_59fe_a000),
                None,
                false,
            ),
            (b" = ?", None, None, false),
            (b" = ? <unavailable>", None, None, false),
            (
                b" = ? ERESTARTSYS (To be restarted if SA_RESTART is set)",
                None,
                None,
                true,
            ),
            (
                b" = -1 ERESTARTSYS (Unknown error 512)",
                Some(-1),
                None,
                true,
            ),
            (
                b" = -1 ERESTART_RESTARTBLOCK (Unknown error 516) <0.4>",
                Some(-1),
                None,
                true,
            ),
            (
                b" = -1 EINTR (Interrupted system call)",
                Some(-1),
                Some(4),
                false,
            ),
            (b" = -1 (errno 38)", Some(-1), Some(38), false),
            (b" = 0x2 (flags O_RDWR) <0.000004>", Some(2), None, false),
            (
                b" = 1 ([{fd=6, revents=POLLIN}]) <0.000231>",
                Some(1),
                None,
                false,
            ),
        ];
        for (text, value, errno, restarts) in cases {
            let mut result = ResultText::default();
            parse_result(text, &mut result).unwrap();
            assert_eq!(
                (result.value, result.errno, result.restarts),
                (value, errno, restarts)
            );
        }
    }

    #[test]
    fn numbers_of_processes_are_told_twice_where_they_differ() {
        for (text, own) in [
            (
                &b" = 2 /* 4711 in strace's PID NS */ <0.000104>"[..],
                Some(4711),
            ),
            (b" = 2<sh> /* 4711 in strace's PID NS */", Some(4711)),
            (b" = 2<sh>", None),
            (b" = 2 /* 12 entries */", None),
        ] {
            let mut result = ResultText::default();
            parse_result(text, &mut result).unwrap();
            assert_eq!((result.value, result.strace_number), (Some(2), own));
        }
    }

    #[test]
    fn pairs_endings_and_notices_are_told_apart() {
        assert!(matches!(
            shape(b"close(3<socket:[278710]> <unfinished ...>"),
            Shape::Unfinished {
                name: b"close",
                head: b"3<socket:[278710]> "
            }
        ));
        assert!(matches!(
            shape(b"<... accept resumed>{sa_family=AF_UNIX}, [112 => 2]) = 5 <0.4>"),
            Shape::Resumed {
                name: b"accept",
                ..
            }
        ));
        assert!(matches!(
            shape(b"<... futex resumed> ) = -1 EAGAIN (x)"),
            Shape::Resumed { .. }
        ));
        assert!(matches!(
            shape(b"+++ superseded by execve in pid 31 +++"),
            Shape::Superseded(31)
        ));
        assert!(matches!(shape(b"+++ forked 32 +++"), Shape::Forked(32)));
        assert!(matches!(
            shape(b"+++ delayed 1234 +++"),
            Shape::Delayed(1234)
        ));
        assert!(matches!(shape(b"+++ exited with 127 +++"), Shape::Exited));
        assert!(matches!(
            shape(b"+++ killed by SIGKILL (core dumped) +++"),
            Shape::Exited
        ));
        assert!(matches!(
            shape(b"--- SIGCHLD {si_signo=SIGCHLD} ---"),
            Shape::Notice
        ));
        assert!(matches!(
            shape(b"strace: Process 5 attached"),
            Shape::Notice
        ));
        assert!(matches!(shape(b"Process 12345 attached"), Shape::Notice));
        assert!(matches!(shape(b"Process killed"), Shape::Strange));
        assert!(matches!(shape(b"hello world"), Shape::Strange));
        assert!(matches!(shape(b"write(1, \"hi\\n\", 3hi"), Shape::Cut));
        assert!(is_tail(b")                     = 3"));
    }
}
