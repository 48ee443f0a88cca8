use std::collections::BTreeSet;
use std::path::Path;

use super::super::registered::{self, TERTULIA};
use super::super::words::{self, LONGEST};
use super::*;
use crate::permissions::Need;
use crate::refusals::Refusal;

/// Discord's limit for the label of a button (Discord's documentation, "Component Reference", "Button").
const LONGEST_LABEL: usize = 80;
/// The status and code of each refusal that has an explanation.
const REFUSALS: [(u16, u32); 13] = [
    (404, 10_003),
    (404, 10_004),
    (400, 20_016),
    (400, 30_007),
    (400, 30_058),
    (400, 50_008),
    (403, 50_001),
    (403, 50_007),
    (403, 50_013),
    (403, 60_003),
    (400, 160_005),
    (403, 200_000),
    (401, 0),
];
const LANGUAGES: [&str; 5] = ["de", "es-ES", "fr", "ja", "pt-BR"];

#[test]
fn every_answer_is_translated_with_the_same_names_to_fill_in_and_no_translation_is_unused() {
    let answers: BTreeMap<String, Translations> = serde_json::from_str(include_str!("../answers.json")).unwrap();
    let commands: BTreeMap<String, Translations> = serde_json::from_str(include_str!("../languages.json")).unwrap();
    let said = said();
    let texts: BTreeSet<_> = said.iter().map(|(text, _)| text).collect();

    let missing: Vec<_> = texts.iter().filter(|text| !answers.contains_key(**text) && !commands.contains_key(**text)).collect();
    let unused: Vec<_> = answers.keys().filter(|text| !texts.contains(text)).collect();
    assert!(missing.is_empty() && unused.is_empty(), "missing: {missing:#?}, unused: {unused:#?}");
    let registered = registered::all().iter().map(ToString::to_string).collect::<String>();
    for text in commands.keys() {
        assert!(registered.contains(&format!("\":{}", serde_json::json!(text))), "no command has the text {text}");
    }
    for (english, translations) in &answers {
        assert_eq!(translations.keys().map(String::as_str).collect::<Vec<_>>(), LANGUAGES, "{english}");
        for (language, text) in translations {
            assert_eq!(placeholders(text), placeholders(english), "{language}: {text}");
            assert_eq!(text.matches("**").count(), english.matches("**").count(), "{language}: {text}");
            assert!(!text.trim().is_empty() && text.chars().count() <= LONGEST, "{language}: {text}");
        }
    }
    for (label, _) in said.iter().filter(|(_, is_label)| *is_label) {
        assert!(answers[label].values().chain([label]).all(|text| text.chars().count() <= LONGEST_LABEL), "{label}");
    }
}

/// Discord shows the names of commands in the language of the reader, so answers name them so, too.
#[test]
fn answers_name_commands_in_the_language_of_the_answer() {
    let answers: BTreeMap<String, Translations> = serde_json::from_str(include_str!("../answers.json")).unwrap();

    for (english, translations) in &answers {
        // Commands and options are in backticks, entries of menus behind `Apps >`.
        let codes = english.split('`').skip(1).step_by(2).filter(|code| code.contains(['/', ':']) && !code.contains("08:00"));
        let entries = english.split("*Apps > ").skip(1).filter_map(|rest| rest.split('*').next());
        for (language, text) in translations {
            for code in codes.clone() {
                let localized = localized_words(code, language);
                assert!(text.contains(&format!("`{localized}`")), "{language}: `{localized}` is not in {text}");
            }
            for entry in entries.clone() {
                let localized = &translations_of(entry)[language];
                assert!(text.contains(&format!(" > {localized}*")), "{language}: {localized} is not in {text}");
            }
        }
    }
}

#[test]
fn the_longest_answers_fit_into_one_message_in_every_language() {
    let operator = "o".repeat(100);
    let privacy = format!("https://{}", "p".repeat(192));
    for language in LANGUAGES.into_iter().chain(["en-US", "es-419"]) {
        for text in [words::help(), words::about(Some(&operator), Some(&privacy))] {
            let text = text.in_language(language);
            assert!(text.chars().count() <= LONGEST, "{language}: {} characters: {text}", text.chars().count());
        }
    }
}

