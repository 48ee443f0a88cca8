//! The hours in which companions speak only when spoken to, such as `23:00-08:00`.

use std::borrow::Cow;
use std::fmt;

use jiff::tz::TimeZone;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::moment::Moment;
use crate::text::shortened;

/// The hours in which companions are without initiative (docs/design/gate.md G-43).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuietHours {
    /// Never.
    #[default]
    Never,
    /// At all times.
    Always,
    /// From one time of day until before another one, in minutes after midnight. The end may be on the next day.
    Between { from: u16, until: u16 },
}

impl QuietHours {
    /// Parses `never`, `always` or `HH:MM-HH:MM`. None for other texts, or if the two times are equal.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "never" => Some(Self::Never),
            "always" => Some(Self::Always),
            _ => {
                let (from, until) = text.split_once('-')?;
                let (from, until) = (minutes(from.trim())?, minutes(until.trim())?);
                (from != until).then_some(Self::Between { from, until })
            }
        }
    }

    /// Whether there are no quiet hours.
    pub fn are_never(&self) -> bool {
        *self == Self::Never
    }

    /// Whether this moment is in the quiet hours, by the clock of a time zone.
    pub fn include(self, now: Moment, zone: &TimeZone) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Between { from, until } => {
                let time = now.zoned(zone).time();
                let minute = 60 * u16::from(time.hour().unsigned_abs()) + u16::from(time.minute().unsigned_abs());
                if from < until { (from..until).contains(&minute) } else { minute >= from || minute < until }
            }
        }
    }
}

/// Parses a time from 00:00 to 23:59 into minutes after midnight.
fn minutes(time: &str) -> Option<u16> {
    let (hours, minutes) = time.split_once(':')?;
    let number = |text: &str, most: u16| {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| is_number && *number <= most)
    };
    (minutes.len() == 2).then_some(60 * number(hours, 23)? + number(minutes, 59)?)
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Always => f.write_str("always"),
            Self::Between { from, until } => {
                write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, until / 60, until % 60)
            }
        }
    }
}

impl Serialize for QuietHours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QuietHours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let shown = shortened(&text, 60);
            D::Error::custom(format!("{shown:?} is neither never nor always nor two different times such as \"23:00-08:00\""))
        })
    }
}

impl JsonSchema for QuietHours {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "QuietHours".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(never|always|[0-9]{1,2}:[0-9]{2} *- *[0-9]{1,2}:[0-9]{2})$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_always_and_two_times_are_read_and_written() {
        for (text, written) in
            [("never", "never"), ("always", "always"), ("23:00-08:00", "23:00-08:00"), ("9:30 - 17:00", "09:30-17:00")]
        {
            assert_eq!(QuietHours::parse(text).unwrap().to_string(), written);
        }
        for text in
            ["", "23-8", "23:00", "24:00-08:00", "08:60-09:00", "8:00-8:00", "+8:00-09:00", "8:0-9:00", "Always", "008:00-09:00"]
        {
            assert_eq!(QuietHours::parse(text), None, "{text}");
        }
    }

    #[test]
    fn hours_across_midnight_include_both_ends_of_the_day() {
        let night = QuietHours::parse("23:00-08:00").unwrap();
        let noon = QuietHours::parse("11:30-13:00").unwrap();

        for (time, is_night, is_noon) in [
            ("22:59:59", false, false),
            ("23:00:00", true, false),
            ("00:00:00", true, false),
            ("07:59:59", true, false),
            ("08:00:00", false, false),
            ("11:30:00", false, true),
            ("12:59:59", false, true),
            ("13:00:00", false, false),
        ] {
            let now = at(&format!("2026-11-28T{time}Z"));
            assert_eq!((night.include(now, &TimeZone::UTC), noon.include(now, &TimeZone::UTC)), (is_night, is_noon), "{time}");
            assert!(QuietHours::Always.include(now, &TimeZone::UTC) && !QuietHours::Never.include(now, &TimeZone::UTC));
        }
    }

    #[test]
    fn hours_follow_the_clocks_when_summer_time_begins_and_ends() {
        // As in Berlin, written out, so that the test needs no files of the machine.
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let hours = |text: &str, time: &str| QuietHours::parse(text).unwrap().include(at(time), &berlin);

        // On 29 March 2026 the clocks go from 02:00 to 03:00.
        assert!(!hours("02:30-08:00", "2026-03-29T00:59:59Z"), "01:59:59");
        assert!(hours("02:30-08:00", "2026-03-29T01:00:00Z"), "03:00");
        assert!(hours("23:00-08:00", "2026-03-29T05:59:59Z"), "07:59:59 in summer");
        assert!(!hours("23:00-08:00", "2026-03-29T06:00:00Z"), "08:00 in summer");
        assert!(hours("23:00-08:00", "2026-03-28T22:00:00Z"), "23:00 in winter");
        // On 25 October 2026 they go from 03:00 back to 02:00.
        assert!(hours("23:00-08:00", "2026-10-24T21:00:00Z"), "23:00 in summer");
        assert!(hours("23:00-08:00", "2026-10-25T06:59:59Z"), "07:59:59 in winter");
        assert!(!hours("23:00-08:00", "2026-10-25T07:00:00Z"), "08:00 in winter");
        assert!(hours("02:00-03:00", "2026-10-25T00:30:00Z") && hours("02:00-03:00", "2026-10-25T01:30:00Z"), "02:30 twice");
    }

    fn at(time: &str) -> Moment {
        let time: jiff::Timestamp = time.parse().unwrap();
        Moment::from_micros(time.as_microsecond().unsigned_abs())
    }
}
