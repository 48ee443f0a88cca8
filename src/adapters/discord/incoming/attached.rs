//! Describes attachments of a message in brackets: files, stickers, polls, forwarded messages.

use super::{IS_VOICE_MESSAGE, RawMessage, cut};
use crate::domain::text::shortened;

/// The most files that are described. Discord allows ten.
const MAX_FILES: usize = 10;
/// The most stickers that are described. Discord allows three.
const MAX_STICKERS: usize = 3;
/// The most answers of a poll that are described. Discord allows ten.
const MAX_ANSWERS: usize = 10;
/// The longest name of a file or sticker, in characters.
const NAME_CHARS: usize = 80;
/// The longest description, and question of a poll, in characters. Discord allows 1,024 and 300.
const DESCRIPTION_CHARS: usize = 300;
/// The longest answer of a poll, in characters. Discord allows 55.
const ANSWER_CHARS: usize = 60;
/// The longest forwarded text, in characters.
const FORWARDED_CHARS: usize = 2_000;
const SPOILER_PREFIX: &str = "SPOILER_";

#[derive(Clone, Copy, Debug, Default)]
pub struct Attachment<'a> {
    pub filename: &'a str,
    /// Its media type, `image/png`.
    pub content_type: Option<&'a str>,
    /// Its size in bytes.
    pub size: u64,
    /// The sender's description: a picture's alternative text.
    pub description: Option<&'a str>,
    /// The length of a voice message, in seconds.
    pub duration_secs: Option<f64>,
    /// Whether it is hidden until it is clicked.
    pub is_spoiler: bool,
}

#[derive(Clone, Debug)]
pub struct Poll<'a> {
    pub question: &'a str,
    pub answers: Vec<&'a str>,
}

/// A forwarded message. Discord does not report its author.
#[derive(Clone, Debug, Default)]
pub struct Forward<'a> {
    pub content: &'a str,
    pub attachments: Vec<Attachment<'a>>,
    pub stickers: Vec<&'a str>,
}

/// A line for each attachment of a message.
pub(super) fn lines(raw: &RawMessage<'_>, read: impl Fn(&str) -> String) -> Vec<String> {
    let is_voice = raw.flags & IS_VOICE_MESSAGE != 0;
    let mut lines = files(&raw.attachments, is_voice);
    lines.extend(stickers(&raw.stickers));
    lines.extend(raw.poll.as_ref().map(poll));
    lines.extend(raw.forward.as_ref().map(|forward| {
        let mut inside = vec![cut(read(forward.content.trim()).trim(), FORWARDED_CHARS)];
        inside.extend(files(&forward.attachments, false));
        inside.extend(stickers(&forward.stickers));
        inside.retain(|line| !line.is_empty());
        // Each line is quoted, so that brackets in the text cannot end the description.
        let quoted: Vec<_> = inside.iter().flat_map(|line| line.lines()).map(|line| format!("> {line}")).collect();
        if quoted.is_empty() { "[a forwarded message]".to_owned() } else { format!("[forwarded]\n{}", quoted.join("\n")) }
    }));
    lines
}

fn files(attachments: &[Attachment<'_>], is_voice: bool) -> Vec<String> {
    let mut lines: Vec<_> = attachments.iter().take(MAX_FILES).map(|attachment| file(attachment, is_voice)).collect();
    lines.extend(attachments.len().checked_sub(MAX_FILES).filter(|more| *more > 0).map(|more| format!("[{more} more files]")));
    lines
}

fn file(attachment: &Attachment<'_>, is_voice: bool) -> String {
    if is_voice {
        let secs = attachment.duration_secs.filter(|secs| secs.is_finite() && *secs >= 0.0);
        return secs.map_or_else(|| "[voice message]".to_owned(), |secs| format!("[voice message, {} s]", secs.round().min(1e6)));
    }
    let media = attachment.content_type.unwrap_or_default();
    let kind = ["image", "video", "audio"].into_iter().find(|kind| media.starts_with(&format!("{kind}/"))).unwrap_or("file");
    let spoiler_name = attachment.filename.strip_prefix(SPOILER_PREFIX);
    let name = inline(spoiler_name.unwrap_or(attachment.filename), NAME_CHARS);
    let hidden = if attachment.is_spoiler || spoiler_name.is_some() { ", hidden as a spoiler" } else { "" };
    let size = if kind == "file" { format!(", {}", size(attachment.size)) } else { String::new() };
    let description = attachment.description.map(|words| inline(words, DESCRIPTION_CHARS)).filter(|words| !words.is_empty());
    let description = description.map(|words| format!(", described as \"{words}\"")).unwrap_or_default();
    format!("[{kind}: {name}{size}{hidden}{description}]")
}

fn stickers(names: &[&str]) -> impl Iterator<Item = String> {
    names.iter().take(MAX_STICKERS).map(|name| format!("[sticker: {}]", inline(name, NAME_CHARS)))
}

fn poll(poll: &Poll<'_>) -> String {
    let answers: Vec<_> = poll.answers.iter().take(MAX_ANSWERS).map(|answer| inline(answer, ANSWER_CHARS)).collect();
    format!("[poll: {} Answers: {}]", inline(poll.question, DESCRIPTION_CHARS), answers.join(" / "))
}

/// A text for use in one line within brackets.
fn inline(text: &str, max_chars: usize) -> String {
    let plain: String = text
        .chars()
        .take(max_chars * 4)
        .filter(|c| !c.is_control() || c.is_whitespace())
        .map(|c| match c {
            '[' => '(',
            ']' => ')',
            '"' => '\'',
            c => c,
        })
        .collect();
    shortened(&plain.split_whitespace().collect::<Vec<_>>().join(" "), max_chars).into_owned()
}

/// A readable size.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
