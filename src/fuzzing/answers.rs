//! Targets for the answers of models.

use std::sync::Arc;

use serde_json::json;

use super::rules::{is_bounded, is_plain_line, text, texts};
use crate::domain::answer::{self, Verdict, Words};
use crate::domain::raw_answer::{self, Reader, Speakers, Trimmed};
use crate::domain::repetition;
use crate::domain::text::one_line;
use crate::domain::vote::together::{self, Voter};
use crate::domain::vote::{self, MOST_IMPORTANCE, MOST_MOOD, Stance, State};

/// The maximum length of a reason, in characters.
const LONGEST_REASON: usize = 500;
const LONGEST_STATEMENT: usize = 20_000;

pub(super) fn two_lines() -> Vec<Vec<u8>> {
    texts(&[
        "They asked me.\nYES",
        "not mine\n**NO**",
        "<think>hm\nNO</think>\nI like it.\nAnswer: YES!",
        "They say the same.\n0.85",
        "Score: 0.2.",
        "> *no*",
        "",
    ])
}

pub(super) fn votes() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"reason": "They asked me.", "decision": "YES", "importance": 7.5, "selected": true, "closing": "none"}"#,
        r#"{"reason": "So long.", "decision": "NO", "importance": 0, "selected": false, "closing": "terminal"}"#,
        "```json\n{\"vote\": {\"decision\": \"no\", \"importance\": \"9\",}}\n```",
        "<think>{\"decision\":\"YES\"}</think>{\"decision\":\"NO\",\"reason\":\"a\nb\"}",
        "I think so.\nYES",
        "{\"reason\": \"half an obj",
        r#"{"aria": {"reason": "So.", "decision": "YES", "importance": 7}, "Mira": {"decision": "NO"}}"#,
        "[{\"id\":\"aria\",\"decision\":\"NO\"},{\"name\":\"mira\",\"decision\":true}]",
        "Aria: YES\n**Mira**: they talk to each other\nNO",
    ])
}

pub(super) fn states() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"from":"zed","messageId":"12","state":"speak","importance":5.5,"selected":false,"closing":"pre-closing"}"#,
        r#"{"from":"zed","messageId":"1","state":"listen","importance":0,"selected":true,"mood":-0.1}"#,
    ])
}

pub(super) fn statements() -> Vec<Vec<u8>> {
    texts(&[
        "Hello, Ana! How are you?",
        "**Aria:** \"I would say so.\"",
        "{\"n\":3,\"who\":\"#2\",\"role\":\"you\",\"from\":\"Aria\",\"text\":\"So it is.\"}",
        "<think>What now?</think>„Gut.“",
        "the same again\u{1f}the same again\u{1f}something else",
        "<|channel|>analysis<|message|>Short.<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>",
        "analysisShort.assistantfinalHello!",
        "Hello!\n**Ana (she/her):** How are you?\nAria: Fine.<|im_end|>",
        "Some write `<think>` and\n```json\n{\"decision\":\"YES\"}\n```\nafter it, [THINK]so[/THINK].",
        "Here is my reply:\n```json\n{\"text\":\"Hello!\"}\n```",
        "Hello!\n<tool_call>{\"name\":\"look\"}</tool_call>\nNO_REPLY",
    ])
}

pub(super) fn answer(bytes: &[u8]) {
    let answer = text(bytes);

    let read = answer::read(&answer, Words::ENGLISH);

    check_reason(read.why.as_deref());
    // The last line decides, whatever comes before it. The only exception is inside a thought that never ends.
    for (word, verdict) in [("YES", Verdict::Yes), ("NO", Verdict::No)] {
        if has_no_mark(&answer) {
            assert_eq!(
                answer::read(&format!("{answer}\n{word}"), Words::ENGLISH).decision,
                verdict,
                "the last line does not decide"
            );
        }
        assert_eq!(
            answer::read(&format!("<think>{}</think>\n{word}", answer.replace('<', "")), Words::ENGLISH).decision,
            verdict,
            "a thought decides"
        );
    }
    // Without a verdict word nothing is decided.
    let lower = answer.to_lowercase();
    if !lower.contains("yes") {
        assert_ne!(read.decision, Verdict::Yes, "another word than YES decides");
    }
    if !lower.contains("no") {
        assert_ne!(read.decision, Verdict::No, "another word than NO decides");
    }
}

