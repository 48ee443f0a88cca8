//! What is deleted from the record: words that are taken back, what was kept for long enough, and what an end in the middle has left.

pub mod cleanup;
pub mod deletion;
pub mod retention;
pub mod rewrite_locks;
