//! The supervision tree, the watchdog, and the context that every actor works with.

pub mod actor_keys;
pub mod context;
pub mod dead_letters;
pub mod directory;
pub mod guild;
pub mod guilds;
pub mod hub;
pub mod in_flight;
pub mod moderator;
pub mod owned_task;
mod pending;
pub mod platforms;
pub mod postings;
pub mod quarantine;
pub mod root;
pub mod sent_prompts;
pub mod shard;
pub mod startup_log;
pub mod supervision;
pub mod switchboard;
pub mod watchdog;
