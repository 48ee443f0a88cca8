//! Makes notes: reads and checks those that a model proposes, and finds requests to remember something (docs/design/memory.md).

mod check;
mod request;
#[cfg(test)]
mod tests;

pub use check::{Batch, is_sensitive, read};
pub use request::remember_request;
