//! What an operator can set: one file per section, the defaults in `config/default.toml` alone.
//!
//! A section is a module with a struct and its `check`, and one line in `sections!` below.

#![warn(missing_docs)]

pub mod closing;
pub mod companion;
pub mod console;
pub mod discord;
mod exposure;
pub mod gate;
mod layer;
mod load;
pub mod misfit;
mod mismatch;
pub mod models;
mod problem;
pub mod prompt;
pub mod repetition;
mod roster;
pub mod server;
pub mod storage;
mod strict;
pub mod telemetry;
pub mod turn_taking;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

pub use load::{Loaded, Sources, load};
pub use problem::{Located, Problem, Problems};
pub use roster::{Origin, Roster, SharedName, shared_names};

/// Declares every section once: the field of [`Settings`] and its check.
macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident: $section:ty,)+) => {
        /// Everything that is set, checked.
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $($(#[$doc])* pub $name: $section,)+
        }

        impl Settings {
            /// What the sections object to, each with its section's name.
            fn check(&self) -> Vec<(&'static str, Problem)> {
                [$((stringify!($name), self.$name.check()),)+]
                    .into_iter()
                    .filter_map(|(section, outcome)| outcome.err().map(|problem| (section, problem)))
                    .collect()
            }
        }
    };
}

sections! {
    /// When a conversation is over.
    closing: closing::Closing,
    /// What a companion's file leaves out.
    companion_defaults: companion::CompanionDefaults,
    /// The rooms of the console.
    console: console::Console,
    /// The bot on Discord.
    discord: discord::Discord,
    /// Whether and when companions speak.
    gate: gate::Gate,
    /// The models, and how they are shared.
    models: models::Models,
    /// How models are asked.
    prompt: prompt::Prompt,
    /// Noticing that companions go in circles.
    repetition: repetition::Repetition,
    /// Where the console listens, and what it allows.
    server: server::Server,
    /// Where histories are kept.
    storage: storage::Storage,
    /// Logs, spans and what they may hold.
    telemetry: telemetry::Telemetry,
    /// Who speaks next when several companions want to.
    turn_taking: turn_taking::TurnTaking,
}

/// A number of seconds, as settings have them, as a duration in whole microseconds; nothing for what is not above zero.
pub fn duration(secs: f64) -> Duration {
    // The cast saturates, and takes NaN for zero.
    Duration::from_micros((secs * 1e6).round() as u64)
}

/// Holds a value to its range; the problem names both ends.
pub fn within<T: PartialOrd + Display>(key: &str, value: T, range: RangeInclusive<T>) -> Result<(), Problem> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Problem::new(key, format!("is {value}, must be from {} to {}", range.start(), range.end())))
}

#[cfg(test)]
mod tests;
