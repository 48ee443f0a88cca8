//! Durations in settings and options, such as `90s`, `2h30m`, `7d` or `4w`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use serde::Deserialize as _;
use serde::de::{Deserializer, Error as _};

/// The value that turns off a repeated action.
const NEVER: &str = "never";

/// Parses a duration that is not negative, in jiff's friendly format. A day has 24 hours. Months and years have no fixed length,
/// and are rejected.
pub fn duration(text: &str) -> Option<Duration> {
    let begins_with_digit = text.trim_start().starts_with(|first: char| first.is_ascii_digit());
    let span: Span = text.trim().parse().ok().filter(|_| begins_with_digit)?;
    Duration::try_from(span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?).ok()
}

/// Parses an interval: a duration, or `never`.
pub(super) fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match duration(&text) {
        Some(duration) => Ok(Some(duration)),
        None if text.trim() == NEVER => Ok(None),
        None => Err(D::Error::custom(format!(
            "{:?} is no duration: write it like 12h, 1d or 4w, or never",
            super::companion::shortened(&text)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let secs = |text| duration(text).map(|duration| duration.as_secs());

        let texts = ["90s", "90m", "2h30m", "2h 30m", "1.5h", "7d", "1 day", "4w", "0d"];
        let expected = [90, 5_400, 9_000, 9_000, 5_400, 604_800, 86_400, 2_419_200, 0];
        assert_eq!(texts.map(secs), expected.map(Some));
    }

    #[test]
    fn what_is_no_duration_is_rejected() {
        for text in ["", "2x", "h", "2h3", "-2h", "+2h", "1mo", "1y", "never"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
