//! Both recorders tell the same of the same commands: strace is the oracle.
use crate::common::{Deeds, Told, command, lay_out, record_with_probe, scratch, told};
use std::fs;

/// The calls that a capture has strace record, and how it has them written.
const STRACE: &str = "-f -q --absolute-timestamps=format:unix,precision:ns --syscall-times=ns -y --decode-pids=pidns -s 256 -e signal=none \
    -e trace=%file,%desc,%process,?close_range,?chroot,?umask,?sync,?syncfs,?accept,?accept4,?bind,?socketpair,?futex";

/// The command under strace, which keeps its own log.
fn under_strace<'a>(log: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["strace"];
    all.extend(STRACE.split_whitespace());
    all.extend(["-o", log, "--"]);
    all.extend(words);
    all
}

/// Have both recorders see one run of a command, and hold the recordings against each other.
///
/// One run, since no two see the same: `cp` and `rm` go by the inodes of the files, which are free ones of the moment.
fn same(name: &str, words: &[&str]) {
    let home = scratch(name);
    lay_out(&home);
    if !command(&home, &["strace", "--version"])
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("skipped: no strace");
        return;
    }
    let strace = home.join("log.strace");
    let words = under_strace(strace.to_str().unwrap(), words);
    let Some(probe) = record_with_probe(&home, &words) else {
        return;
    };
    let [probe, strace] =
        [(probe, "bpf"), (strace, "strace")].map(|(log, format)| told(&home, &log, format));
    assert!(
        strace.threads.iter().map(Vec::len).sum::<usize>() > 3,
        "{strace:?}"
    );
    let only = |own: &Told, other: &Told| -> Vec<Deeds> {
        let threads = own.threads.iter();
        threads
            .filter(|thread| !other.threads.contains(thread))
            .cloned()
            .collect()
    };
    let [own, other] = [only(&probe, &strace), only(&strace, &probe)];
    for (own, other) in own.iter().zip(&other) {
        let differs = own.iter().zip(other).find(|(own, other)| own != other);
        assert!(
            differs.is_none(),
            "{name}: {differs:#?}\nof {own:#?}\nand {other:#?}"
        );
    }
    assert_eq!(own, other, "{name}");
    assert_eq!(probe, strace, "{name}");
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn of_cp_and_what_it_copies_both_recorders_tell_the_same() {
    same("cp", &["cp", "-a", "r/src", "r/copy"]);
}

#[test]
fn of_tar_both_recorders_tell_the_same() {
    same(
        "tar",
        &[
            "sh",
            "-c",
            "tar cf r/a.tar -C r src && mkdir r/out && tar xf r/a.tar -C r/out && rm -r r/out",
        ],
    );
}

#[test]
fn of_a_shell_with_pipes_and_redirections_both_recorders_tell_the_same() {
    same(
        "sh",
        &[
            "sh",
            "-c",
            "cd r; cat src/f1 src/link > both; echo more >> both; wc -c < both; ls missing; mv both moved; ln moved hard; \
            (cd src && cat f2) > two; test -e src/dangling; exec 5< src/f3 6<&5; cat <&6 >/dev/null; mkdir -p a/b/c; rmdir a/b/c",
        ],
    );
}

/// A script of Python, in a file beside the root.
fn same_of_python(name: &str, script: &str) {
    let program =
        std::env::temp_dir().join(format!("replayer-oracle-{}-{name}.py", std::process::id()));
    fs::write(&program, script).unwrap();
    same(name, &["python3", "-S", "-E", program.to_str().unwrap()]);
    fs::remove_file(program).unwrap();
}

#[test]
fn of_threads_and_children_of_a_program_both_recorders_tell_the_same() {
    same_of_python(
        "threads",
        r#"
import os, threading
os.chdir("r")
def work(name):
    with open(name, "w") as file:
        file.write(name * 100)
    os.stat(name)
for name in ("one", "two"):
    thread = threading.Thread(target=work, args=(name,))
    thread.start()
    thread.join()
for name in ("three", "four"):
    if os.fork() == 0:
        work(name)
        os._exit(0)
    os.wait()
"#,
    );
}

