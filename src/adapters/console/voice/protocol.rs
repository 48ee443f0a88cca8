//! The wire protocol of a voice call in the browser (docs/api.md, "Voice"): frames, messages, close codes and limits of `GET /api/voice`.
//!
//! A binary frame is one Opus packet of 20 ms with a small head. A text frame is one JSON object with a `type`. Both sides refuse what they do not know.
//! The page's side is `page/voice-protocol.js`. `tests/contracts/voice-protocol.json` has examples for both.

mod frames;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::text::{first, first_bytes, last};
use crate::domain::voice::segment::Kind;
use frames::{COMPANION, MICROPHONE};
pub use frames::{CompanionFrame, MicrophoneFrame};

/// The version that the page names in `v`.
pub const VERSION: u32 = 1;
/// The duration of a packet in milliseconds.
pub const FRAME_MS: u32 = 20;
/// The sample rate of packets and positions in Hz.
pub const SAMPLE_RATE: u32 = 48_000;
/// The number of samples of a packet.
pub const SAMPLES_PER_FRAME: u32 = SAMPLE_RATE / 1_000 * FRAME_MS;
/// The longest Opus packet of 20 ms in bytes (RFC 6716, 3.4).
pub const MAX_PACKET_BYTES: usize = 1_275;
/// The longest binary frame in bytes.
pub const MAX_FRAME_BYTES: usize = 1_300;
/// The number of binary frames that the page may send in a second, and at once after a pause.
pub const MAX_FRAMES_PER_SECOND: u32 = 60;
/// The number of messages that the page may send in a second, and at once after a pause.
pub const MAX_MESSAGES_PER_SECOND: u32 = 30;
/// The number of binary frames that wait to be sent to a page. Beyond it the oldest is dropped, and counted. Messages are never dropped.
pub const MAX_UNSENT_FRAMES: usize = 25;
/// How long sending may make no progress until the connection is closed as [`Close::TooSlow`].
pub const STALLED_AFTER: Duration = Duration::from_secs(5);
/// How often the page tells what it has played.
pub const PLAYED_EVERY: Duration = Duration::from_millis(100);
/// The longest name of a person in characters.
pub const MAX_NAME_CHARS: usize = 64;
/// The longest caption in characters. Of longer text the end is sent.
pub const MAX_CAPTION_CHARS: usize = 1_000;
/// The longest text of a sentence, and of what was heard of a reply, in characters. Of longer text the beginning is sent.
pub const MAX_SPOKEN_CHARS: usize = 10_000;
/// The longest advice of an error in characters.
pub const MAX_FIX_CHARS: usize = 300;
/// The longest reason of a close frame in bytes (RFC 6455, 5.5).
const MAX_REASON_BYTES: usize = 123;

/// Why a frame was refused. The connection is closed as [`Close::Refused`], with this text as its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The binary frame is too long.
    #[error("a binary frame has {bytes} bytes, at most {MAX_FRAME_BYTES}; send one Opus packet of 20 ms in each")]
    TooLong {
        /// The length of the frame, or of its packet.
        bytes: usize,
    },
    /// The binary frame has no packet.
    #[error("a binary frame has {bytes} bytes and no packet; send one Opus packet of 20 ms in each")]
    TooShort {
        /// The length of the frame.
        bytes: usize,
    },
    /// The binary frame is of no kind that this side receives.
    #[error("a binary frame has the unknown kind {kind}; the page sends kind {MICROPHONE}, the server kind {COMPANION}")]
    UnknownKind {
        /// The first byte.
        kind: u8,
    },
    /// The text frame is not a message that this side receives.
    #[error("not a message: {problem}")]
    Message {
        /// What is wrong with it.
        problem: String,
    },
    /// A text in a message has a wrong length.
    #[error("{field} has {chars} characters, from 1 to {max} are accepted; split it")]
    Text {
        /// The message and its field.
        field: &'static str,
        chars: usize,
        /// The largest number of characters.
        max: usize,
    },
}

impl Refused {
    /// A short name: a label, and the name of the error on the page.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "too_long",
            Self::TooShort { .. } => "too_short",
            Self::UnknownKind { .. } => "unknown_kind",
            Self::Message { .. } => "message",
            Self::Text { .. } => "text",
        }
    }

    /// The reason for the close frame.
    pub fn reason(&self) -> String {
        first_bytes(&self.to_string(), MAX_REASON_BYTES).to_owned()
    }
}

