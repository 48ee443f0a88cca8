//! Finds code in an answer that grows: marks in it are words.

use super::Look;

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
    /// The fence that a line begins with, and the length of the line with its end.
    pub(super) fn open(line: &str, is_end: bool) -> Look<(Self, usize)> {
        let Some(mark) = line.chars().next().filter(|c| matches!(c, '`' | '~')) else { return Look::No };
        let length = run(line, mark);
        let info = &line[length..];
        let (info, has_end) = info.split_once('\n').map_or((info, is_end), |(info, _)| (info, true));
        if length > MAX_RUN || mark == '`' && info.contains('`') || info.len() > MAX_INFO {
            return Look::No;
        }
        match has_end {
            false if length < 3 && !info.is_empty() => Look::No,
            false => Look::More,
            true if length < 3 => Look::No,
            true => Look::Yes((Self { mark, length }, (length + info.len() + 1).min(line.len()))),
        }
    }

    /// Whether a line closes the block, and the length of the line with its end.
    pub(super) fn close(self, line: &str, is_end: bool) -> Look<usize> {
        let (line, end) = line.split_once('\n').map_or((line, None), |(line, _)| (line, Some(line.len() + 1)));
        let words = line.trim();
        if words.contains(|c| c != self.mark) || line.len() > MAX_INFO {
            return Look::No;
        }
        match end {
            Some(end) if words.len() >= self.length => Look::Yes(end),
            None if !is_end => Look::More,
            None if words.len() >= self.length => Look::Yes(line.len()),
            _ => Look::No,
        }
    }
}

/// The length of the code in backticks that a text begins with. It ends in the same line.
pub(super) fn span(text: &str, is_end: bool) -> Look<usize> {
    let run = ticks(text);
    if run > MAX_RUN {
        return Look::No;
    }
    if run == text.len() {
        return if is_end { Look::No } else { Look::More };
    }
    let mut at = run;
    while let Some(next) = text[at..].find(['`', '\n']) {
        at += next;
        let closing = ticks(&text[at..]);
        if closing == 0 || at > MAX_SPAN {
            return Look::No;
        }
        if at + closing == text.len() && !is_end {
            return Look::More;
        }
        at += closing;
        if closing == run {
            return Look::Yes(at);
        }
    }
    if is_end || text.len() > MAX_SPAN { Look::No } else { Look::More }
}

/// How many backticks a text begins with, up to one more than code may begin with.
pub(super) fn ticks(text: &str) -> usize {
    run(text, '`')
}

fn run(text: &str, mark: char) -> usize {
    text.chars().take(MAX_RUN + 1).take_while(|c| *c == mark).count()
}

/// A JSON object that grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

impl Object {
    /// One that reaches to the end of the text.
    pub(super) const fn endless() -> Self {
        Self { depth: usize::MAX / 2, is_text: false, is_escaped: false }
    }

    /// Takes more of the text. Returns the end of the object, if it ends there.
    pub(super) fn take(&mut self, text: &str) -> Option<usize> {
        for (at, c) in text.char_indices() {
            match c {
                _ if std::mem::take(&mut self.is_escaped) => {}
                '\\' => self.is_escaped = self.is_text,
                '"' => self.is_text = !self.is_text,
                '{' | '[' if !self.is_text => self.depth += 1,
                '}' | ']' if !self.is_text => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
