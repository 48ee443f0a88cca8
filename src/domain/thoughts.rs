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
        if let Some(end) = tag_end(text, at, &CLOSE) {
            if !is_thinking {
                kept.clear();
            }
            (from, is_thinking) = (end, false);
        } else if let Some(end) = tag_end(text, at, &OPEN).filter(|_| !is_thinking) {
            kept.push_str(&text[from..at]);
            (from, is_thinking) = (end, true);
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

/// What comes after the first thought; none if no thought ends.
pub(in crate::domain) fn after_first_thought(text: &str) -> Option<&str> {
    let end = text.match_indices('<').find_map(|(at, _)| tag_end(text, at, &CLOSE))?;
    Some(&text[end..])
}

/// Where one of some tags ends that begins here.
fn tag_end(text: &str, at: usize, tags: &[&str]) -> Option<usize> {
    let is_here =
        |tag: &&&str| text.as_bytes()[at..].get(..tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes()));
    tags.iter().find(is_here).map(|tag| at + tag.len())
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
