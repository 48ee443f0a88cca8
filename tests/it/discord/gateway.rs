//! Connections of the real adapter to the gateway of the test double.

mod budget;
mod connecting;
mod malformed_frames;
mod receiving;
mod reconnecting;
mod refusing;
mod resuming;
mod sending_commands;
mod world;
