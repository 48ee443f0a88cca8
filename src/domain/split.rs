//! Splits a long reply into parts that a platform accepts.

mod code;
mod graphemes;
mod marked;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use code::{Block, blocks};
pub(crate) use graphemes::may_break;
use marked::{Marked, marked};

/// The smallest limit. A smaller one has no room for the fences of a code block.
const MIN_LIMIT: usize = 32;

/// Splits a text at paragraphs, otherwise at lines, sentences or words, otherwise between grapheme clusters.
///
/// No part exceeds the limit, counted in UTF-16 code units. A text never has fewer code units than characters, so the limit also holds on platforms
/// that count characters (Discord: 2,000 characters). A limit under 32 is raised to 32. A code block that spans several parts is closed at the end of
/// each part, and opened again in the next, with its language. So is bold, italic, underlined or struck-through text, and a spoiler. Parts with only white
/// space are omitted.
pub fn split(text: &str, limit_chars: usize) -> Vec<String> {
    let limit = limit_chars.max(MIN_LIMIT);
    let blocks = blocks(text, limit);
    let marked = marked(text, &blocks);
    let mut parts = Vec::new();
    let mut at = dropped_space(text, false);
    while at < text.len() {
        let inside = block_at(&blocks, at);
        // The text that ends last was opened first.
        let begun = marked.iter().rev().filter(|marked| marked.start <= at && at < marked.end);
        let opening = inside.map_or_else(|| begun.map(|marked| marked.mark).collect(), Block::opening);
        let mut room = limit - units(&opening);
        if units(&text[at..]) > room {
            let window = at..at + bytes_within(&text[at..], room);
            let may_be_cut = marked.iter().filter(|marked| marked.start < window.end && window.start < marked.end);
            room -= may_be_cut.map(|marked| marked.mark).collect::<BTreeSet<_>>().into_iter().map(str::len).sum::<usize>();
        }
        let end = outside_marks(end_of_part(text, at, room, &blocks), at, &marked);
        let closing = block_at(&blocks, end).or_else(|| blocks.last().filter(|block| block.is_unclosed && block.body_end == end));
        let closing = closing.filter(|block| block.body_start < end).map(Block::closing).unwrap_or_default();
        let body = &text[at..end];
        if !body.trim().is_empty() {
            // The closing fence needs a line of its own.
            let body = if closing.is_empty() { body.trim_end() } else { body.strip_suffix('\n').unwrap_or(body) };
            let unclosed = marked.iter().filter(|marked| marked.start <= end && end <= marked.end);
            let closing_marks: String = unclosed.map(|marked| marked.mark).collect();
            parts.push([&opening, body, &closing, &closing_marks].concat());
        }
        at = end + dropped_space(&text[end..], block_at(&blocks, end).is_some());
        // Skip texts of which only the closing marks are left.
        while let Some(closing) = marked.iter().find(|marked| marked.start <= end && marked.end == at) {
            at += closing.mark.len();
            at += dropped_space(&text[at..], false);
        }
        // Only the closing fence is left of this block, and the block is already closed.
        if !closing.is_empty()
            && let Ok(block) = blocks.binary_search_by_key(&at, |block| block.body_end)
        {
            let block = &blocks[block];
            at = block.end + dropped_space(&text[block.end..], false);
        }
    }
    parts
}

/// The block whose code contains the position `at`.
fn block_at(blocks: &[Block], at: usize) -> Option<&Block> {
    blocks[..blocks.partition_point(|block| block.start < at)].last().filter(|block| block.holds(at))
}

