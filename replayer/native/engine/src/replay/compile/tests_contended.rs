//! Files that several threads of a trace changed at once: whose they are.

use super::tests::{imported, source_with};
use super::{Contended, compile_whole};
use crate::replay::names::Names;

/// A database that is there, one that is made, one behind a linked directory, and what is made beside them.
const CONTENDED: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/there\", O_RDWR) = 3 <0.000010>
10 1700000000.000100 openat(AT_FDCWD, \"/r/made\", O_RDWR|O_CREAT, 0644) = 4 <0.000010>
10 1700000000.000200 openat(AT_FDCWD, \"/r/now/db\", O_RDWR|O_CREAT, 0644) = 5 <0.000010>
11 1700000000.000300 openat(AT_FDCWD, \"/r/there\", O_RDWR) = 3 <0.000010>
11 1700000000.000400 openat(AT_FDCWD, \"/r/made\", O_RDWR) = 4 <0.000010>
11 1700000000.000500 openat(AT_FDCWD, \"/r/now/db\", O_RDWR|O_CREAT, 0644) = 5 <0.000010>
11 1700000000.000600 write(3, \"\"..., 10) = 10 <0.000010>
10 1700000000.000700 write(4, \"\"..., 10) = 10 <0.000010>
11 1700000000.000800 write(5, \"\"..., 10) = 10 <0.000010>
";
const TREE: &str =
    "v1\td\t0\t755\t\nv1/db\tf\t20\t644\t\nnow\tl\t0\t777\tv1\nthere\tf\t700\t644\t\n";

fn tops(contended: Contended) -> Vec<String> {
    let (_folder, trace) = imported(CONTENDED, TREE);
    let replay_program = compile_whole(&source_with(&trace, contended), true).unwrap();
    let names = Names::new(&replay_program.paths, 0, 1);
    let sizes = names
        .entries(&replay_program)
        .map(|ready| ready.size)
        .collect::<Vec<_>>();
    assert_eq!(sizes, vec![700; sizes.len()]);
    let tops = names.tops(&replay_program);
    let mut tops: Vec<_> = tops
        .map(|(_, top)| top.to_string_lossy().into_owned())
        .collect();
    tops.sort();
    tops
}

#[test]
fn users_share_them() {
    assert_eq!(tops(Contended::Shared), [""; 0]);
}

#[test]
fn each_performance_of_a_single_user_has_those_that_lie_where_their_paths_say() {
    assert_eq!(tops(Contended::Own), ["t/r/made~0.1", "t/r/there~0.1"]);
}
