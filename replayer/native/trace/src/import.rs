//! One import: foreign files in, a trace folder out.

use crate::counts::Counts;
use crate::error::TraceError;
use crate::folder::{self, FolderDraft, Origin};
use crate::formats::{Applicability, Clock, FORMATS, Format, HEAD_BYTES};
use crate::input::Input;
use crate::manifest;
use crate::open_files::OpenFiles;
use crate::order::Order;
use crate::overlaps::Overlaps;
use crate::pipes::Pipes;
use crate::requests::Requests;
use crate::requests::windows::Window;
use crate::scope::{Location, Scope};
use crate::sharing::PathUsage;
use crate::tables::events::EventWriter;
use crate::tables::small::EdgeWriter;
use crate::tables::tree::Keep;
use crate::tables::write::Sink;
use crate::tasks::Tasks;
use crate::tracer_overhead::TracerOverhead;
use crate::tracker::{OutsideFiles, Tracker};
use crate::tree::Tree;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What to import, and how. Names of a log are texts; a task of None stands for all others.
#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    /// Logs, all of one capture.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    /// The trace folder to make.
    #[serde(skip)]
    pub target: PathBuf,
    /// Directories as the traced machine named them.
    #[serde(skip)]
    pub roots: Vec<Vec<u8>>,
    /// Symlinks that lead to roots, and the roots.
    pub aliases: Vec<(String, String)>,
    /// Where absolute paths of tasks begin that have another root.
    #[serde(default)]
    pub process_roots: Vec<(u64, String)>,
    /// Where names begin that the log shows of tasks with other mounts.
    #[serde(default)]
    pub mounts: Vec<(u64, String)>,
    /// Names below roots, as these have them, on which something else is mounted for them.
    #[serde(default)]
    pub covers: Vec<String>,
    /// Whether symlinks outside of the roots are followed as they are on this machine.
    #[serde(default)]
    pub follows_links: bool,
    /// Name of a format; found out if None.
    pub format: Option<String>,
    /// The files below the roots before the trace began.
    pub manifest: Option<PathBuf>,
    /// Working directories at the begin: of one task, or of all others.
    pub directories: Vec<(Option<u64>, String)>,
    /// What creations leave out of their modes at the begin: those of one task, or of all others.
    pub umasks: Vec<(Option<u64>, i64)>,
    /// When requests were made.
    pub windows: Vec<Window>,
    /// Lookups below this path are markers of requests.
    pub marker: String,
    /// What is known of the tracer's own cost.
    #[serde(flatten)]
    pub overhead: TracerOverhead,
    /// What of the manifest the trace keeps.
    pub keep: Keep,
    /// Whether lines that are not understood are an error.
    pub strict: bool,
    /// Where the trace comes from, in the user's words.
    pub note: String,
}

/// Import; `progress` is told the number of lines now and then, and returns false to stop.
///
/// The folder appears whole or not at all. Returns the text of its trace.json.
///
/// # Errors
/// What the user asked cannot be meant, a file is damaged, the kernel refuses, or `progress` stops it.
pub fn import(
    request: &Request,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<String, TraceError> {
    if request.files.is_empty() || request.roots.is_empty() {
        return Err(TraceError::asked(
            "an import needs at least one file and one root",
            "give the log and --root DIR",
        ));
    }
    let format = choose(request)?;
    let exact = format.is_exact.then(|| Request {
        overhead: request.overhead.as_measured(),
        ..request.clone()
    });
    let request = exact.as_ref().unwrap_or(request);
    let draft = FolderDraft::create(&request.target)?;
    let result = fill(request, format, &draft, progress);
    draft.finish(result)
}

fn fill(
    request: &Request,
    format: &Format,
    draft: &FolderDraft,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<String, TraceError> {
    let directory = draft.path();
    let manifest = || request.manifest.as_deref().map(Input::open).transpose();
    let inputs = || -> Result<Vec<Input>, TraceError> {
        request.files.iter().map(|file| Input::open(file)).collect()
    };
    let (tracker, clock, declared) = pass_until_told(|overlaps| {
        let mut tracker = tracker(request, overlaps, &mut |name| table_file(directory, name))?;
        let declared = manifest()?
            .map(|input| manifest::load(&mut tracker, input))
            .transpose()?;
        let clock = (format.import)(inputs()?, &mut tracker, progress)?;
        Ok((tracker, clock, declared))
    })?;
    if request.strict && tracker.counts.not_understood > 0 {
        return Err(strict_error(&tracker.counts));
    }
    folder::write(
        draft.path(),
        tracker,
        &Origin {
            files: &request.files,
            note: &request.note,
            keep: request.keep,
            format,
            clock,
            declared,
        },
    )
}

type Passed = (Tracker, Clock, Option<u64>);

/// Read the logs. Where a result cannot be so for calls that overlapped, read them once more to find another order, and again in that one.
fn pass_until_told(
    mut pass: impl FnMut(Overlaps) -> Result<Passed, TraceError>,
) -> Result<Passed, TraceError> {
    let passed = pass(Overlaps::default())?;
    if !passed.0.overlaps.is_contradicted {
        return Ok(passed);
    }
    drop(passed);
    let (tracker, ..) = pass(Overlaps::searching())?;
    let orders = tracker.overlaps.search.map(|search| search.found);
    pass(Overlaps::with(orders.unwrap_or_default()))
}

fn strict_error(counts: &Counts) -> TraceError {
    let first = counts.samples.first();
    let first = first.map(|sample| format!("; the first is {}: {}", sample.place, sample.text));
    TraceError::asked(
        format!(
            "{} of {} lines could not be parsed{}",
            counts.not_understood,
            counts.lines,
            first.unwrap_or_default()
        ),
        "import without --strict to count and list them",
    )
}

fn table_file(directory: &Path, name: &str) -> Result<Sink, TraceError> {
    let path = directory.join(format!("{name}.parquet"));
    // A pass before this one may have made it: the folder is ours alone.
    let file = std::fs::File::create(&path).map_err(TraceError::io(&path))?;
    Ok(Box::new(file))
}

fn find(name: &str) -> Result<&'static Format, TraceError> {
    FORMATS
        .iter()
        .find(|format| format.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            TraceError::asked(
                format!("--format must be one of {}, got {name}", names.join(", ")),
                "leave --format out to detect the format",
            )
        })
}

