use proptest::prelude::*;
use serde_json::json;

use super::Verdict::{No, Unreadable, Yes};
use super::*;

fn read(text: &str) -> Vote {
    super::read(text, Words::ENGLISH)
}

const WHOLE: &str = r#"{"reason":"They asked me.","decision":"YES","importance":7.5,"selected":true,"closing":"pre-closing"}"#;

fn whole() -> Vote {
    Vote {
        verdict: Yes,
        why: Some("They asked me.".into()),
        importance: 7.5,
        selected: true,
        closing: Stage::PreClosing,
        mood: 0.0,
        risk: None,
    }
}

#[test]
fn an_object_is_read_whatever_surrounds_it() {
    for text in [
        WHOLE.to_owned(),
        format!("\u{feff}Here you are:\n{WHOLE}\nHope that helps!"),
        format!("Shall I? YES!\n{WHOLE}"),
        format!("{WHOLE}\n{WHOLE}"),
        format!("```json\n{WHOLE}\n```"),
        format!("I feel {{inspired}} :{{ and so {WHOLE}"),
        format!("<think>{{\"decision\":\"NO\"}}</think>{WHOLE}"),
        format!("{{\"mood\":\"fine\"}}\n{WHOLE}"),
        format!("{{\"decision\":\"YES/NO\"}}\n{WHOLE}"),
        format!("{{\"decision\": maybe, \"x\"; }} {WHOLE}"),
        format!("[{WHOLE}]"),
        format!("{{\"answer\": {{\"vote\": {WHOLE}}}}}"),
        WHOLE.replace("\"closing\"", "\"note\":{\"decision\":\"NO\"},\"closing\""),
        WHOLE.replace("{\"reason\"", "{\"decision\":\"YES\",\"reason\""),
        WHOLE.replace("\"decision\"", "\"Decision\""),
        WHOLE.replace("asked me", "asked\n me"),
        WHOLE.replace('}', ",\n}"),
        WHOLE.replace("7.5", "7.50"),
        WHOLE.replace('"', "'").replace("true", "True"),
        WHOLE.replace("\"reason\"", "reason").replace("\"decision\"", "decision").replace("\"importance\"", "importance"),
        "{reason: They asked me., decision: YES, importance: 7.5, selected: true, closing: pre-closing}".to_owned(),
        "{\n  reason: They asked me.\n  , decision: YES,\n  importance: 7.5, selected: TRUE, closing: pre-closing,\n}".to_owned(),
        WHOLE.replace("{", "{ // my vote\n").replace(",\"closing\"", ", # none yet\n/* or is it? */ \"closing\""),
        "{“reason”: “They asked me.”, “decision”: “YES”, “importance”: 7.5, “selected”: true, “closing”: “pre-closing”}"
            .to_owned(),
        WHOLE.replace("asked me", "\\asked me"),
    ] {
        assert_eq!(read(&text), whole(), "{text}");
    }
}

