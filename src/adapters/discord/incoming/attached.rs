//! Describes the attachments of a message in brackets: files, stickers, polls, forwarded messages.

use std::time::Duration;

use twilight_model::channel::AttachmentFlags;
use twilight_model::channel::message::MessageFlags;

use super::super::outgoing::without_notice;
use super::super::wire::{Attachment, Embed, Message, Poll, Sticker};
use super::cut;
use crate::domain::message::voice_note_text;
use crate::domain::text::shortened;

/// The limit of described files. Discord allows ten.
const MAX_FILES: usize = 10;
/// The limit of described stickers. Discord allows three.
const MAX_STICKERS: usize = 3;
/// The limit of described answers of a poll. Discord allows ten.
const MAX_ANSWERS: usize = 10;
/// The limit of described embeds of a forwarded message. Discord allows ten.
const MAX_EMBEDS: usize = 3;
/// The length limit of a file's or sticker's name, in characters.
const NAME_CHARS: usize = 80;
/// The length limit of a description or a poll's question, in characters. Discord allows 1,024 and 300.
const DESCRIPTION_CHARS: usize = 300;
/// The length limit of a poll's answer, in characters. Discord allows 55.
const ANSWER_CHARS: usize = 60;
/// The length limit of a forwarded text, in characters.
const FORWARDED_CHARS: usize = 2_000;
/// The limit of a recording's length, in seconds.
const LONGEST_SECS: f64 = 86_400.0;
const SPOILER_PREFIX: &str = "SPOILER_";

/// A line for each attachment of a message.
pub(super) fn lines(message: &Message, read: impl Fn(&str) -> String) -> Vec<String> {
    let mut lines = files(&message.attachments, is_voice(message.flags));
    lines.extend(stickers(&message.sticker_items));
    lines.extend(message.poll.as_ref().map(poll));
    lines.extend(message.forward().map(|forward| {
        let mut inside = vec![cut(read(without_notice(forward.content.trim())).trim(), FORWARDED_CHARS)];
        inside.extend(files(&forward.attachments, is_voice(forward.flags)));
        inside.extend(stickers(&forward.sticker_items));
        inside.extend(forward.poll.as_ref().map(poll));
        inside.extend(forward.embeds.iter().take(MAX_EMBEDS).map(embed));
        inside.retain(|line| !line.is_empty());
        // Each line is quoted, so that brackets in the text cannot end the description.
        let quoted: Vec<_> = inside.iter().flat_map(|line| line.lines()).map(|line| format!("> {line}")).collect();
        if quoted.is_empty() { "[a forwarded message]".to_owned() } else { format!("[forwarded]\n{}", quoted.join("\n")) }
    }));
    lines
}

/// The recording of a voice note. `None`: the message is no voice note.
pub(in super::super) fn recording(message: &Message) -> Option<&Attachment> {
    let [recording] = &message.attachments[..] else { return None };
    (is_voice(message.flags) && !message.has_forward()).then_some(recording)
}

/// The length of a recording, at most a day.
pub(super) fn length(recording: &Attachment) -> Option<Duration> {
    let secs = recording.duration_secs.filter(|secs| secs.is_finite() && *secs >= 0.0)?;
    Some(Duration::from_secs_f64(secs.min(LONGEST_SECS)))
}

fn is_voice(flags: Option<MessageFlags>) -> bool {
    flags.is_some_and(|flags| flags.contains(MessageFlags::IS_VOICE_MESSAGE))
}

fn files(attachments: &[Attachment], is_voice: bool) -> Vec<String> {
    let mut lines: Vec<_> = attachments.iter().take(MAX_FILES).map(|attachment| file(attachment, is_voice)).collect();
    lines.extend(attachments.len().checked_sub(MAX_FILES).filter(|more| *more > 0).map(|more| format!("[{more} more files]")));
    lines
}

fn file(attachment: &Attachment, is_voice: bool) -> String {
    if is_voice {
        return voice_note_text(length(attachment));
    }
    let media = &attachment.content_type;
    let kind = ["image", "video", "audio"].into_iter().find(|kind| media.starts_with(&format!("{kind}/"))).unwrap_or("file");
    let spoiler_name = attachment.filename.strip_prefix(SPOILER_PREFIX);
    let name = inline(spoiler_name.unwrap_or(&attachment.filename), NAME_CHARS);
    let is_spoiler = attachment.flags.is_some_and(|flags| flags.contains(AttachmentFlags::IS_SPOILER));
    let hidden = if is_spoiler || spoiler_name.is_some() { ", hidden as a spoiler" } else { "" };
    let size = if kind == "file" { format!(", {}", size(attachment.size)) } else { String::new() };
    let words = inline(&attachment.description, DESCRIPTION_CHARS);
    let description = if words.is_empty() { String::new() } else { format!(", described as \"{words}\"") };
    format!("[{kind}: {name}{size}{hidden}{description}]")
}

fn stickers(stickers: &[Sticker]) -> impl Iterator<Item = String> {
    stickers.iter().take(MAX_STICKERS).map(|sticker| format!("[sticker: {}]", inline(&sticker.name, NAME_CHARS)))
}

/// The title and the description of an embed. Empty if it has neither.
fn embed(embed: &Embed) -> String {
    let words = [&embed.title, &embed.description].map(|text| inline(text, DESCRIPTION_CHARS));
    let words: Vec<_> = words.into_iter().filter(|text| !text.is_empty()).collect();
    if words.is_empty() { String::new() } else { format!("[embed: {}]", words.join(" – ")) }
}

fn poll(poll: &Poll) -> String {
    let answers = poll.answers.iter().map(|answer| {
        let emoji = answer.poll_media.emoji.as_ref().map(|emoji| &*emoji.name);
        let parts = [emoji, answer.poll_media.text.as_deref()];
        inline(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "), ANSWER_CHARS)
    });
    let answers: Vec<_> = answers.filter(|answer| !answer.is_empty()).take(MAX_ANSWERS).collect();
    let question = inline(poll.question.text.as_deref().unwrap_or_default(), DESCRIPTION_CHARS);
    format!("[poll: {question} Answers: {}]", answers.join(" / "))
}

/// Converts a text for use in one line within brackets.
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

/// A size for display.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
