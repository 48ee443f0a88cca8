//! The settings about conversations: when companions speak and stop, and the texts of prompts. The settings deserialise these types and check their
//! ranges.

pub mod closing;
pub mod gate;
pub mod interjection;
pub mod names;
pub mod prompt;
pub mod quiet_hours;
pub mod repetition;
pub mod reply;
pub mod turn_taking;
pub mod voice;
pub mod zone;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value, json};

use super::error_code::ErrorCode;

/// A problem with a parsed value, found by its section's check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Problem {
    /// The key within its section, for example `max_buffer`, `side.model` or `rooms[0].id`.
    pub key: String,
    /// The problem and the allowed values, as a predicate of the key. For example `is 0, must be from 1 to 10000`.
    pub message: String,
    /// The error code for programs and translations. None if the value occurs only in settings.
    pub code: Option<ErrorCode>,
}

impl Problem {
    /// A problem with the value of this key.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into(), code: None }
    }

    /// Adds an error code to the problem.
    pub fn coded(self, key: &str, values: Value) -> Self {
        Self { code: Some(ErrorCode::new(key, values)), ..self }
    }
}

/// Generates methods that return settings in seconds as durations. The method before each `=` returns the setting after it.
#[macro_export]
macro_rules! seconds {
    ($Section:ident { $($method:ident = $key:ident,)+ }) => {
        impl $Section {
            $(
                #[doc = concat!("`", stringify!($key), "` as a duration.")]
                pub fn $method(&self) -> std::time::Duration {
                    $crate::policy::duration(self.$key)
                }
            )+
        }
    };
}
pub use crate::seconds;

/// A number of seconds as a duration in whole microseconds. Zero for negative numbers and NaN.
pub fn duration(secs: f64) -> Duration {
    // The cast saturates, and turns NaN into zero.
    Duration::from_micros((secs * 1e6).round() as u64)
}

/// Checks that a value is in its range.
///
/// # Errors
/// Returns a problem if the value is out of range, or NaN. The message contains both ends of the range.
pub fn within<T: PartialOrd + Display>(key: &str, value: T, range: RangeInclusive<T>) -> Result<(), Problem> {
    if range.contains(&value) {
        return Ok(());
    }
    let (value, least, most) = (value.to_string(), range.start().to_string(), range.end().to_string());
    let message = format!("is {value}, must be from {least} to {most}");
    Err(Problem::new(key, message).coded("refusals.range", json!({ "value": value, "least": least, "most": most })))
}
