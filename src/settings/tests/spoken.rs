//! The sections `speech` and `voice`.

use serde_json::json;

use crate::Settings;
use crate::companion::{Companion, CompanionFile};

#[test]
fn the_defaults_are_those_of_the_design() {
    let settings = Settings::overlay(json!({})).expect("nothing is wrong");

    let voice = &settings.voice;
    assert_eq!((voice.address_timeout_secs, voice.follow_up_secs, voice.idle_finalize_secs), (1.0, 10.0, 0.5));
    assert_eq!((voice.turn_delay_secs, voice.decision_timeout_secs, voice.max_spoken_chars), (0.5, 4.0, 600));
    assert_eq!((voice.first_audio_timeout_secs, voice.stall_timeout_secs, voice.read_text_aloud), (5.0, 2.0, false));
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
        let lists = speech.word_lists(Some(language));
        assert!(lists.is_only_stop(stop), "{language}");
        assert!(lists.is_backchannel(backchannel), "{language}");
        let both = speech.words[language].backchannel.iter().find(|word| lists.begins_with_stop(word, |_| false));
        assert_eq!(both, None, "{language}: it stops, so it never counts as backchannel");
    }
    assert!(speech.word_lists(Some("de")).is_only_stop("Moment mal") && !speech.word_lists(None).is_only_stop("Moment mal"));
    assert_eq!(speech.word_lists(Some("xx")), speech.word_lists(None), "its table was removed");
}

#[test]
fn a_language_of_your_own_is_a_table() {
    let words = json!({ "nl": { "stop": ["stop", "wacht"], "backchannel": ["ja", "hm"] } });
    let settings = Settings::overlay(json!({ "speech": { "language": "nl", "words": words } })).expect("nothing is wrong");

    assert!(settings.speech.word_lists(Some("nl")).is_only_stop("Wacht!"));
    assert!(settings.speech.word_lists(Some("en")).is_only_stop("wait"));
}

#[test]
fn values_that_cannot_be_used_are_reported() {
    for (settings, expected) in [
        (json!({ "voice": { "address_timeout_secs": 61 } }), "settings.voice.address_timeout_secs is 61, must be from 0 to 60"),
        (json!({ "voice": { "follow_up_secs": -1 } }), "settings.voice.follow_up_secs is -1, must be from 0 to 600"),
        (json!({ "voice": { "idle_finalize_secs": 0 } }), "settings.voice.idle_finalize_secs is 0, must be from 0.1 to 10"),
        (json!({ "voice": { "turn_delay_secs": 11 } }), "settings.voice.turn_delay_secs is 11, must be from 0 to 10"),
        (
            json!({ "voice": { "decision_timeout_secs": 0.4 } }),
            "settings.voice.decision_timeout_secs is 0.4, must be from 0.5 to 60",
        ),
        (
            json!({ "voice": { "first_audio_timeout_secs": 0.5 } }),
            "settings.voice.first_audio_timeout_secs is 0.5, must be from 1 to 60",
        ),
        (json!({ "voice": { "stall_timeout_secs": 31 } }), "settings.voice.stall_timeout_secs is 31, must be from 0.5 to 30"),
        (json!({ "voice": { "max_spoken_chars": 49 } }), "settings.voice.max_spoken_chars is 49, must be from 50 to 10000"),
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

#[test]
fn a_companion_has_a_voice_of_its_own() {
    let defaults = Settings::overlay(json!({})).expect("nothing is wrong").companion_defaults;
    let read = |voice: serde_json::Value| {
        let file: CompanionFile = serde_json::from_value(json!({ "voice": voice })).expect("the fields are known");
        Companion::from_file(file, Some("aria"), &defaults)
    };
    let voice = json!({ "provider": "elevenlabs", "voice": "Rachel", "speed": 1.2, "pronounce": { "Vale": "vail" }, "sounds_like": ["Arya"] });

    let companion = read(voice.clone()).unwrap();

    assert_eq!(serde_json::to_value(&companion.voice).unwrap(), voice);
    assert!(companion.names().all(|name| name != "Arya"), "it is no name in writing");
    assert!(read(json!({})).unwrap().voice.is_default());
    for (voice, expected) in [
        (json!({ "speed": 2.1 }), "voice.speed is 2.1, must be from 0.5 to 2"),
        (json!({ "provider": " " }), "voice.provider = \" \", must have 1 to 128 characters, none of them a control character"),
        (json!({ "voice": "a\nb" }), "voice.voice = \"a\\nb\", must have 1 to 128 characters, none of them a control character"),
        (
            json!({ "pronounce": { "Vale": "-" } }),
            "voice.pronounce.Vale = \"-\", must have a letter or a digit, or nothing would be spoken",
        ),
        (
            json!({ "pronounce": { "Vale": "" } }),
            "voice.pronounce.Vale = \"\", must have 1 to 128 characters, none of them a control character",
        ),
        (json!({ "sounds_like": vec!["a"; 17] }), "voice.sounds_like has 17 entries, at most 16 are allowed"),
        (json!({ "sounds_like": [""] }), "voice.sounds_like[0] is empty, must have 1 to 64 characters"),
    ] {
        let problems = read(voice).unwrap_err();
        assert_eq!(problems.iter().map(|problem| format!("{} {}", problem.key, problem.message)).collect::<Vec<_>>(), [expected]);
    }
}
