use std::collections::BTreeSet;

use super::*;

/// The names in braces.
fn names(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

#[test]
fn every_language_has_every_text_with_the_same_names_to_fill_in() {
    let english = &TEXTS[&Language::English];
    for language in Language::ALL {
        let texts = &TEXTS[&language];
        let missing: Vec<_> = english.keys().filter(|key| !texts.contains_key(*key)).collect();
        let unknown: Vec<_> = texts.keys().filter(|key| !english.contains_key(*key)).collect();
        assert!(missing.is_empty() && unknown.is_empty(), "{}: missing {missing:?}, unknown {unknown:?}", language.code());
        for (key, text) in texts {
            assert!(!text.trim().is_empty(), "{}: {key} is empty", language.code());
            // `one` may say the number as a word.
            if !key.ends_with(".one") {
                assert_eq!(names(text), names(&english[key]), "{}: {key}", language.code());
            }
        }
    }
}

/// The text of all files of these kinds.
fn sources(kinds: &[&str]) -> String {
    let mut sources = String::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut folders = vec![std::path::PathBuf::from(root)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kinds.iter().any(|known| kind == *known)) {
                sources += &std::fs::read_to_string(&path).unwrap();
            }
        }
    }
    sources
}

/// Keys in the sources: whole string literals that begin with the name of a section.
#[test]
fn every_text_is_used_and_every_used_text_exists() {
    let texts: Value = serde_json::from_str(Language::English.file()).unwrap();
    let sections: Vec<_> = texts.as_object().unwrap().keys().cloned().collect();
    let sources = sources(&["js", "html", "rs"]);
    let literals: BTreeSet<_> = sources.split(['\'', '"', '`', '{', '}']).collect();
    let english = &TEXTS[&Language::English];
    let known = |key: &str| english.contains_key(key) || english.contains_key(&format!("{key}.other"));

    for key in english.keys() {
        let key = key.strip_suffix(".one").or_else(|| key.strip_suffix(".other")).unwrap_or(key);
        // A key may be composed of its section and a code: `reasons.${code}`, or `why.reasons.{code}` in Rust.
        let composed = key.rsplit_once('.').map(|(section, _)| format!("{section}."));
        let is_used = literals.contains(key)
            || composed.is_some_and(|section| literals.contains(&*format!("{section}$")) || literals.contains(&*section));
        assert!(is_used, "nothing says {key}");
    }
    let is_key = |literal: &str| {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-');
        literal.chars().all(is_word) && !literal.ends_with('.')
    };
    for literal in literals
        .iter()
        .filter(|literal| literal.split_once('.').is_some_and(|(section, _)| sections.iter().any(|known| known == section)))
    {
        // The section of a composed key.
        let is_section = |literal: &&str| english.keys().any(|key| key.starts_with(*literal));
        assert!(!literal.ends_with('.') || is_section(literal), "there is no section {literal}");
        // Files and settings may begin with the same word.
        let is_other = [".js", ".rs", ".json", ".css", ".html"].iter().any(|suffix| literal.ends_with(suffix));
        assert!(!is_key(literal) || is_other || known(literal), "there is no text {literal}");
    }
}

/// In Rust, the key of a refusal stands before its values in `json!`. Values that are named elsewhere are not checked.
#[test]
fn every_refusal_has_a_text_whose_names_it_fills_in() {
    let sources = sources(&["rs"]);
    let english = &TEXTS[&Language::English];
    let named: BTreeSet<_> = sources.split("\"refusals.").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let known = Language::keys("refusals.");
    assert_eq!(known.difference(&named).collect::<Vec<_>>(), [&""; 0], "no refusal has these texts");

    for call in sources.split("\"refusals.").skip(1) {
        let (code, rest) = call.split_once('"').unwrap();
        let Some(text) = english.get(&format!("refusals.{code}")) else { continue };
        let Some(values) =
            rest.strip_prefix(", json!({").or_else(|| rest.trim_start_matches([',', ' ', '\n']).strip_prefix("json!({"))
        else {
            continue;
        };
        let values = values.split("})").next().unwrap();
        let given: BTreeSet<_> = values.split('"').skip(1).step_by(2).collect();
        assert!(names(text).is_subset(&given), "{code}: {text} is given {given:?}");
    }
}

#[test]
fn a_text_is_filled_in_once() {
    let say = |count: u32| Language::English.say("messages.deleted", &[("count", &count)]);

    assert_eq!((say(1).as_str(), say(3).as_str()), ("A message was deleted", "3 messages were deleted"));
    assert_eq!(Language::German.say("compose.replying", &[("who", &"{text}"), ("text", &"Hallo")]), "Antwort an {text}: Hallo");
    assert_eq!(Language::English.say("no.such.key", &[]), "no.such.key");
}

#[test]
fn a_sentence_about_a_suspended_room_has_the_word_of_the_button_that_restarts_it() {
    let stems = [(Language::English, "restart"), (Language::German, "neu start"), (Language::Spanish, "reinici")];
    for (language, stem) in stems {
        for key in ["attention.restart", "why.waiting.suspended"] {
            let text = language.say(key, &[]).to_lowercase();
            assert!(text.contains(stem), "{key}: {text}");
        }
    }
}

/// What somebody reads in the first minutes names what it does, and nothing that only the program's documents explain.
#[test]
fn the_first_dialogs_have_no_words_that_a_newcomer_cannot_know() {
    let texts = &TEXTS[&Language::English];
    let first = |key: &str| {
        let names_experts = "ai.extra_ ai.experts ai.limits_set".split(' ').any(|part| key.starts_with(part));
        ["ai.", "invite.", "maker.", "people.", "welcome.", "top.tokens_about"].iter().any(|part| key.starts_with(part))
            && !names_experts
    };
    for unknown in ["Prometheus", "round", "public address", "https", "Pretend", "lull", "interjection", "endpoint"] {
        let with: Vec<_> = texts.iter().filter(|(key, text)| first(key) && text.contains(unknown)).collect();
        assert!(with.is_empty(), "{unknown}: {with:?}");
    }
}

#[test]
fn the_language_is_chosen_by_weight() {
    for (header, language) in [
        ("de-AT,de;q=0.9,en;q=0.5", Language::German),
        ("en;q=0.8, de;q=0.9", Language::German),
        ("fr-FR, de;q=0, en;q=0.1", Language::English),
        ("es-MX,es;q=0.9,en;q=0.8", Language::Spanish),
        ("fr", Language::English),
        ("*", Language::English),
        ("", Language::English),
        ("de;q=x", Language::English),
    ] {
        assert_eq!(Language::accepted(header), language, "{header}");
    }
    assert_eq!(Language::of_code("de_CH"), Some(Language::German));
}

#[test]
fn a_page_gets_the_sections_that_its_modules_name() {
    let texts: Value =
        serde_json::from_str(&Language::German.of_page("t('base.copy') + t(`errors.${code}`) + 'why.again'")).unwrap();

    let sections: Vec<_> = texts.as_object().unwrap().keys().collect();
    assert_eq!(sections, ["base", "errors"]);
    assert!(texts["base"].get("copied").is_some());
}
