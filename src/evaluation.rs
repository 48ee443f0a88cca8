//! Measures decisions against what people did in recorded group chat (docs/evaluate.md).
//!
//! Nothing here asks a model: questions go out as requests, and answers come in as texts. The command `tertulia evaluate` connects the two.

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
