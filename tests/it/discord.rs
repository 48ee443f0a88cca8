//! Tests of the Discord adapter against a test double of Discord, [`counterpart`].

mod checking;
mod commands;
pub mod counterpart;
mod crowd;
mod gateway;
mod inbound_events;
mod outbound;
