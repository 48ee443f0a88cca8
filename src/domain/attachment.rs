//! A file of a message: what is on record of it, and the line that describes it in the message's text.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::message::voice_note_text;
use super::named::named;
use super::text::shortened;

/// The most files of a message that are kept or sent to a model.
pub const MOST_FILES: usize = 4;
/// The size limit of a kept file, in bytes.
pub const MOST_BYTES: usize = 4 << 20;
/// The size limit of a text file, in bytes.
pub const MOST_TEXT_BYTES: usize = 64 << 10;
/// The length limit of a file's name, in characters.
pub const NAME_CHARS: usize = 80;
/// The length limit of a description, in characters.
pub const DESCRIPTION_CHARS: usize = 300;

/// A file of a message. Its bytes are a record of the store, or stay on the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its number within the message, from 0, if the store has its bytes. Otherwise the platform's id.
    pub id: Arc<str>,
    #[serde(default)]
    pub kind: Kind,
    /// The media type, such as `image/png`. Empty if it is unknown.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub media_type: Arc<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub name: Arc<str>,
    /// Its size.
    pub bytes: u64,
    /// Width and height in pixels. `None` if they are unknown, or it is no picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixels: Option<(u32, u32)>,
    /// The duration of a recording, in seconds. `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secs: Option<u32>,
    /// The author's description.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub description: Arc<str>,
    /// Whether its author hid it as a spoiler.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spoiler: bool,
    /// Whether its bytes are on the platform, and not in the store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_platform: bool,
}

named! {
    /// The kind of a file.
    #[derive(Default, schemars::JsonSchema)]
    pub enum Kind {
        Image = "image",
        Video = "video",
        Audio = "audio",
        /// A recorded voice message.
        Voice = "voice",
        /// Any other file.
        #[default]
        #[serde(other)]
        File = "file",
    }
}

/// A description of a picture that a model wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caption {
    /// The id of the picture within its message.
    pub file: Arc<str>,
    pub text: Arc<str>,
}

impl Kind {
    /// The kind of a file with this media type.
    pub fn of(media_type: &str) -> Self {
        let kinds = [Self::Image, Self::Video, Self::Audio];
        let is_of = |kind: &Self| media_type.strip_prefix(kind.as_str()).is_some_and(|rest| rest.starts_with('/'));
        kinds.into_iter().find(is_of).unwrap_or(Self::File)
    }
}

impl Attachment {
    /// A file without a description, of unknown dimensions.
    pub fn new(id: Arc<str>, media_type: Arc<str>, name: Arc<str>, bytes: u64) -> Self {
        Self { id, kind: Kind::of(&media_type), media_type, name, bytes, ..Self::default() }
    }

    /// The number of its record in the store. `None` if the bytes are on the platform.
    pub fn stored(&self) -> Option<u64> {
        if self.on_platform { None } else { self.id.parse().ok() }
    }

    /// Whether it is a picture that nobody has described.
    pub fn needs_caption(&self) -> bool {
        self.kind == Kind::Image && self.description.is_empty() && !self.is_spoiler
    }

    /// The line in the text of its message that describes it.
    pub fn line(&self) -> String {
        if self.kind == Kind::Voice {
            return voice_note_text(self.secs.map(|secs| Duration::from_secs(secs.into())));
        }
        let name = inline(&self.name, NAME_CHARS);
        let hidden = if self.is_spoiler { ", hidden as a spoiler" } else { "" };
        let size = if self.kind == Kind::File { format!(", {}", size(self.bytes)) } else { String::new() };
        let words = inline(&self.description, DESCRIPTION_CHARS);
        let description = if words.is_empty() { String::new() } else { format!(", described as \"{words}\"") };
        format!("[{}: {name}{size}{hidden}{description}]", self.kind)
    }
}

/// A text followed by the lines of these files.
pub fn with_lines(text: &str, attachments: &[Attachment]) -> Arc<str> {
    let text = Some(text.to_owned()).filter(|text| !text.is_empty());
    text.into_iter().chain(attachments.iter().map(Attachment::line)).collect::<Vec<_>>().join("\n").into()
}

/// Converts a text for use in one line within brackets.
pub fn inline(text: &str, max_chars: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_files_follow_the_words_and_can_be_taken_off() {
        let cat = Attachment {
            description: "our [new] cat".into(),
            ..Attachment::new("0".into(), "image/png".into(), "a.png".into(), 9)
        };
        let notes = Attachment::new("1".into(), "text/plain".into(), "notes.txt".into(), 2_048);
        let files = [cat, notes];

        let text = with_lines("Look!", &files);

        assert_eq!(&*text, "Look!\n[image: a.png, described as \"our (new) cat\"]\n[file: notes.txt, 2 KB]");
    }

    #[test]
    fn a_kind_of_a_newer_version_is_a_file() {
        let newer: Attachment = serde_json::from_str(r#"{"id":"0","kind":"hologram","bytes":3}"#).unwrap();

        assert_eq!((newer.kind, newer.stored()), (Kind::File, Some(0)));
    }
}