/// The end of the part that begins at `at` and has this much room, including a closing fence.
fn end_of_part(text: &str, at: usize, room: usize, blocks: &[Block]) -> usize {
    let window_end = at + bytes_within(&text[at..], room);
    let unclosed = blocks.last().filter(|block| block.is_unclosed).map_or(0, |block| units(&block.closing()));
    if window_end == text.len() && units(&text[at..]) + unclosed <= room {
        return window_end;
    }
    let fits = |end: usize| {
        if end <= at {
            return false;
        }
        // Blocks do not overlap, so no earlier block reaches this far.
        let Some(block) = blocks[..blocks.partition_point(|block| block.start < end)].last() else { return true };
        // A fence is never separated from the code beside it.
        if end <= block.body_start || (block.body_end <= end && end < block.end) {
            return false;
        }
        let is_closed_here = end <= block.body_end && (end < block.end || block.is_unclosed);
        !is_closed_here || units(&text[at..end]) + units(&block.closing()) <= room
    };
    let outside = |end: &usize| block_at(blocks, *end).is_none();
    let paragraphs = || ends(text, at..window_end, |before, after| before.ends_with("\n") && after.starts_with('\n'));
    let near = blocks[blocks.partition_point(|block| block.end <= at)..].iter().take_while(|block| block.start <= window_end);
    let around_code = near.flat_map(|block| [block.start, block.end]).filter(|end| (at + 1..=window_end).contains(end));
    if let Some(end) = paragraphs().filter(outside).chain(around_code).filter(|end| fits(*end)).max() {
        return end;
    }
    ends(text, at..window_end, |_, after| after.starts_with('\n'))
        .rfind(|end| fits(*end))
        .or_else(|| ends(text, at..window_end, is_end_of_sentence).rfind(|end| fits(*end)))
        .or_else(|| ends(text, at..window_end, |_, after| after.starts_with(char::is_whitespace)).rfind(|end| fits(*end)))
        .or_else(|| ends(text, at..window_end, may_break).rfind(|end| fits(*end)))
        .or_else(|| ends(text, at..window_end, |_, _| true).rfind(|end| fits(*end)))
        // There is no room for even one character beside the fences of two blocks, so the part has no fences.
        .unwrap_or(window_end)
}

/// The end of a part, moved so that it is in no mark, and not between an opening mark and its text.
fn outside_marks(end: usize, at: usize, marked: &[Marked]) -> usize {
    let mut moved = end;
    // Before one opening mark there may be another.
    while let Some(before) = marked.iter().find_map(|marked| {
        let opening = marked.start - marked.mark.len();
        let is_opening = opening < moved && moved <= marked.start;
        let is_in_closing = marked.end < moved && moved < marked.end + marked.mark.len();
        is_opening.then_some(opening).or_else(|| is_in_closing.then_some(marked.end))
    }) {
        moved = before;
    }
    if moved > at { moved } else { end }
}

/// The positions in a window where a part may end. `is_end` gets the text of the part so far, and the text after it.
fn ends<'a>(
    text: &'a str,
    window: Range<usize>,
    is_end: impl Fn(&str, &str) -> bool + 'a,
) -> impl DoubleEndedIterator<Item = usize> + 'a {
    let start = window.start;
    text[window]
        .char_indices()
        .map(move |(place, c)| start + place + c.len_utf8())
        .filter(move |end| is_end(&text[start..*end], &text[*end..]))
}

/// Whether a sentence ends between two texts: at a full stop before white space, or at a full stop of a script without spaces.
pub(crate) fn is_end_of_sentence(before: &str, after: &str) -> bool {
    let words = before.trim_end_matches(['"', '\'', '”', '’', ')', '*', '_', '」', '』', '）']);
    words.ends_with(['。', '！', '？']) && !after.starts_with(['」', '』', '）', '。', '！', '？'])
        || words.ends_with(['.', '!', '?', '…']) && after.starts_with(char::is_whitespace)
}

/// The number of bytes of a text that fit into this many UTF-16 code units.
fn bytes_within(text: &str, room: usize) -> usize {
    let mut sum = 0;
    text.chars()
        .take_while(|c| {
            sum += c.len_utf16();
            sum <= room
        })
        .map(char::len_utf8)
        .sum()
}

/// The length of the white space to drop between two parts. In code it is a single line break, so that the next line keeps its indentation.
fn dropped_space(rest: &str, in_code: bool) -> usize {
    if in_code {
        return usize::from(rest.starts_with('\n'));
    }
    rest.len() - rest.trim_start().len()
}

/// The length of a text in UTF-16 code units.
fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
