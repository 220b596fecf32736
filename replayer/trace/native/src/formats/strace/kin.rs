//! What lines say of tasks that make others.

/// Whether a call makes a task.
pub(crate) fn makes_task(text: &[u8]) -> bool {
    let name = text.split(|&byte| byte == b'(').next();
    matches!(
        name,
        Some(b"clone" | b"clone2" | b"clone3" | b"fork" | b"vfork")
    )
}
