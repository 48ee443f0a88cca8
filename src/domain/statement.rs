//! Extracts a statement from the answer of a model.

use super::raw_answer::{self, Speakers};
use super::text::is_blank;

/// The words of a statement, in a room where nobody else is known. `None`: the answer holds none.
pub fn clean_statement(text: &str, companion_name: &str) -> Option<String> {
    raw_answer::statement(text, Speakers::new(companion_name, [])).words.ok()
}

/// The brief of a persona, without the model's thoughts, with at most this number of bytes. `None`: nothing visible is left.
pub fn clean_brief(text: &str, max_bytes: usize) -> Option<String> {
    let visible = raw_answer::prose(text).text;
    let visible = visible.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    let mut bytes = 0;
    let kept: String = visible
        .skip_while(|c| c.is_whitespace())
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= max_bytes
        })
        .collect();
    let kept = kept.trim_end();
    (!is_blank(kept)).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::raw_answer::MAX_CHARS;
    use super::*;

    #[test]
    fn the_statement_is_extracted() {
        for (text, expected) in [
            ("Hello!", Some("Hello!")),
            ("  Hello!\n\n", Some("Hello!")),
            ("Aria: Hello!", Some("Hello!")),
            ("aria : Hello!", Some("Hello!")),
            ("**Aria:** Hello!", Some("Hello!")),
            ("**Aria**: Hello!", Some("Hello!")),
            ("**Aria**: **Hello!**", Some("**Hello!**")),
            ("Aria: **Hello!**", Some("**Hello!**")),
            ("[Aria]: Hello!", Some("Hello!")),
            ("Aria：やあ", Some("やあ")),
            ("Ariadne: Hello!", Some("Ariadne: Hello!")),
            ("Aria likes it: yes", Some("Aria likes it: yes")),
            ("Bob: Hello!", Some("Bob: Hello!")),
            ("\"Hello!\"", Some("Hello!")),
            ("“Aria: Hello!”", Some("Hello!")),
            ("Aria: \"Hello!\"", Some("Hello!")),
            ("「やあ」", Some("やあ")),
            ("\"Hello\" and \"bye\"", Some("\"Hello\" and \"bye\"")),
            ("'tis so", Some("'tis so")),
            ("<think>What now?</think>\nHello!", Some("Hello!")),
            ("<think>What now?", None),
            ("{\"n\":3,\"role\":\"you\",\"from\":\"Aria\",\"text\":\"Hello!\"}", Some("Hello!")),
            ("{\"x\":1}", Some("{\"x\":1}")),
            ("{not json", Some("{not json")),
            ("a\u{0}b\r\nc\td", Some("ab\nc\td")),
            ("\u{200b}", None),
            ("Aria: \u{200b}\u{200d}\n\u{fe0f}\u{2800}", None),
            ("\u{ad}!", Some("\u{ad}!")),
            ("Aria:", None),
            ("\"\"", None),
            ("\"", Some("\"")),
            ("", None),
        ] {
            assert_eq!(clean_statement(text, "Aria").as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_companion_without_a_name_loses_no_words() {
        assert_eq!(clean_statement(": hello", "").as_deref(), Some(": hello"));
    }

    #[test]
    fn a_statement_is_bounded() {
        let long = clean_statement(&"é ".repeat(100_000), "Aria").unwrap();

        assert!(long.chars().count() <= MAX_CHARS);
    }

    proptest! {
        #[test]
        fn no_statement_panics(text in any::<String>(), name in "\\PC{0,5}", around in "[*_\\[<\"'“” :]{0,6}") {
            clean_statement(&text, &name);
            clean_statement(&format!("{around}{name}{around}{text}{around}"), &name);
        }
    }
}
