//! Extracts a statement from the answer of a model.

use super::text::is_blank;
use super::thoughts::without_thoughts;

/// The maximum length of a statement, in characters.
pub(in crate::domain) const MAX_CHARS: usize = 20_000;

/// Quotation marks that may surround a whole statement.
pub(in crate::domain) const QUOTES: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('\'', '\'')];

/// The text of a statement, without the model's thoughts, without its own name before it, and without quotation marks around it.
///
/// If the model answers with the JSON that shows messages, its `text` is extracted. Returns `None` if nothing visible is left. The text has at most
/// 20,000 characters.
pub fn clean_statement(text: &str, companion_name: &str) -> Option<String> {
    let without_thought = without_thoughts(text);
    let spoken = from_json(without_thought.trim());
    let mut words = spoken.as_deref().unwrap_or(&without_thought).trim();
    // The name may be before the quotation marks or inside them.
    for _ in 0..2 {
        words = without_quotes(without_name(words, companion_name));
    }
    words = without_name(words, companion_name);
    let visible: String = words.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).take(MAX_CHARS).collect();
    let visible = visible.trim();
    (!is_blank(visible)).then(|| visible.to_owned())
}

/// The brief of a persona, without the model's thoughts, with at most this number of bytes. `None`: nothing visible is left.
pub fn clean_brief(text: &str, max_bytes: usize) -> Option<String> {
    let without_thought = without_thoughts(text);
    let visible = without_thought.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
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

/// The `text` of a message in the JSON of a transcript.
pub(in crate::domain) fn from_json(text: &str) -> Option<String> {
    if !text.starts_with('{') {
        return None;
    }
    let object: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(object.get("text")?.as_str()?.to_owned())
}

/// Removes `Aria:`, `**Aria:**` or `[Aria]:` from the start.
pub(in crate::domain) fn without_name<'a>(text: &'a str, name: &str) -> &'a str {
    let name = name.trim();
    let start = text.trim_start_matches(['*', '_', '[', '<']);
    let Some(rest) = strip_ignoring_case(start, name).filter(|_| !name.is_empty()) else { return text };
    let before_colon = rest.trim_start_matches(['*', '_', ']', '>', ' ']);
    let Some(after) = before_colon.strip_prefix([':', '：']) else { return text };
    // Only the marks that open before the name and close after the colon are removed, because the rest may be in bold itself.
    let opened = &text[..text.len() - start.len()];
    let closing = opened.chars().rev().filter(|c| matches!(c, '*' | '_')).collect::<String>();
    let is_open = !rest.starts_with(['*', '_', ']', '>']);
    let after = if is_open { after.strip_prefix(&closing).unwrap_or(after) } else { after };
    after.trim_start()
}

/// Removes a pair of quotation marks around the whole text, if there is none inside.
fn without_quotes(text: &str) -> &str {
    for (open, close) in QUOTES {
        let Some(inside) = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)) else { continue };
        if !inside.contains([open, close]) {
            return inside.trim();
        }
    }
    text
}

fn strip_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for expected in prefix.chars() {
        let found = rest.next()?;
        if found != expected && !found.to_lowercase().eq(expected.to_lowercase()) {
            return None;
        }
    }
    Some(rest.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
