//! Implementations of the ports: stores, models, platforms, speech.

pub mod audio;
pub mod console;
pub mod discord;
mod endpoint;
pub mod llm;
mod slots;
pub mod speech;
pub mod store;
pub mod system;
mod web_socket;
