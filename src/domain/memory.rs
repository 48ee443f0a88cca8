//! Makes notes: reads and checks those that a model proposes, and finds requests to remember something (docs/design/memory.md).

mod check;
mod request;
#[cfg(test)]
mod tests;

use crate::common_words::is_function_word;
use crate::phrases::folded;
pub use check::{Batch, read, sensitive_topics};
pub use request::remember_request;

/// Whether a text has a name, as a word or as several. A name that is an ordinary word, such as "is", is not found.
pub fn names(text: &str, name: &str) -> bool {
    let name = folded(name);
    let is_ordinary = name.split_whitespace().all(|word| word.len() < 2 || is_function_word(word));
    !is_ordinary && folded(text).contains(&name)
}
