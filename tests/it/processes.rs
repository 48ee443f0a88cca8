//! Runs the real program: its commands, its start and stop, and its behaviour when killed, overloaded or out of resources.

mod backups;
mod bench;
mod characters;
mod command_errors;
mod compaction;
mod confidentiality;
pub mod crashes;
mod file_errors;
mod first_contact;
mod health;
mod history_commands;
mod hung;
mod load_kills;
mod metrics;
mod no_space;
mod overload;
mod refused_starts;
pub mod round_kills;
mod several_companions;
mod signals;
mod telemetry;
mod terminal_output;
mod undecodable;
mod usage;
mod why;
pub mod writers;
