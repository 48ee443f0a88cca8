//! Implementations of the ports: stores, models, platforms, speech.

pub mod audio;
pub use tertulia_console as console;
pub use tertulia_discord as discord;
mod endpoint;
pub mod llm;
pub mod speech;
pub use tertulia_adapters::system;
use tertulia_adapters::web_socket;
pub use tertulia_store as store;
pub use tertulia_tools as tools;