/// Why the server closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The person has left.
    Left,
    /// The server is stopping. The page connects again.
    Stopping,
    /// The page broke the protocol or a limit, or has signed out. It does not connect again by itself.
    Refused,
    /// Sending made no progress for [`STALLED_AFTER`]. The page connects again.
    TooSlow,
    /// The version is unknown: the page must be loaded again.
    UnknownVersion,
    /// Another window of this person has taken the microphone. The page does not connect again by itself.
    Moved,
    /// The call has ended, such as by `voice.max_call_secs` or with its room. The page does not connect again by itself.
    Ended,
}

impl Close {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Left, Self::Stopping, Self::Refused, Self::TooSlow, Self::UnknownVersion, Self::Moved, Self::Ended];

    /// The close code of the WebSocket.
    pub fn code(self) -> u16 {
        match self {
            Self::Left => 1000,
            Self::Stopping => 1001,
            Self::Refused => 1008,
            Self::TooSlow => 1013,
            Self::UnknownVersion => 4000,
            Self::Moved => 4001,
            Self::Ended => 4002,
        }
    }

    /// A short name, as in the table of docs/api.md.
    pub fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Stopping => "stopping",
            Self::Refused => "refused",
            Self::TooSlow => "too_slow",
            Self::UnknownVersion => "unknown_version",
            Self::Moved => "moved",
            Self::Ended => "ended",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum PageMessage {
    /// The microphone is muted or not. Without this message it is not.
    Mute {
        /// Whether it is muted.
        on: bool,
    },
    /// The person wants not to be listened to in this call (docs/design/voice.md A-17), or to be listened to again.
    Ignore {
        /// Whether what the person says is dropped.
        on: bool,
    },
    /// The furthest position of a reply that was played: every [`PLAYED_EVERY`] while it moves, and after each `flush`.
    Played {
        reply: u32,
        /// The position in samples.
        samples: u64,
    },
    /// The person pressed Stop.
    Stop {
        /// The reply that was heard then.
        reply: u32,
    },
    /// Words to take as if they were spoken now.
    Say {
        /// The words. Their content is validated like that of a typed message.
        text: String,
    },
    /// The person leaves the call. The server closes the connection as [`Close::Left`].
    Leave {},
}

impl PageMessage {
    /// Reads a text frame. A text has at most `max_text_chars` characters (`server.max_text_chars`).
    ///
    /// # Errors
    /// It is not JSON, has an unknown type or field, or a text of a wrong length.
    pub fn read(frame: &str, max_text_chars: usize) -> Result<Self, Refused> {
        let message = serde_json::from_str(frame).map_err(|error| Refused::Message { problem: error.to_string() })?;
        if let Self::Say { text } = &message {
            let chars = text.chars().count();
            if !(1..=max_text_chars).contains(&chars) {
                return Err(Refused::Text { field: "say.text", chars, max: max_text_chars });
            }
        }
        Ok(message)
    }
}

/// A person in the call. On the console the name is also the person's id.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// The name, 1 to 64 characters.
    pub user: String,
    /// Whether the microphone is muted.
    pub muted: bool,
    /// Whether the person only listens, without a microphone.
    pub listening: bool,
    /// Whether the person wants not to be listened to.
    pub ignored: bool,
    pub talking: bool,
}

/// The sample rates that the page encodes and decodes, in Hz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SampleRates {
    /// Of the packets of microphones.
    pub microphone: u32,
    /// Of the packets of companions.
    pub companion: u32,
}

impl Default for SampleRates {
    fn default() -> Self {
        Self { microphone: SAMPLE_RATE, companion: SAMPLE_RATE }
    }
}

/// What does not work in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Speech recognition does not answer.
    RecognitionFailed,
    /// Too many people talk at once: the words of this person wait.
    RecognitionFull,
    /// No more is recognised today.
    RecognitionUsedUp,
    /// No voice can be made.
    SynthesisFailed,
    /// No more is spoken today.
    SynthesisUsedUp,
    /// The text of `say` was not accepted.
    SayRefused,
    /// The call has lasted for `voice.max_call_secs`. The server closes the connection as [`Close::Ended`].
    CallTooLong,
}

