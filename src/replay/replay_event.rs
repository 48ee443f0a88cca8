//! The events that a replay prints.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::domain::closing::{Cause, Stage};
use crate::domain::decision::{Decision, Reason};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::domain::text::escaped;
use crate::domain::trigger::Trigger;
use crate::domain::vote::{Stance, State};

/// An event of a replay, with its time and channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayEvent {
    /// The content of the event.
    #[serde(flatten)]
    pub kind: ReplayEventKind,
    /// The time. It is serialised in seconds.
    #[serde(serialize_with = "secs")]
    pub at: Moment,
    /// The channel's name in the script.
    pub channel: String,
}

/// The content of an event of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ReplayEventKind {
    /// A message was sent, a statement was posted, or a platform event arrived.
    Message {
        seq: Seq,
        from: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        text: String,
    },
    /// The transcript of a person's utterance, after the hand-over. Its `message` follows.
    Utterance {
        from: String,
        text: String,
        #[serde(serialize_with = "secs")]
        started: Moment,
        #[serde(serialize_with = "secs")]
        ended: Moment,
    },
    /// The voice lull ended without new words, and these companions consider earlier messages.
    VoiceQuiet { companions: Vec<CompanionId> },
    /// A companion was asked whether it wants to speak.
    Evaluate {
        companion: CompanionId,
        trigger: Trigger,
        message_count: u64,
        check_count: u64,
        threshold: Option<u64>,
        buffer: Vec<String>,
    },
    /// A companion's decision whether to speak.
    Decision { companion: CompanionId, trigger: Trigger, decision: Decision, reason: Reason },
    /// A question got no answer.
    Error { companion: CompanionId, trigger: Trigger },
    /// Messages settled without an answer.
    Silence { companion: CompanionId, trigger: Trigger, messages: Vec<String> },
    /// A round was closed.
    Round {
        message_id: Seq,
        states: Vec<State>,
        selected: Option<CompanionId>,
        /// The companions whose votes are held until the floor is free.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        held: Vec<CompanionId>,
    },
    /// The closing stage of a companion changed.
    Closing { companion: CompanionId, from: Stage, to: Stage, cause: Cause },
    /// A companion got the floor.
    Respond { companion: CompanionId, trigger: Trigger, messages: Vec<String> },
    /// A companion made a statement. Its `message` follows.
    Statement { companion: CompanionId, text: String },
    /// A reply failed. `reason` is given if the conversation decided so, for example `cancelled` or `closed`.
    Failed {
        companion: CompanionId,
        trigger: Trigger,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// A statement in progress is stopped, because people said more, or changed a message that it answers.
    Replanning { companion: CompanionId },
    /// The statement is begun again, to answer these messages.
    Replanned { companion: CompanionId, trigger: Trigger, messages: Vec<String> },
    /// The first frame of a spoken reply.
    Speak { companion: CompanionId },
    /// A spoken reply is ducked, because a person talks.
    Duck { companion: CompanionId },
    /// A spoken reply returns to its full volume.
    Unduck { companion: CompanionId },
    /// A spoken reply pauses because a person talks.
    Yield { companion: CompanionId },
    /// A spoken reply resumes.
    Resume {
        companion: CompanionId,
        /// The position in the reply's audio, in seconds.
        #[serde(serialize_with = "duration_secs")]
        from: Duration,
    },
    /// A spoken reply was cut. Its `message` follows.
    Cut { companion: CompanionId, heard: String },
    /// A reply is prepared again, to answer these messages, too.
    Extended { companion: CompanionId, trigger: Trigger, messages: Vec<String> },
    /// A companion wrote for too long and lost the floor. It continues to write, late.
    FloorExpired { companion: CompanionId },
    /// A late statement takes the free floor.
    FloorTaken { companion: CompanionId },
    /// The floor is free, and one of the companions with held votes is selected.
    HeldSelected { selected: CompanionId },
    /// A lull timer was armed.
    LullArmed {
        companion: CompanionId,
        #[serde(serialize_with = "secs")]
        lull_at: Moment,
    },
    /// A lull timer was cancelled.
    LullCancelled { companion: CompanionId },
    /// The state of a gate at the end.
    State {
        companion: CompanionId,
        buffer: Vec<String>,
        message_count: u64,
        check_count: u64,
        next_interjection_at: Option<u64>,
        #[serde(serialize_with = "optional_secs")]
        lull_at: Option<Moment>,
    },
}

