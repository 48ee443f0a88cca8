//! What fuzz targets of all crates share: hostile inputs, and rules for what becomes of them.

pub mod change;
pub mod rules;
pub mod words;

pub use change::{Bytes, inputs};
pub use rules::{is_bounded, is_plain_line, parts, text, texts};
