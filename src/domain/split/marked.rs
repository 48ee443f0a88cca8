//! Finds text between marks that chat platforms know: bold, underlined, struck through, spoilers, and italic, the form of actions in roleplay.

use super::code::Block;

/// The marks. A marked text is between two equal ones.
const MARKS: [&str; 5] = ["**", "__", "~~", "||", ITALIC];
/// This mark counts only directly beside its text. Elsewhere it is a bullet or a sign.
const ITALIC: &str = "*";

/// A text between two marks.
#[derive(Clone, Debug)]
pub(super) struct Marked {
    pub(super) mark: &'static str,
    /// The start and the end of the text, without the marks.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The texts between marks, outside code, in the order of their ends.
pub(super) fn marked(text: &str, blocks: &[Block]) -> Vec<Marked> {
    let (mut found, mut open, mut blocks) = (Vec::new(), [None; MARKS.len()], blocks.iter().peekable());
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(block) = blocks.next_if(|block| block.start <= at) {
            (at, open) = (block.end, [None; MARKS.len()]);
        } else if let Some(kind) = MARKS.iter().position(|mark| rest.starts_with(mark)) {
            let mark = MARKS[kind];
            let (before, after) = (text[..at].chars().next_back(), rest[mark.len()..].chars().next());
            let is_beside = |c: Option<char>| mark != ITALIC || c.is_some_and(|c| !c.is_whitespace());
            match open[kind] {
                Some(start) if is_beside(before) => {
                    found.push(Marked { mark, start, end: at });
                    open[kind] = None;
                }
                None if is_beside(after) => open[kind] = Some(at + mark.len()),
                _ => {}
            }
            at += mark.len();
        } else if next == '`' {
            let (fence, code) = rest.split_at(rest.find(|c| c != '`').unwrap_or(rest.len()));
            at += fence.len() + code.find(fence).map_or(0, |end| end + fence.len());
        } else {
            let escaped = rest.chars().nth(1).filter(|_| next == '\\').map_or(0, char::len_utf8);
            at += next.len_utf8() + escaped;
        }
    }
    found
}
