//! The sections `speech` and `voice`.

use serde_json::json;

use crate::settings::Settings;

#[test]
fn the_defaults_are_those_of_the_design() {
    let settings = Settings::overlay(json!({})).expect("nothing is wrong");

    let voice = &settings.voice;
    assert_eq!((voice.address_timeout_secs, voice.follow_up_secs, voice.idle_finalize_secs), (1.0, 10.0, 0.5));
    assert_eq!(&*settings.speech.language, "en");
}

#[test]
fn every_language_has_stop_words_and_backchannel() {
    let speech = Settings::overlay(json!({})).expect("nothing is wrong").speech;

    for (language, stop, backchannel) in [
        ("en", "Hold on.", "Mhm, yeah"),
        ("de", "Moment mal", "ja genau"),
        ("es", "¡Espera!", "sí, claro"),
        ("fr", "Attends", "d’accord"),
    ] {
        let lists = speech.word_lists(language);
        assert!(lists.is_only_stop(stop), "{language}");
        assert!(lists.is_backchannel(backchannel), "{language}");
        let both = speech.words[language].backchannel.iter().find(|word| lists.begins_with_stop(word, |_| false));
        assert_eq!(both, None, "{language}: it stops, so it never counts as backchannel");
    }
    assert!(!speech.word_lists("xx").is_only_stop("stop"));
}

#[test]
fn a_language_of_your_own_is_a_table() {
    let words = json!({ "nl": { "stop": ["stop", "wacht"], "backchannel": ["ja", "hm"] } });
    let settings = Settings::overlay(json!({ "speech": { "language": "nl", "words": words } })).expect("nothing is wrong");

    assert!(settings.speech.word_lists("nl").is_only_stop("Wacht!"));
    assert!(settings.speech.word_lists("en").is_only_stop("wait"));
}

#[test]
fn values_that_cannot_be_used_are_reported() {
    for (settings, expected) in [
        (json!({ "voice": { "address_timeout_secs": 61 } }), "settings.voice.address_timeout_secs is 61, must be from 0 to 60"),
        (json!({ "voice": { "follow_up_secs": -1 } }), "settings.voice.follow_up_secs is -1, must be from 0 to 600"),
        (json!({ "voice": { "idle_finalize_secs": 0 } }), "settings.voice.idle_finalize_secs is 0, must be from 0.1 to 10"),
        (
            json!({ "speech": { "language": "xx" } }),
            "settings.speech.language = \"xx\" has no table [speech.words.xx]; add one, or choose one of de, en, es, fr",
        ),
        (
            json!({ "speech": { "words": { "en": { "stop": ["?!"], "backchannel": [] } } } }),
            "settings.speech.words.en.stop has \"?!\", must have words with letters or digits, in 1 to 64 characters",
        ),
    ] {
        let problem = Settings::overlay(settings).expect_err(expected);

        assert_eq!(problem.to_string(), expected);
    }
}
