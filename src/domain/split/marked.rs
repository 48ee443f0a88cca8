//! Finds text between marks that chat platforms know: bold, underlined, struck through, spoilers.

use super::code::Block;

/// The marks, with a size of two bytes each. A marked text is between two equal marks.
const MARKS: [&str; 4] = ["**", "__", "~~", "||"];
/// The length of a mark.
pub(super) const LENGTH: usize = 2;

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
            match open[kind].take() {
                Some(start) => found.push(Marked { mark: MARKS[kind], start, end: at }),
                None => open[kind] = Some(at + LENGTH),
            }
            at += LENGTH;
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
