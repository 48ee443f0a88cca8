//! The settings: one file per section. The defaults are in `config/default.toml` only.
//!
//! A section is a module with a struct and its `check`, which returns the first problem, and one line in `sections!` below.

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
pub mod strict;
pub mod telemetry;
pub mod turn_taking;
pub mod voice;
pub mod zone;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

pub use load::{Loaded, Sources, load};
pub use problem::{Located, Problem, Problems};
pub use roster::{Origin, Roster, shared_names};

/// Declares every section once: the field of [`Settings`] and its check.
macro_rules! sections {
    ($($name:ident: $section:ty,)+) => {
        /// All settings. Values from [`fn@load`] are checked.
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $(pub $name: $section,)+
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
    closing: closing::Closing,
    companion_defaults: companion::CompanionDefaults,
    console: console::Console,
    discord: discord::Discord,
    gate: gate::Gate,
    models: models::Models,
    prompt: prompt::Prompt,
    repetition: repetition::Repetition,
    reply: reply::Reply,
    server: server::Server,
    speech: speech::Speech,
    storage: storage::Storage,
    telemetry: telemetry::Telemetry,
    turn_taking: turn_taking::TurnTaking,
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
