//! Removes leftovers of decoders and search tools between words: citation markers and undecoded tokens.

use super::cursor::{Cursor, Found, More};
use super::stages::{Stage, Step};

/// The maximum length of a citation and of the number in it, in bytes.
const MAX_CITATION: usize = 200;
const MAX_NUMBER: usize = 20;

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
            // Citations of OpenAI's models. The second form, `【4:0†source】`, is of older ones.
            '\u{e200}' => up_to(after, "\u{e201}")?.map(|end| (end, "")),
            '【' => source(after)?.map(|end| (end, "")),
            _ => space(c, text, after)?.map(|instead| (after, instead)),
        };
        Ok(found.map_or(Step::Say(after), |(end, instead)| Step::Instead(instead, end)))
    }
}

/// `<unk>` and byte tokens such as `<0x0A>`. Only the line feed has a replacement; the others are removed.
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

/// These brackets also serve as quotation marks. Only a citation has a dagger after a number.
fn source(text: Cursor<'_>) -> Found<'_> {
    let number = text.past(|c| c.is_ascii_digit() || c == ':', MAX_NUMBER)?;
    let is_citation = number.next()? == Some('†') && !text.until(number).is_empty();
    if is_citation { up_to(number, "】") } else { Ok(None) }
}

/// The replacement for a tokeniser's character between the end of a word and the beginning of the next one.
fn space(c: char, text: Cursor<'_>, after: Cursor<'_>) -> Result<Option<&'static str>, More> {
    let is_joined = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '!' | '?' | ':' | ';');
    if !text.before().ends_with(is_joined) || !after.next()?.is_some_and(|next| next.is_alphanumeric() || next == c) {
        return Ok(None);
    }
    Ok(Some(if c == 'Ċ' { "\n" } else { " " }))
}
