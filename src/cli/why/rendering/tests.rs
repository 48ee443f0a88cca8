use serde_json::{Value, json};

use super::*;

#[test]
fn a_story_has_one_step_per_line_and_each_day_once() {
    let explanation = explanation(json!({
        "companion": "aria",
        "name": "Aria",
        "story": [
            { "at": "2026-05-01T22:14:00.250Z", "seq": 2, "event": "message", "text": "Ana said: “one”" },
            { "at": "2026-05-01T22:14:10.250Z", "seq": 4, "event": "evaluate", "text": "It had been quiet for 10 s." },
            { "at": "2026-05-02T00:00:01.000Z", "seq": 5, "event": "decision", "text": "Aria stayed silent.", "setting": "gate.max_buffer" },
        ],
        "decision": { "seq": 5, "decision": "NO", "trigger": "lull", "reason": "model_no", "trace": "abc" },
        "waiting_for": { "text": "Aria waits.", "messages": 8, "unsettled": 1 },
    }));

    let text = render(&explanation, &options(), true, 100);

    let expected = "\
Aria in lobby, decision 5

  2026-05-01 UTC
  22:14:00  Ana said: “one”
  22:14:10  It had been quiet for 10 s.

  2026-05-02 UTC
  00:00:01  Aria stayed silent. [gate.max_buffer]

Aria waits. (messages that wait: 1)

NO (lull, model_no), trace abc
";
    assert_eq!(text, expected);
}

#[test]
fn a_long_step_is_wrapped_and_indented() {
    let explanation = explanation(json!({
        "companion": "aria",
        "story": [{ "at": "2026-05-01T22:14:00.250Z", "text": "one two three four five six seven eight nine ten eleven twelve" }],
    }));

    let text = render(&explanation, &options(), true, 50);

    let steps: Vec<_> = text.lines().skip(3).collect();
    assert_eq!(steps, ["  22:14:00  one two three four five six seven", "            eight nine ten eleven twelve"]);
    assert_eq!(wrapped("aaaaaaaaaa", 4), ["aaaa", "aaaa", "aa"]);
}

#[test]
fn text_from_people_cannot_control_the_terminal() {
    let text = "Ana said: “\u{1b}[2J\u{1b}]0;x\u{7} \r\nAria in lobby\u{202e}\u{9b}31m”";
    let explanation = explanation(json!({
        "companion": "aria",
        "name": "A\u{1b}[31m",
        "story": [{ "at": "2026-05-01T22:14:00.250Z", "text": text }],
        "companions": [],
    }));

    let text = render(&explanation, &options(), true, 100);

    assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{text:?}");
    assert!(!text.contains('\u{202e}') && text.contains("\\u{1b}[2J") && text.contains("\\r\\nAria in lobby"), "{text}");
}

#[test]
fn all_companions_are_shown_in_short_with_the_command_for_more() {
    let brief = |id: &str, name: &str| {
        json!({
            "companion": id,
            "name": name,
            "outcome": "silent",
            "text": "Aria was paused.",
            "seq": 7,
            "at": "2026-05-01T22:14:00.250Z",
            "waiting_for": null,
        })
    };
    let explanation = explanation(json!({
        "message": 3,
        "story": [],
        "companions": [brief("aria", "Aria"), brief("ben", "Benedict")],
    }));

    let text = render(&explanation, &Why { message: Some("3".into()), ..options() }, false, 100);

    let expected = "\
Message 3 in lobby

Aria stayed silent about it, decision 7, 2026-05-01 22:14:00 UTC

Benedict (ben) stayed silent about it, decision 7, 2026-05-01 22:14:00 UTC
  Aria was paused.

For the whole story of one companion: tertulia why lobby aria --message 3

No server is running here. This was read from the store.
";
    assert_eq!(text, expected);
}

#[test]
fn lines_are_as_wide_as_the_terminal_within_limits() {
    assert_eq!(
        [
            width(None, None),
            width(Some("72"), Some(90)),
            width(Some("5"), None),
            width(Some("9999"), None),
            width(Some("x"), None)
        ],
        [100, 72, 50, 160, 100]
    );
    assert_eq!([width(None, Some(80)), width(Some(""), Some(20)), width(Some("x"), Some(400))], [80, 50, 160]);
}

#[test]
fn a_trigger_without_meaning_is_not_shown() {
    let end = |reason: &str| {
        let decision = json!({ "seq": 5, "decision": "NO", "trigger": "lull", "reason": reason });
        let explanation = explanation(json!({ "companion": "aria", "decision": decision }));
        render(&explanation, &options(), true, 100).lines().last().unwrap_or_default().to_owned()
    };

    for reason in ["closed", "paused", "overflow", "stale"] {
        assert_eq!(end(reason), format!("NO ({reason})"));
    }
    assert_eq!(end("model_no"), "NO (lull, model_no)");
}

fn explanation(mut json: Value) -> decisions::Why {
    let at = json!("2026-05-01T22:14:00.250Z");
    for line in json.get_mut("story").and_then(Value::as_array_mut).into_iter().flatten() {
        line["event"] = json!("message");
    }
    if let Some(decision) = json.get_mut("decision") {
        (decision["at"], decision["room"], decision["companion"]) = (at, json!("lobby"), json!("aria"));
    }
    serde_json::from_value(json).unwrap()
}

fn options() -> Why {
    Why { room: "lobby".into(), companion: None, at: None, message: None, server: None, json: false }
}
