//! Recognises a line that begins with the name of who says it: `Ana:`, `**Ana:**`, `[Ana]:`, `<Ana>`, `[22:10] Ana (she/her):`.

use super::Look;

/// At most this many signs are around a name.
const MAX_MARKS: usize = 4;
/// What stands in brackets beside a name is at most this long, in characters.
const MAX_ASIDE: usize = 40;
/// What follows the name in a line of scores is at most this long, in bytes.
const MAX_SCORE: usize = 40;
/// What may follow the number of a score.
const UNITS: [&str; 31] = [
    "", "point", "points", "pt", "pts", "p", "goal", "goals", "win", "wins", "vote", "votes", "kg", "g", "lb", "lbs", "km", "m",
    "cm", "mi", "l", "ml", "h", "min", "s", "years", "€", "$", "EUR", "USD", "kcal",
];
/// What a score may begin with instead of a number.
const SIGNS: [char; 14] = ['✅', '❌', '✔', '✖', '✗', '✘', '☑', '★', '☆', '⭐', '🏆', '-', '–', '—'];

/// Whether a line begins with a name and what separates it from words, and the length of both.
pub(super) fn speaker(line: &str, name: &str) -> Look<usize> {
    match Cursor(line).speaker(name) {
        Ok(rest) => Look::Yes(line.len() - rest.len()),
        Err(Stop::Ended) => Look::More,
        Err(Stop::Differs) => Look::No,
    }
}

/// Whether a line begins with the name of a role in a chat, as in `User:`. Roles are capitalised, because other lists use the same words.
pub(super) fn role(line: &str, role: &str) -> Look<usize> {
    let is_capital = line.trim_start_matches(['*', '_', '[', '<', '#', ' ']).starts_with(|c: char| c.is_uppercase());
    match speaker(line, role) {
        Look::Yes(length) if is_capital => Look::Yes(length),
        Look::Yes(_) => Look::No,
        other => other,
    }
}

/// Whether a line is the role of a turn's author alone, as a server leaves it that removes the marks around it, and whether it is somebody else's.
pub(super) fn bare_role(text: &str, is_end: bool) -> Look<bool> {
    let (line, has_end) = text.split_once('\n').map_or((text, is_end), |(line, _)| (line, true));
    match line.trim_end() {
        "assistant" | "model" if has_end => Look::Yes(false),
        "user" | "human" if has_end => Look::Yes(true),
        line if !has_end && ["assistant", "model", "user", "human"].iter().any(|role| role.starts_with(line)) => Look::More,
        _ => Look::No,
    }
}

/// Whether what follows a name in its line is a score, such as `5`, `3/10 points` or `✅`, and no words.
pub(super) fn is_score(after: &str, is_end: bool) -> Look<()> {
    let (line, has_end) = after.split_once('\n').map_or((after, is_end), |(line, _)| (line, true));
    let line = line.trim().trim_matches(['*', '_']);
    let number = line.trim_start_matches(['+', '-', '−', '±', '~', '$', '€']);
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '/' | ':' | '–' | '-' | '%');
    let unit = number.trim_start_matches(is_of_number).trim();
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && (UNITS.iter().any(|known| known.eq_ignore_ascii_case(unit)) || unit.starts_with("out of "));
    let is_sign = line.starts_with(SIGNS) && !line.contains(char::is_alphanumeric);
    let may_become =
        line.len() <= MAX_SCORE && !has_end && (number.starts_with(|c: char| c.is_ascii_digit()) || number.is_empty());
    match (is_number || is_sign, may_become || is_sign && !has_end && line.len() <= MAX_SCORE) {
        (_, true) => Look::More,
        (true, false) if has_end => Look::Yes(()),
        _ => Look::No,
    }
}

/// Why a text is not what is looked for.
enum Stop {
    /// It ended before that was clear.
    Ended,
    Differs,
}

struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn speaker(mut self, name: &str) -> Result<&'a str, Stop> {
        self.heading()?;
        self.time()?;
        let opened = self.marks(&['*', '_', '[', '<', '('])?;
        for expected in name.chars() {
            let found = self.next()?;
            if found != expected && !found.to_lowercase().eq(expected.to_lowercase()) {
                return Err(Stop::Differs);
            }
        }
        let closed = self.marks(&['*', '_', ']', '>', ')'])?;
        let is_tagged = opened.ends_with('<') && closed.starts_with('>');
        let has_space = self.spaces()? > 0;
        if matches!(self.peek()?, '(' | '[') {
            self.aside()?;
            self.marks(&['*', '_', ']', '>', ')'])?;
            self.spaces()?;
        }
        if is_tagged && has_space {
            return Ok(self.0);
        }
        if !matches!(self.peek()?, ':' | '：') {
            return Err(Stop::Differs);
        }
        self.next()?;
        // Signs that are open before the name and not closed after it close after the colon.
        if closed.is_empty() {
            for mark in opened.chars().rev().filter(|mark| matches!(mark, '*' | '_')) {
                match self.peek() {
                    Ok(found) if found == mark => self.next()?,
                    Ok(_) => break,
                    Err(stop) => return Err(stop),
                };
            }
        }
        Ok(self.0.trim_start_matches([' ', '\t']))
    }

    fn peek(&self) -> Result<char, Stop> {
        self.0.chars().next().ok_or(Stop::Ended)
    }

    fn next(&mut self) -> Result<char, Stop> {
        let next = self.peek()?;
        self.0 = &self.0[next.len_utf8()..];
        Ok(next)
    }

    fn spaces(&mut self) -> Result<usize, Stop> {
        let mut count = 0;
        while self.peek()? == ' ' {
            self.next()?;
            count += 1;
            if count > MAX_MARKS {
                return Err(Stop::Differs);
            }
        }
        Ok(count)
    }

    fn marks(&mut self, marks: &[char]) -> Result<&'a str, Stop> {
        let begin = self.0;
        while marks.contains(&self.peek()?) {
            self.next()?;
            if begin.len() - self.0.len() > MAX_MARKS {
                return Err(Stop::Differs);
            }
        }
        Ok(&begin[..begin.len() - self.0.len()])
    }

    /// `### `
    fn heading(&mut self) -> Result<(), Stop> {
        if self.peek()? == '#' {
            self.marks(&['#'])?;
            if self.spaces()? == 0 {
                return Err(Stop::Differs);
            }
        }
        Ok(())
    }

    /// `[22:10] `, `(22:10) ` or `22:10 `
    fn time(&mut self) -> Result<(), Stop> {
        let begin = self.0;
        let inside = begin.strip_prefix(['[', '(']).unwrap_or(begin);
        if inside.is_empty() {
            return Err(Stop::Ended);
        }
        if !inside.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(());
        }
        let is_in_brackets = inside.len() < begin.len();
        let is_of_time = |c: char| {
            c.is_ascii_digit()
                || matches!(c, ':' | ' ')
                || is_in_brackets && matches!(c, '.' | ',' | '-' | '/' | 'a' | 'p' | 'm' | 'A' | 'P' | 'M')
        };
        self.0 = inside;
        let mut count = 0;
        while is_of_time(self.peek()?) && count < MAX_ASIDE {
            self.next()?;
            count += 1;
        }
        let time = &inside[..inside.len() - self.0.len()];
        let is_time = if is_in_brackets { matches!(self.next()?, ']' | ')') } else { time.ends_with(' ') };
        if !is_time {
            // A name that begins with a digit.
            self.0 = begin;
        } else if is_in_brackets {
            self.spaces()?;
        }
        Ok(())
    }

    /// What stands in brackets beside a name: pronouns, a role, a time.
    fn aside(&mut self) -> Result<(), Stop> {
        let open = self.next()?;
        let close = if open == '(' { ')' } else { ']' };
        for _ in 0..MAX_ASIDE {
            match self.next()? {
                '\n' => return Err(Stop::Differs),
                c if c == close => return Ok(()),
                _ => {}
            }
        }
        Err(Stop::Differs)
    }
}
