//! Describes the attachments of a message in brackets: files, stickers, polls, forwarded messages.

use std::time::Duration;

use twilight_model::channel::AttachmentFlags;
use twilight_model::channel::message::MessageFlags;

use super::super::outgoing::without_notice;
use super::super::wire::{Attachment, Embed, Message, Poll, Sticker};
use super::cut;
use crate::domain::attachment::{Attachment as Recorded, DESCRIPTION_CHARS, NAME_CHARS, inline};
use crate::domain::message::voice_note_text;
use crate::domain::text::first;

/// The limit of described files. Discord allows ten.
const MAX_FILES: usize = 10;
/// The limit of described stickers. Discord allows three.
const MAX_STICKERS: usize = 3;
/// The limit of described answers of a poll. Discord allows ten.
const MAX_ANSWERS: usize = 10;
/// The limit of described embeds of a forwarded message. Discord allows ten.
const MAX_EMBEDS: usize = 3;
/// The length limit of a media type, in characters.
const MEDIA_TYPE_CHARS: usize = 100;
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

/// The files of a message for the record. Those of a forwarded message are only described, and the recording of a voice note is none.
pub(super) fn recorded(message: &Message) -> Vec<Recorded> {
    let most = if is_voice(message.flags) { 0 } else { MAX_FILES };
    message.attachments.iter().take(most).map(record).collect()
}

fn record(attachment: &Attachment) -> Recorded {
    let spoiler_name = attachment.filename.strip_prefix(SPOILER_PREFIX);
    let name = inline(spoiler_name.unwrap_or(&attachment.filename), NAME_CHARS);
    let is_flagged = attachment.flags.is_some_and(|flags| flags.contains(AttachmentFlags::IS_SPOILER));
    let id = attachment.id.map(|id| id.to_string()).unwrap_or_default();
    let media_type = first(&attachment.content_type, MEDIA_TYPE_CHARS);
    let known = Recorded::new(id.into(), media_type.into(), name.into(), attachment.size);
    Recorded {
        pixels: attachment.width.zip(attachment.height),
        description: inline(&attachment.description, DESCRIPTION_CHARS).into(),
        is_spoiler: is_flagged || spoiler_name.is_some(),
        on_platform: true,
        ..known
    }
}

fn file(attachment: &Attachment, is_voice: bool) -> String {
    if is_voice { voice_note_text(length(attachment)) } else { record(attachment).line() }
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
