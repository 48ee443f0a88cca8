//! What the core needs from outside, as traits.

pub mod backend;
pub mod chance;
pub mod chat_platform;
pub mod clock;
pub mod company;
pub mod gateway;
pub mod hearing;
pub mod ignoring;
pub mod language_model;
pub mod notes;
pub mod store;
