//! A message in a channel, with its author and the companions that it addresses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::attachment::{Attachment, Caption};
use super::id::{ChannelId, CompanionId, Seq};
use super::moment::Moment;
use super::named::named;
use super::text::shortened_with;
use super::tools::StatementCall;

/// A message by a person, a companion or a foreign bot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The platform's id of the message, or the id that the sender gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    pub from: Author,
    /// Who sent it under that name. `None` in a room of the console: it is unknown, so that the name is only a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
    /// The text, as the author wrote it.
    pub text: Arc<str>,
    /// Whether it was typed or spoken.
    #[serde(default)]
    pub modality: Modality,
    /// Whether it is a voice utterance that ends a lull (docs/design/gate.md G-4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lull_endpoint: bool,
    /// Whether it is a stop phrase and nothing else (docs/design/speaking.md S-15).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_to_stop: bool,
    #[serde(default)]
    pub address: Address,
    /// The kind of an event that a companion must acknowledge, such as `raid`. `None` for an ordinary message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// Details of speech in a voice call. `None` for all other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<Box<Speech>>,
    /// Details of a spoken statement that was cut off. `text` is then the part that was played. `None` for all other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<Cut>>,
    /// Whether it is a statement that is incomplete because the model reached its token limit (docs/design/models.md M-21).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Whether somebody edited this text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// The texts of a statement's place, if people requested other answers. `None` if there is only this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Box<Versions>>,
    /// For a statement, the older messages and notes that were recalled for it, best first (docs/design/memory.md).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Recalled>,
    /// For a statement, the messages whose pictures and text files the model was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_of: Vec<Seq>,
    /// For a statement, the entries of lorebooks that were in its prompt, by name, the most important first (docs/design/memory.md K-23).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lore: Vec<Arc<str>>,
    /// For a statement, the calls of tools that were made or proposed for it (docs/design/tools.md).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<StatementCall>,
    /// The beginning of the message that it replies to, if that one is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<Box<Quoted>>,
    /// Its files. `text` describes each in a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Details of a voice note, or of its words. `None` for all other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice_note: Option<Box<VoiceNote>>,
    /// Whether it is only read, such as an imported message or a scene: no companion is asked about it, and it counts nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// The number of the reminder that it announces. In the background: that it ends, because no companion acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<u64>,
}

/// The most versions of a statement. Of more, the oldest is dropped.
const MOST_VERSIONS: usize = 20;

/// The versions of a statement (docs/design/speaking.md S-21).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The texts, oldest first, with the one that stands.
    pub texts: Vec<Arc<str>>,
    /// The index of the text that stands. It is the text of the message.
    pub standing: usize,
    /// The indexes of the texts that somebody edited.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub edited: BTreeSet<usize>,
}

/// Details of a voice note: a recording that a person sent as a message (docs/design/voice.md A-78).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceNote {
    /// The length of the recording in milliseconds, as its sender reports it.
    pub ms: u64,
    /// The state of its transcription. `None`: nobody asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<NoteWords>,
}

/// The words of a voice note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NoteWords {
    /// They follow in another message. The note itself triggers and counts nothing.
    Awaited,
    /// They are the text of this message.
    Heard {
        /// The number of the note.
        note: Seq,
        /// The recogniser. Empty: it is not told.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        provider: Arc<str>,
        /// The recogniser's confidence in the least certain part, in thousandths. `None` if it reports none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<u16>,
    },
    /// There are none.
    Missing {
        /// The number of the note, if this message takes its place. `None`: this message is the note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Seq>,
        why: Untranscribed,
    },
}

named! {
    /// Why a voice note has no words.
    #[derive(schemars::JsonSchema)]
    pub enum Untranscribed {
        /// No recogniser returns words.
        NoRecogniser = "no_recogniser",
        /// It is turned off, for the server or for the channel.
        Off = "off",
        /// The recording cannot be read from the platform.
        Unreadable = "unreadable",
        /// The recording is not Ogg with Opus.
        NotAudio = "not_audio",
        /// The recording is longer than what is transcribed.
        TooLong = "too_long",
        /// Nobody speaks in it.
        NoSpeech = "no_speech",
        /// The guild has used up its speech recognition for today.
        UsedUp = "used_up",
        /// The people in the channel cannot be told that voice notes are recognised.
        Untold = "untold",
        /// The recogniser failed repeatedly.
        Failed = "failed",
    }
}

