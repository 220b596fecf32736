//! Fifos, sockets and devices: their names are followed, what goes through them is left out.

use crate::common;

use common::{Imported, asked};

fn left_out(trace: &Imported, name: &str) -> u64 {
    trace.count(&format!(
        "/counts/calls_not_representable/{name} (fifo, socket or device)"
    ))
}

#[test]
fn a_fifo_of_the_trace_is_made_renamed_and_removed_and_never_opened() {
    let trace = asked(
        "9 umask(022) = 0\n\
         9 mknodat(AT_FDCWD, \"/r/p\", S_IFIFO|0666) = 0\n\
         9 openat(AT_FDCWD, \"/r/p\", O_RDWR) = 3</r/p>\n\
         9 newfstatat(3</r/p>, \"\", {st_mode=S_IFIFO|0644, st_size=0, ...}, AT_EMPTY_PATH) = 0\n\
         9 write(3</r/p>, \"hi\\n\", 3) = 3\n\
         9 splice(3</r/p>, NULL, 3</r/p>, NULL, 5, 0) = -1 EINVAL (Invalid argument)\n\
         9 dup(3</r/p>) = 4</r/p>\n\
         9 rename(\"/r/p\", \"/r/q\") = 0\n\
         9 read(4</r/q>, \"hi\\n\", 10) = 3\n\
         9 openat(AT_FDCWD, \"/r/q\", O_WRONLY|O_NONBLOCK) = -1 ENXIO (No such device or address)\n\
         9 unlink(\"/r/q\") = 0\n\
         9 read(4</r/q>(deleted), \"\", 10) = 0\n\
         9 close(3</r/q>(deleted)) = 0\n\
         9 openat(AT_FDCWD, \"/r/q\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3</r/q>\n\
         9 write(3</r/q>, \"x\", 1) = 1\n\
         9 +++ exited with 0 +++\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "mknod r/p = 0",
            "rename r/p r/q = 0",
            "unlink r/q = 0",
            "open r/q #1 = 0",
            "write #1 = 1",
            "close_exit #1 = 0",
            "exit = 0",
        ]
    );
    assert_eq!(trace.events[0].mode, Some(0o010_644));
    assert_eq!(left_out(&trace, "openat"), 2);
    assert_eq!(left_out(&trace, "read"), 2);
    assert_eq!(left_out(&trace, "write"), 1);
    assert_eq!(trace.tree(), ["r d 0"]);
}

#[test]
fn what_goes_between_a_fifo_and_what_lies_outside_is_left_out() {
    let trace = asked(
        "1 mknodat(AT_FDCWD, \"/r/p\", S_IFIFO|0666) = 0\n\
         1 openat(AT_FDCWD, \"/r/p\", O_RDONLY) = 3</r/p>\n\
         1 splice(3</r/p>, NULL, 5<socket:[1]>, NULL, 10, 0) = 10\n\
         1 splice(5<socket:[1]>, NULL, 3</r/p>, NULL, 10, 0) = 10\n\
         1 splice(5<socket:[1]>, NULL, 6<pipe:[2]>, NULL, 10, 0) = 10\n",
    )
    .import();
    assert_eq!(left_out(&trace, "splice"), 2);
    assert_eq!(trace.count("/counts/calls_out_of_scope/splice"), 1);
}

#[test]
fn a_socket_is_made_by_its_bind() {
    let trace = asked(
        "9 bind(3<socket:[1]>, {sa_family=AF_UNIX, sun_path=\"/r/my, sock\"}, 110) = 0\n\
         9 bind(4<socket:[2]>, {sa_family=AF_UNIX, sun_path=\"/r/my, sock\"}, 110) = -1 EADDRINUSE (Address already in use)\n\
         9 bind(4<socket:[2]>, {sa_family=AF_UNIX, sun_path=@\"/r/abstract\"}, 110) = 0\n\
         9 bind(5<socket:[3]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"0.0.0.0\")}, 16) = 0\n\
         9 rename(\"/r/my, sock\", \"/r/sock\") = 0\n\
         9 unlink(\"/r/sock\") = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "mknod r/my, sock = 0",
            "rename r/my, sock r/sock = 0",
            "unlink r/sock = 0"
        ]
    );
    assert_eq!(trace.events[0].mode, Some(0o140_755));
    assert_eq!(trace.tree(), ["r d 0"]);
}

#[test]
fn what_a_manifest_says_to_be_special_is_not_opened_wherever_it_is_moved() {
    let trace = asked(
        "9 getdents64(3</r>, 0x5 /* 4 entries */, 32768) = 96\n\
         9 read(5</r/d/p>, \"hi\\n\", 10) = 3\n\
         9 rename(\"/r/d\", \"/r/e\") = 0\n\
         9 openat(AT_FDCWD, \"/r/l\", O_RDONLY) = 4</r/e/p>\n\
         9 openat(AT_FDCWD, \"/r/e/p\", O_RDONLY) = 4</r/e/p>\n\
         9 read(4</r/e/p>, \"hi\\n\", 10) = 3\n\
         9 close(4</r/e/p>) = 0\n",
    )
    .manifest("d\td\t0\t755\t\nd/p\tp\t0\t600\t\nl\tl\t3\t777\te/p\n")
    .import();
    assert_eq!(
        trace.lines(),
        ["inherit r #0 = 0", "getdents #0 = 96", "rename r/d r/e = 0"]
    );
    assert_eq!(left_out(&trace, "openat"), 2);
    assert_eq!(left_out(&trace, "read"), 2);
    assert_eq!(
        trace.tree(),
        ["r d 0", "r/d d 0", "r/d/p o 0", "r/l l 0 -> e/p"]
    );
}
