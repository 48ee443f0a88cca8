//! The current time, and Discord's formats of times.

use tertulia::adapters::system::SystemClock;
use tertulia::ports::clock::Clock as _;

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemClock.now().as_micros() / 1_000
}

/// <https://docs.discord.com/developers/reference#iso8601-date/time>
pub fn iso8601(ms: u64) -> String {
    let ms = i64::try_from(ms).expect("a time in range");
    let moment = jiff::Timestamp::from_millisecond(ms).expect("a time in range");
    moment.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// <https://www.rfc-editor.org/rfc/rfc9110#name-date>
pub fn http_date(ms: u64) -> String {
    let ms = i64::try_from(ms).expect("a time in range");
    let moment = jiff::Timestamp::from_millisecond(ms).expect("a time in range");
    moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