/// The text of a voice note without words: `[voice note, 12 s]`.
pub fn voice_note_text(length: Option<Duration>) -> String {
    length.map_or_else(|| "[voice note]".to_owned(), |length| format!("[voice note, {} s]", length.as_secs_f64().round()))
}

/// A message or note that was recalled for a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Recalled {
    /// The number of a message or note of the same room.
    Here(Seq),
    /// A note of another room.
    Elsewhere(ChannelId, Seq),
}

impl Recalled {
    /// Its number, if it is of the same room.
    pub const fn here(&self) -> Option<Seq> {
        match self {
            Self::Here(seq) => Some(*seq),
            Self::Elsewhere(..) => None,
        }
    }
}

/// The part of a message that is shown with a reply to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// The platform's id of the message, by which its deletion is reported. `None` in older records, and if the message itself is
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    pub from: Author,
    /// The first characters of the text.
    pub text: Arc<str>,
}

impl Quoted {
    /// The maximum number of characters.
    const LONGEST: usize = 200;

    pub fn new(from: Author, text: &str) -> Self {
        Self { id: None, from, text: shortened_with(text, Self::LONGEST, " […]").into() }
    }
}

impl Message {
    /// A typed message without an id and without an addressee.
    pub fn new(from: Author, text: Arc<str>) -> Self {
        Self { from, text, ..Self::default() }
    }
}

/// A message of an imported chat. A bot with the name of a companion in the room is that companion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedMessage {
    pub from: Author,
    pub text: Arc<str>,
    /// Whether it describes a scene and has no speaker.
    pub is_scene: bool,
    /// `None` if the file does not say it.
    pub at: Option<Moment>,
}

/// Details of a spoken statement that was cut off (docs/design/voice.md A-60).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The complete text of the statement, including the part that was not played. Empty after deletion.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub full: Arc<str>,
    /// The person who cut the statement off. `None` if it was stopped, the call or the playback ended, the server was restarted,
    /// or the person left or was forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Author>,
}

/// Details of a message from a voice call: one run of segments of one person (docs/design/voice.md A-6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speech {
    /// The start of its first voiced hop.
    pub started: Moment,
    /// The end of its last voiced hop.
    pub ended: Moment,
    /// The recogniser of its first segment.
    pub provider: Arc<str>,
    /// The recogniser's confidence in the least certain segment, in thousandths. `None` if the recogniser reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u16>,
    /// The numbers of its segments, in the order of their start.
    pub segments: Vec<Seq>,
    /// The reason for the time of its hand-over.
    pub handed_over: HandedOver,
    /// If it ends a lull, the companions for which it does, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends_lull_for: Vec<CompanionId>,
    /// Whether it is only backchannel. Backchannel passes no row of the gate, changes no counter, and settles at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_backchannel: bool,
}

named! {
    /// The reason for the time at which speech in a call became a message (docs/design/voice.md ).
    pub enum HandedOver {
        /// The voice lull had ended.
        LullEnded = "lull_ended",
        /// The last person had left the call.
        Deserted = "deserted",
        /// A person addressed a companion.
        Addressed = "addressed",
        /// One person and one companion were alone in the call.
        OneToOne = "one_to_one",
        /// A person answered a companion that had just spoken.
        FollowUp = "follow_up",
        /// The words extended a reply that was being prepared.
        Extension = "extension",
    }
}

/// The author of a message. Only the platform decides the role, whatever name an author uses. By default a person who is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The platform's id of the author. A companion's is its `CompanionId`.
    pub id: Arc<str>,
    /// The name that people see.
    pub name: Arc<str>,
    /// Person, companion or bot.
    pub role: Role,
}

impl Author {
    /// A person with only a name; it also serves as the id.
    pub fn of_name(name: Arc<str>) -> Self {
        Self { id: name.clone(), name, role: Role::Person }
    }
}

named! {
    #[derive(Default, schemars::JsonSchema)]
    pub enum Role {
        /// A human.
        #[default]
        Person = "user",
        /// A companion of this server.
        Companion = "companion",
        /// A foreign bot.
        Bot = "bot",
    }
}