impl ReplayEventKind {
    /// The companion of the event, if there is one.
    pub fn companion(&self) -> Option<&CompanionId> {
        match self {
            Self::Message { .. } | Self::Utterance { .. } | Self::VoiceQuiet { .. } | Self::Round { .. } => None,
            Self::Evaluate { companion, .. }
            | Self::Decision { companion, .. }
            | Self::Error { companion, .. }
            | Self::Silence { companion, .. }
            | Self::Closing { companion, .. }
            | Self::Respond { companion, .. }
            | Self::Statement { companion, .. }
            | Self::Failed { companion, .. }
            | Self::LullArmed { companion, .. }
            | Self::LullCancelled { companion }
            | Self::Replanning { companion }
            | Self::Replanned { companion, .. }
            | Self::Speak { companion }
            | Self::Duck { companion }
            | Self::Unduck { companion }
            | Self::Yield { companion }
            | Self::Resume { companion, .. }
            | Self::Cut { companion, .. }
            | Self::Extended { companion, .. }
            | Self::FloorExpired { companion }
            | Self::FloorTaken { companion }
            | Self::HeldSelected { selected: companion }
            | Self::State { companion, .. } => Some(companion),
        }
    }
}

fn secs<S: Serializer>(moment: &Moment, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(moment.as_secs_f64())
}

fn duration_secs<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn optional_secs<S: Serializer>(moment: &Option<Moment>, serializer: S) -> Result<S::Ok, S::Error> {
    match moment {
        Some(moment) => secs(moment, serializer),
        None => serializer.serialize_none(),
    }
}

/// One line, for people.
impl fmt::Display for ReplayEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3}  {:<8} {}", self.at.as_secs_f64(), printable(&self.channel), self.kind)
    }
}

