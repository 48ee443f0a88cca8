//! Shows text of other people in answers, without its markup.

use crate::names;

/// The limit of quoted characters of other people's text.
const LONGEST_QUOTE: usize = 300;

/// A name in bold, with its markup escaped.
pub(super) fn name(name: &str) -> String {
    format!("**{}**", verbatim(name))
}

/// Escapes text by other people: one line, without markup and mentions.
pub(crate) fn verbatim(text: &str) -> String {
    let cut: String = text.chars().take(LONGEST_QUOTE).collect();
    // Word by word, because `names::plain` cuts to the length of a name.
    let words: Vec<_> = cut.split_whitespace().map(names::plain).filter(|word| !word.is_empty()).collect();
    let plain = words.join(" ");
    let mut shown = String::with_capacity(plain.len());
    for c in plain.chars() {
        if matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '>' | '<' | '#' | '@' | '[' | ']' | ':' | '-') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

/// Removes names of settings in brackets from a sentence of ours, because only operators understand them.
pub(super) fn without_settings(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (") {
        let Some((inside, remainder)) = after.split_once(')') else { break };
        shown.push_str(before);
        if !inside.contains(['.', '_', '/', '=']) {
            shown.push_str(" (");
            shown.push_str(inside);
            shown.push(')');
        }
        rest = remainder;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_of_others_has_no_effect() {
        assert_eq!(verbatim("Aria"), "Aria");
        assert_eq!(name("**@everyone** <@1>\nx"), "**\\*\\*\\@everyone\\*\\* \\<\\@1\\> x**");
        assert_eq!(verbatim("[a](https://b)"), "\\[a\\](https\\://b)");
    }

    #[test]
    fn names_of_settings_are_left_out() {
        for (text, expected) in [
            ("9 more messages, 7 s of quiet, or its name", "9 more messages, 7 s of quiet, or its name"),
            (
                "the guild's daily token budget (models.guild_tokens_per_day), free again in 5 h",
                "the guild's daily token budget, free again in 5 h",
            ),
            ("a (kind) word", "a (kind) word"),
            ("open (ended", "open (ended"),
        ] {
            assert_eq!(without_settings(text), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn escaped_text_stays_in_one_line(text in any::<String>()) {
            let shown = verbatim(&text);

            let leaves = shown.contains(['\n', '\r', '\u{202e}']);
            prop_assert!(!leaves);
        }
    }
}
