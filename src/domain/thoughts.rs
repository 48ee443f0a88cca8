//! Takes away what a model thinks aloud before it answers.

use std::borrow::Cow;

const OPEN: [&str; 2] = ["<think>", "<thinking>"];
const CLOSE: [&str; 2] = ["</think>", "</thinking>"];

/// A text without its `<think>…</think>` and `<thinking>…</thinking>` blocks.
///
/// A block that never ends reaches to the end: what is in it was not meant to be said. One that never began reaches back to the start,
/// because some endpoints begin the block themselves.
pub(in crate::domain) fn without_thoughts(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let (mut from, mut is_thinking) = (0, false);
    for (at, _) in text.match_indices('<') {
        match tag_at(text, at) {
            Some((Tag::Close, end)) => {
                if !is_thinking {
                    kept.clear();
                }
                (from, is_thinking) = (end, false);
            }
            Some((Tag::Open, end)) if !is_thinking => {
                kept.push_str(&text[from..at]);
                (from, is_thinking) = (end, true);
            }
            _ => {}
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    if !is_thinking {
        kept.push_str(&text[from..]);
    }
    Cow::Owned(kept)
}

/// What stands before the last thought's end, where no thought began: a thought that the endpoint began itself, or an answer that quotes the tag.
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

/// A mark at the edge of a thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::domain) enum Tag {
    /// A thought begins.
    Open,
    /// It ends.
    Close,
}

/// The tag that begins here, and where it ends.
pub(in crate::domain) fn tag_at(text: &str, at: usize) -> Option<(Tag, usize)> {
    let end = |tags: &[&str]| {
        let is_here =
            |tag: &&&str| text.as_bytes()[at..].get(..tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes()));
        tags.iter().find(is_here).map(|tag| at + tag.len())
    };
    end(&CLOSE).map(|end| (Tag::Close, end)).or_else(|| end(&OPEN).map(|end| (Tag::Open, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_taken_away() {
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
