//! Finds code in an answer: marks in it are words.

use super::cursor::{Cursor, More};

/// Code in a line is at most this long, in bytes.
const MAX_SPAN: usize = 1_000;
/// What may follow a fence in its line is at most this long, in bytes.
const MAX_INFO: usize = 200;
/// Code begins with at most this many signs.
const MAX_RUN: usize = 100;

/// The fence that opened a block of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// The fence that a line begins with, and the place after the line.
    pub fn open(line: Cursor<'_>) -> Result<Option<(Self, Cursor<'_>)>, More> {
        let Some(mark) = line.next()?.filter(|c| matches!(c, '`' | '~')) else { return Ok(None) };
        let after = line.past(|c| c == mark, MAX_RUN)?;
        let length = line.until(after).len();
        if length < 3 {
            return Ok(None);
        }
        let Some(info) = after.line(MAX_INFO)?.filter(|info| mark == '~' || !info.contains('`')) else { return Ok(None) };
        let end = after.moved(info.len());
        Ok(Some((Self { mark, length }, end.after("\n")?.unwrap_or(end))))
    }

    /// The place after the line, if it closes the block.
    fn close(self, line: Cursor<'_>) -> Result<Option<Cursor<'_>>, More> {
        let Some(text) = line.line(MAX_INFO)? else { return Ok(None) };
        let end = line.moved(text.len());
        let is_close = text.trim().len() >= self.length && text.trim().chars().all(|c| c == self.mark);
        if is_close { Ok(Some(end.after("\n")?.unwrap_or(end))) } else { Ok(None) }
    }
}

/// Where a text is: in a block of code or not, and within a line or at its beginning.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub fence: Option<Fence>,
    is_within_line: bool,
}

impl Place {
    pub const fn is_line_start(&self) -> bool {
        !self.is_within_line
    }

    /// The length of the code that the text begins with, as far as it is there.
    pub fn code(&mut self, text: Cursor<'_>) -> Result<Option<usize>, More> {
        if self.is_line_start() {
            let line = match self.fence {
                Some(fence) => fence.close(text)?.map(|end| (None, end)),
                None => Fence::open(text)?.map(|(fence, end)| (Some(fence), end)),
            };
            if let Some((fence, end)) = line {
                self.fence = fence;
                return Ok(Some(text.until(end).len()));
            }
        }
        match self.fence {
            Some(_) => Ok(Some(line_length(text.rest()))),
            None => span(text),
        }
    }

    /// This text was said.
    pub fn pass(&mut self, text: &str) {
        let line = text.rsplit('\n').next().unwrap_or_default();
        self.is_within_line = !line.trim().is_empty() || self.is_within_line && line.len() == text.len();
    }
}

/// The length of the first line with its end.
pub(super) fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// The length of the code in backticks that a text begins with, or of the backticks alone. Such code ends in the same line.
pub(super) fn span(text: Cursor<'_>) -> Result<Option<usize>, More> {
    let is_tick = |c| c == '`';
    let begin = text.past(is_tick, MAX_RUN)?;
    let run = text.until(begin).len();
    let mut at = begin;
    while run > 0 {
        at = at.past(|c| !matches!(c, '`' | '\n'), MAX_SPAN)?;
        let end = at.past(is_tick, MAX_RUN)?;
        if at.until(end).is_empty() || begin.until(end).len() > MAX_SPAN {
            break;
        }
        if at.until(end).len() == run {
            return Ok(Some(text.until(end).len()));
        }
        at = end;
    }
    Ok(Some(run).filter(|run| *run > 0))
}

/// The length of the JSON object that a text begins with, if it ends.
pub(super) fn object_length(text: &str) -> Option<usize> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' => is_escaped = is_text,
            '"' => is_text = !is_text,
            '{' | '[' if !is_text => depth += 1,
            '}' | ']' if !is_text && depth <= 1 => return Some(at + 1),
            '}' | ']' if !is_text => depth -= 1,
            _ => {}
        }
    }
    None
}
