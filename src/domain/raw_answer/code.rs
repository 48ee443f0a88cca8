//! Finds code in an answer. Markers inside code are ordinary text.

use super::cursor::{Cursor, Found, More};

/// The maximum length of inline code, in bytes.
const MAX_SPAN: usize = 1_000;
/// The maximum length of a code fence and of the text after it in its line, in bytes.
const MAX_FENCE: usize = 200;

/// The fence at the beginning of the line, such as three backticks, and the position after the line.
pub(super) fn fence(line: Cursor<'_>) -> Result<Option<(&str, Cursor<'_>)>, More> {
    let Some(mark) = line.next()?.filter(|c| matches!(c, '`' | '~')) else { return Ok(None) };
    let after = line.past(|c| c == mark, MAX_FENCE)?;
    let fence = line.until(after);
    let info = if fence.len() < 3 { None } else { after.line(MAX_FENCE)? };
    let info = info.filter(|info| mark == '~' || !info.contains('`'));
    Ok(info.map(|info| (fence, line_end(after.moved(info.len())))))
}

/// The position after the line, or the end of the text so far.
pub(super) fn line_end(text: Cursor<'_>) -> Cursor<'_> {
    text.rest().find('\n').map_or(text.end(), |length| text.moved(length + 1))
}

/// Whether a position is inside a code block, and whether it is at the beginning of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub fence: Option<String>,
    is_within_line: bool,
}

impl Place {
    pub const fn is_line_start(&self) -> bool {
        !self.is_within_line
    }

    /// The position after the code that begins here, or the end of the text so far.
    pub fn code<'a>(&mut self, text: Cursor<'a>) -> Found<'a> {
        let Some(opened) = &self.fence else {
            let found = if self.is_line_start() { fence(text)? } else { None };
            self.fence = found.map(|(fence, _)| fence.to_owned());
            return found.map_or_else(|| span(text), |(_, end)| Ok(Some(end)));
        };
        let line = if self.is_line_start() { text.line(MAX_FENCE)? } else { None };
        let is_close = |line: &str| line.starts_with(&**opened) && line.trim_matches(['`', '~']).is_empty();
        if line.is_some_and(|line| is_close(line.trim())) {
            self.fence = None;
        }
        Ok(Some(line_end(text)))
    }

    /// Advances over this text.
    pub fn pass(&mut self, text: &str) {
        let line = text.rsplit('\n').next().unwrap_or_default();
        self.is_within_line = !line.trim().is_empty() || self.is_within_line && line.len() == text.len();
    }
}

/// The position after the inline code that begins here. If the backticks are not closed in the same line, the position after the
/// backticks.
pub(super) fn span(text: Cursor<'_>) -> Found<'_> {
    let is_tick = |c| c == '`';
    let begin = text.past(is_tick, MAX_FENCE)?;
    let ticks = text.until(begin);
    let mut end = begin;
    while !ticks.is_empty() && begin.until(end).len() < MAX_SPAN {
        let at = end.past(|c| !matches!(c, '`' | '\n'), MAX_SPAN)?;
        end = at.past(is_tick, MAX_FENCE)?;
        match at.until(end) {
            "" => break,
            closing if closing == ticks => return Ok(Some(end)),
            _ => {}
        }
    }
    Ok(Some(begin).filter(|_| !ticks.is_empty()))
}

/// The length of the JSON object at the beginning of the text. `None` if the object is not closed.
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
