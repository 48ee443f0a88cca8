//! Fuzz targets for recognition by streams: results lie within the audio that was sent, in order, whatever a service sends.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::results::Listening;
use super::stream::{Output, Protocol};
use crate::adapters::endpoint::fuzz::{check_error, failures};
use crate::domain::moment::Moment;
use crate::domain::voice::speech::Stretch;
use crate::fuzzing::{parts, text, texts};
use crate::ports::audio::HEARD_RATE;
use crate::ports::speech_recognition::{Recognised, Sound};

const SECOND: Duration = Duration::from_secs(1);
/// The maximum number of messages that are read from an input.
const MOST_MESSAGES: usize = 32;

pub(crate) fn valid() -> Vec<Vec<u8>> {
    let result = |from: f64, word: &str, flags: &str| {
        format!(
            r#"{{"type":"Results","channel_index":[0,1],"start":{from},"duration":1.0,{flags},"channel":{{"alternatives":[{{"transcript":"{word} there","confidence":0.98,"words":[{{"word":"{word}","punctuated_word":"{word},","start":{from},"end":{},"confidence":0.9}},{{"word":"there","start":{},"end":{},"confidence":0.9}}]}}]}}}}"#,
            from + 0.4,
            from + 0.5,
            from + 0.9,
        )
    };
    let interim = result(0.0, "hello", r#""is_final":false,"speech_final":false"#);
    let last = result(0.0, "hello", r#""is_final":true,"speech_final":true"#);
    let asked = result(1.0, "Aria", r#""is_final":true,"from_finalize":true"#);
    let over = r#"{"type":"Metadata","duration":2.0}"#;
    texts(&[
        &[interim.as_str(), &last, &asked, over].join("\u{1f}"),
        &[r#"{"type":"SpeechStarted","timestamp":0.1}"#, &asked, &asked, &interim].join("\u{1f}"),
        &[interim.as_str(), r#"{"type":"Error","description":"the key sk-0123456789abcdef","message":"DATA-0000"}"#]
            .join("\u{1f}"),
    ])
}

pub(crate) fn results(bytes: &[u8]) {
    check_messages(Listening::default(), bytes);
}

/// Sends a second of audio before each message, every other one with the end of a stretch, and checks the results.
pub(in crate::adapters::speech) fn check_messages(mut protocol: impl Protocol, bytes: &[u8]) {
    let text = text(bytes);
    let (mut out, mut now, mut at, mut stretches) = (Output::default(), Instant::now(), Moment::ZERO + SECOND, 0);
    let mut has_failed = false;
    for (number, message) in parts(&text).into_iter().take(MOST_MESSAGES).enumerate() {
        let samples = vec![0; HEARD_RATE as usize].into();
        protocol.sound(&Sound::Audio { from: at, samples }, now, &mut out);
        (at, now) = (at + SECOND, now + SECOND);
        if number % 2 == 1 {
            stretches += 1;
            let stretch = Stretch { started: at - 2 * SECOND, ended: at, voiced: SECOND };
            protocol.sound(&Sound::Ended(stretch), now, &mut out);
        }
        if let Err(broken) = protocol.message(message, now, &mut out) {
            check_error(&failures().in_answer(broken), bytes);
            protocol.cut(&mut out);
            has_failed = true;
            break;
        }
        if protocol.deadline().is_some_and(|deadline| deadline <= now) {
            protocol.wake(now, &mut out);
        }
    }
    if !has_failed {
        protocol.close(&mut out);
        protocol.finish(&mut out);
    }
    let finals = check(&out.results, at, text.len());
    assert!(if has_failed { finals <= stretches } else { finals == stretches }, "{finals} last finals of {stretches} stretches");
}

/// Checks results, and returns the number of last finals.
fn check(results: &[Recognised], newest: Moment, longest: usize) -> usize {
    let (mut last_finals, mut before, mut ids) = (0, Moment::ZERO, BTreeSet::new());
    for result in results {
        let text = match result {
            Recognised::Partial { text, started } => {
                assert!(*started <= newest, "{started:?} after {newest:?}");
                text
            }
            Recognised::Final(segment) => {
                assert!(before <= segment.started && segment.started <= segment.ended && segment.ended <= newest, "{segment:?}");
                assert!(segment.confidence.is_none_or(|confidence| confidence <= 1_000), "{segment:?}");
                assert!(
                    ids.insert(&segment.id) || segment.text.is_empty(),
                    "words are lost that have the id of others: {segment:?}"
                );
                before = segment.started;
                last_finals += usize::from(segment.is_last);
                &segment.text
            }
        };
        assert!(text.len() <= longest, "{} bytes of {longest}", text.len());
    }
    last_finals
}