named! {
    /// Who sends a message, whatever its author's name.
    pub enum Sender {
        /// The operator, in a browser.
        Operator = "operator",
        /// A guest, whose name in the room is nobody else's.
        Guest = "guest",
        /// A program that reposts messages of members under other names, on Discord.
        Proxy = "proxy",
    }
}

named! {
    /// How a message was produced.
    #[derive(Default, schemars::JsonSchema)]
    pub enum Modality {
        /// It was typed.
        #[default]
        Text = "text",
        /// It was spoken.
        Voice = "voice",
    }
}

impl Modality {
    /// Whether it was typed.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }
}

/// The addressees of a message, resolved when it is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The companions that it mentions, answers or names, sorted, without its own author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionId>,
    /// Whether it mentions or answers a person or bot other than its own author.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
    /// Whether its author may address companions at all.
    #[serde(default, skip_serializing_if = "Standing::is_free")]
    pub standing: Standing,
}

named! {
    /// Whether an author may address companions, as the managers of a guild decided (docs/design/gate.md G-45).
    #[derive(Default)]
    pub enum Standing {
        /// The author may.
        #[default]
        Free = "free",
        /// The author's messages are read, and address nobody.
        MayNotAddress = "may_not_address",
        /// The author's messages are read, address nobody, and count for no interjection.
        NeverAnswered = "never_answered",
    }
}

impl Standing {
    /// Whether the author may address companions.
    pub const fn is_free(&self) -> bool {
        matches!(self, Self::Free)
    }
}

impl Address {
    /// The address of a message whose author has this standing. A restricted author addresses nobody here.
    #[must_use]
    pub fn by(self, standing: Standing) -> Self {
        if standing.is_free() { self } else { Self { companions: Vec::new(), others: true, standing } }
    }

    /// Whether it addresses `companion` directly.
    pub fn includes(&self, companion: &CompanionId) -> bool {
        self.companions.contains(companion)
    }

    /// Whether it has addressees, and `companion` is not one of them.
    pub fn is_elsewhere(&self, companion: &CompanionId) -> bool {
        !self.includes(companion) && (self.others || !self.companions.is_empty())
    }
}

impl Message {
    /// Whether it is an event that a companion must acknowledge (docs/design/gate.md G-33). Its author is then the person
    /// concerned.
    pub const fn is_event(&self) -> bool {
        self.kind.is_some()
    }

    /// Whether it is backchannel (docs/design/voice.md A-9).
    pub fn is_backchannel(&self) -> bool {
        self.speech.as_ref().is_some_and(|speech| speech.is_backchannel)
    }

    /// Whether it is a voice note whose words follow in another message.
    pub fn awaits_words(&self) -> bool {
        self.voice_note.as_ref().is_some_and(|note| note.words == Some(NoteWords::Awaited))
    }

    /// Whether its text is the transcript of a voice note.
    pub fn is_transcribed_note(&self) -> bool {
        self.voice_note.as_ref().is_some_and(|note| matches!(note.words, Some(NoteWords::Heard { .. })))
    }

    /// The voice note that this message takes the place of.
    pub fn replaced_note(&self) -> Option<Seq> {
        match self.voice_note.as_ref()?.words.as_ref()? {
            NoteWords::Heard { note, .. } => Some(*note),
            NoteWords::Missing { note, .. } => *note,
            NoteWords::Awaited => None,
        }
    }

    /// The events that hold the same words as this message, or its recording: segments of speech, or a voice note.
    pub fn sources(&self) -> impl Iterator<Item = Seq> {
        let segments = self.speech.iter().flat_map(|speech| &speech.segments).copied();
        segments.chain(self.replaced_note())
    }

    /// Whether it passes no row of the gate: backchannel, a voice note whose words follow, or a background message.
    pub fn passes_no_row(&self) -> bool {
        self.is_backchannel() || self.awaits_words() || self.background
    }

    /// Whether it ends a lull for `companion`. Voice messages from outside a call of this server end it for all companions.
    pub fn ends_lull_for(&self, companion: &CompanionId) -> bool {
        self.lull_endpoint && self.speech.as_ref().is_none_or(|speech| speech.ends_lull_for.contains(companion))
    }

