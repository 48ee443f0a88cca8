//! The wire protocol of a voice call in the browser (docs/api.md, "Voice"): frames, messages, close codes and limits of `GET /api/voice`.
//!
//! A binary frame is one Opus packet of 20 ms with a small header. A text frame is one JSON object with a `type`. Both sides refuse unknown frames,
//! types and fields. The page's side is `page/voice-protocol.js`. `tests/contracts/voice-protocol.json` has examples for both sides.

mod frames;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::text::{first, first_bytes, last};
use crate::domain::voice::segment::Kind;
use crate::ports::backend::Why;
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
/// The number of binary frames that the page may send per second on average. Ten seconds' worth may come at once.
pub const MAX_FRAMES_PER_SECOND: u32 = 60;
/// The number of messages that the page may send per second on average. Ten seconds' worth may come at once.
pub const MAX_MESSAGES_PER_SECOND: u32 = 30;
/// The most binary frames that are queued for a page. Beyond it the oldest frame is dropped and counted. Messages are never dropped.
pub const MAX_UNSENT_FRAMES: usize = 25;
/// How long sending may make no progress before the connection is closed as [`Close::TooSlow`].
pub const STALLED_AFTER: Duration = Duration::from_secs(5);
/// How often the page reports its playback position.
pub const PLAYED_EVERY: Duration = Duration::from_millis(100);
/// The longest name of a person, in characters.
pub const MAX_NAME_CHARS: usize = 64;
/// The longest caption, in characters. Only the end of a longer text is sent.
pub const MAX_CAPTION_CHARS: usize = 1_000;
/// The longest text of a sentence, and of the played part of a reply, in characters. Only the beginning of a longer text is sent.
pub const MAX_SPOKEN_CHARS: usize = 10_000;
/// The longest advice of an error, in characters.
pub const MAX_FIX_CHARS: usize = 300;
/// The longest reason of a close frame, in bytes (RFC 6455, 5.5).
const MAX_REASON_BYTES: usize = 123;

/// Why a frame was refused. Except after `Refused::Text`, the connection is closed as [`Close::Refused`], with this text as its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The binary frame or its packet is too long.
    #[error("a binary frame has {bytes} bytes, at most {MAX_FRAME_BYTES}; send one Opus packet of 20 ms in each")]
    TooLong {
        /// The length of the frame.
        bytes: usize,
    },
    /// The binary frame has no packet.
    #[error("a binary frame has {bytes} bytes and no packet; send one Opus packet of 20 ms in each")]
    TooShort {
        /// The length of the frame.
        bytes: usize,
    },
    /// This side does not receive binary frames of this kind.
    #[error("a binary frame has the unknown kind {kind}; the page sends kind {MICROPHONE}, the server kind {COMPANION}")]
    UnknownKind {
        /// The first byte.
        kind: u8,
    },
    /// The text frame is not a message that this side receives.
    #[error("not a message: {problem}")]
    Message {
        /// The parser's error.
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
    /// The server is stopping. The page reconnects.
    Stopping,
    /// The page broke the protocol or a limit, has signed out, or its visit has ended. It does not reconnect by itself.
    Refused,
    /// Sending made no progress for [`STALLED_AFTER`], or too many entries are queued. The page reconnects.
    TooSlow,
    /// The protocol version is unknown. The page must be reloaded.
    UnknownVersion,
    /// Another window of this person has taken over the microphone. The page does not reconnect by itself.
    Moved,
    /// The call has ended, for example because of `voice.max_call_secs` or because its room was deleted. The page does not reconnect by itself.
    Ended,
}

impl Close {
    /// All variants.
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
    /// Mutes or unmutes the microphone. A call begins unmuted.
    Mute {
        /// Whether the microphone is muted.
        on: bool,
    },
    /// Lets the server ignore the person's speech in this call (docs/design/voice.md A-17), or ends that.
    Ignore {
        /// Whether the person's speech is dropped.
        on: bool,
    },
    /// The furthest playback position of a reply. It is sent every [`PLAYED_EVERY`] while it moves, and after each `flush`.
    Played {
        reply: u32,
        /// The position in samples.
        samples: u64,
    },
    /// The person pressed Stop.
    Stop {
        /// The reply that was playing then.
        reply: u32,
    },
    /// A text that counts as if it were spoken now.
    Say {
        /// The text. It is validated like that of a typed message.
        text: String,
    },
    /// The person leaves the call. The server closes the connection as [`Close::Left`].
    Leave {},
}

impl PageMessage {
    /// Reads a text frame. A text has at most `max_text_chars` characters (`server.max_text_chars`).
    ///
    /// # Errors
    /// Returns an error if the frame is not JSON, if its type or a field is unknown, or if a text has the wrong length.
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
    /// Whether the person has no microphone.
    pub listening: bool,
    /// Whether the person's speech is ignored at the person's request.
    pub ignored: bool,
    pub talking: bool,
}

/// The sample rates that the page encodes and decodes, in Hz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SampleRates {
    /// The rate of microphone packets.
    pub microphone: u32,
    /// The rate of packets with companions' speech.
    pub companion: u32,
}

