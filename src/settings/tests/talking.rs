//! The sections `turn_taking`, `reply`, `closing` and `repetition`.

use serde_json::{Value, json};

use super::Folder;
use crate::Settings;
use crate::repetition::Judge;
use crate::turn_taking::Voting;

#[test]
fn the_defaults_are_those_of_the_design() {
    let settings = Settings::overlay(json!({})).expect("nothing is wrong");

    let turn_taking = &settings.turn_taking;
    assert_eq!((turn_taking.voting, turn_taking.turn_delay_secs), (Voting::Each, 2.0));
    assert_eq!(turn_taking.state_timeout_secs, 20.0);
    assert_eq!((turn_taking.max_companion_streak, turn_taking.max_turns), (4, None));
    assert_eq!((turn_taking.external_statement_timeout_secs, turn_taking.floor_timeout_secs), (60.0, 20.0));
    assert_eq!(settings.reply.max_replans, 2);
    assert!(settings.reply.all_stop_phrases().any(|phrase| phrase == "never mind"));
    assert_eq!((settings.closing.reopen_after, settings.closing.episode_idle_secs), (9, 1800.0));
    assert_eq!((settings.repetition.enabled, settings.repetition.judge), (true, Judge::Lexical));
}

#[test]
fn a_value_out_of_range_is_reported_with_the_range() {
    for (section, key, value, range) in [
        ("turn_taking", "turn_delay_secs", json!(601), "0 to 600"),
        ("turn_taking", "turn_delay_secs", json!(-1), "0 to 600"),
        ("turn_taking", "state_timeout_secs", json!(0), "0.001 to 3600"),
        ("turn_taking", "max_companion_streak", json!(1001), "1 to 1000"),
        ("turn_taking", "max_turns", json!(0), "1 to 1000000"),
        ("turn_taking", "external_statement_timeout_secs", json!(0), "0.1 to 3600"),
        ("turn_taking", "floor_timeout_secs", json!(0.5), "1 to 3600"),
        ("reply", "max_replans", json!(11), "0 to 10"),
        ("closing", "reopen_after", json!(0), "1 to 10000"),
        ("closing", "episode_idle_secs", json!(0.5), "1 to 604800"),
    ] {
        let problem = format!("settings.{section}.{key} is {value}, must be from {range}");
        assert_eq!(problems_of(json!({ section: { key: value } })), [problem]);
    }
    assert_eq!(
        problems_of(json!({ "reply": { "stop_phrases": { "en": ["stop", "!?"] } } })),
        ["settings.reply.stop_phrases.en \"!?\" must be 1 to 8 words without mentions, with at most 60 characters"]
    );
    assert_eq!(
        problems_of(json!({ "repetition": { "judge": "words" } })),
        ["settings.repetition.judge = \"words\" is not one of lexical, model, both"]
    );
}

#[test]
fn an_unknown_key_is_reported_with_a_suggestion() {
    let invalid = [
        (json!({ "turn_taking": { "turn_delay": 1 } }), "settings.turn_taking.turn_delay", "turn_delay_secs"),
        (json!({ "turn_taking": { "max_turn": 1 } }), "settings.turn_taking.max_turn", "max_turns"),
        (json!({ "closing": { "reopen_afer": 1 } }), "settings.closing.reopen_afer", "reopen_after"),
        (json!({ "repetition": { "enable": true } }), "settings.repetition.enable", "enabled"),
        (json!({ "closin": {} }), "settings.closin", "closing"),
    ];

    for (script, key, meant) in invalid {
        assert_eq!(problems_of(script), [format!("{key} is not a known key; did you mean {meant}?")]);
    }
}

#[test]
fn null_means_no_limit_of_turns() {
    let settings = Settings::overlay(json!({ "turn_taking": { "max_turns": null } })).expect("nothing is wrong");

    assert_eq!(settings.turn_taking.max_turns, None);
}

#[test]
fn a_round_must_last_longer_than_a_question_and_the_key_that_was_set_last_is_named() {
    let short_round = Folder::with(&[("default.toml", "[turn_taking]\nstate_timeout_secs = 15\n")]);
    let long_question = Folder::with(&[("default.toml", "[models.side]\ntimeout_secs = 20\n")]);
    let both = Folder::with(&[("default.toml", "[models.side]\ntimeout_secs = 60\n")])
        .variable("TERTULIA__TURN_TAKING__STATE_TIMEOUT_SECS", "30");
    let agreed = Folder::with(&[("default.toml", "[models.side]\ntimeout_secs = 60\n[turn_taking]\nstate_timeout_secs = 61\n")]);

    assert_eq!(
        short_round.problems(),
        [
            "default.toml:2: turn_taking.state_timeout_secs is 15, must be more than models.side.timeout_secs, which is 15; raise this one \
          or lower that one: a round must not end before its answers can arrive"
        ]
    );
    assert_eq!(
        long_question.problems(),
        [
            "default.toml:2: models.side.timeout_secs is 20, must be less than turn_taking.state_timeout_secs, which is 20; lower this one \
          or raise that one: a round must not end before its answers can arrive"
        ]
    );
    assert!(both.problems()[0].starts_with("TERTULIA__TURN_TAKING__STATE_TIMEOUT_SECS: turn_taking.state_timeout_secs is 30"));
    assert!(agreed.load().is_ok());
}

#[test]
fn a_languages_stop_phrases_can_be_added_and_turned_off() {
    let settings =
        Settings::overlay(json!({ "reply": { "stop_phrases": { "pt": ["pare"], "en": [] } } })).expect("nothing is wrong");

    let phrases: Vec<_> = settings.reply.all_stop_phrases().collect();
    assert!(phrases.contains(&"pare") && phrases.contains(&"stopp") && !phrases.contains(&"stop"));
}

#[test]
fn a_script_may_have_rounds_of_any_length() {
    let settings = Settings::overlay(json!({ "turn_taking": { "state_timeout_secs": 0.5 } })).expect("nothing is wrong");

    assert_eq!(settings.turn_taking.state_timeout_secs, 0.5);
}

fn problems_of(script: Value) -> Vec<String> {
    Settings::overlay(script).expect_err("something is wrong").0.iter().map(ToString::to_string).collect()
}