impl fmt::Display for ReplayEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { seq, from, kind, text } => {
                let kind = kind.as_ref().map(|kind| format!(" ({})", printable(kind))).unwrap_or_default();
                write!(f, "#{seq} {}{kind}: {}", printable(from), printable(text))
            }
            Self::Utterance { from, text, started, ended } => {
                let (started, ended) = (started.as_secs_f64(), ended.as_secs_f64());
                write!(f, "{} said from {started:.3} to {ended:.3}: {}", printable(from), printable(text))
            }
            Self::VoiceQuiet { companions } => {
                let companions: Vec<_> = companions.iter().map(CompanionId::as_str).collect();
                write!(f, "quiet in the voice call for {}", companions.join(", "))
            }
            Self::Evaluate { companion, trigger, message_count, check_count, threshold, buffer } => write!(
                f,
                "{companion:>12} is asked: {trigger}, {message_count}/{} messages, {check_count} checks, {} to read",
                threshold.map_or_else(|| "-".to_owned(), |threshold| threshold.to_string()),
                buffer.len()
            ),
            Self::Decision { companion, trigger, decision, reason } => {
                write!(f, "{companion:>12} decides: {decision}, {trigger}, {reason}")
            }
            Self::Error { companion, trigger } => write!(f, "{companion:>12} got no answer: {trigger}"),
            Self::Silence { companion, messages, .. } => write!(f, "{companion:>12} lets pass: {}", quoted(messages)),
            Self::Round { message_id, states, selected, held } => {
                write!(f, "round about #{message_id}: ")?;
                for state in states {
                    match state.state {
                        Stance::Speak => {
                            write!(f, "{} {}{}", state.from, state.importance, if state.selected { "!" } else { "" })?
                        }
                        Stance::Listen => write!(f, "{} –", state.from)?,
                    }
                    f.write_str(if state.closing == Stage::None { "" } else { " " })?;
                    f.write_str(if state.closing == Stage::None { "" } else { state.closing.as_str() })?;
                    f.write_str(", ")?;
                }
                match selected {
                    Some(companion) => write!(f, "{companion} speaks next"),
                    None if held.is_empty() => f.write_str("nobody speaks"),
                    None => write!(
                        f,
                        "{} after the one who speaks",
                        held.iter().map(CompanionId::as_str).collect::<Vec<_>>().join(", ")
                    ),
                }
            }
            Self::Closing { companion, from, to, cause } => {
                write!(f, "{companion:>12} goes from {from} to {to}: {cause}")
            }
            Self::Respond { companion, trigger, messages } => {
                write!(f, "{companion:>12} has the floor: {trigger}, to {}", quoted(messages))
            }
            Self::Statement { companion, text } => write!(f, "{companion:>12} says: {}", printable(text)),
            Self::Failed { companion, trigger, reason } => {
                write!(f, "{companion:>12} failed to speak: {trigger}")?;
                reason.iter().try_for_each(|reason| write!(f, ", {reason}"))
            }
            Self::Replanning { companion } => write!(f, "{companion:>12} stops to begin again"),
            Self::Replanned { companion, trigger, messages } => {
                write!(f, "{companion:>12} begins again: {trigger}, to {}", quoted(messages))
            }
            Self::Speak { companion } => write!(f, "{companion:>12} begins to speak"),
            Self::Duck { companion } => write!(f, "{companion:>12} speaks quietly"),
            Self::Unduck { companion } => write!(f, "{companion:>12} speaks as loud as before"),
            Self::Yield { companion } => write!(f, "{companion:>12} pauses"),
            Self::Resume { companion, from } => write!(f, "{companion:>12} speaks on from {:.3} s", from.as_secs_f64()),
            Self::Cut { companion, heard } => write!(f, "{companion:>12} is cut off after: {}", printable(heard)),
            Self::Extended { companion, trigger, messages } => {
                write!(f, "{companion:>12} prepares again: {trigger}, to {}", quoted(messages))
            }
            Self::FloorExpired { companion } => write!(f, "{companion:>12} writes on without the floor"),
            Self::FloorTaken { companion } => write!(f, "{companion:>12} has the floor for a late statement"),
            Self::HeldSelected { selected } => write!(f, "{selected:>12} speaks next: the floor is free"),
            Self::LullArmed { companion, lull_at } => {
                write!(f, "{companion:>12} waits for quiet until {:.3}", lull_at.as_secs_f64())
            }
            Self::LullCancelled { companion } => write!(f, "{companion:>12} waits no more for quiet"),
            Self::State { companion, buffer, message_count, check_count, next_interjection_at, lull_at } => {
                let next = next_interjection_at.map_or_else(|| "-".to_owned(), |next| next.to_string());
                let lull_at = lull_at.map_or_else(|| "-".to_owned(), |at| format!("{:.3}", at.as_secs_f64()));
                write!(
                    f,
                    "{companion:>12} at the end: {message_count}/{next} messages, {check_count} checks, lull at {lull_at}, unsettled {}",
                    quoted(buffer)
                )
            }
        }
    }
}

/// Texts in quotes. Only characters that could affect a terminal are escaped.
fn quoted(texts: &[String]) -> String {
    let quoted: Vec<_> =
        texts.iter().map(|text| format!("\"{}\"", printable(&text.replace('\\', "\\\\").replace('"', "\\\"")))).collect();
    format!("[{}]", quoted.join(", "))
}

/// Escapes characters that could affect a terminal.
fn printable(text: &str) -> String {
    escaped(text, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_as_written_in_every_script() {
        let texts = ["สวัสดีอาเรีย", "ねえアリア", "e\u{301}tude 👍🏽", "say \"hi\" \\o/"].map(str::to_owned);

        let shown = quoted(&texts);

        assert_eq!(shown, "[\"สวัสดีอาเรีย\", \"ねえアリア\", \"e\u{301}tude 👍🏽\", \"say \\\"hi\\\" \\\\o/\"]");
    }

    #[test]
    fn texts_cannot_affect_a_terminal() {
        let shown = printable("a\u{1b}[2J\r\n\u{202e}b\u{2066}");

        assert_eq!(shown, "a\\u{1b}[2J\\r\\n\\u{202e}b\\u{2066}");
    }
}
