//! The settings: one file per section. The defaults are in `config/default.toml` only.
//!
//! A section is a module with a struct and its `check`, and one line in `sections!` below.

pub mod closing;
pub mod companion;
pub mod connection;
pub mod console;
pub mod discord;
pub mod duration;
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
pub mod reply;
mod roster;
mod secret;
pub mod server;
pub mod speech;
pub mod storage;
mod stray;
mod strict;
pub mod telemetry;
pub mod turn_taking;
pub mod voice;
pub mod zone;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

pub use load::{Loaded, Sources, load};
pub use problem::{Located, Problem, Problems};
pub use roster::{Origin, Roster, SharedName, shared_names};

/// Declares every section once: the field of [`Settings`] and its check.
macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident: $section:ty,)+) => {
        /// All settings. Values from [`fn@load`] are checked.
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $($(#[$doc])* pub $name: $section,)+
        }

        impl Settings {
            /// The problems that sections report, each with its section's name.
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
    /// When a conversation ends and reopens.
    closing: closing::Closing,
    /// Defaults for keys that a companion's file does not set.
    companion_defaults: companion::CompanionDefaults,
    /// The rooms of the console.
    console: console::Console,
    /// The bot on Discord.
    discord: discord::Discord,
    /// Whether and when companions speak.
    gate: gate::Gate,
    /// The models, and their limits.
    models: models::Models,
    /// The texts and sizes of prompts.
    prompt: prompt::Prompt,
    /// Detection of conversations that repeat themselves.
    repetition: repetition::Repetition,
    /// What happens to a statement that is being made when people say more.
    reply: reply::Reply,
    /// The console's address, access and limits.
    server: server::Server,
    /// The languages that are spoken, and their word lists.
    speech: speech::Speech,
    /// Where and for how long histories are stored.
    storage: storage::Storage,
    /// Logs and spans.
    telemetry: telemetry::Telemetry,
    /// Who speaks next when several companions want to.
    turn_taking: turn_taking::TurnTaking,
    /// What happens in voice calls.
    voice: voice::Voice,
}

/// Gives settings in seconds as durations: the method before each `=` returns the setting after it.
macro_rules! seconds {
    ($Section:ident { $($method:ident = $key:ident,)+ }) => {
        impl $Section {
            $(
                #[doc = concat!("`", stringify!($key), "` as a duration.")]
                pub fn $method(&self) -> std::time::Duration {
                    crate::settings::duration(self.$key)
                }
            )+
        }
    };
}
use seconds;

/// A number of seconds as a duration in whole microseconds. Zero for negative numbers and NaN.
pub fn duration(secs: f64) -> Duration {
    // The cast saturates, and turns NaN into zero.
    Duration::from_micros((secs * 1e6).round() as u64)
}

/// Checks that a value is in its range.
///
/// # Errors
/// The value is out of range, or NaN. The message names both ends.
pub fn within<T: PartialOrd + Display>(key: &str, value: T, range: RangeInclusive<T>) -> Result<(), Problem> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Problem::new(key, format!("is {value}, must be from {} to {}", range.start(), range.end())))
}

#[cfg(test)]
mod tests;
