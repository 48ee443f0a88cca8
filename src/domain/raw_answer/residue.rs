//! Removes what decoders and search tools leave between words: marks of citations, and tokens that were not decoded.

use super::cursor::{Cursor, Found, More};
use super::stages::{Stage, Step};

/// A citation is at most this long, in bytes, and the number in it.
const MAX_CITATION: usize = 200;
const MAX_NUMBER: usize = 20;
/// Spaces and line feeds of tokenisers.
const SPACES: [(char, &str); 3] = [('\u{2581}', " "), ('Ġ', " "), ('Ċ', "\n")];

#[derive(Clone, Debug)]
pub(super) struct Residue;

impl Stage for Residue {
    fn step<'a>(&mut self, text: Cursor<'a>, _: bool) -> Result<Step<'a>, More> {
        let may_begin = |c| matches!(c, '<' | '\u{e200}' | '【' | '\u{2581}' | 'Ġ' | 'Ċ');
        let rest = text.rest();
        let Some(c) = rest.chars().next().filter(|c| may_begin(*c)) else {
            return Ok(Step::Say(rest.find(may_begin).map_or(text.end(), |length| text.moved(length))));
        };
        let after = text.moved(c.len_utf8());
        let found = match c {
            '<' => token(text)?,
            // OpenAI's models, and older ones: `【4:0†source】`.
            '\u{e200}' => up_to(after, "\u{e201}")?.map(|end| (end, "")),
            '【' => source(after)?.map(|end| (end, "")),
            _ => space(c, text, after)?.map(|instead| (after, instead)),
        };
        Ok(found.map_or(Step::Say(after), |(end, instead)| Step::Instead(instead, end)))
    }
}

/// `<unk>`, and a byte such as `<0x0A>`, of which only a line feed means something by itself.
fn token(text: Cursor<'_>) -> Result<Option<(Cursor<'_>, &'static str)>, More> {
    if let Some(end) = text.after("<unk>")? {
        return Ok(Some((end, "")));
    }
    let Some(byte) = text.after("<0x")? else { return Ok(None) };
    let digits = byte.past(|c| c.is_ascii_hexdigit(), 2)?;
    let instead = if byte.until(digits) == "0A" { "\n" } else { "" };
    Ok(digits.after(">")?.filter(|_| byte.until(digits).len() == 2).map(|end| (end, instead)))
}

fn up_to<'a>(text: Cursor<'a>, close: &str) -> Found<'a> {
    text.past(|c| !close.starts_with(c), MAX_CITATION)?.after(close)
}

/// Such brackets are also quotation marks, which have no dagger behind a number.
fn source(text: Cursor<'_>) -> Found<'_> {
    let number = text.past(|c| c.is_ascii_digit() || c == ':', MAX_NUMBER)?;
    match number.next()? {
        Some('†') if !text.until(number).is_empty() => up_to(number, "】"),
        _ => Ok(None),
    }
}

/// What a sign stands for, between the end of one word and the beginning of the next.
fn space(c: char, text: Cursor<'_>, after: Cursor<'_>) -> Result<Option<&'static str>, More> {
    let is_joined = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '!' | '?' | ':' | ';');
    if !text.before().ends_with(is_joined) || !after.next()?.is_some_and(|next| next.is_alphanumeric() || next == c) {
        return Ok(None);
    }
    Ok(SPACES.iter().find(|(sign, _)| *sign == c).map(|(_, instead)| *instead))
}
