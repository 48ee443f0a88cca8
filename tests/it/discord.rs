//! What the Discord adapter is tested against.

mod commands;
pub mod counterpart;
mod crowd;
mod gateway;
mod outbound;
