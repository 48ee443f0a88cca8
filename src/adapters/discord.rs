//! The Discord adapter: pure decisions over plain types, and the connections and requests that carry them out.
//!
#![doc = include_str!("discord/README.md")]

pub mod backfill;
pub mod cache;
pub mod calls;
pub mod check;
pub mod clock;
pub mod commands;
pub mod delivery_errors;
pub mod dispatch;
#[cfg(test)]
pub(crate) mod fuzz;
pub mod gateway;
pub mod identify;
pub mod incoming;
pub mod intake;
pub mod limits;
pub mod markup;
pub mod names;
pub mod outgoing;
pub mod permissions;
pub mod platform;
pub mod reconcile;
pub mod refusals;
pub mod rest;
pub mod snowflake;
pub mod voice;
pub mod webhooks;
pub mod wire;
