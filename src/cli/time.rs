//! Parses times and durations, in one grammar for all commands. A time without a zone is UTC.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use super::failure::Failure;
use crate::domain::moment::Moment;
use crate::ports::backend::stamp::from_rfc3339;
use crate::settings::duration::duration;

/// The accepted forms of a time, for error messages.
const TIMES: &str = "2026-05-01T22:14:05Z, 2026-05-01 22:14, 2026-05-01 (its beginning), 22:14 (in the last 24 hours), \
    yesterday, yesterday 22:14, now, or how long ago it was: 2h30m, 10 min ago, 7d, 4w";

/// Parses RFC 3339, a date with or without a time of day, a time of day in the last 24 hours, `today` and `yesterday` with or
/// without a time of day, `now`, or a [`duration`] before now.
pub(super) fn moment(text: &str, now: Moment) -> Option<Moment> {
    let text = text.trim();
    from_rfc3339(text)
        .or_else(|| text.parse::<civil::DateTime>().ok().and_then(in_utc))
        .or_else(|| time_of_day(text, now))
        .or_else(|| named_day(text, now))
        .or_else(|| duration(text.strip_suffix("ago").unwrap_or(text)).map(|ago| now - ago))
}

fn in_utc(time: civil::DateTime) -> Option<Moment> {
    let timestamp = TimeZone::UTC.to_timestamp(time).ok()?;
    u64::try_from(timestamp.as_microsecond()).ok().map(Moment::from_micros)
}

/// The date in UTC.
fn date(now: Moment) -> Option<civil::Date> {
    let timestamp = Timestamp::from_microsecond(i64::try_from(now.as_micros()).ok()?).ok()?;
    Some(TimeZone::UTC.to_datetime(timestamp).date())
}

fn time(text: &str) -> Option<civil::Time> {
    // The parser would also accept a date with a time, and return its time.
    let is_time = text.contains(':') && !text.contains('-');
    text.parse().ok().filter(|_| is_time)
}

fn named_day(text: &str, now: Moment) -> Option<Moment> {
    let (day, at) = text.split_once(' ').unwrap_or((text, "00:00"));
    let date = match day {
        "now" if day == text => return Some(now),
        "today" => date(now)?,
        "yesterday" => date(now)?.yesterday().ok()?,
        _ => return None,
    };
    in_utc(date.to_datetime(time(at.trim())?))
}

fn time_of_day(text: &str, now: Moment) -> Option<Moment> {
    let today = in_utc(date(now)?.to_datetime(time(text)?))?;
    let day = Duration::from_secs(86_400);
    Some(if today > now { today - day } else { today })
}

/// Parses the time given for an option.
///
/// # Errors
/// Returns a usage error that lists the formats.
pub(super) fn moment_of(option: &str, text: &str, now: Moment) -> Result<Moment, Failure> {
    moment(text, now).ok_or_else(|| Failure::Usage(format!("{option} {text:?} is not a time: write {TIMES}")))
}

/// Parses the duration given for an option.
///
/// # Errors
/// Returns a usage error with examples.
pub(super) fn duration_of(option: &str, text: &str) -> Result<Duration, Failure> {
    duration(text)
        .ok_or_else(|| Failure::Usage(format!("{option} {text:?} is not a duration: write it like 2h30m, 24h, 90d or 4w")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::backend::stamp::rfc3339;

    #[test]
    fn all_formats_of_a_time_are_read() {
        for (text, expected) in [
            ("2026-05-01T22:14:05.250Z", "2026-05-01T22:14:05.250Z"),
            ("2026-05-02T00:14:05+02:00", "2026-05-01T22:14:05.000Z"),
            ("2026-05-01T22:14:05", "2026-05-01T22:14:05.000Z"),
            (" 2026-05-01 22:14 ", "2026-05-01T22:14:00.000Z"),
            ("2026-05-01", "2026-05-01T00:00:00.000Z"),
            ("09:30", "2026-05-03T09:30:00.000Z"),
            ("10:00:00", "2026-05-03T10:00:00.000Z"),
            ("2h", "2026-05-03T08:00:00.000Z"),
            ("2h30mago", "2026-05-03T07:30:00.000Z"),
            ("1d 2h30m ago", "2026-05-02T07:30:00.000Z"),
            ("90s", "2026-05-03T09:58:30.000Z"),
            ("2w", "2026-04-19T10:00:00.000Z"),
            ("2 min ago", "2026-05-03T09:58:00.000Z"),
            ("10 minutes ago", "2026-05-03T09:50:00.000Z"),
            ("yesterday", "2026-05-02T00:00:00.000Z"),
            ("yesterday 22:14", "2026-05-02T22:14:00.000Z"),
            ("today", "2026-05-03T00:00:00.000Z"),
            ("now", "2026-05-03T10:00:00.000Z"),
        ] {
            assert_eq!(moment(text, now()).map(rfc3339), Some(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_time_of_day_later_than_now_was_yesterday() {
        assert_eq!(moment("23:40", now()).map(rfc3339), Some("2026-05-02T23:40:00.000Z".to_owned()));
    }

    #[test]
    fn what_is_no_time_and_no_duration_is_rejected() {
        for text in [
            "",
            "ago",
            "noon",
            "yesterday 25:00",
            "tomorrow",
            "now 10:00",
            "2026-13-01",
            "2026-5-1",
            "25:00",
            "2x",
            "h",
            "2h3",
            "-2h",
            "+2h",
            "1mo",
            "1y",
            "P1D",
            "2h ago ago",
            "99999999999999999999d",
            "1969-01-01 00:00",
            "٣h",
            "€",
        ] {
            assert_eq!((moment(text, now()), duration(text)), (None, None), "{text}");
        }
    }

    fn now() -> Moment {
        from_rfc3339("2026-05-03T10:00:00Z").unwrap()
    }
}
