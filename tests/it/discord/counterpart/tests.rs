//! Every rule that the counterpart follows, checked with nothing but sockets; and that real clients get on with it.

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
