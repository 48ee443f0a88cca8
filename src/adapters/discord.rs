//! Discord: what is heard and said there, as its documentation has it, in plain types of our own.
//!
//! What is decided about it is pure and synchronous: no network, no clock, no chance. What carries it out are [`platform`], [`rest`] and
//! [`webhooks`], which say what companions say, and [`gateway`], which keeps the connections on which is heard.

pub mod backfill;
pub mod check;
pub mod clock;
pub mod commands;
pub mod dispatch;
#[cfg(test)]
pub(crate) mod fuzz;
pub mod gateway;
pub mod heard;
pub mod identify;
pub mod intake;
pub mod known;
pub mod limits;
pub mod markup;
pub mod names;
pub mod permissions;
pub mod platform;
pub mod reconcile;
pub mod refusals;
pub mod rest;
pub mod said;
pub mod snowflake;
pub mod troubles;
pub mod webhooks;
pub mod wire;
