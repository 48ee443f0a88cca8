//! Everything that is checked from outside, in one binary.

mod arrows;
mod commands;
mod conversations;
mod discord;
mod harness;
mod processes;
