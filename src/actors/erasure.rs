//! Deletes from the record: deleted and edited messages, expired events, and what an interrupted deletion left.

pub mod cleanup;
pub mod deletion;
pub mod named;
pub mod note_switches;
pub mod retention;
pub mod rewrite_locks;
