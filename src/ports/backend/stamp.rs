//! Moments in the format of the API: RFC 3339 in UTC with milliseconds.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::domain::moment::Moment;

/// A moment since the Unix epoch, written as `2026-05-01T12:00:00.250Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(inline)]
pub struct Stamp(#[schemars(with = "String", extend("format" = "date-time"))] pub Moment);

/// Formats a moment as RFC 3339 in UTC, truncated to milliseconds. Moments after the year 9999 are formatted as its end.
pub fn rfc3339(moment: Moment) -> String {
    let micros = i64::try_from(moment.as_micros()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    format!("{time:.3}")
}

/// Parses a time in RFC 3339 with any offset. `None` if it is invalid, or before the epoch.
pub fn from_rfc3339(text: &str) -> Option<Moment> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_microsecond()).ok().map(Moment::from_micros)
}

impl From<Moment> for Stamp {
    fn from(moment: Moment) -> Self {
        Self(moment)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rfc3339(self.0))
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        from_rfc3339(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("{text:?} is no time, write it like 2026-05-01T12:00:00.250Z")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_with_milliseconds() {
        let written = rfc3339(Moment::from_micros(1_777_636_800_250_999));

        assert_eq!(written, "2026-05-01T12:00:00.250Z");
        assert_eq!(rfc3339(Moment::ZERO), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_time_after_the_year_9999_is_written_as_its_end() {
        assert!(rfc3339(Moment::from_micros(u64::MAX)).starts_with("9999-12-"));
    }

    #[test]
    fn a_written_time_is_read_back_to_the_millisecond() {
        let moment = Moment::from_micros(1_777_636_800_250_000);

        assert_eq!(from_rfc3339(&rfc3339(moment)), Some(moment));
        assert_eq!(from_rfc3339("2026-05-01T14:00:00.250+02:00"), Some(moment));
    }

    #[test]
    fn text_that_is_not_a_time_is_rejected() {
        assert_eq!(from_rfc3339("yesterday"), None);
        assert_eq!(from_rfc3339("1969-12-31T23:59:59Z"), None);
    }
}
