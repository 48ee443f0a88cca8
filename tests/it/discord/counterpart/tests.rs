//! Tests of the test double: every rule that it follows, checked with bare sockets, and with real clients.

mod access;
mod asking;
pub mod client;
mod commands;
mod crowd;
mod events;
mod faults;
mod identifying;
mod limits;
mod messages;
mod reading;
mod resuming;
mod threads;
mod twilight;
mod webhooks;
