//! Tests of the test double: every rule that it follows, checked with bare sockets, and with real clients.

mod access;
pub mod client;
mod commands;
mod events;
mod faults;
mod identifying;
mod interactions;
mod journal;
mod limits;
mod many_guilds;
mod messages;
mod resuming;
mod threads;
mod twilight;
mod voice;
mod webhooks;
