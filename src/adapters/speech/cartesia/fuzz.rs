//! Fuzz target for the messages of the service.

use std::time::Duration;

use super::making::{Made, Making};
use super::wire::Message;
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::fuzz::{check_error, failures};
use crate::adapters::speech::fuzz::{SENTENCE, check_pieces};
use crate::fuzzing::{parts, text, texts};

pub(crate) fn valid() -> Vec<Vec<u8>> {
    let words = |words: &str, start: &str, end: &str| {
        format!(
            r#"{{"type":"timestamps","context_id":"c","done":false,"word_timestamps":{{"words":{words},"start":{start},"end":{end}}}}}"#
        )
    };
    let first = words(r#"["One","two,"]"#, "[0.0,0.3]", "[0.25,0.55]");
    let second = words(r#"["three:","“fünf”","6!"]"#, "[0.6,1e300,-3]", "[0.9,0.7,2]");
    let audio = r#"{"type":"chunk","context_id":"c","data":"AQACAA==","done":false,"status_code":206}"#;
    let last = r#"{"type":"done","context_id":"c","done":true,"status_code":200}"#;
    texts(&[
        &[first.as_str(), audio, &second, audio, last].join("\u{1f}"),
        &[audio, r#"{"type":"error","context_id":"c","status_code":401,"title":"Invalid key","message":"sk-0123456789abcdef"}"#]
            .join("\u{1f}"),
    ])
}

pub(crate) fn messages(bytes: &[u8]) {
    let (text, mut making, mut made) = (text(bytes), Making::of(SENTENCE, 1.0), Vec::new());
    for message in parts(&text) {
        let read = serde_json::from_str::<Message<'_>>(message);
        let read = read.map_err(|error| Broken::garbled(error.to_string(), message.as_bytes()));
        match read.and_then(|message| making.process_message(&message)) {
            Ok(Made::Pieces(pieces)) => made.extend(pieces),
            Ok(Made::All(pieces)) => {
                made.extend(pieces);
                break;
            }
            Ok(Made::Failed(failed)) => {
                check_error(&failures().in_answer(Broken::failed(failed.status, failed.message)), bytes);
                break;
            }
            Err(broken) => {
                check_error(&failures().in_answer(broken), bytes);
                break;
            }
        }
    }
    // Times may come before their audio.
    check_pieces(&made, Some(Duration::from_secs(300)), text.len());
}
