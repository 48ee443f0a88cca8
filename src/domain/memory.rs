//! Makes notes: reads and checks those that a model proposes, and finds requests to remember something (docs/design/memory.md).

mod check;
mod request;
#[cfg(test)]
mod tests;

use crate::phrases::folded;
pub use check::{Batch, read, sensitive_topics};
pub use request::remember_request;

/// Whether a text has a name, as a word or as several.
pub fn names(text: &str, name: &str) -> bool {
    let name = folded(name);
    name != " " && folded(text).contains(&name)
}
