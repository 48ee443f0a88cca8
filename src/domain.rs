//! What is decided, pure and synchronous: no runtime, no clock, no randomness, no IO.

pub mod address;
pub mod answer;
pub mod event;
pub mod id;
pub mod message;
pub mod moment;
pub mod names;
pub mod prompt;
pub mod split;
pub mod statement;
mod thoughts;
pub mod trigger;
