//! Implementations of the ports: stores, models, platforms, speech.

pub mod audio;
pub mod console;
pub mod discord;
pub mod llm;
pub mod speech;
pub mod store;
pub mod system;
