//! What the Discord adapter is tested against.

mod checking;
pub mod counterpart;
mod outbound;
