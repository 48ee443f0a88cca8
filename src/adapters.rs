//! How the ports are served: stores, models, platforms.

pub mod console;
pub mod discord;
pub mod llm;
pub mod store;
pub mod system;
