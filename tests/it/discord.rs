//! What the Discord adapter is tested against.

pub mod counterpart;
mod hearing;
mod outbound;
