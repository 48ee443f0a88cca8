//! Fuzz target for the messages of the service.

use super::making::{Made, Making};
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::fuzz::{check_error, failures};
use crate::adapters::speech::fuzz::{SENTENCE, check_pieces};
use crate::fuzzing::{parts, text, texts};

pub(crate) fn valid() -> Vec<Vec<u8>> {
    let audio = "AAEC".repeat(1_000);
    let aligned = |chars: &str, starts: &str, durations: &str| {
        format!(
            r#"{{"audio":"{audio}","isFinal":null,"alignment":{{"chars":{chars},"charStartTimesMs":{starts},"charDurationsMs":{durations}}}}}"#
        )
    };
    let first = aligned(r#"["O","n","e"," ","t","w"]"#, "[0,10,20,30,40,50]", "[10,10,10,10,10,10]");
    let second = aligned(r#"["o",","," ","t","h","r","e","e"]"#, "[60,62,64,66,68,70,72,74]", "[2,2,2,2,2,2,2,-9]");
    let last = r#"{"audio":null,"isFinal":true,"normalizedAlignment":null,"alignment":null}"#;
    texts(&[
        &[first.as_str(), &second, last].join("\u{1f}"),
        &[first.as_str(), r#"{"message":"the key sk-0123456789abcdef is wrong","error":"invalid_api_key","code":1008}"#]
            .join("\u{1f}"),
    ])
}

pub(crate) fn messages(bytes: &[u8]) {
    let (text, mut making, mut made) = (text(bytes), Making::of(SENTENCE, 1.0), Vec::new());
    for message in parts(&text) {
        match making.process_message(message) {
            Ok(Made::Pieces(pieces)) => made.extend(pieces),
            Ok(Made::All(pieces)) => {
                made.extend(pieces);
                break;
            }
            Ok(Made::Failed(_, message)) => {
                check_error(&failures().in_answer(Broken::failed(None, message)), bytes);
                break;
            }
            Err(broken) => {
                check_error(&failures().in_answer(broken), bytes);
                break;
            }
        }
    }
    check_pieces(&made, None, text.len());
}
