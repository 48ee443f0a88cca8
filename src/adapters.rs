//! Implementations of the ports: stores, models, platforms.

pub mod console;
pub mod discord;
pub mod llm;
pub mod store;
pub mod system;
