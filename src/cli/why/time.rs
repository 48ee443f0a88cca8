//! Reads times in the formats that people use. A time without a zone is UTC.

use std::time::Duration;

use jiff::civil;
use jiff::tz::TimeZone;

use crate::domain::moment::Moment;
use crate::ports::backend::stamp::from_rfc3339;

const DAY: u64 = 86_400;

/// Reads RFC 3339, a date and time without a zone, a time of day (in the last 24 hours), or how long ago it was.
///
/// # Errors
/// A message that lists the formats.
pub(super) fn read(text: &str, now: Moment) -> Result<Moment, String> {
    let text = text.trim();
    let moment = from_rfc3339(text)
        .or_else(|| text.parse::<civil::DateTime>().ok().filter(|_| text.contains(':')).and_then(in_utc))
        .or_else(|| time_of_day(text, now))
        .or_else(|| ago(text).map(|ago| Moment::from_micros(now.as_micros().saturating_sub(micros(ago)))));
    moment.ok_or_else(|| {
        format!("--at {text:?} is not a time: write 2026-05-01T22:14:05Z, 2026-05-01 22:14, 22:14, 2h30m, or a decision's number")
    })
}

fn in_utc(time: civil::DateTime) -> Option<Moment> {
    let timestamp = TimeZone::UTC.to_timestamp(time).ok()?;
    u64::try_from(timestamp.as_microsecond()).ok().map(Moment::from_micros)
}

fn time_of_day(text: &str, now: Moment) -> Option<Moment> {
    // The parser would also take the time out of a date with a time.
    let is_time = text.contains(':') && !text.contains('-');
    let time: civil::Time = text.parse().ok().filter(|_| is_time)?;
    let timestamp = jiff::Timestamp::from_microsecond(i64::try_from(now.as_micros()).ok()?).ok()?;
    let date = TimeZone::UTC.to_datetime(timestamp).date();
    let today = in_utc(date.to_datetime(time))?;
    Some(if today > now {
        Moment::from_micros(today.as_micros().saturating_sub(micros(Duration::from_secs(DAY))))
    } else {
        today
    })
}

/// `90s`, `15m`, `2h30m`, `3d`, with or without `ago` and spaces.
fn ago(text: &str) -> Option<Duration> {
    let text = text.strip_suffix("ago").unwrap_or(text);
    let mut secs = 0_u64;
    let mut number = String::new();
    let mut is_whole = false;
    for char in text.chars().filter(|char| !char.is_whitespace()) {
        if char.is_ascii_digit() {
            number.push(char);
            is_whole = false;
            continue;
        }
        let unit = match char {
            'd' => DAY,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        secs = secs.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        number.clear();
        is_whole = true;
    }
    is_whole.then(|| Duration::from_secs(secs))
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
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
            ("09:30", "2026-05-03T09:30:00.000Z"),
            ("10:00:00", "2026-05-03T10:00:00.000Z"),
            ("2h", "2026-05-03T08:00:00.000Z"),
            ("1d 2h30m ago", "2026-05-02T07:30:00.000Z"),
            ("90s", "2026-05-03T09:58:30.000Z"),
        ] {
            assert_eq!(read(text, now()).map(rfc3339), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_time_of_day_later_than_now_was_yesterday() {
        assert_eq!(read("23:40", now()).map(rfc3339), Ok("2026-05-02T23:40:00.000Z".to_owned()));
    }

    #[test]
    fn an_invalid_time_is_rejected_with_a_list_of_formats() {
        for text in ["", "yesterday", "2026-05-01", "25:00", "2x", "h", "2h3", "-2h", "99999999999999999999d", "1969-01-01 00:00"]
        {
            let error = read(text, now()).unwrap_err();

            assert!(error.contains("2h30m") && error.contains(&format!("{text:?}")), "{text}: {error}");
        }
    }

    fn now() -> Moment {
        from_rfc3339("2026-05-03T10:00:00Z").unwrap()
    }
}