/// A message from the server. The first one is `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ServerMessage {
    /// The call is open. What is going on in it follows: `thinking`, `speaking`, `duck`.
    Hello {
        version: u32,
        /// The number of seconds between two `pulse`, from 1 to 20. After three times that without any frame the page connects again.
        heartbeat_secs: u32,
        frame_ms: u32,
        /// The sample rates of packets.
        sample_rates: SampleRates,
        /// The name of the person at this connection, as accepted.
        you: String,
        /// Who is in the call, also the person at this connection.
        people: Vec<Person>,
    },
    /// Somebody has entered the call.
    Joined(Person),
    /// Somebody is muted, listened to, or has a microphone now, or not any more.
    Changed(Person),
    /// Somebody has left the call.
    Left { user: String },
    /// Somebody begins or ends to talk.
    Talking {
        user: String,
        /// Whether the person talks.
        on: bool,
    },
    /// Somebody talks without words, and counts as noise until `talking` or a caption (docs/design/voice.md A-5).
    Noise { user: String },
    /// Words of a person. They replace the last caption of that person that was not final.
    Caption {
        user: String,
        text: String,
        /// Whether they will not change any more.
        is_final: bool,
        /// What they count as; `words` unless they are final.
        kind: Kind,
    },
    /// A companion prepares a spoken reply, or has stopped that without a word. `speaking` ends it, too.
    Thinking {
        companion: String,
        /// Whether it prepares one.
        on: bool,
    },
    /// A spoken reply begins. It comes before the reply's first frame, and ends the reply before it.
    Speaking {
        companion: String,
        /// The reply's number in this call, which no other reply has.
        reply: u32,
        /// The position of the first frame that follows, in samples: 0 except for who enters in the middle.
        from: u64,
    },
    /// A sentence of a reply, before its first frame.
    Sentence {
        reply: u32,
        /// The position at which it begins, in samples.
        from: u64,
        text: String,
    },
    /// A reply is to be played more quietly by 12 dB, or at full level again.
    Duck {
        reply: u32,
        /// Whether it is ducked.
        on: bool,
    },
    /// A reply pauses: the page plays nothing more of it, and answers with `played`. No frames of it follow until `resume`.
    Flush { reply: u32 },
    /// A reply goes on, at full level.
    Resume {
        reply: u32,
        /// The position of the first frame that follows, in samples.
        from: u64,
    },
    /// A reply was played to its end.
    Done { reply: u32 },
    /// A reply was stopped: the page plays nothing more of it.
    Cut { reply: u32, heard: String },
    /// The connection works. A page does not see the pings of a WebSocket, and audio that it sends is swallowed by a connection that is dead.
    Pulse {},
    /// Something does not work. Except for [`Trouble::CallTooLong`] the call goes on.
    Error {
        /// What does not work.
        code: Trouble,
        /// What to do about it.
        fix: String,
    },
}

impl ServerMessage {
    /// The text frame to send. Texts that are too long are cut.
    pub fn write(mut self) -> String {
        match &mut self {
            Self::Caption { text, .. } => *text = last(text, MAX_CAPTION_CHARS).to_owned(),
            Self::Sentence { text, .. } | Self::Cut { heard: text, .. } => text.truncate(first(text, MAX_SPOKEN_CHARS).len()),
            Self::Error { fix, .. } => fix.truncate(first(fix, MAX_FIX_CHARS).len()),
            // Names and ids were checked where they entered the server.
            _ => {}
        }
        // Maps with string keys, strings, numbers and booleans: writing them cannot fail.
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// Reads a text frame, as a client does.
    ///
    /// # Errors
    /// It is not JSON, or has an unknown type or field.
    pub fn read(frame: &str) -> Result<Self, Refused> {
        serde_json::from_str(frame).map_err(|error| Refused::Message { problem: error.to_string() })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeechService {
    /// Its name, such as `rehearsal` or `deepgram`.
    pub provider: String,
    /// The host to which it sends audio or text. Null: nothing leaves the server's machine.
    pub host: Option<String>,
}

/// The voice of a room, before somebody enters its call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What recognises speech.
    pub recognition: SpeechService,
    /// What recognises it if that fails, in order.
    pub fallbacks: Vec<SpeechService>,
    /// Whether it returns words. `rehearsal` detects speech, and returns none.
    pub recognises_words: bool,
    /// What makes the voices of the companions in the room, each once.
    pub synthesis: Vec<SpeechService>,
    /// Who is in the call.
    pub people: Vec<Person>,
}

#[cfg(test)]
mod tests;
