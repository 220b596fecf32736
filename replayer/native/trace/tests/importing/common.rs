//! Imports a text as a user would, and reads the trace back.

use replayer_trace::{Event, Keep, Op, Request, Trace, TracerOverhead, import};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a test asks for besides the text.
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) folder: TempDir,
}

/// A trace that was imported.
#[allow(dead_code, reason = "each test looks at some of it")]
pub(crate) struct Imported {
    pub(crate) events: Vec<Event>,
    pub(crate) paths: Vec<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) document: Value,
    pub(crate) trace: Trace,
    folder: TempDir,
}

/// An import of a text with the root `/r`.
pub(crate) fn asked(text: impl AsRef<[u8]>) -> Asked {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    std::fs::write(&log, text).unwrap();
    let request = Request {
        files: vec![log],
        target: folder.path().join("trace"),
        roots: vec![b"/r".to_vec()],
        aliases: Vec::new(),
        follows_links: false,
        format: Some("strace".to_owned()),
        manifest: None,
        directories: Vec::new(),
        umasks: Vec::new(),
        process_roots: Vec::new(),
        mounts: Vec::new(),
        covers: Vec::new(),
        windows: Vec::new(),
        marker: "/replayer/request/".to_owned(),
        overhead: TracerOverhead::default(),
        keep: Keep::Needed,
        strict: false,
        note: String::new(),
    };
    Asked { request, folder }
}

/// An import of files by the numbers of their tasks.
#[allow(dead_code, reason = "not every test binary uses it")]
pub(crate) fn imported(files: &[(u32, &str)]) -> Imported {
    let mut asked = asked("");
    let files = files
        .iter()
        .map(|(task, text)| asked.file(&format!("log.{task}"), text));
    asked.request.files = files.collect();
    asked.import()
}

#[allow(dead_code, reason = "not every test binary uses all of it")]
impl Asked {
    pub(crate) fn root(mut self, root: &str) -> Self {
        self.request.roots.push(root.as_bytes().to_vec());
        self
    }

    pub(crate) fn cwd(mut self, directory: &str) -> Self {
        self.request.directories.push((None, directory.to_owned()));
        self
    }

    pub(crate) fn manifest(mut self, rows: &str) -> Self {
        let place = self.folder.path().join("manifest.tsv");
        std::fs::write(&place, format!("path\ttype\tsize\tmode\tlink\n{rows}")).unwrap();
        self.request.manifest = Some(place);
        self
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let place = self.folder.path().join(name);
        std::fs::write(&place, text).unwrap();
        place
    }

    pub(crate) fn import(self) -> Imported {
        import(&self.request, &mut |_| true).unwrap();
        read(&self.request.target.clone(), self.folder)
    }
}

fn read(target: &Path, folder: TempDir) -> Imported {
    let trace = Trace::open(target).unwrap();
    let mut events = Vec::new();
    let mut reader = trace.tables().events(0).unwrap();
    while let Some((_, event)) = reader.next_event().unwrap() {
        events.push(event);
    }
    let (paths, labels) = trace
        .paths()
        .unwrap()
        .into_iter()
        .map(|row| (String::from_utf8_lossy(&row.path).into_owned(), row.label))
        .unzip();
    Imported {
        events,
        paths,
        labels,
        document: serde_json::from_str(trace.document()).unwrap(),
        trace,
        folder,
    }
}

#[allow(dead_code, reason = "not every test binary uses all of it")]
impl Imported {
    /// `op path → result` of each event.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.events.iter().map(|event| self.line(event)).collect()
    }

    pub(crate) fn line(&self, event: &Event) -> String {
        let path = |row: Option<u32>| {
            row.map(|row| format!(" {}", self.paths[row as usize]))
                .unwrap_or_default()
        };
        let file = |file: Option<u32>| file.map(|file| format!(" #{file}")).unwrap_or_default();
        format!(
            "{}{}{}{}{} = {}",
            event.op.name(),
            path(event.path),
            path(event.to_path),
            file(event.file),
            file(event.to_file),
            event.result
        )
    }

    pub(crate) fn ops(&self) -> Vec<Op> {
        self.events.iter().map(|event| event.op).collect()
    }

    pub(crate) fn count(&self, pointer: &str) -> u64 {
        self.document
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{pointer}"))
    }

    /// `path type size` of what must be there before.
    pub(crate) fn tree(&self) -> Vec<String> {
        let rows = self.trace.tree().unwrap();
        rows.iter()
            .map(|row| {
                let link = row
                    .link
                    .as_ref()
                    .map(|link| format!(" -> {}", String::from_utf8_lossy(link)));
                format!(
                    "{} {} {}{}",
                    self.paths[row.path as usize],
                    row.kind,
                    row.size,
                    link.unwrap_or_default()
                )
            })
            .collect()
    }

    /// The mode of each path that must be there before, where it is known.
    pub(crate) fn modes(&self) -> Vec<(String, Option<u32>)> {
        let rows = self.trace.tree().unwrap();
        let named = rows
            .iter()
            .map(|row| (self.paths[row.path as usize].clone(), row.mode));
        named.collect()
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().join("trace")
    }
}

/// Whether an event waits for another, by any number of edges and program orders.
#[allow(dead_code, reason = "not every test binary uses it")]
pub(crate) fn waits(trace: &Imported, event: usize, other: usize) -> bool {
    let edges = trace.trace.edges().unwrap();
    let row = |row: u64| usize::try_from(row).unwrap();
    let edges: Vec<_> = edges
        .iter()
        .map(|&(to, from)| (row(to), row(from)))
        .collect();
    let mut reached = vec![false; trace.events.len()];
    reached[event] = true;
    for row in (0..=event).rev().filter(|&row| row > other) {
        if !reached[row] {
            continue;
        }
        let thread = trace.events[row].thread;
        let before = (0..row).rev().find(|&at| trace.events[at].thread == thread);
        let sources = edges.iter().filter(|(to, _)| *to == row);
        let sources = sources.map(|&(_, from)| from).chain(before);
        sources.for_each(|at| reached[at] = true);
    }
    reached[other]
}