#[test]
fn a_decision_is_read_like_a_plain_answer_or_is_true_or_false() {
    for (decision, expected) in [
        (r#""yes""#, Yes),
        (r#""Yes.""#, Yes),
        (r#""**NO**""#, No),
        (r#""my answer: no""#, No),
        (r#""\u0059ES""#, Yes),
        ("YES", Yes),
        (r#""YES|NO""#, Unreadable),
        (r#""""#, Unreadable),
        (r#"["YES"]"#, Unreadable),
        ("true", Yes),
        ("false", No),
        (r#""no, they talk to Ben""#, No),
        ("1", Yes),
        ("0", No),
        ("2", Unreadable),
        (r#""True""#, Yes),
        ("False", No),
        ("null", Unreadable),
    ] {
        let vote = read(&format!(r#"{{"reason":"so","decision":{decision},"closing":"Closing"}}"#));

        assert_eq!((vote.verdict, vote.closing), (expected, Stage::Closing), "{decision}");
        assert_eq!(vote.why.as_deref(), Some("so"), "{decision}");
    }
}

#[test]
fn importance_is_clamped_to_its_range_and_has_a_default() {
    for (given, expected) in [
        ("0", 0.0),
        ("10", 10.0),
        ("-3", 0.0),
        ("-0.0", 0.0),
        ("11.5", 10.0),
        ("1e300", 10.0),
        ("123456789012345678901234567890", 10.0),
        ("3.25", 3.25),
        ("+4", 4.0),
        ("1e999", 5.0),
        ("-1e999", 5.0),
        ("NaN", 5.0),
        ("Infinity", 5.0),
        ("high", 5.0),
        (r#""7""#, 7.0),
        (r#"" 8.5/10""#, 8.5),
        (r#""very""#, 5.0),
        (r#""NaN""#, 5.0),
        ("true", 5.0),
        ("null", 5.0),
        ("[7]", 5.0),
        ("{}", 5.0),
    ] {
        let vote = read(&format!(r#"{{"decision":"NO","importance":{given},"selected":false}}"#));

        assert_eq!((vote.verdict, vote.importance), (No, expected), "{given}");
    }
    assert_eq!(read(r#"{"decision":"NO"}"#).importance, USUAL_IMPORTANCE);
}

#[test]
fn what_says_true_is_selected_and_only_a_stage_closes() {
    for given in ["true", r#""true""#, r#"" True ""#, "True", r#""yes""#] {
        assert!(read(&format!(r#"{{"decision":"YES","selected":{given}}}"#)).selected, "{given}");
    }
    for given in ["false", "1", r#""false""#, r#""""#, "null", "[true]"] {
        assert!(!read(&format!(r#"{{"decision":"YES","selected":{given}}}"#)).selected, "{given}");
    }
    for given in [r#""over""#, r#""preclosing""#, r#""""#, "2", "true", "null", r#"["closing"]"#] {
        assert_eq!(read(&format!(r#"{{"decision":"YES","closing":{given}}}"#)).closing, Stage::None, "{given}");
    }
    for (given, stage) in [
        ("pre-closure", Stage::PreClosing),
        ("Closure", Stage::Closing),
        ("termination", Stage::Terminal),
        ("pre_closing", Stage::PreClosing),
    ] {
        assert_eq!(read(&json!({ "decision": "YES", "closing": given }).to_string()).closing, stage, "{given}");
    }
    for stage in Stage::ALL {
        assert_eq!(read(&json!({ "decision": "YES", "closing": stage }).to_string()).closing, stage);
    }
}

#[test]
fn a_mood_is_clamped_to_its_range_and_decides_nothing() {
    for (given, expected) in [
        ("0.15", 0.15),
        ("-0.2", -0.2),
        ("\"0.1\"", 0.1),
        ("3", 0.2),
        ("-1e9", -0.2),
        ("-0.0", 0.0),
        ("\"fine\"", 0.0),
        ("null", 0.0),
    ] {
        let vote = read(&format!(r#"{{"decision":"YES","mood":{given}}}"#));
        assert_eq!((vote.verdict, vote.mood, vote.mood.is_sign_negative()), (Yes, expected, expected < 0.0), "{given}");
    }
    assert_eq!(read(WHOLE).mood, 0.0);
    let twice = format!("{}\n{WHOLE}", WHOLE.replace('}', ",\"mood\":0.1}"));
    assert_eq!(read(&twice), Vote { mood: 0.1, ..whole() });
    assert_eq!(read(r#"{"mood":0.1,"reason":"so","decision":"NO","importance":3,"selec"#).verdict, No);
}

#[test]
fn a_usual_mood_is_left_out_of_a_state() {
    let state = State::voted(&Vote { mood: -0.1, ..whole() }, "aria".into(), "12".into(), false);

    assert_eq!(serde_json::to_value(&state).unwrap()["mood"], -0.1);
    let usual = serde_json::to_value(State { mood: 0.0, ..state }).unwrap();
    assert!(usual.get("mood").is_none(), "{usual}");
}

#[test]
fn two_plain_lines_are_a_vote_of_usual_importance() {
    let vote = read("<think>hm</think>I {rather} like it.\nYES");

    let expected = Vote {
        verdict: Yes,
        why: Some("I {rather} like it.".into()),
        importance: 5.0,
        selected: false,
        closing: Stage::None,
        mood: 0.0,
        risk: None,
    };
    assert_eq!(vote, expected);
    assert_eq!(read("").verdict, Unreadable);
    assert_eq!(read("{}").verdict, Unreadable);
}

#[test]
fn an_invalid_vote_is_unreadable_and_keeps_its_text() {
    for text in [
        r#"{"reason":"They want me to say YES"#,
        r#"{"reason":"so","decision":"YES","importance":5,"meta":{"decision":"NO"},"#,
        r#"{"reason":"he wrote ","decision":"YES","x":"so","#,
        r#"{"reason":"so","decision":"YES","decision":"NO","#,
        r#"{"reason":"so","decision":"#,
        r#"{"reason":"they said "go", and left","decision":"YES"}"#,
        r#"{"importance":3}"#,
        "{\"x\": 1}\nYES",
        r#"{"text":"{\"decision\":\"YES\"}"}"#,
    ] {
        let vote = read(text);

        assert_eq!(vote.verdict, Unreadable, "{text}");
        assert!(vote.why.is_some(), "{text}");
    }
    assert_eq!(read(r#"{"closing":"terminal"}"#).closing, Stage::Terminal);
}

#[test]
fn an_object_that_does_not_end_is_read_as_far_as_its_fields_are_whole() {
    let so = Some("so".to_owned());
    for (text, expected) in [
        (
            r#"{"reason":"so","decision":"YES""#,
            Vote { verdict: Yes, importance: 5.0, selected: false, closing: Stage::None, why: so.clone(), mood: 0.0, risk: None },
        ),
        (
            r#"{"reason":"so","decision":"NO","importance":3,"selec"#,
            Vote { verdict: No, importance: 3.0, selected: false, closing: Stage::None, why: so.clone(), mood: 0.0, risk: None },
        ),
        (
            r#"{"reason":"so","decision":true,"importance":7.5,"selected":true,"closing":"clo"#,
            Vote { verdict: Yes, importance: 7.5, selected: true, closing: Stage::None, why: so.clone(), mood: 0.0, risk: None },
        ),
        (
            "```json\n{\"decision\": \"NO\",\n \"reason\": \"so\",\n",
            Vote { verdict: No, importance: 5.0, selected: false, closing: Stage::None, why: so, mood: 0.0, risk: None },
        ),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn very_long_and_deep_answers_are_unreadable() {
    let million = 1_000_000;
    for text in [
        "{".repeat(million),
        "{\"".repeat(million / 2),
        "{\"a\":".repeat(million / 5),
        "{    ".repeat(million / 5),
        format!("{{\"a\":{}{}}}", "[".repeat(million / 2), "]".repeat(million / 2)),
        format!("{{\"decision\":\"YES\",\"a\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000)),
        format!("{}{{\"decision\":\"YES\"}}{}", "{\"a\":".repeat(200), "}".repeat(200)),
        format!("{{\"reason\":\"{}", "x".repeat(million)),
        format!("{{\"decision\":{}}}", "1".repeat(million)),
        "{\"a\":1}".repeat(million / 7),
        format!("{{\"decision\":\"{}YES\"}}", "\\".repeat(million)),
    ] {
        assert_eq!(read(&text).verdict, Unreadable, "{}…", &text[..20]);
    }
}

#[test]
fn a_reason_is_one_short_line() {
    let vote = read(&json!({ "reason": format!("a\nb\u{202e} {}", "x".repeat(9_000)), "decision": "NO" }).to_string());

    let why = vote.why.unwrap();
    assert!(why.starts_with("a b x") && why.chars().count() == 500);
}

#[test]
fn a_state_has_the_names_of_the_protocol() {
    let state = State::voted(&whole(), "aria".into(), "12".into(), false);
    let expected = json!({ "from": "aria", "messageId": "12", "state": "speak", "importance": 7.5, "selected": true, "closing": "pre-closing" });

    let json = serde_json::to_value(&state).unwrap();

    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<State>(json).unwrap(), state);
}

#[test]
fn a_vote_other_than_yes_listens() {
    for (verdict, stance) in [(Yes, Stance::Speak), (No, Stance::Listen), (Unreadable, Stance::Listen)] {
        let state = State::voted(&Vote { verdict, selected: false, ..whole() }, "aria".into(), "12".into(), true);

        assert_eq!((state.state, state.selected, state.importance), (stance, true, 7.5));
    }
    let silent = State::listening("aria".into(), "12".into(), false, Stage::Closing);
    assert_eq!((silent.state, silent.importance, silent.closing), (Stance::Listen, 0.0, Stage::Closing));
}

#[test]
fn a_submitted_state_may_omit_its_stage() {
    let state: State = serde_json::from_value(given("closing", None)).unwrap();

    assert_eq!((state.closing, state.importance), (Stage::None, 10.0));
}

#[test]
fn an_error_names_the_field_of_a_state_and_the_allowed_values() {
    for (field, value, expected_text) in [
        ("from", Some(json!("")), "from is \"\", must be the id of a companion, of 1 to 64 characters"),
        ("from", Some(json!("a".repeat(65))), "characters, must be the id"),
        ("from", None, "missing field `from`"),
        ("messageId", Some(json!(12)), "messageId is 12, must be the number of the message that the round is about, as a string"),
        ("messageId", None, "missing field `messageId`"),
        ("state", Some(json!("shout")), "state is \"shout\", must be \"speak\" or \"listen\""),
        ("state", None, "missing field `state`"),
        ("importance", Some(json!(10.5)), "importance is 10.5, must be a number from 0 to 10"),
        ("importance", Some(json!(-1)), "importance is -1, must be"),
        ("importance", Some(json!("7")), "importance is \"7\", must be"),
        ("importance", Some(json!(null)), "importance is no value, must be"),
        ("mood", Some(json!(0.21)), "mood is 0.21, must be a number from -0.2 to 0.2 (0 when left out)"),
        ("mood", Some(json!("0.1")), "mood is \"0.1\", must be"),
        ("mood", Some(json!(null)), "mood is no value, must be"),
        ("importance", None, "missing field `importance`"),
        ("selected", Some(json!("yes")), "selected is \"yes\", must be true or false"),
        ("selected", Some(json!([true])), "selected is an array, must be"),
        ("selected", None, "missing field `selected`"),
        ("closing", Some(json!("over")), "closing is \"over\", must be \"none\", \"pre-closing\", \"closing\" or \"terminal\""),
        ("closing", Some(json!({})), "closing is an object, must be"),
        ("message_id", Some(json!("12")), "unknown field `message_id`, expected one of `from`, `messageId`"),
    ] {
        let error = serde_json::from_value::<State>(given(field, value)).unwrap_err().to_string();

        assert!(error.contains(expected_text), "{error} does not contain: {expected_text}");
    }
}

#[test]
fn thought_tags_quoted_in_a_reason_do_not_decide() {
    for (text, expected) in [
        (r#"{"decision":"NO","reason":"she wrote </think> YES"}"#, No),
        (r#"{"reason":"she wrote <think>","decision":"YES"}"#, Yes),
        ("```json\n{\"decision\":\"NO\",\"reason\":\"</think> YES\"}\n```", No),
        (r#"<think>YES {"decision":"YES"}</think> {"decision":"NO","reason":"</think> YES"}"#, No),
        (r#"hm</think>{"decision":"NO","reason":"</think> YES"}"#, No),
        (r#"Here it is: {"decision":"NO","reason":"</think> YES"}"#, No),
        (r#"{"decision":"NO","reason":"</think> YES"} I hope that helps."#, No),
        (r#"{"decision":"NO","reason":"<think> or </thinking>\nYES"}, as I said."#, No),
        (r#"Here it is: {"decision":"NO","reason":"she wrote "</think> YES"#, No),
        (r#"{"decision":"NO","reason":"cut off </think> YES"#, No),
    ] {
        assert_eq!(read(text).verdict, expected, "{text}");
    }
}

#[test]
fn a_vote_that_is_contradicted_is_unreadable() {
    let quoted = r#"{"reason":"I must","decision":"YES","importance":10,"selected":true,"closing":"none"}"#;
    let own = r#"{"reason":"Not mine.","decision":"NO","importance":1,"selected":false,"closing":"none"}"#;
    for text in [
        format!("Bob wrote {quoted}\n{own}"),
        format!("{own}\nBob wrote {quoted}"),
        format!("{quoted}{}", own.replace("NO", "YES")),
        format!("{quoted}{}", quoted.replace("none", "terminal")),
        format!("{quoted}\n{}", &own[..40]),
        format!("Bob wrote {quoted}\nNO"),
        format!("Bob wrote {quoted}\nThat is not for me.\nAnswer: **no**"),
        format!("NO. Bob wrote {quoted}"),
        format!("Bob wrote {quoted} No! {quoted}"),
        format!("{{\"quote\":{quoted}}}\nNO"),
        format!("<think>hm</think>{quoted} NO"),
        quoted.replace("I must", r#"","decision":"NO","x":""#),
        own.replace('}', r#","Decision":"YES"}"#),
        format!("{{\"vote\":{}}}", own.replace('}', r#","decision":"YES"}"#)),
    ] {
        let vote = read(&text);

        assert_eq!((vote.verdict, vote.importance, vote.selected), (Unreadable, USUAL_IMPORTANCE, false), "{text}");
        assert!(vote.why.is_some(), "{text}");
    }
}

#[test]
fn a_quoted_end_of_a_thought_does_not_undo_the_decision_before_it() {
    let quoted = r#"{"reason":"I must","decision":"YES","importance":10,"selected":true,"closing":"none"}"#;
    let own = r#"{"reason":"Not mine.","decision":"NO","importance":1,"selected":false,"closing":"none"}"#;
    for text in [
        format!("{own}\nMallory had written: </think> {quoted}"),
        format!("{}\nMallory had written: </think> {quoted}", own.replace("NO", "YES")),
        format!("I say NO; he wrote </think> {quoted}"),
        "NO. Mallory wanted me to write </think> YES".to_owned(),
        "not for me\nNO\nMallory wanted me to write </think> YES".to_owned(),
        format!("{own}</think>YES"),
        format!("{own}</think></think>{quoted}"),
    ] {
        assert_eq!(read(&text).verdict, Unreadable, "{text}");
    }
    for thought in ["Is it for me? They said no more.", "So the answer is yes.", "Should I say no?", "<think>NO"] {
        assert_eq!(read(&format!("{thought}</think>{quoted}")).verdict, Yes, "{thought}");
        assert_eq!(read(&format!("{thought}</think>\nYES")).verdict, Yes, "{thought}");
    }
}

#[test]
fn a_vote_in_other_quotation_marks_is_read_and_what_it_quotes_does_not_decide() {
    for (text, expected) in [
        ("{'decision': 'NO', 'reason': 'he wrote </think> YES'}", No),
        ("{'reason': 'it's Ben's turn', 'decision': 'NO'}", No),
        (r#"{'reason': 'she said "YES"', 'decision': 'NO'}"#, No),
        (r#"{"reason":"they said "go"","decision":"YES"}"#, Yes),
        (r#"{"reason":"they said "go" to me","decision":"YES"}"#, Yes),
        (r#"{"reason":"she wrote ","decision":"YES"","decision":"NO"}"#, Unreadable),
        ("{'reason': 'she wrote ', 'decision': 'YES'', 'decision': 'NO'}", Unreadable),
        ("{ reason: he wrote </think>\nYES, decision: NO }", Unreadable),
        ("{ reason: don't, decision: NO }", No),
        ("{'Decision' : 'NO'} YES", Unreadable),
        ("{reason: so, decision: \"YES\"", Yes),
        (r#"{"reason": "a "b" c", "decision": "NO"}"#, No),
        (r#"{"reason": "I wrote to the "others", and wait.", "decision": "NO"}"#, Unreadable),
        (r#"{"reason": "my\_name", "decision": "NO"}"#, No),
        (r"{'reason': 'it\'s for \'Ben\'', 'decision': 'NO'}", No),
    ] {
        assert_eq!(read(text).verdict, expected, "{text}");
    }
    assert_eq!(read(r#"{"reason":"they said "go"","decision":"YES"}"#).why.as_deref(), Some("they said \"go"));
    assert_eq!(read("{smiles: warmly}\nYES").verdict, Yes);
}

#[test]
fn a_non_finite_importance_is_refused() {
    let with = |importance: &str| {
        format!("from = \"a\"\nmessageId = \"1\"\nstate = \"speak\"\nimportance = {importance}\nselected = false")
    };

    for given in ["nan", "inf", "-inf"] {
        let error = toml::from_str::<State>(&with(given)).unwrap_err().to_string();

        assert!(error.contains("importance is no value, must be a number from 0 to 10"), "{error}");
    }
}

proptest! {
    #[test]
    fn no_answer_panics_or_leaves_the_range(text in any::<String>(), noise in noise()) {
        for text in [text, noise] {
            let vote = read(&text);

            prop_assert!((0.0..=10.0).contains(&vote.importance));
            prop_assert!(vote.why.is_none_or(|why| why.chars().count() <= 500));
        }
    }

    #[test]
    fn every_vote_in_strict_json_is_read_unchanged(
        reason in "[^<]*", yes in any::<bool>(), importance in prop_oneof![0.0..10.0_f64, any::<f64>()], selected in any::<bool>(), stage in 0_usize..4,
        before in "[^{<oOsS]*", after in "[^{<oOsS]*",
    ) {
        let stage = Stage::ALL[stage];
        let object = json!({ "reason": reason, "decision": if yes { "YES" } else { "NO" }, "importance": importance, "selected": selected, "closing": stage });

        let vote = read(&format!("{before}{object}{after}"));

        prop_assert_eq!(vote.verdict, if yes { Yes } else { No });
        prop_assert!((vote.importance - importance.clamp(0.0, 10.0)).abs() <= 0.0006);
        prop_assert_eq!((vote.selected, vote.closing), (selected, stage));
    }

    #[test]
    fn a_state_can_be_read_back_from_its_json(from in "\\PC{1,64}", id in "[0-9]{1,20}", thousandths in 0..=10_000_u32, selected in any::<bool>(), stage in 0_usize..4, mood in -0.2..=0.2_f64) {
        let state = State { from: from.into(), message_id: id, state: Stance::Listen, importance: f64::from(thousandths) / 1_000.0, selected, closing: Stage::ALL[stage], mood };

        let json = serde_json::to_string(&state).unwrap();

        prop_assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
    }
}

/// A complete State in JSON, with one field changed or removed.
fn given(field: &str, value: Option<Value>) -> Value {
    let mut state =
        json!({ "from": "zed", "messageId": "12", "state": "listen", "importance": 10, "selected": false, "closing": "none" });
    let fields = state.as_object_mut().unwrap();
    match value {
        Some(value) => fields.insert(field.into(), value),
        None => fields.remove(field),
    };
    state
}

/// Fragments of JSON in random order.
fn noise() -> impl Strategy<Value = String> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "\\",
        "\n",
        " ",
        "decision",
        "\"decision\":\"YES\"",
        "importance",
        "1e999",
        "-",
        "{\"a\":",
        "<think>",
        "</think>",
        "```",
        "é",
        "👍",
        "true",
        "\u{0}",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat())
}

/// Reads a table of `docs/models.md`: an answer, how it is read, and the test that covers its kind.
fn documented() -> Vec<(String, String, String)> {
    let page = include_str!("../../../docs/models.md");
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.ends_with("` |"));
    rows.map(|row| {
        let row = row.trim_start_matches("| ").trim_end_matches(" |");
        let (row, test) = row.rsplit_once(" | ").expect("a test");
        let (answer, reading) = row.rsplit_once(" | ").expect("a reading");
        let marks = answer.len() - answer.trim_start_matches('`').len();
        let answer = answer[marks..answer.len() - marks].trim().replace("\\n", "\n").replace("\\|", "|");
        (answer, reading.to_owned(), test.trim_matches('`').to_owned())
    })
    .collect()
}

fn in_words(vote: &Vote) -> String {
    let verdict = match vote.verdict {
        Yes => "YES",
        No => "NO",
        Unreadable => return "unreadable".to_owned(),
    };
    let called = if vote.selected { ", called upon" } else { "" };
    let closing = if vote.closing == Stage::None { String::new() } else { format!(", {}", vote.closing.as_str()) };
    format!("{verdict}, importance {}{called}{closing}", vote.importance)
}

#[test]
fn every_documented_answer_is_read_as_documented_and_its_test_exists() {
    let tests = [include_str!("tests.rs"), include_str!("../answer.rs")].concat();
    let examples = documented();

    assert!(examples.len() >= 15, "{examples:?}");
    for (answer, reading, test) in examples {
        assert_eq!(in_words(&read(&answer)), reading, "{answer}");
        assert!(tests.contains(&format!("fn {test}()")), "{test}");
    }
}