#[test]
fn values_are_filled_in_once_and_sentences_are_separated_as_in_their_language() {
    let text = |language| {
        let hostile = say!("Stopped: {names}.", names = "{names} {x".to_owned());
        Text::sentences([hostile, words::blank()]).in_language(language)
    };

    assert_eq!((text("en-US").as_str(), text("xx").as_str()), ("Stopped: {names} {x. ", "Stopped: {names} {x. "));
    assert_eq!(text("ja"), "停止しました：{names} {x");
}

#[test]
fn the_explanation_of_a_refusal_of_discord_is_translated_and_discords_own_words_stay() {
    let refusal = Refusal::new(403, 50_013, "Missing Permissions");
    let (explained, quoted) = (refusal.explain(Need::Webhooks), Refusal::new(400, 30_007, "Maximum reached").to_string());
    let german = |why: &str| words::discord_refusal(why).in_language("de");

    assert!(german(&explained).ends_with("erlauben."), "{}", german(&explained));
    assert!(
        german(&quoted).contains("15 Webhooks") && german(&quoted).ends_with("(Discord said 400, code 30007: Maximum reached)")
    );
    assert_eq!(german("unknown. Text."), "unknown. Text.");
}

/// All texts of answers, and whether each is the label of a button.
fn said() -> Vec<(String, bool)> {
    let needs = [
        Need::Listen,
        Need::Enter,
        Need::Speak,
        Need::Webhooks,
        Need::Unlocked,
        Need::ReadBack,
        Need::Send,
        Need::SendInThreads,
        Need::React,
    ];
    let needs = needs.iter().flat_map(|need| <[&str; 2]>::from(need.explanation())).map(str::to_owned);
    let refusals = REFUSALS.map(|(status, code)| words::discord_refusal(&Refusal::new(status, code, "").to_string()));
    let mut said: Vec<_> = needs.chain(refusals.iter().flat_map(keys)).map(|text| (text, false)).collect();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                let calls: Vec<_> = source.match_indices("say!(").map(|(at, call)| source.split_at(at + call.len())).collect();
                said.extend(calls.iter().filter_map(|(before, call)| {
                    let before = before.trim_end_matches("say!(").trim_end();
                    let is_label = before.ends_with("button:")
                        || before
                            .rsplit_once("ButtonStyle::")
                            .is_some_and(|(_, rest)| rest.ends_with(',') && !rest.contains(' '));
                    Some((literal(call.trim_start().strip_prefix('"')?), is_label))
                }));
            }
        }
    }
    said
}

/// The string literal at the beginning of a source text, after its quotation mark.
fn literal(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source.chars().peekable();
    loop {
        match rest.next().expect("the literal ends") {
            '"' => return text,
            '\\' => match rest.next() {
                Some('n') => text.push('\n'),
                Some('\n') => while rest.next_if(|c| c.is_whitespace()).is_some() {},
                Some(escaped @ ('"' | '\\')) => text.push(escaped),
                other => panic!("teach the test this escape: {other:?}"),
            },
            c => text.push(c),
        }
    }
}

/// The English texts of a text.
fn keys(text: &Text) -> Vec<String> {
    match text {
        Text::Said(english, _) => vec![english.to_string()],
        Text::Joined(texts, _) => texts.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

fn placeholders(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

fn translations_of(text: &str) -> &'static Translations {
    translations(text).unwrap_or_else(|| panic!("nobody translated {text}"))
}

/// A command or option as Discord shows it: `/tertulia ignore me switch:off`.
fn localized_words(code: &str, language: &str) -> String {
    let is_name = |c: char| c.is_ascii_lowercase() || matches!(c, '-' | '_');
    let mut localized = String::new();
    let mut rest = code;
    while !rest.is_empty() {
        // A placeholder is no name.
        let placeholder = rest.starts_with('{').then(|| rest.find('}').unwrap() + 1);
        let end = placeholder.unwrap_or_else(|| rest.find(|c| !is_name(c)).unwrap_or(rest.len()).max(1));
        let end = if rest.is_char_boundary(end) { end } else { rest.chars().next().unwrap().len_utf8() };
        let (word, behind) = rest.split_at(end);
        let is_word = word.starts_with(is_name) && word != TERTULIA;
        localized += if is_word { &translations_of(word)[language] } else { word };
        rest = behind;
    }
    localized
}
