//! What the Discord adapter is tested against.

mod checking;
mod commands;
pub mod counterpart;
mod gateway;
mod hearing;
mod outbound;
