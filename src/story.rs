//! What the record says, for people and for traces: pure code that takes events and gives facts.
//!
//! * `rounds`: how rounds go, for those who show them.

pub(crate) mod rounds;
