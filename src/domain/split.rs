//! Splits a long reply into parts that a platform takes.

mod code;
mod graphemes;

#[cfg(test)]
mod tests;

use std::ops::Range;

use code::{Block, blocks};
use graphemes::may_break;

/// The smallest limit that is kept; below it there is no room for the fences of a code block.
const LEAST: usize = 32;

/// Splits a text at paragraphs, else lines, else sentences, else words, else between characters that do not belong together.
///
/// No part is over the limit, counted in UTF-16 code units: never fewer than characters, so it holds on platforms that count either
/// (Discord: 2,000 characters). A limit under 32 is taken as 32. A code block that goes over several parts is closed at the end of each
/// and opened again, with its language, in the next. Parts of white space alone are left out.
pub fn split(text: &str, limit_chars: usize) -> Vec<String> {
    let limit = limit_chars.max(LEAST);
    let blocks = blocks(text, limit);
    let mut parts = Vec::new();
    let mut at = gap(text, false);
    while at < text.len() {
        let inside = holding(&blocks, at);
        let opening = inside.map(Block::opening).unwrap_or_default();
        let room = limit - units(&opening);
        let end = end_of_part(text, at, room, &blocks);
        let closing = holding(&blocks, end).or_else(|| blocks.last().filter(|block| block.is_unclosed && block.body_end == end));
        let closing = closing.filter(|block| block.body_start < end).map(Block::closing).unwrap_or_default();
        let body = &text[at..end];
        if !body.trim().is_empty() {
            // The fence of the block stands in a line of its own.
            let body = if closing.is_empty() { body.trim_end() } else { body.strip_suffix('\n').unwrap_or(body) };
            parts.push([&opening, body, &closing].concat());
        }
        at = end + gap(&text[end..], holding(&blocks, end).is_some());
        // What is left of this block is the fence that closes it, and it is closed already.
        if !closing.is_empty()
            && let Ok(block) = blocks.binary_search_by_key(&at, |block| block.body_end)
        {
            let block = &blocks[block];
            at = block.end + gap(&text[block.end..], false);
        }
    }
    parts
}

/// The block among whose code a place is.
fn holding(blocks: &[Block], at: usize) -> Option<&Block> {
    blocks[..blocks.partition_point(|block| block.start < at)].last().filter(|block| block.holds(at))
}

/// Where the part ends that begins at `at` and has this much room, the closing fence included.
fn end_of_part(text: &str, at: usize, room: usize, blocks: &[Block]) -> usize {
    let window_end = at + reach(&text[at..], room);
    let unclosed = blocks.last().filter(|block| block.is_unclosed).map_or(0, |block| units(&block.closing()));
    if window_end == text.len() && units(&text[at..]) + unclosed <= room {
        return window_end;
    }
    let fits = |end: usize| {
        if end <= at {
            return false;
        }
        // Blocks follow one another, so no earlier one reaches so far.
        let Some(block) = blocks[..blocks.partition_point(|block| block.start < end)].last() else { return true };
        // A fence that opens or closes is never torn from the code beside it.
        if end <= block.body_start || (block.body_end <= end && end < block.end) {
            return false;
        }
        let is_closed_here = end <= block.body_end && (end < block.end || block.is_unclosed);
        !is_closed_here || units(&text[at..end]) + units(&block.closing()) <= room
    };
    let outside = |end: &usize| holding(blocks, *end).is_none();
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
        // Not even one character fits beside the fences of two blocks: it goes without them.
        .unwrap_or(window_end)
}

/// The places in a window where a part may end, by what stands between its beginning and there, and what follows.
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

/// Whether a sentence ends between the two: at a full stop with white space after it, or at one of a script without spaces.
fn is_end_of_sentence(before: &str, after: &str) -> bool {
    let words = before.trim_end_matches(['"', '\'', '”', '’', ')', '*', '_', '」', '』', '）']);
    words.ends_with(['。', '！', '？']) && !after.starts_with(['」', '』', '）', '。', '！', '？'])
        || words.ends_with(['.', '!', '?', '…']) && after.starts_with(char::is_whitespace)
}

/// How many bytes of a text fit into this many UTF-16 code units.
fn reach(text: &str, room: usize) -> usize {
    let mut sum = 0;
    text.chars()
        .take_while(|c| {
            sum += c.len_utf16();
            sum <= room
        })
        .map(char::len_utf8)
        .sum()
}

/// White space between two parts, which neither needs: in code a single line break, so that what follows keeps its indentation.
fn gap(rest: &str, in_code: bool) -> usize {
    if in_code {
        return usize::from(rest.starts_with('\n'));
    }
    rest.len() - rest.trim_start().len()
}

/// UTF-16 code units.
fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
