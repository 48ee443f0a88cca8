//! Targets that parse replay scripts in JSON and TOML, and run them.

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

/// The longest run: a script may ask for thirty years of unanswered questions.
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
    let Ok(events) = run(&script) else { return };
    assert_eq!(run(&script).as_ref(), Ok(&events), "two runs of the same script differ");
    check_events(&script, &events);
}

/// Asserts that the events are in order and only name companions of the script, and that each message is in the script or by a companion.
fn check_events(script: &Script, events: &[ReplayEvent]) {
    assert!(events.windows(2).all(|two| two[0].at <= two[1].at), "the events are not ordered by time");
    for event in events {
        let known = event.kind.companion().is_none_or(|id| script.companions.contains_key(id));
        assert!(known, "{event} names an unknown companion");
        let shown = event.to_string();
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert!(!serde_json::to_string(event).expect("an event can be serialised").contains('\n'));
        if let ReplayEventKind::Message { from, text, .. } = &event.kind {
            let is_scripted = script.events.iter().any(
                |scripted| matches!(&scripted.action, Action::Say(saying) if saying.from == *from && saying.text == *text && scripted.channel == event.channel),
            );
            let is_stated = script.companions.keys().any(|id| id.as_str() == from);
            assert!(is_scripted || is_stated, "{from} never said {text:?}");
        }
    }
}