#[test]
fn of_names_that_are_made_moved_and_missed_both_recorders_tell_the_same() {
    same_of_python(
        "names",
        r#"
import os
os.chdir("r")
def fails(call, *words, **more):
    try:
        call(*words, **more)
    except OSError:
        return
    raise SystemExit("it did not fail")
os.rename("src/f1", "src/g1"); os.link("src/g1", "src/h1"); os.symlink("h1", "src/i1"); os.readlink("src/i1")
os.unlink("src/h1"); os.mkdir("d", 0o750); os.mkfifo("d/pipe"); os.chmod("src/g1", 0o600); os.chown("src/g1", 1, 2)
os.utime("src/g1", (5, 6)); os.truncate("src/g1", 77); os.access("src/g1", os.R_OK); os.umask(0o27); os.mkdir("d/e")
here = os.open("src", os.O_RDONLY | os.O_DIRECTORY)
os.stat("f2", dir_fd=here); os.rename("f2", "f3", src_dir_fd=here, dst_dir_fd=here); os.unlink("f3", dir_fd=here)
os.utime(here); os.fchdir(here); os.mkdir(bytes([119, 246, 34, 92, 60, 62, 10])); os.listdir("."); os.listdir(here); os.getcwd()
fails(os.stat, "none"); fails(os.rename, "none", "else"); fails(os.mkdir, "deep"); fails(os.rmdir, "deep"); fails(os.unlink, "none")
fails(os.open, "none/at/all", os.O_RDONLY); fails(os.link, "none", "else"); fails(os.readlink, "f4"); fails(os.open, "x" * 300, os.O_RDONLY)
os.setxattr("f4", "user.a", b"value"); os.getxattr("f4", "user.a"); os.listxattr("f4"); os.removexattr("f4", "user.a"); fails(os.getxattr, "f4", "user.a")
os.sync(); os.statvfs("."); os.close(here)
"#,
    );
}

#[test]
fn of_data_and_descriptors_both_recorders_tell_the_same() {
    same_of_python(
        "data",
        r#"
import fcntl, mmap, os
os.chdir("r/src")
file = os.open("f5", os.O_RDWR)
os.pread(file, 100, 50); os.pwrite(file, b"abc", 7); os.lseek(file, 10, os.SEEK_SET); os.lseek(file, -5, os.SEEK_END)
os.readv(file, [bytearray(3), bytearray(4)]); os.writev(file, [b"x"] * 40); os.preadv(file, [bytearray(9)] * 3, 1); os.pwritev(file, [b"12"], 2)
os.fsync(file); os.fdatasync(file); os.ftruncate(file, 9000); os.fchmod(file, 0o640); os.fchown(file, -1, -1); os.utime(file, (1, 2))
os.posix_fallocate(file, 0, 100); os.posix_fadvise(file, 0, 10, os.POSIX_FADV_WILLNEED)
fcntl.lockf(file, fcntl.LOCK_EX, 10, 5); fcntl.lockf(file, fcntl.LOCK_UN); fcntl.flock(file, fcntl.LOCK_SH); fcntl.flock(file, fcntl.LOCK_UN)
other = os.open("to", os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
os.sendfile(other, file, 3, 100); os.copy_file_range(file, other, 500, 0, 10); os.copy_file_range(file, other, 100)
again = os.dup(other); os.dup2(other, 40); os.set_inheritable(again, True); os.write(again, b"more"); os.close(other); os.write(40, b"more")
fcntl.fcntl(again, fcntl.F_GETFL); fcntl.fcntl(again, fcntl.F_SETFL, os.O_APPEND); fcntl.fcntl(again, fcntl.F_DUPFD_CLOEXEC, 50)
mapped = mmap.mmap(file, 4096); mapped[0]; mapped.close()
ends = os.pipe(); os.write(ends[1], b"through"); os.read(ends[0], 7)
os.closerange(40, 60)
if os.fork() == 0:
    os.execv("/bin/cat", ["cat", "f1", "f2"])
os.wait()
os.write(again, b"the last")
"#,
    );
}

#[test]
fn of_a_program_of_32_bits_both_recorders_tell_the_same() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recording/compat.c");
    let program =
        std::env::temp_dir().join(format!("replayer-oracle-{}-compat", std::process::id()));
    let options = "-I/usr/include/x86_64-linux-gnu -m32 -static -nostdlib -fno-pie -no-pie -fno-stack-protector -O1";
    let mut compiler = std::process::Command::new("cc");
    compiler
        .args(options.split(' '))
        .arg(source)
        .arg("-o")
        .arg(&program);
    if !compiler.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no compiler of 32-bit programs");
        return;
    }
    let home = scratch("compat-first");
    lay_out(&home);
    match command(&home, &[program.to_str().unwrap()]).status() {
        Ok(_) => same("compat", &[program.to_str().unwrap()]),
        Err(error) => eprintln!("skipped: this kernel runs no 32-bit programs: {error}"),
    }
    fs::remove_dir_all(home).unwrap();
    fs::remove_file(program).unwrap();
}

