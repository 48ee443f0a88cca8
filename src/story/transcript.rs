//! Writes a room's messages as a document for people, in Markdown or HTML, piece by piece.
//!
//! Messages keep their Markdown. In Markdown, each message is a block quote, which closes all blocks that it opens: code, a list,
//! a heading. HTML and link definitions would affect the rest of the document, so they are escaped. In HTML, all text is escaped,
//! and the page can neither run code nor load resources.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::domain::id::Seq;
use crate::domain::message::{Message, Modality, Role, Versions};
use crate::domain::moment::Moment;
use crate::domain::text::{in_html, one_line, shortened};
use crate::journal::redaction::is_redacted;
use crate::texts::Language;

/// The maximum length of the quotation above an answer, in characters.
const MAX_QUOTED: usize = 80;

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h2{font-size:1.1rem;border-bottom:1px solid #ccc;margin-top:2rem;break-after:avoid}\
article{margin:.8rem 0;break-inside:avoid}article p{margin:0}.about,footer{color:#666;font-size:.85rem}\
.text{white-space:pre-wrap;overflow-wrap:anywhere}@media print{body{margin:0;max-width:none}}";

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Markup {
    Markdown,
    Html,
}

/// The state while a document is written.
pub(crate) struct Transcript {
    markup: Markup,
    zone: TimeZone,
    language: Language,
    day: Option<Date>,
    /// The last written message.
    last: Option<Seq>,
}

/// A message of the document.
pub(crate) struct Entry<'a> {
    pub(crate) seq: Seq,
    pub(crate) at: Moment,
    pub(crate) message: &'a Message,
    pub(crate) is_edited: bool,
    /// The message that it answers. The inner `None` stands for a deleted one.
    pub(crate) answers: Option<(Seq, Option<&'a Message>)>,
}

impl Transcript {
    pub(crate) fn new(markup: Markup, zone: TimeZone, language: Language) -> Self {
        Self { markup, zone, language, day: None, last: None }
    }

    /// The beginning of the document.
    pub(crate) fn head(&self, title: &str, now: Moment) -> String {
        let now = now.zoned(&self.zone);
        let (day, zone) = (self.day(&now, "%-d %B %Y"), now.strftime("%:Q"));
        let about = self.say("exported", &[("day", &day), ("time", &now.strftime("%H:%M")), ("zone", &zone)]);
        let language = self.language.code();
        let title = self.words(&one_line(title, usize::MAX));
        match self.markup {
            Markup::Markdown => format!("# {title}\n\n{about}\n"),
            Markup::Html => format!(
                "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
                 content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
                 <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1 dir=\"auto\">{title}</h1>\n<p class=\"about\">{about}</p>"
            ),
        }
    }

    /// Writes a message, with a heading if it is the first of its day.
    pub(crate) fn entry(&mut self, entry: &Entry<'_>) -> String {
        let time = entry.at.zoned(&self.zone);
        let mut written = String::new();
        if self.day.replace(time.date()) != Some(time.date()) {
            let day = self.day(&time, "%A, %-d %B %Y");
            written = match self.markup {
                Markup::Markdown => format!("## {day}\n\n"),
                Markup::Html => format!("<h2>{day}</h2>\n"),
            };
        }
        let message = entry.message;
        let is_deleted = is_redacted(message);
        let is_ai = message.from.role == Role::Companion;
        let about = self.about(entry, is_deleted);
        let before = self.last.replace(entry.seq);
        let answers =
            entry.answers.filter(|(answered, _)| before != Some(*answered)).map(|(_, answered)| self.answered(answered));
        let name = if is_deleted { self.say("deleted", &[]) } else { self.words(&message.from.name) };
        let text: Arc<str> = if is_deleted { "".into() } else { message.text.clone() };
        let _ = match self.markup {
            Markup::Markdown => write!(
                written,
                "**{name}** · {}{about}\n{}{}",
                time_of_day(&time),
                answers.map(|answers| format!("> *{answers}*\n>\n")).unwrap_or_default(),
                quotation(&text)
            ),
            Markup::Html => write!(
                written,
                "<article id=\"m{}\"{}><p><b dir=\"auto\">{name}</b> <span class=\"about\"><time datetime=\"{}\">{}</time>{about}</span></p>{}\
                 <div class=\"text\" dir=\"auto\">{}</div></article>",
                entry.seq,
                if is_ai { " data-ai-generated=\"true\"" } else { "" },
                time.strftime("%Y-%m-%dT%H:%M:%S%:z"),
                time_of_day(&time),
                answers.map(|answers| format!("<p class=\"about\" dir=\"auto\">{answers}</p>")).unwrap_or_default(),
                in_html(&text)
            ),
        };
        written
    }

    /// The end of the document. `unreadable` is the number of missing entries.
    pub(crate) fn foot(&self, messages: usize, unreadable: usize) -> String {
        let counted = self.say(if messages == 0 { "empty" } else { "counted" }, &[("count", &messages)]);
        let missing =
            if unreadable == 0 { String::new() } else { format!(" {}", self.say("unreadable", &[("number", &unreadable)])) };
        match self.markup {
            Markup::Markdown => format!("---\n\n{}", format_args!("{counted}{missing}")),
            Markup::Html => format!("<footer>{counted}{missing}</footer>\n</body>\n</html>"),
        }
    }

    /// The labels of a message, such as “AI” or “edited”.
    fn about(&self, entry: &Entry<'_>, is_deleted: bool) -> String {
        let message = entry.message;
        if is_deleted {
            return String::new();
        }
        let kind = message.kind.as_deref().map(|kind| self.words(kind));
        let versions = message.versions.as_deref();
        let files = Some(message.attachments.len()).filter(|count| *count > 0);
        let version =
            |versions: &Versions| self.say("version", &[("number", &(versions.standing + 1)), ("all", &versions.texts.len())]);
        let mark = |is_there: bool, key: &str| is_there.then(|| self.say(key, &[]));
        let marks = [
            (message.from.role == Role::Companion).then(|| self.language.say("notice.mark", &[])),
            kind,
            mark(message.modality == Modality::Voice, "spoken"),
            mark(message.cut.is_some(), "cut"),
            mark(message.truncated, "incomplete"),
            mark(entry.is_edited, "edited"),
            versions.map(version),
            files.map(|count| self.say("files", &[("count", &count)])),
        ];
        marks.into_iter().flatten().map(|mark| format!(" · {mark}")).collect()
    }

    fn answered(&self, message: Option<&Message>) -> String {
        match message.filter(|message| !is_redacted(message)) {
            Some(message) => {
                let text = one_line(&message.text, usize::MAX);
                let quoted = shortened(&text, MAX_QUOTED);
                self.words(&self.say("answers", &[("who", &message.from.name), ("text", &quoted)]))
            }
            None => self.say("answers_deleted", &[]),
        }
    }

    fn say(&self, key: &str, values: &[(&str, &dyn Display)]) -> String {
        self.language.say(&format!("exported.{key}"), values)
    }

    /// A day in English, or as RFC 3339 has it, which other languages read as well.
    fn day(&self, time: &Zoned, english: &str) -> String {
        time.strftime(if self.language == Language::English { english } else { "%Y-%m-%d" }).to_string()
    }

    /// Escapes the text of a line.
    fn words(&self, text: &str) -> String {
        match self.markup {
            Markup::Markdown => {
                let escaped = |char| "\\`*_[]<>&~|#".contains(char).then_some('\\').into_iter().chain([char]);
                text.chars().flat_map(escaped).collect()
            }
            Markup::Html => in_html(text),
        }
    }
}

/// The time of day. The offset from UTC is added where the clock is set back and a time occurs twice.
fn time_of_day(time: &Zoned) -> String {
    let is_twice = time.time_zone().to_ambiguous_timestamp(time.datetime()).is_ambiguous();
    time.strftime(if is_twice { "%H:%M %:z" } else { "%H:%M" }).to_string()
}

/// A message's Markdown as a block quote. Line breaks are kept.
fn quotation(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 16);
    // The open fence: its character and its length.
    let mut fence: Option<(char, usize)> = None;
    for line in text.lines() {
        // The closing fence may be indented.
        let marks = fence_in(line, if fence.is_some() { 3 } else { 0 });
        quoted.push_str("> ");
        match (fence, marks) {
            (Some(open), Some((char, count, is_alone))) => {
                fence = Some(open).filter(|(open, least)| *open != char || count < *least || !is_alone);
                quoted.push_str(line);
            }
            (Some(_), None) => quoted.push_str(line),
            (None, Some((char, count, _))) => {
                fence = Some((char, count));
                quoted.push_str(line);
            }
            (None, None) => {
                without_html(line, &mut quoted);
                if !line.trim().is_empty() {
                    // A hard line break.
                    quoted.push_str("  ");
                }
            }
        }
        quoted.push('\n');
    }
    quoted
}

/// The fence of a code block after at most `indent` spaces: its character, its length, and whether the rest of the line is blank,
/// as in a closing fence.
fn fence_in(line: &str, indent: usize) -> Option<(char, usize, bool)> {
    let start = line.trim_start_matches(' ');
    let char = start.chars().next().filter(|char| matches!(char, '`' | '~') && line.len() - start.len() <= indent)?;
    let rest = start.trim_start_matches(char);
    let count = start.len() - rest.len();
    (count >= 3 && !(char == '`' && rest.contains('`'))).then(|| (char, count, rest.trim().is_empty()))
}

/// Escapes a line so that it contains no HTML and no link definition, and opens no code block. Inline code therefore shows `&lt;`
/// instead of `<`.
fn without_html(line: &str, written: &mut String) {
    let start = line.trim_start();
    written.push_str(&line[..line.len() - start.len()]);
    if fence_in(start, 0).is_some() {
        written.push('\\');
    }
    written.push_str(&start.replace('<', "&lt;").replace("]:", "]\\:"));
}

#[cfg(test)]
mod tests;
