//! Tests of the Discord adapter against a test double of Discord, [`counterpart`]. They build on [`home`], and those with a connection on [`client`].

mod calls;
mod checking;
mod client;
mod commands;
mod core;
pub mod counterpart;
mod crowd;
mod gateway;
mod home;
mod inbound_events;
mod node;
mod other_make;
mod outbound;
mod real_time;
