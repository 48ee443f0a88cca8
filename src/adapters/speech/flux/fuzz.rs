//! Fuzz target for recognition by turns.

use super::turns::Listening;
use crate::adapters::speech::deepgram::fuzz::check_messages;
use crate::fuzzing::texts;

pub(crate) fn valid() -> Vec<Vec<u8>> {
    let turn = |event: &str, turn: u32, to: f64, words: &str| {
        format!(
            r#"{{"type":"TurnInfo","event":"{event}","turn_index":{turn},"audio_window_start":0.0,"audio_window_end":{to},"transcript":"hello there","words":[{words}],"end_of_turn_confidence":0.8,"trigger":"manual"}}"#
        )
    };
    let untimed = r#"{"word":"hello","confidence":0.9},{"word":"there","confidence":0.8}"#;
    let timed = r#"{"word":"hello","start":0.1,"end":0.5,"confidence":0.9},{"word":"again","start":0.6,"end":1.4}"#;
    texts(&[
        &[r#"{"type":"Connected","request_id":"r"}"#, &turn("StartOfTurn", 0, 0.4, ""), &turn("Update", 0, 1.0, untimed)]
            .join("\u{1f}"),
        &[&*turn("Update", 0, 0.9, timed), &turn("EndOfTurn", 0, 1.8, timed), &turn("Update", 1, 2.5, untimed)].join("\u{1f}"),
        &[
            &*turn("EndOfTurn", 3, 9.0, untimed),
            r#"{"type":"Error","code":"UNPARSABLE_CLIENT_MESSAGE","description":"sk-0123456789abcdef"}"#,
        ]
        .join("\u{1f}"),
    ])
}

pub(crate) fn turns(bytes: &[u8]) {
    for (ends_turns, partial_results) in [(true, false), (false, true)] {
        check_messages(Listening::new(ends_turns, partial_results), bytes);
    }
}