pub(super) fn vote(bytes: &[u8]) {
    let answer = text(bytes);

    let voters = [("aria", "Aria"), ("mira-2", "Mira")].map(|(id, name)| Voter { id: id.into(), name: name.into() });
    for (companion, part) in together::parts(&answer, &voters, Words::ENGLISH) {
        assert!(voters.iter().any(|voter| voter.id == companion), "{companion} was not asked");
        assert!(is_bounded(&part, answer.len() * 6 + 1_000), "{} bytes of a part", part.len());
    }

    let read = vote::read(&answer, Words::ENGLISH);

    check_reason(read.why.as_deref());
    assert!((0.0..=MOST_IMPORTANCE).contains(&read.importance) && read.importance.is_sign_positive(), "{}", read.importance);
    assert!((-MOST_MOOD..=MOST_MOOD).contains(&read.mood), "{}", read.mood);
    // Whatever the answer says, the State is for the companion that was asked.
    let state = State::voted(&read, "aria".into(), "7".into(), false);
    assert_eq!((state.from.as_str(), &*state.message_id), ("aria", "7"));
    assert_eq!(state.state == Stance::Speak, read.verdict == Verdict::Yes);
    let reread: State =
        serde_json::from_str(&serde_json::to_string(&state).unwrap()).expect("a published State can be submitted");
    assert_eq!(reread, state);
    // Quotes in a reason do not decide, whatever the order of the fields.
    for (decision, verdict) in [("YES", Verdict::Yes), ("NO", Verdict::No)] {
        let quoted = json!(answer).to_string();
        for object in [
            format!("{{\"reason\":{quoted},\"decision\":\"{decision}\",\"importance\":3}}"),
            format!("{{\"decision\":\"{decision}\",\"importance\":3,\"reason\":{quoted}}}"),
        ] {
            if object.len() < 60_000 {
                let vote = vote::read(&object, Words::ENGLISH);
                assert_eq!((vote.verdict, vote.importance), (verdict, 3.0), "a quote in the reason decides in {object}");
            }
        }
    }
}

pub(super) fn state(bytes: &[u8]) {
    match serde_json::from_slice::<State>(bytes) {
        Ok(state) => {
            assert!((0.0..=MOST_IMPORTANCE).contains(&state.importance) && (-MOST_MOOD..=MOST_MOOD).contains(&state.mood));
            assert!(!state.from.as_str().is_empty() && is_bounded(state.from.as_str(), 64));
            assert!(!state.message_id.is_empty() && is_bounded(&state.message_id, 64));
            let reread: State = serde_json::from_slice(&serde_json::to_vec(&state).unwrap()).unwrap();
            assert_eq!(reread, state);
        }
        Err(error) => assert!(is_bounded(&error.to_string(), 70_000), "the error is too long"),
    }
}

pub(super) fn score(bytes: &[u8]) {
    let answer = text(bytes);

    let score = repetition::read_score(&answer);

    assert!((0.0..=1.0).contains(&score), "{score}");
    if has_no_mark(&answer) {
        assert_eq!(repetition::read_score(&format!("{answer}\n0.25")), 0.25);
        assert_eq!(repetition::read_score(&format!("{answer}\n7 of 10")), 0.0);
    }
}

pub(super) fn statement(bytes: &[u8]) {
    let given = text(bytes);

    for name in ["Aria", "", "Mira Vale", "İ*", &given.chars().take(5).collect::<String>()] {
        let Ok(words) = raw_answer::statement(&given, Speakers::new(name, [])).words else { continue };
        assert!(!words.trim().is_empty() && words.trim() == words, "{words:?}");
        assert!(is_bounded(&words, LONGEST_STATEMENT));
        assert!(words.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')), "{words:?}");
        assert!(words.len() <= given.len(), "the statement is longer than the answer");
    }
}

/// An answer in pieces says the same, and what is shown meanwhile stays.
pub(super) fn raw_answer(bytes: &[u8]) {
    let given = text(bytes);
    let speakers = || Speakers::new("Aria", ["Ana", "Bob", "Mira Vale"].map(Arc::from));
    let whole = raw_answer::statement(&given, speakers());
    let mut reader = Reader::new(speakers(), false);
    let (mut shown, mut restarts) = (0, 0);
    // Pieces of a few bytes, of differing lengths.
    let mut rest = &*given;
    while let Some(length) =
        rest.char_indices().map(|(at, c)| at + c.len_utf8()).nth(rest.len() % 5).or(Some(rest.len()).filter(|length| *length > 0))
    {
        reader.feed(&rest[..length]);
        rest = &rest[length..];
        if reader.restarts() > restarts {
            (shown, restarts) = (0, reader.restarts());
        }
        assert!(reader.words().len() >= shown, "words were taken back");
        shown = reader.words().len();
    }
    let last = reader.words().to_owned();
    let read = reader.finish();
    assert_eq!(read, whole, "the pieces make a difference");
    let words = read.words.unwrap_or_default();
    let is_taken_back = read.began_in_thought || read.trimmed.contains(&Trimmed::Channel);
    assert!(words.starts_with(&last) || is_taken_back, "{last:?} was shown, {words:?} is said");
}

/// Whether nothing in an answer may be a mark.
fn has_no_mark(answer: &str) -> bool {
    !answer.contains(['<', '[', ']', '\u{25c1}', '{'])
        && !["analysis", "commentary", "assistant", "final"].iter().any(|word| answer.contains(word))
}

pub(super) fn repetition(bytes: &[u8]) {
    let all = text(bytes);
    let texts = super::parts(&all);
    let texts = &texts[texts.len().saturating_sub(5)..];

    let score = repetition::lexical(texts);

    assert!((0.0..=1.0 + 1e-9).contains(&score), "{score}");
    assert!((repetition::lexical(&[texts[0], texts[0]]) - 1.0).abs() < 1e-9, "equal texts are not fully repetitive");
}

/// Asserts that a reason is one line of limited length.
fn check_reason(why: Option<&str>) {
    let Some(why) = why else { return };
    assert!(!why.is_empty() && is_bounded(why, LONGEST_REASON) && is_plain_line(why), "{why:?}");
    assert_eq!(one_line(why, LONGEST_REASON), why, "the reason is not in its plain form");
}
