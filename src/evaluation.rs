//! Compares a companion's decisions with the behaviour of people in recorded group chat (docs/evaluate.md).
//!
//! This module calls no model. It produces requests and reads answers as texts; the command `tertulia-lab evaluate` connects both
//! with a model.

pub mod answers;
pub mod cast;
pub mod comparison;
pub mod decisions;
pub mod excerpts;
pub mod figures;
pub mod free_run;
pub mod page;
pub mod questions;
pub mod report;
pub mod rules;
mod seeded;

pub use seeded::{sample, shuffled};
