//! What the core needs from outside, as traits.

pub mod chance;
pub mod chat_platform;
pub mod clock;
pub mod house;
pub mod language_model;
pub mod store;
