//! What the Discord adapter is tested against.

mod checking;
mod commands;
pub mod counterpart;
mod crowd;
mod gateway;
mod inbound_events;
mod outbound;
