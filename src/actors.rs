//! Who runs when: messages in, effects out, no decisions.

pub mod hub;
pub mod scribe;
