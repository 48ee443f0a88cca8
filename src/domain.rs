//! What is decided, pure and synchronous: no runtime, no clock, no randomness, no IO.

pub mod event;
pub mod id;
pub mod message;
pub mod moment;
pub mod names;
pub mod trigger;
