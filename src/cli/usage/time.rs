//! Reads times in the formats that people use.

use std::time::Duration;

use crate::cli::failure::Failure;
use crate::domain::moment::Moment;
use crate::ports::backend::stamp::from_rfc3339;

/// Reads RFC 3339, a day (its beginning in UTC), or a duration before now.
pub(super) fn moment(text: &str, now: Moment) -> Option<Moment> {
    let whole_day = || format!("{text}T00:00:00Z");
    let is_day = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match span(text) {
        Some(span) => Some(now - span),
        None if is_day => from_rfc3339(&whole_day()),
        None => from_rfc3339(text),
    }
}

/// A number of minutes, hours, days or weeks.
pub(super) fn span(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let number = &text[..text.len() - 1];
    // `parse` would accept a sign.
    let number: u64 = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    Some(Duration::from_secs(number.checked_mul(unit)?))
}

/// The failure for an invalid time.
pub(super) fn unreadable(option: &str, text: &str) -> Failure {
    Failure::Usage(format!(
        "{option} {text:?} is not a time: write it like 2026-05-01T12:00:00Z or 2026-05-01, or how long ago it was: 24h, 7d"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_micros(1_777_636_800_000_000);

    #[test]
    fn moments_days_and_spans_are_read() {
        let read = |text| moment(text, NOW).map(Moment::as_micros);

        assert_eq!(read("2026-05-01T14:00:00+02:00"), Some(NOW.as_micros()));
        assert_eq!(read("2026-05-01"), Some(1_777_593_600_000_000));
        assert_eq!(read("90m"), Some(NOW.as_micros() - 5_400_000_000));
        assert_eq!(read("2w"), Some(NOW.as_micros() - 1_209_600_000_000));
    }

    #[test]
    fn an_invalid_time_is_rejected() {
        let texts =
            ["", "h", "-1h", "+1h", "1.5h", "7 d", "1y", "noon", "2026-13-01", "2026-5-1", "99999999999999999999h", "٣h", "€"];

        assert_eq!(texts.map(|text| moment(text, NOW)), [None; 13]);
    }
}
