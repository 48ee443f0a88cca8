//! Targets for times as people write them, and for values in one word of a log line.

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
        let reparsed = from_rfc3339(&written).expect("a formatted time can be parsed");
        assert_eq!(reparsed.as_micros() / 1_000, moment.as_micros() / 1_000, "{text} changes to {written}");
        assert_eq!(rfc3339(reparsed), written);
    }
    if let Ok(stamp) = serde_json::from_slice::<Stamp>(bytes) {
        assert!(serde_json::from_str::<Stamp>(&serde_json::to_string(&stamp).unwrap()).is_ok());
    }
}

pub(super) fn plain(bytes: &[u8]) {
    let word = Plain(&text(bytes)).to_string();

    assert!(!word.is_empty() && is_bounded(&word, 200));
    assert!(!word.contains(|c: char| c.is_whitespace() || c.is_control() || c == '='), "{word:?} is more than one word");
}