type Open<'a> = &'a mut dyn FnMut(&str) -> Result<Sink, TraceError>;

fn tracker(request: &Request, overlaps: Overlaps, open: Open<'_>) -> Result<Tracker, TraceError> {
    let mut tree = Tree::new();
    let mut tracker = Tracker {
        scope: Scope::new(&request.roots, &mut tree.paths)?,
        tree,
        tasks: Tasks::default(),
        files: OpenFiles::default(),
        counts: Counts::default(),
        order: Order::default(),
        overlaps,
        requests: Requests::new(request.windows.clone()),
        usage: PathUsage::default(),
        events: EventWriter::create(open("events")?, request.overhead.clone()),
        edges: EdgeWriter::create(open("edges")?),
        marker: request.marker.clone().into_bytes(),
        first_ns: None,
        last_ns: i64::MIN,
        threads: Vec::new(),
        outside: OutsideFiles::default(),
        pipes: Pipes::default(),
        holders: FxHashMap::default(),
        sees_pages: false,
        knows_descriptors: false,
        holds_up_callers: false,
        adopted: Vec::new(),
    };
    for (link, root) in &request.aliases {
        tracker.scope.add_alias(link.as_bytes(), root.as_bytes())?;
    }
    if request.follows_links {
        tracker.scope.follow_links();
    }
    for (task, begin) in &request.mounts {
        tracker.give_mounts(*task, absolute("--mounts", begin)?, &request.covers);
    }
    for (task, root) in &request.process_roots {
        let root = tracker.locate(&Location::Unknown, absolute("--process-root", root)?);
        tracker.tasks.give_root(*task, root);
    }
    for &(task, umask) in &request.umasks {
        tracker.tasks.give_umask(task, umask);
    }
    for (task, directory) in &request.directories {
        let location = tracker.locate(&Location::Unknown, absolute("--cwd", directory)?);
        tracker.tasks.give_cwd(*task, location);
    }
    Ok(tracker)
}

fn absolute<'a>(option: &str, directory: &'a str) -> Result<&'a [u8], TraceError> {
    if directory.starts_with('/') {
        return Ok(directory.as_bytes());
    }
    Err(TraceError::asked(
        format!("{option} must be absolute, got {directory}"),
        "give the directory as named on the traced machine",
    ))
}

fn choose(request: &Request) -> Result<&'static Format, TraceError> {
    if let Some(name) = &request.format {
        return find(name);
    }
    let mut answer = Applicability::No;
    for file in &request.files {
        let mut head = Vec::new();
        let limit = u64::try_from(HEAD_BYTES).unwrap_or(u64::MAX);
        crate::input::open(file)?
            .take(limit)
            .read_to_end(&mut head)
            .map_err(TraceError::io(file))?;
        for format in &FORMATS {
            match (format.is_applicable)(&head) {
                Applicability::Yes => return Ok(format),
                Applicability::NeedMore if head.len() < HEAD_BYTES => {
                    answer = Applicability::NeedMore;
                }
                Applicability::NeedMore | Applicability::No => {}
            }
        }
    }
    let shown = request
        .files
        .first()
        .map(|file| file.display().to_string())
        .unwrap_or_default();
    Err(if answer == Applicability::NeedMore {
        TraceError::asked(
            format!("{shown} is too short to detect its format"),
            "name the format with --format",
        )
    } else {
        TraceError::asked(
            format!("{shown} is not a recording, strace log, fio iolog or dbench loadfile"),
            "if it is, name the format with --format",
        )
    })
}
