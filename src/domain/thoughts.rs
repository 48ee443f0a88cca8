//! Takes away what a model thinks aloud before it answers.

use std::borrow::Cow;

const OPEN: [&str; 2] = ["<think>", "<thinking>"];
const CLOSE: [&str; 2] = ["</think>", "</thinking>"];

/// A text without its `<think>…</think>` and `<thinking>…</thinking>` blocks.
///
/// A block that never ends reaches to the end: what is in it was not meant to be said. One that never began reaches back to the start,
/// because some endpoints begin the block themselves.
pub(in crate::domain) fn without_thoughts(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut kept = String::new();
    let mut is_whole = true;
    loop {
        let open = first(rest, &OPEN);
        let close = first(rest, &CLOSE);
        match (open, close) {
            (None, None) => break,
            (None, Some((_, end))) => {
                kept.clear();
                rest = &rest[end..];
            }
            (Some((start, _)), Some((close, end))) if close < start => {
                kept.clear();
                rest = &rest[end..];
            }
            (Some((start, _)), Some((_, end))) => {
                kept.push_str(&rest[..start]);
                rest = &rest[end..];
            }
            (Some((start, _)), None) => {
                kept.push_str(&rest[..start]);
                rest = "";
            }
        }
        is_whole = false;
    }
    if is_whole {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// Where the first of some tags begins and ends.
fn first(text: &str, tags: &[&str]) -> Option<(usize, usize)> {
    text.match_indices('<').find_map(|(start, _)| {
        let tag = tags.iter().find(|tag| {
            text.as_bytes()[start..].get(..tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag.as_bytes()))
        })?;
        Some((start, start + tag.len()))
    })
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
            ("1 < 2 and <b>", "1 < 2 and <b>"),
        ] {
            assert_eq!(without_thoughts(text), expected, "{text:?}");
        }
    }
}
