//! Times as people write them, and what is told in one word.

use super::rules::{is_bounded, text, texts};
use crate::ports::backend::stamp::{Stamp, from_rfc3339, rfc3339};
use crate::telemetry::plain::Plain;

pub(super) fn moments() -> Vec<Vec<u8>> {
    texts(&[
        "2026-05-01T12:00:00.250Z",
        "2026-05-01T14:00:00+02:00",
        "2026-05-01 22:14",
        "2026-05-01",
        "09:30",
        "1d 2h30m ago",
        "90m",
        "2w",
        "7",
        "\"2026-05-01T12:00:00Z\"",
    ])
}

pub(super) fn times(bytes: &[u8]) {
    let text = text(bytes);

    if let Some(moment) = from_rfc3339(&text) {
        let written = rfc3339(moment);
        let again = from_rfc3339(&written).expect("what we write we read");
        assert_eq!(again.as_micros() / 1_000, moment.as_micros() / 1_000, "{text} reads again as {written}");
        assert_eq!(rfc3339(again), written);
    }
    if let Ok(stamp) = serde_json::from_slice::<Stamp>(bytes) {
        assert!(serde_json::from_str::<Stamp>(&serde_json::to_string(&stamp).unwrap()).is_ok());
    }
}

pub(super) fn plain(bytes: &[u8]) {
    let told = Plain(&text(bytes)).to_string();

    assert!(!told.is_empty() && is_bounded(&told, 200));
    assert!(!told.contains(|c: char| c.is_whitespace() || c.is_control() || c == '='), "{told:?} is more than one word");
}
