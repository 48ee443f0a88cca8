//! Removes what a model thinks aloud before it answers.

use std::borrow::Cow;

const OPEN: [&str; 2] = ["<think>", "<thinking>"];
const CLOSE: [&str; 2] = ["</think>", "</thinking>"];

/// A text without its `<think>…</think>` and `<thinking>…</thinking>` blocks.
///
/// A block without an end reaches to the end of the text, because a thought must not be posted. A block without a beginning reaches back to the
/// start, because some endpoints begin the block themselves.
pub(in crate::domain) fn without_thoughts(text: &str) -> Cow<'_, str> {
    let mut result = String::new();
    let (mut rest_start, mut is_thinking) = (0, false);
    for (at, _) in text.match_indices('<') {
        match tag_at(text, at) {
            Some((Tag::Close, end)) => {
                if !is_thinking {
                    result.clear();
                }
                (rest_start, is_thinking) = (end, false);
            }
            Some((Tag::Open, end)) if !is_thinking => {
                result.push_str(&text[rest_start..at]);
                (rest_start, is_thinking) = (end, true);
            }
            _ => {}
        }
    }
    if rest_start == 0 {
        return Cow::Borrowed(text);
    }
    if !is_thinking {
        result.push_str(&text[rest_start..]);
    }
    Cow::Owned(result)
}

/// The text before the last closing tag that has no opening tag: a thought that the endpoint began itself, or an answer that quotes the tag.
pub(in crate::domain) fn unopened(text: &str) -> Option<&str> {
    let (mut before, mut is_thinking) = (None, false);
    for (at, _) in text.match_indices('<') {
        match tag_at(text, at) {
            Some((Tag::Close, _)) => {
                if !is_thinking {
                    before = Some(&text[..at]);
                }
                is_thinking = false;
            }
            Some((Tag::Open, _)) => is_thinking = true,
            None => {}
        }
    }
    before
}

/// A tag of a thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::domain) enum Tag {
    /// The tag that begins a thought.
    Open,
    /// The tag that ends a thought.
    Close,
}

/// The tag that begins at `at`, and its end.
pub(in crate::domain) fn tag_at(text: &str, at: usize) -> Option<(Tag, usize)> {
    let end = |tags: &[&str]| {
        let matches =
            |tag: &&&str| text.as_bytes()[at..].get(..tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes()));
        tags.iter().find(matches).map(|tag| at + tag.len())
    };
    end(&CLOSE).map(|end| (Tag::Close, end)).or_else(|| end(&OPEN).map(|end| (Tag::Open, end)))
}

/// Whether a text may become a tag of a thought with the characters that follow.
pub(in crate::domain) fn may_become_tag(text: &str) -> bool {
    let begins = |tag: &&str| tag.as_bytes().get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()));
    OPEN.iter().chain(&CLOSE).any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_removed() {
        for (text, expected) in [
            ("hello", "hello"),
            ("<think>hm\nNO</think>\nYES", "\nYES"),
            ("<THINK>hm</Think>a<thinking>b</thinking>c", "ac"),
            ("a <think>never ends", "a "),
            ("never began</think>b", "b"),
            ("a<think>b</think>c</think>d", "d"),
            ("a<think>b<think>c</think>d", "ad"),
            ("1 < 2 and <b>", "1 < 2 and <b>"),
        ] {
            assert_eq!(without_thoughts(text), expected, "{text:?}");
        }
    }
}
