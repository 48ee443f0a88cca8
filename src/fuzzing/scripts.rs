//! Replay scripts, in JSON and TOML: read, and run.

use super::rules::{text, texts};
use crate::domain::moment::Moment;
use crate::replay::{Action, ReplayEvent, ReplayEventKind, Script, ScriptError, run};

const JSON: &str = r#"{ "companions": [ { "id": "aria", "aliases": ["ari"], "interjection": "very_eager", "text_lull_timeout": 10.0 }, { "id": "ben" } ],
  "settings": { "gate": { "skip_when_other_addressed": false, "max_buffer": 3 } },
  "jitter": [0, 1, -2],
  "models": { "side": [ { "text": "not mine\nNO", "delay": 0.5 }, { "error": "timeout", "delay": 8 }, { "text": "{\"decision\":\"YES\",\"importance\":6}", "delay": 0.5, "companion": "ben" } ],
              "main": [ { "text": "Hello!", "delay": 1.0 } ] },
  "events": [ { "at": 0.0, "channel": "1", "from": "Bob", "text": "hi" },
              { "at": 2.0, "channel": "1", "from": "Bob", "text": "Ari?", "mentions": ["aria"], "reply_to": "ben" },
              { "at": 3.0, "channel": "v", "from": "Bob", "text": "so", "modality": "voice", "lull_endpoint": true },
              { "at": 30.0, "channel": "1", "leave": "ben" },
              { "at": 60.0, "channel": "1", "clear": true } ],
  "until": 120.0 }"#;

/// What is run goes on for no longer: a script may ask for thirty years of questions without an answer.
const LONGEST: Moment = Moment::from_micros(20_000_000_000);

pub(super) fn in_json() -> Vec<Vec<u8>> {
    texts(&[JSON])
}

pub(super) fn in_toml() -> Vec<Vec<u8>> {
    texts(&[
        include_str!("../../tests/conversations/a-model-may-judge-repetition.toml"),
        include_str!("../../tests/conversations/a-goodbye-can-be-taken-back.toml"),
        include_str!("../../tests/conversations/a-direct-no-keeps-stragglers.toml"),
    ])
}

pub(super) fn json(bytes: &[u8]) {
    check(Script::from_json(&text(bytes)));
}

pub(super) fn toml(bytes: &[u8]) {
    check(Script::from_toml(&text(bytes)));
}

fn check(read: Result<Script, ScriptError>) {
    let mut script = match read {
        Ok(script) => script,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    script.events.truncate(60);
    script.until = Some(script.until.map_or(LONGEST, |until| until.min(LONGEST)));
    let Ok(told) = run(&script) else { return };
    assert_eq!(run(&script).as_ref(), Ok(&told), "the same script went another way");
    follows(&script, &told);
}

/// What happened is in order, of whoever is in the script, and nobody says what others said.
fn follows(script: &Script, told: &[ReplayEvent]) {
    assert!(told.windows(2).all(|two| two[0].at <= two[1].at), "time went back");
    for happening in told {
        let known = happening.kind.companion().is_none_or(|id| script.companions.contains_key(id));
        assert!(known, "{happening} is of nobody here");
        let shown = happening.to_string();
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(!serde_json::to_string(happening).expect("it is written as JSON").contains('\n'));
        if let ReplayEventKind::Message { from, text, .. } = &happening.kind {
            let is_scripted = script.events.iter().any(
                |event| matches!(&event.action, Action::Say(saying) if saying.from == *from && saying.text == *text && event.channel == happening.channel),
            );
            let is_stated = script.companions.keys().any(|id| id.as_str() == from);
            assert!(is_scripted || is_stated, "{from} never said {text:?}");
        }
    }
}
