//! The table of ops, as Python reads it.

use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};
use replayer_ops::{Class, Contents, Flag, Op};

/// One row for each op: name, class, contents, the op that does the same, and the flags that hold.
pub(crate) fn table(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let rows = Op::ALL.iter().map(|op| row(py, *op));
    PyTuple::new(py, rows.collect::<PyResult<Vec<_>>>()?)
}

fn row(py: Python<'_>, op: Op) -> PyResult<Bound<'_, PyAny>> {
    let flags = Flag::ALL.iter().filter(|flag| op.is(**flag));
    let flags = PyFrozenSet::new(py, flags.map(|flag| format!("{flag:?}")))?;
    let row = (
        op.name(),
        class_name(op.class()),
        contents_name(op.contents()),
        op.same_as(),
        flags,
    );
    Ok(row.into_pyobject(py)?.into_any())
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Look => "look",
        Class::Alter => "alter",
        Class::Attribute => "attribute",
        Class::Use => "use",
        Class::Read => "read",
        Class::Write => "write",
        Class::Mark => "mark",
        Class::End => "end",
    }
}

fn contents_name(contents: Contents) -> &'static str {
    match contents {
        Contents::None => "none",
        Contents::Reads => "reads",
        Contents::Writes => "writes",
        Contents::Copies => "copies",
        Contents::Alters => "alters",
    }
}
