//! What the Discord adapter is tested against.

pub mod counterpart;
mod crowd;
mod gateway;
mod outbound;
