//! Time as the domain sees it: whole microseconds that never go backwards.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
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
        // A time beyond the calendar's end.
        let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
        time.to_zoned(zone.clone())
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
