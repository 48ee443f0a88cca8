//! Discord: what is heard and said there, as its documentation has it, in plain types of our own.
//!
//! All of this is pure and synchronous: no network, no clock, no chance. What Discord's client hands over is copied into these types and
//! what they answer is sent; nothing here waits.

pub mod backfill;
pub mod heard;
pub mod identify;
pub mod limits;
pub mod markup;
pub mod names;
pub mod permissions;
pub mod reconcile;
pub mod said;
pub mod snowflake;
