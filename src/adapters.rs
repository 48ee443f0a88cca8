//! Implementations of the ports: stores, models, platforms, speech.

pub mod audio;
pub use tertulia_console as console;
pub mod discord;
mod endpoint;
pub mod llm;
use tertulia_adapters::slots;
pub mod speech;
pub mod store;
pub use tertulia_adapters::system;
use tertulia_adapters::web_socket;