#[test]
fn of_a_program_with_another_root_both_recorders_tell_the_same() {
    same_of_python(
        "chroot",
        r#"
import os
os.stat("r/src/f1")
if os.fork() == 0:
    os.chroot("r/src"); os.stat("f2"); os.chdir("/"); os.stat("/f1"); os.stat("/../deep/er/leaf"); os.getcwd(); os.listdir("/")
    os.mkdir("/made"); os.rename("/f3", "/made/f3"); os.close(os.open("/made/f3", os.O_RDONLY))
    if os.fork() == 0:
        os.chroot("/deep"); os.stat("/er/leaf"); os.chdir("/er"); os.stat("leaf"); os.stat("../er/leaf")
        os._exit(0)
    os.wait(); os.stat("/f4")
    os._exit(0)
os.wait(); os.stat("r/src/f5"); os.stat(os.path.abspath("r/src/f5"))
"#,
    );
}

#[test]
fn of_calls_that_a_filter_denies_both_recorders_tell_the_same() {
    same_of_python(
        "filter",
        r#"
import ctypes, errno, os, struct
def filtered(*rules):
    # linux/filter.h: load the number, compare, return; linux/seccomp.h
    lines = [(0x20, 0, 0, 0)]
    for number, answer in rules:
        lines += [(0x15, 0, 1, number), (0x06, 0, 0, answer)]
    lines.append((0x06, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    wanted = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(wanted), 0, 0) == 0
os.chdir("r")
if os.fork() == 0:
    filtered((83, 0x50000 | errno.EPERM), (87, 0x50000 | errno.EROFS))
    os.stat("src/f1")
    try:
        os.mkdir("denied")
    except PermissionError:
        os.stat("src/f2")
    if os.fork() == 0:
        try:
            os.unlink("src/f3")
        except OSError:
            os.stat("src/f4")
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
os.stat("src/f2")
"#,
    );
}

#[test]
fn of_long_lists_both_recorders_tell_the_same() {
    same_of_python(
        "lists",
        r#"
import ctypes, os
os.mkdir("r/many")
for number in range(2100):
    os.mkdir(f"r/many/{number}")
room = ctypes.create_string_buffer(1 << 20)
here = os.open("r/many", os.O_RDONLY)
if ctypes.CDLL(None).syscall(217, here, room, 1 << 20) < 2048 * 24:
    raise SystemExit("it was no long list")
"#,
    );
}

#[test]
fn of_long_paths_and_many_vectors_both_recorders_tell_the_same() {
    same_of_python(
        "long",
        r#"
import os
os.chdir("r")
for _ in range(18):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.chdir("../" * 18)
deep = "/".join(["d" * 200] * 18)
os.stat(deep); os.rename(deep, deep[:-1]); os.symlink(deep, "src/long"); os.readlink("src/long")
file = os.open(deep[:-1] + "/file", os.O_CREAT | os.O_RDWR)
os.writev(file, [b"x" * 3] * 1024); os.lseek(file, 0, 0); os.readv(file, [bytearray(2) for _ in range(17)])
for name in ("src//" + "./" * 2044 + "f1", "src/" + "./" * 2045 + "f1", *("n" * length for length in (126, 127, 128, 129, 255))):
    try:
        os.stat(name)
    except OSError:
        pass
"#,
    );
}

#[test]
fn of_children_that_borrow_memory_and_threads_that_execute_both_recorders_tell_the_same() {
    same_of_python(
        "exec",
        r#"
import os, threading
os.chdir("r")
file = os.open("src/f1", os.O_RDONLY); os.set_inheritable(file, True)
shut = os.open("src/f2", os.O_RDONLY)
child = os.posix_spawn("/bin/cat", ["cat", "src/f3"], os.environ)
os.waitpid(child, 0)
def replace():
    os.stat("src/f4")
    os.execv("/bin/cat", ["cat", "src/f5"])
threading.Thread(target=replace).start()
threading.Event().wait()
"#,
    );
}
