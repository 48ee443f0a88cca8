//! Selects the authors of an excerpt that take the companion's role, and finds names in texts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::excerpts::Excerpt;

/// Bots in the rooms of the published data. They speak only on command, so they never take the companion's role.
const BOTS: &[&str] = &[
    "ubotu",
    "ubottu",
    "ubot3",
    "ubugtu",
    "floodbot1",
    "floodbot2",
    "floodbot3",
    "floodbot4",
    "mootbot",
    "eval",
    "rustbot",
    "wikibugs",
    "gerrit-wm",
    "wm-bot",
    "wmdsbot",
];

/// The `most` authors with the most annotated messages, without bots; ties are resolved by name. In a room with companions, only
/// the companions, including silent ones.
pub fn authors(excerpt: &Excerpt, most: usize, bots: &[String]) -> Vec<Arc<str>> {
    let mut counts = BTreeMap::<&Arc<str>, usize>::new();
    for message in excerpt.messages.iter().filter(|message| message.annotated) {
        *counts.entry(&message.from).or_default() += 1;
    }
    let is_bot =
        |author: &str| BOTS.iter().copied().chain(bots.iter().map(String::as_str)).any(|bot| bot.eq_ignore_ascii_case(author));
    let mut ranked: Vec<_> = match &excerpt.companions {
        None => counts.into_iter().filter(|(author, _)| !is_bot(author)).collect(),
        Some(companions) => {
            let companions = companions.iter().collect::<BTreeSet<_>>().into_iter();
            companions.map(|companion| (companion, counts.get(companion).copied().unwrap_or_default())).collect()
        }
    };
    // The sort is stable, and the map is sorted by name.
    ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    ranked.into_iter().take(most).map(|(author, _)| author.clone()).collect()
}

/// Whether a character can be part of a name.
fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || "_[]\\`^{}|-".contains(char)
}

/// Whether a text contains a name as a separate word. Both are in lower case.
pub(super) fn is_named(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        ![before, after].into_iter().flatten().any(is_of_name)
    })
}

/// The addressee at the beginning of a text, in the notation of IRC: `name: …`, `@name …`. The text is in lower case.
pub(super) fn addressee(text: &str) -> Option<&str> {
    let text = text.strip_prefix('@').unwrap_or(text);
    let end = text.find(|char| !is_of_name(char)).unwrap_or(text.len());
    let ends = text[end..].chars().next().is_none_or(|char| char.is_whitespace() || ":,;>!?.".contains(char));
    (end > 0 && ends).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::decisions::tests::excerpt;

    #[test]
    fn the_most_active_authors_are_chosen_and_of_equals_the_first_by_name() {
        let mut excerpt =
            excerpt(&[("cy", "1", &[]), ("bo", "2", &[]), ("al", "3", &[]), ("bo", "4", &[]), ("ubottu", "5", &[])]);
        excerpt.messages.push(excerpt.messages[4].clone());
        let chosen = |excerpt: &Excerpt, most| {
            authors(excerpt, most, &["CY".to_owned()]).iter().map(ToString::to_string).collect::<Vec<_>>()
        };

        assert_eq!(chosen(&excerpt, 9), ["bo", "al"]);
        assert_eq!(chosen(&excerpt, 1), ["bo"]);
        excerpt.companions = Some(vec!["cy".into(), "dee".into()]);
        assert_eq!(chosen(&excerpt, 9), ["cy", "dee"]);
        excerpt.companions = Some(Vec::new());
        assert!(chosen(&excerpt, 9).is_empty());
    }

    #[test]
    fn a_name_is_found_as_a_word_of_its_own() {
        for (text, is_found) in
            [("al: hi", true), ("hi al", true), ("hi al!", true), ("also", false), ("al-a", false), ("al_", false), ("", false)]
        {
            assert_eq!(is_named(text, "al"), is_found, "{text}");
        }
        assert_eq!(addressee("al: hi"), Some("al"));
        assert_eq!(addressee("@al"), Some("al"));
        assert_eq!(addressee("al/bo: hi"), None);
        assert_eq!(addressee(": hi"), None);
    }
}
