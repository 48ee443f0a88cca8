//! Tells in brackets what hangs on a message and is no text: files, stickers, polls, forwarded messages.

use super::{IS_VOICE_MESSAGE, RawMessage, cut};

/// Files that are told; Discord allows ten.
const MOST_FILES: usize = 10;
/// Stickers that are told; Discord allows three.
const MOST_STICKERS: usize = 3;
/// Answers of a poll that are told; Discord allows ten.
const MOST_ANSWERS: usize = 10;
/// Characters of a file's name, or a sticker's.
const NAME_CHARS: usize = 80;
/// Characters of a description, and of a poll's question; Discord allows 1,024 and 300.
const DESCRIPTION_CHARS: usize = 300;
/// Characters of an answer; Discord allows 55.
const ANSWER_CHARS: usize = 60;
/// Characters of a forwarded text.
const FORWARDED_CHARS: usize = 2_000;
const SPOILER_PREFIX: &str = "SPOILER_";

/// A file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attachment<'a> {
    /// Its name.
    pub filename: &'a str,
    /// Its media type, `image/png`.
    pub content_type: Option<&'a str>,
    /// Its size in bytes.
    pub size: u64,
    /// What its sender says of it: a picture's alternative text.
    pub description: Option<&'a str>,
    /// Seconds that a voice message takes.
    pub duration_secs: Option<f64>,
    /// It is hidden until one clicks.
    pub is_spoiler: bool,
}

/// A poll.
#[derive(Clone, Debug)]
pub struct Poll<'a> {
    /// What is asked.
    pub question: &'a str,
    /// What one may answer.
    pub answers: Vec<&'a str>,
}

/// A message that another one forwards. Discord does not tell who wrote it.
#[derive(Clone, Debug, Default)]
pub struct Forward<'a> {
    /// What was written.
    pub content: &'a str,
    /// Its files.
    pub attachments: Vec<Attachment<'a>>,
    /// Names of its stickers.
    pub stickers: Vec<&'a str>,
}

/// A line for each thing that hangs on a message.
pub(super) fn lines(told: &RawMessage<'_>, read: impl Fn(&str) -> String) -> Vec<String> {
    let is_voice = told.flags & IS_VOICE_MESSAGE != 0;
    let mut lines = files(&told.attachments, is_voice);
    lines.extend(stickers(&told.stickers));
    lines.extend(told.poll.as_ref().map(poll));
    lines.extend(told.forward.as_ref().map(|forward| {
        let mut inside = vec![cut(read(forward.content.trim()).trim(), FORWARDED_CHARS)];
        inside.extend(files(&forward.attachments, false));
        inside.extend(stickers(&forward.stickers));
        inside.retain(|line| !line.is_empty());
        // Each line of it is quoted: its own brackets cannot end it.
        let quoted: Vec<_> = inside.iter().flat_map(|line| line.lines()).map(|line| format!("> {line}")).collect();
        if quoted.is_empty() { "[a forwarded message]".to_owned() } else { format!("[forwarded]\n{}", quoted.join("\n")) }
    }));
    lines
}

fn files(attachments: &[Attachment<'_>], is_voice: bool) -> Vec<String> {
    let mut lines: Vec<_> = attachments.iter().take(MOST_FILES).map(|attachment| file(attachment, is_voice)).collect();
    lines.extend(attachments.len().checked_sub(MOST_FILES).filter(|more| *more > 0).map(|more| format!("[{more} more files]")));
    lines
}

fn file(attachment: &Attachment<'_>, is_voice: bool) -> String {
    if is_voice {
        let secs = attachment.duration_secs.filter(|secs| secs.is_finite() && *secs >= 0.0);
        return secs.map_or_else(|| "[voice message]".to_owned(), |secs| format!("[voice message, {} s]", secs.round().min(1e6)));
    }
    let media = attachment.content_type.unwrap_or_default();
    let kind = ["image", "video", "audio"].into_iter().find(|kind| media.starts_with(&format!("{kind}/"))).unwrap_or("file");
    let marked = attachment.filename.strip_prefix(SPOILER_PREFIX);
    let name = inline(marked.unwrap_or(attachment.filename), NAME_CHARS);
    let hidden = if attachment.is_spoiler || marked.is_some() { ", hidden as a spoiler" } else { "" };
    let size = if kind == "file" { format!(", {}", size(attachment.size)) } else { String::new() };
    let description = attachment.description.map(|words| inline(words, DESCRIPTION_CHARS)).filter(|words| !words.is_empty());
    let description = description.map(|words| format!(", described as \"{words}\"")).unwrap_or_default();
    format!("[{kind}: {name}{size}{hidden}{description}]")
}

fn stickers(names: &[&str]) -> impl Iterator<Item = String> {
    names.iter().take(MOST_STICKERS).map(|name| format!("[sticker: {}]", inline(name, NAME_CHARS)))
}

fn poll(poll: &Poll<'_>) -> String {
    let answers: Vec<_> = poll.answers.iter().take(MOST_ANSWERS).map(|answer| inline(answer, ANSWER_CHARS)).collect();
    format!("[poll: {} Answers: {}]", inline(poll.question, DESCRIPTION_CHARS), answers.join(" / "))
}

/// A text within a line and within brackets.
fn inline(text: &str, most_chars: usize) -> String {
    let plain: String = text
        .chars()
        .take(most_chars * 4)
        .filter(|c| !c.is_control() || c.is_whitespace())
        .map(|c| match c {
            '[' => '(',
            ']' => ')',
            '"' => '\'',
            c => c,
        })
        .collect();
    cut(&plain.split_whitespace().collect::<Vec<_>>().join(" "), most_chars).replace(" […]", "…")
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
