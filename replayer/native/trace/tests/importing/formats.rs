//! The other formats, and which file is which.

use crate::common;

use common::asked;
use replayer_trace::import;

#[test]
fn an_iolog_of_fio_3_has_times_and_discards() {
    let mut asked = asked(
        "fio version 3 iolog\n30 /r/null add\n10731 /r/null open\n10736 /r/null trim 0 2147483648\n\
         10752 /r/null write 0 4096\n10780 /r/null read 8192 4096\n10790 /r/null sync 0 0\n10892 /r/null close\n",
    );
    asked.request.format = None;
    let trace = asked.import();
    assert_eq!(
        trace.lines(),
        [
            "open r/null #0 = 0",
            "fallocate #0 = 0",
            "pwrite #0 = 4096",
            "pread #0 = 4096",
            "fsync #0 = 0",
            "close #0 = 0"
        ]
    );
    assert_eq!(trace.events[2].start_ns, 21_000);
    assert_eq!(trace.document["clock"]["kind"], "relative");
    assert_eq!(trace.count("/counts/lines_not_understood"), 0);
}

#[test]
fn an_iolog_of_fio_2_waits() {
    let mut asked = asked(
        "fio version 2 iolog\na add\na open\na read 0 512\na wait 1000 0\na read 512 512\na close\nnonsense\n",
    );
    asked.request.format = None;
    let trace = asked.cwd("/r").import();
    assert_eq!(
        trace.lines(),
        [
            "open r/a #0 = 0",
            "pread #0 = 512",
            "pread #0 = 512",
            "close #0 = 0"
        ]
    );
    assert_eq!(trace.events[2].start_ns, 1_000_000);
    assert_eq!(trace.count("/counts/lines_not_understood"), 1);
    assert_eq!(trace.tree(), ["r d 0", "r/a f 1024"]);
}

#[test]
fn a_loadfile_of_dbench_becomes_calls() {
    let mut asked = asked(
        "Deltree \"\\clients\\client1\" NT_STATUS_OK\n\
         Mkdir \"\\clients\" NT_STATUS_OK\n\
         NTCreateX \"\\clients\\client1\" 0x1 0x2 16385 NT_STATUS_OK\n\
         Close 16385 NT_STATUS_OK\n\
         NTCreateX \"\\clients\\client1\\mixfile\" 0x40 0x1 9935 NT_STATUS_OBJECT_NAME_NOT_FOUND\n\
         NTCreateX \"\\clients\\client1\\filler.000\" 0x40 0x2 9938 NT_STATUS_OK\n\
         WriteX 9938 65534 1 1 NT_STATUS_OK\n\
         LockX 9938 2147483538 1 NT_STATUS_OK\n\
         Flush 9938 NT_STATUS_OK\n\
         QUERY_FILE_INFORMATION 9938 258 NT_STATUS_OK\n\
         SET_FILE_INFORMATION 9938 1004 NT_STATUS_OK\n\
         Close 9938 NT_STATUS_OK\n\
         FIND_FIRST \"\\clients\\client1\\FILLER.*\" 260 1366 1 NT_STATUS_OK\n\
         Rename \"\\clients\\client1\\filler.000\" \"\\clients\\client1\\b\" NT_STATUS_OK\n\
         Unlink \"\\clients\\client1\\b\" 0x6 NT_STATUS_OK\n",
    );
    asked.request.format = None;
    let trace = asked.import();
    assert_eq!(trace.count("/counts/lines_not_understood"), 0);
    assert_eq!(
        trace.document["counts"]["calls_not_representable"]["Deltree"],
        1
    );
    assert_eq!(
        trace.lines(),
        [
            "mkdir r/clients = 0",
            "mkdir r/clients/client1 = 0",
            "open r/clients/client1 #0 = 0",
            "close #0 = 0",
            "open r/clients/client1/mixfile = -2",
            "open r/clients/client1/filler.000 #1 = 0",
            "pwrite #1 = 1",
            "lock #1 = 0",
            "fsync #1 = 0",
            "fstat #1 = 0",
            "futimens #1 = 0",
            "close #1 = 0",
            "open r/clients/client1 #2 = 0",
            "getdents #2 = 0",
            "close #2 = 0",
            "rename r/clients/client1/filler.000 r/clients/client1/b = 0",
            "unlink r/clients/client1/b = 0"
        ]
    );
    assert_eq!(trace.tree(), ["r d 0"]);
}

#[test]
fn what_is_no_log_is_refused_by_name() {
    for (text, message) in [
        (
            "once upon a time\n".repeat(100),
            "is not a recording, strace log, fio iolog or dbench loadfile",
        ),
        (
            "\n".repeat(1 << 20),
            "is not a recording, strace log, fio iolog or dbench loadfile",
        ),
        (String::new(), "is too short to detect its format"),
    ] {
        let mut asked = asked(text);
        asked.request.format = None;
        let error = import(&asked.request, &mut |_| true).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(!error.hint().is_empty());
    }
    let mut asked = asked("");
    asked.request.format = Some("blktrace".to_owned());
    let error = import(&asked.request, &mut |_| true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--format must be one of bpf, fio-iolog, dbench, strace, got blktrace"
    );
}
