//! Rules for what endpoints send that no target may break.

use super::failure::Failures;
use crate::fuzzing::{is_bounded, is_plain_line};
use crate::ports::language_model::NoAnswer;

/// The key of the endpoint.
pub(in crate::adapters) const KEY: &str = "sk-0123456789abcdef";
/// The longest message of an error.
const MAX_MESSAGE: usize = 800;

pub(in crate::adapters) fn failures() -> Failures {
    Failures::new("http://here".into(), Some(KEY.to_owned().into()))
}

/// Checks that an error is bounded, on one line, and contains no part of the key.
pub(in crate::adapters) fn check_error(error: &NoAnswer, input: &[u8]) {
    let message = error.to_string();
    assert!(is_bounded(&message, MAX_MESSAGE) && is_plain_line(&message), "{message:?}");
    // A partial key in the input cannot be recognised as a key.
    let has_other_halves = String::from_utf8_lossy(input).replace(KEY, "").contains(&KEY[..8]);
    assert!(has_other_halves || !message.contains(&KEY[..8]), "the message contains the key: {message}");
}
