//! Time zones in settings, such as `Europe/Berlin` or `+02:00`.

use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::domain::text::shortened;

/// A time zone that this machine knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Reads the name of a zone, or a distance from UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let zone = DateTimeParser::new().parse_time_zone(text.trim()).ok()?;
        (!zone.is_unknown()).then_some(Self(zone))
    }

    pub const fn time_zone(&self) -> &TimeZone {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let shown = shortened(&text, 60);
            D::Error::custom(format!(
                "{shown:?} is no time zone that this machine knows: write a name such as Europe/Berlin (which needs the files of the \
                 package tzdata), UTC, or a distance from UTC such as +02:00"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_distances_are_read_and_others_are_refused() {
        for text in ["UTC", "+02:00", "-05:30", " Europe/Berlin "] {
            assert!(Zone::parse(text).is_some(), "{text}");
        }
        for text in ["", "Europe/Nowhere", "Etc/Unknown", "two hours", "+99:00"] {
            assert_eq!(Zone::parse(text), None, "{text}");
        }
    }
}