    /// The text with these captions in the lines of its pictures.
    pub fn captioned(&self, captions: &[Caption]) -> Arc<str> {
        let mut text = self.text.to_string();
        for attachment in &self.attachments {
            let Some(caption) = captions.iter().find(|caption| caption.file == attachment.id) else { continue };
            let described = Attachment { description: caption.text.clone(), ..attachment.clone() };
            // The lines follow the words.
            if let Some(at) = text.rfind(&attachment.line()) {
                text.replace_range(at..at + attachment.line().len(), &described.line());
            }
        }
        text.into()
    }

    /// Replaces the text, and adds captions that it contains. Removes the marks of a cut or incomplete statement, which refer to the old text, and the files that the new text no
    /// longer describes.
    pub fn edit(&mut self, text: Arc<str>, captions: &[Caption]) {
        for attachment in &mut self.attachments {
            let caption = captions.iter().find(|caption| caption.file == attachment.id);
            attachment.description = caption.map_or(attachment.description.clone(), |caption| caption.text.clone());
        }
        self.attachments.retain(|attachment| text.contains(&attachment.line()));
        if let Some(versions) = &mut self.versions
            && let Some(standing) = versions.texts.get_mut(versions.standing)
        {
            *standing = text.clone();
        }
        if captions.is_empty() && self.sender == Some(Sender::Operator) {
            // A program may have edited it (docs/design/tools.md X-12).
            self.sender = None;
        }
        (self.text, self.cut, self.truncated) = (text, None, false);
    }

    /// Marks the text that stands as edited by somebody.
    pub fn mark_edited(&mut self) {
        self.edited = true;
        self.versions.iter_mut().for_each(|versions| _ = versions.edited.insert(versions.standing));
    }

    /// The versions of a statement with this text that takes the place of this one. `extends`: it contains the text that stands.
    pub fn versions_with(&self, text: &Arc<str>, extends: bool) -> Option<Box<Versions>> {
        let only =
            || Versions { texts: vec![self.text.clone()], standing: 0, edited: self.edited.then_some(0).into_iter().collect() };
        let Versions { mut texts, mut standing, mut edited } = self.versions.as_deref().cloned().unwrap_or_else(only);
        if extends && standing < texts.len() {
            texts[standing] = text.clone();
        } else {
            texts.push(text.clone());
            let dropped = texts.len().saturating_sub(MOST_VERSIONS);
            texts.drain(..dropped);
            edited = edited.into_iter().filter_map(|index| index.checked_sub(dropped)).collect();
            standing = texts.len() - 1;
        }
        (texts.len() > 1).then(|| Box::new(Versions { texts, standing, edited }))
    }

    /// Makes another version stand. How it was written is not known any more. Returns false if there is none with this index.
    pub fn stand(&mut self, version: usize) -> bool {
        let Some(text) = self.versions.as_ref().and_then(|versions| versions.texts.get(version).cloned()) else { return false };
        self.versions.iter_mut().for_each(|versions| versions.standing = version);
        self.edit(text, &[]);
        self.edited = self.versions.as_ref().is_some_and(|versions| versions.edited.contains(&version));
        (self.recalled, self.files_of, self.lore) = Default::default();
        true
    }

    /// A named person other than the author: the one who cut it off, or the author of the quoted message.
    pub fn named(&self) -> Option<&Author> {
        let cut_by = self.cut.as_ref().and_then(|cut| cut.by.as_ref());
        cut_by.or_else(|| self.quoted.as_ref().map(|quoted| &quoted.from))
    }

    /// Removes the name of the person who cut it off, and the quotation.
    pub fn forget_named(&mut self) {
        if let Some(cut) = &mut self.cut {
            cut.by = None;
        }
        self.quoted = None;
    }

    /// Whether its author is a person who also wrote `other`. Events have no author, and redacted messages have an unknown one.
    pub fn is_by_author_of(&self, other: &Self) -> bool {
        let is_known = !self.from.id.is_empty() && !self.is_event();
        is_known && self.from.role == Role::Person && self.from.id == other.from.id
    }

    /// Whether `companion` is the author.
    pub fn is_by(&self, companion: &CompanionId) -> bool {
        self.from.role == Role::Companion && &*self.from.id == companion.as_str()
    }
}
