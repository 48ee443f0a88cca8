//! The shared code of the fuzz targets in all crates: hostile inputs, and rules for the results.

pub mod change;
pub mod rules;
pub mod words;

pub use change::{Bytes, inputs};
pub use rules::{is_bounded, is_plain_line, parts, text, texts};