impl Default for SampleRates {
    fn default() -> Self {
        Self { microphone: SAMPLE_RATE, companion: SAMPLE_RATE }
    }
}

/// A problem in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Speech recognition does not respond.
    RecognitionFailed,
    /// Too many people talk at once. This person's speech waits to be recognised.
    RecognitionFull,
    /// The recognition budget of today is used up.
    RecognitionUsedUp,
    /// No speech can be synthesised.
    SynthesisFailed,
    /// The synthesis budget of today is used up.
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
    /// The call is open. Messages with its current state follow: `thinking`, `speaking`, `duck`.
    Hello {
        version: u32,
        /// The number of seconds between two `pulse` messages, from 1 to 20. If no frame arrives for three times as long, the page reconnects.
        heartbeat_secs: u32,
        frame_ms: u32,
        /// The sample rates of packets.
        sample_rates: SampleRates,
        /// The name of the person at this connection, as accepted.
        you: String,
        /// The people in the call, including the person at this connection.
        people: Vec<Person>,
    },
    /// A person has joined the call.
    Joined(Person),
    /// The microphone of a person was muted or unmuted, was added or removed, or is ignored or not ignored any more.
    Changed(Person),
    /// A person has left the call.
    Left { user: String },
    /// A person starts or stops talking.
    Talking {
        user: String,
        /// Whether the person talks.
        on: bool,
    },
    /// A person makes sounds without words, which count as noise until `talking` or a caption (docs/design/voice.md A-5).
    Noise { user: String },
    /// A transcript of a person's speech. It replaces the last caption of that person that was not final.
    Caption {
        user: String,
        text: String,
        /// Whether the transcript is final.
        is_final: bool,
        /// The classification of the transcript; `words` unless it is final.
        kind: Kind,
    },
    /// A companion prepares a spoken reply, or has cancelled it before its first word. `speaking` also ends the preparation.
    Thinking {
        companion: String,
        /// Whether the companion prepares a reply.
        on: bool,
    },
    /// A spoken reply begins. The message comes before the reply's first frame, and ends the previous reply.
    Speaking {
        companion: String,
        /// The number of the reply, unique in this call.
        reply: u32,
        /// The position of the next frame, in samples. It is 0 unless the page joins in the middle of the reply.
        from: u64,
    },
    /// A sentence of a reply. It comes before the sentence's first frame.
    Sentence {
        reply: u32,
        /// The position at which the sentence begins, in samples.
        from: u64,
        text: String,
    },
    /// The page plays a reply 12 dB more quietly, or at full level again.
    Duck {
        reply: u32,
        /// Whether the reply is ducked.
        on: bool,
    },
    /// A reply pauses. The page plays nothing more of it, and answers with `played`. Its frames continue after `resume`.
    Flush { reply: u32 },
    /// A reply continues at full level.
    Resume {
        reply: u32,
        /// The position of the next frame, in samples.
        from: u64,
    },
    /// A reply was played to its end.
    Done { reply: u32 },
    /// A reply was stopped. The page plays nothing more of it.
    Cut { reply: u32, heard: String },
    /// A sign that the connection works. A page does not see the pings of a WebSocket, and sending audio on a dead connection reports no error.
    Pulse {},
    /// Something does not work. The call continues, except after [`Trouble::CallTooLong`].
    Error {
        /// The problem.
        code: Trouble,
        /// The advice for the person.
        fix: String,
        /// The advice for programs that word it themselves.
        why: Why,
    },
}

impl ServerMessage {
    /// The text frame to send. Texts that are too long are truncated.
    pub fn write(mut self) -> String {
        match &mut self {
            Self::Caption { text, .. } => *text = last(text, MAX_CAPTION_CHARS).to_owned(),
            Self::Sentence { text, .. } | Self::Cut { heard: text, .. } => text.truncate(first(text, MAX_SPOKEN_CHARS).len()),
            Self::Error { fix, .. } => fix.truncate(first(fix, MAX_FIX_CHARS).len()),
            // Names and ids were checked where they entered the server.
            _ => {}
        }
        // The value has only maps with string keys, strings, numbers and booleans, so serializing it cannot fail.
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// Reads a text frame, as a client does.
    ///
    /// # Errors
    /// Returns an error if the frame is not JSON, or if its type or a field is unknown.
    pub fn read(frame: &str) -> Result<Self, Refused> {
        serde_json::from_str(frame).map_err(|error| Refused::Message { problem: error.to_string() })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeechService {
    /// The name of the provider, such as `rehearsal` or `deepgram`.
    pub provider: String,
    /// The host that receives audio or text. Null if no data leaves the server's machine.
    pub host: Option<String>,
}

/// The speech services of a room, and the people in its call. A client can read them before it joins.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The service that recognises speech.
    pub recognition: SpeechService,
    /// The services that are tried in this order if `recognition` fails.
    pub fallbacks: Vec<SpeechService>,
    /// Whether recognition returns words. `rehearsal` detects speech, but returns no words.
    pub recognises_words: bool,
    /// The services that synthesise the voices of the room's companions, without duplicates.
    pub synthesis: Vec<SpeechService>,
    /// The people in the call.
    pub people: Vec<Person>,
}

#[cfg(test)]
mod tests;
