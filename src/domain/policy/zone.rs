//! Time zones in settings, such as `Europe/Berlin` or `+02:00`.

use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::text::shortened;

/// The largest offset from UTC of any place, that of Kiribati.
const FARTHEST_SECS: i32 = 14 * 3600;

/// A time zone in the time zone data of this machine, or a fixed offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Parses the name of a zone or an offset from UTC. ISO 8601 requires two digits for the hours. `Z`, `+2` and `+5:30` are accepted, too.
    pub fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "Z" | "z" => "UTC".to_owned(),
            text => match text.strip_prefix(['+', '-']) {
                Some(rest) if rest.find(':').unwrap_or(rest.len()) == 1 => format!("{}0{rest}", &text[..1]),
                _ => text.to_owned(),
            },
        };
        let zone = DateTimeParser::new().parse_time_zone(&text).ok()?;
        let is_on_earth = zone.to_fixed_offset().map_or(true, |offset| offset.seconds().abs() <= FARTHEST_SECS);
        (!zone.is_unknown() && is_on_earth).then_some(Self(zone))
    }

    /// Parses the contents of a file such as `/etc/localtime` (RFC 9636).
    pub fn of_file(contents: &[u8]) -> Option<Self> {
        TimeZone::tzif("", contents).ok().map(Self)
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
        for text in ["UTC", "Z", "+02:00", "-05:30", "+2", "+5:30", "-0930", "+14:00", " Europe/Berlin "] {
            assert!(Zone::parse(text).is_some(), "{text}");
        }
        for text in ["", "Europe/Nowhere", "Etc/Unknown", "two hours", "+99:00", "+25:00", "-14:30", "+", "+:30"] {
            assert_eq!(Zone::parse(text), None, "{text}");
        }
    }
}
