//! The settings: one file per section. The defaults are in `config/default.toml` only.
//!
//! A section is a module with a struct and its `check`, which returns the first problem, and one line in `sections!` below.

pub mod cluster;
pub mod companion;
pub mod connection;
pub mod console;
pub mod discord;
pub mod duration;
mod exposure;
pub mod guests;
pub mod kept;
pub mod kept_token;
mod layer;
mod load;
pub mod lore;
pub mod memory;
mod mismatch;
pub mod models;
pub mod private_file;
mod problem;
pub mod roster;
mod rules;
pub mod safety;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod secret;
pub mod server;
pub mod speech;
pub mod storage;
mod stray;
pub mod strict;
pub mod telemetry;
pub mod tools;

use tertulia_domain as domain;

use crate::domain::policy::seconds;
pub use crate::domain::policy::{
    Problem, closing, duration, gate, names, prompt, repetition, reply, turn_taking, voice, within, zone,
};
pub use load::{Loaded, Sources, load, load_with, load_with_kept};
pub use problem::{Located, Problems};
pub use roster::{InPlace, Origin, Overlay, Roster, checked, common_name_note, in_place, shared_names, silence_note};

/// Declares every section once: the field of [`Settings`] and its check.
macro_rules! sections {
    ($($name:ident: $section:ty,)+) => {
        /// All settings. Values from [`fn@load`] are checked.
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $(pub $name: $section,)+
            /// The keys of `connection::OVERRIDABLE` that a file or a variable changes, each with its place.
            #[serde(skip)]
            pub set: Vec<(&'static str, String)>,
        }

        impl Settings {
            /// The first problem of each section, with the section's name.
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
    cluster: cluster::Cluster,
    companion_defaults: companion::CompanionDefaults,
    console: console::Console,
    discord: discord::Discord,
    gate: gate::Gate,
    guests: guests::Guests,
    memory: memory::Memory,
    models: models::Models,
    names: names::Names,
    prompt: prompt::Prompt,
    repetition: repetition::Repetition,
    reply: reply::Reply,
    safety: safety::Safety,
    server: server::Server,
    speech: speech::Speech,
    storage: storage::Storage,
    telemetry: telemetry::Telemetry,
    tools: tools::Tools,
    turn_taking: turn_taking::TurnTaking,
    voice: voice::Voice,
}

#[cfg(test)]
mod tests;
