//! Pages that programs touch through mappings.

use crate::common::{imported, lay_out, record_pages_with_probe, scratch};
use replayer_trace::{Op, Trace};
use std::fs;
use std::io::Write;
use std::path::Path;

const PAGE: i64 = 4096;

/// What was read through mappings: where and how much.
fn touched(home: &Path, script: &str) -> Option<(Vec<(i64, i64)>, serde_json::Value)> {
    lay_out(home);
    // Page by page: of what is written at once the kernel makes large folios, and maps all of one at a time.
    let mut data = fs::File::create(home.join("r/data")).unwrap();
    for size in [4096; 299].into_iter().chain([4000]) {
        data.write_all(&vec![7; size]).unwrap();
    }
    let log = record_pages_with_probe(home, &["python3", "-c", script])?;
    let document = imported(home, &log, "bpf");
    let trace = Trace::open(&home.join("trace-bpf")).unwrap();
    let mut events = trace.tables().events(0).unwrap();
    let mut touched = Vec::new();
    while let Some((_, event)) = events.next_event().unwrap() {
        if event.op == Op::MmapRead {
            assert_eq!(Some(event.result), event.size);
            touched.push((event.offset.unwrap(), event.result));
        }
    }
    if document["blind_spots"]["mmap"] == 1 {
        eprintln!("skipped: this kernel does not tell of which file a page is");
        return None;
    }
    Some((touched, document))
}

#[test]
fn pages_that_were_touched_through_a_mapping_are_reads_of_it() {
    let home = scratch("mapped");
    let script = "
import mmap, os
fd = os.open('r/data', os.O_RDONLY)
view = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
os.close(fd)
sum(view[page * 4096] for page in range(100))
view[299 * 4096], view[200 * 4096]
out = os.open('r/out', os.O_WRONLY | os.O_CREAT)
os.write(out, view[250 * 4096:250 * 4096 + 10])
";
    let Some((touched, document)) = touched(&home, script) else {
        return;
    };
    let ends = touched.iter().map(|(offset, size)| offset + size);
    assert!(
        ends.clone().all(|end| end <= 300 * PAGE - 96),
        "{touched:?}"
    );
    let covers = |page: i64| {
        let found = touched.iter();
        found
            .filter(|(offset, size)| (*offset..offset + size).contains(&(page * PAGE)))
            .count()
    };
    // Pages that were mapped around another one make no fault.
    let first: usize = (0..100).map(covers).sum();
    assert!((80..=100).contains(&first), "{touched:?}");
    assert_eq!([200, 299, 250].map(covers), [1, 1, 1], "{touched:?}");
    assert_eq!(covers(150), 0);
    assert!(document["counts"]["pages_touched"].as_u64().unwrap() >= 9);
    assert_eq!(document["counts"]["files_mapped"], 1);
    assert_eq!(document["counts"]["pages_written"], 0);
    assert_eq!(document["blind_spots"]["mmap (in part)"], 1);
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn pages_that_were_written_through_a_mapping_are_counted() {
    let home = scratch("written");
    let script = "
import mmap, os
with open('r/data', 'r+b') as file, mmap.mmap(file.fileno(), 0) as view:
    view[5 * 4096] = 1
    view[90 * 4096] = 1
";
    let Some((touched, document)) = touched(&home, script) else {
        return;
    };
    // The second is known where the kernel does not map both pages at once, as it does with large folios.
    let both = [(5 * PAGE, PAGE), (90 * PAGE, PAGE)];
    assert!(
        both.starts_with(&touched) && !touched.is_empty(),
        "{touched:?}"
    );
    let written = document["counts"]["pages_written"].as_u64().unwrap();
    assert_eq!(written, touched.len() as u64);
    fs::remove_dir_all(&home).unwrap();
}
