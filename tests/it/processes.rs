//! Runs the real program: its commands, its start and stop, and its behaviour when killed, overloaded or out of resources.

mod asked;
mod bench;
mod commands;
mod company;
pub mod crashes;
mod erased;
mod files;
mod first_contact;
mod flooded;
pub mod gatherings;
mod guarded;
mod health;
mod hung;
mod illegible;
mod keeping;
mod listed;
mod metrics;
mod rounds;
mod signals;
mod starved;
mod telling;
mod unfit;
mod usage;
mod why;
pub mod writers;
