//! The query parameters of a connection.

use std::collections::BTreeSet;

use crate::ports::speech_recognition::Expectation;

/// The maximum number of names that are sent.
const MOST_NAMES: usize = 100;
/// Longer names are not sent.
const MAX_NAME_CHARS: usize = 60;
/// The maximum number of tokens in all names. Above 500 tokens the service returns no words any more, without an error. The count is an upper
/// estimate, and the limit leaves a margin.
const MOST_TOKENS: usize = 450;

/// The `keyterm` parameters: the expected names that can be said, without duplicates and within the limits.
pub(in crate::adapters::speech) fn names(expectation: &Expectation) -> impl Iterator<Item = (&'static str, String)> {
    likely(expectation.names.iter().map(AsRef::as_ref)).into_iter().map(|name| ("keyterm", name.to_owned()))
}

/// The language, if it is `multi` or looks like a language tag, such as `en` or `pt-BR`.
pub(in crate::adapters::speech) fn language(expectation: &Expectation) -> Option<&str> {
    let mut parts = expectation.language.split('-');
    let is_language =
        parts.next().is_some_and(|part| matches!(part.len(), 2 | 3) && part.bytes().all(|byte| byte.is_ascii_lowercase()));
    let is_tag =
        is_language && parts.all(|part| (2..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    (is_tag || &*expectation.language == "multi").then_some(&*expectation.language)
}

/// Whether the model supports `keyterm`. Older models use `keywords`, and reject `keyterm`.
pub(in crate::adapters::speech) fn takes_names(model: &str) -> bool {
    let version = model.strip_prefix("nova-").map(|rest| rest.split('-').next().unwrap_or_default());
    version.is_some_and(|version| version.parse::<u32>().is_ok_and(|version| version >= 3))
}

fn likely<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = BTreeSet::new();
    let mut tokens = 0;
    let is_sayable = |name: &&str| {
        name.chars().any(char::is_alphabetic) && name.chars().count() <= MAX_NAME_CHARS && !name.chars().any(char::is_control)
    };
    names
        .map(str::trim)
        .filter(is_sayable)
        .filter(|name| known.insert(name.to_lowercase()))
        .filter(|name| {
            let is_room = tokens + most_tokens(name) <= MOST_TOKENS;
            tokens += if is_room { most_tokens(name) } else { 0 };
            is_room
        })
        .take(MOST_NAMES)
        .collect()
}

/// An upper estimate of a name's tokens: one for two ASCII letters or digits, and one for each byte of other
/// characters.
fn most_tokens(name: &str) -> usize {
    name.split(|char: char| !char.is_ascii_alphanumeric()).map(|word| word.len().div_ceil(2)).sum::<usize>()
        + name.chars().filter(|char| !char.is_ascii_alphanumeric()).map(char::len_utf8).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_by_their_tokens_and_number() {
        let many: Vec<_> = (0..200).map(|number| format!("Al{number}")).collect();
        let long: Vec<_> = (0..200).map(|number| format!("Bartholomew Featherstonehaugh {number}")).collect();
        let foreign: Vec<_> = (0..200).map(|number| format!("龍之介{number}")).collect();

        let counts = [many, long, foreign].map(|names| {
            let taken = likely(names.iter().map(String::as_str));
            (taken.len(), taken.iter().map(|name| most_tokens(name)).sum::<usize>() <= MOST_TOKENS)
        });

        assert!(counts.iter().all(|(taken, is_few)| *is_few && *taken > 20 && *taken <= MOST_NAMES || *is_few && *taken > 10));
        assert_eq!(counts[0].0, 100);
    }

    #[test]
    fn what_nobody_says_is_no_name() {
        let names = ["Aria", "aria ", "", " ", "184467440737095", "a\nb", &"x".repeat(61), "Zoë"];

        assert_eq!(likely(names.into_iter()), ["Aria", "Zoë"]);
    }

    #[test]
    fn only_newer_models_take_names() {
        let models = ["nova-3", "nova-3-medical", "nova-4", "nova-2", "nova-2-meeting", "nova", "enhanced", "whisper"];

        assert_eq!(models.map(takes_names), [true, true, true, false, false, false, false, false]);
    }

    #[test]
    fn a_language_is_sent_if_it_is_one() {
        let languages = ["en", "pt-BR", "multi", "english", "plain words", "", "e"];

        let sent = languages.map(|language| {
            let expectation = Expectation { language: language.into(), names: Vec::new() };
            super::language(&expectation).map(str::to_owned)
        });

        let expected = [Some("en"), Some("pt-BR"), Some("multi"), None, None, None, None];
        assert_eq!(sent.each_ref().map(Option::as_deref), expected);
    }
}
