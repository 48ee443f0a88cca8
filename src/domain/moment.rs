//! Time in the domain: whole microseconds that never decrease.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};
use serde::{Deserialize, Serialize};

/// A point in time, in microseconds: since the Unix epoch in a running server, since the script's zero in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// The earliest moment.
    pub const ZERO: Self = Self(0);

    /// The moment this many microseconds after zero.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since zero.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Seconds since zero, for people and for the output of replay.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// This moment on the calendar of a time zone.
    pub fn zoned(self, zone: &TimeZone) -> Zoned {
        let micros = i64::try_from(self.0).unwrap_or(i64::MAX);
        // Times beyond the end of the calendar are clamped.
        let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
        time.to_zoned(zone.clone())
    }

    /// The beginning of its month in UTC, plus `later` months.
    pub fn month(self, later: i32) -> Self {
        let date = self.zoned(&TimeZone::UTC).date().first_of_month().saturating_add(later.months());
        let time = TimeZone::UTC.to_timestamp(date.into()).map_or(i64::MAX, Timestamp::as_microsecond);
        Self(u64::try_from(time).unwrap_or_default())
    }

    /// The duration since `earlier`. Zero if this moment is not later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_at_midnight_in_utc_and_cross_years() {
        let month = |text: &str, later| {
            let at: Timestamp = text.parse().unwrap();
            let month = Moment::from_micros(at.as_microsecond() as u64).month(later);
            month.zoned(&TimeZone::UTC).datetime().to_string()
        };

        assert_eq!(month("2026-11-30T23:59:59.999999Z", 0), "2026-11-01T00:00:00");
        assert_eq!(month("2026-11-01T00:00:00Z", 2), "2027-01-01T00:00:00");
        assert_eq!(month("2026-01-31T12:00:00Z", -11), "2025-02-01T00:00:00");
        assert_eq!(Moment::ZERO.month(-1), Moment::ZERO);
    }
}
