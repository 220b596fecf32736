//! Reads tables.
