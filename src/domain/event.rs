//! The events of a channel, as they are journaled.
//!
//! There are two kinds in one sequence of numbers. Inbound events ([`Event::is_inbound`]) are handled in the order of their numbers. All other events
//! are made by the channel, and name the newest inbound event that it had handled by then. A fold in the order of [`order_of_handling`] restores the
//! conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::attachment::Caption;
use super::budget::UsedUp;
use super::closing::{Cause, Stage};
use super::decision::{Decision, Reason};
use super::filter::Finding;
use super::id::{CompanionId, PersonId, Seq, Ticket, TurnId};
use super::message::{Address, Author, Message, Modality};
use super::moment::Moment;
use super::note::{Dropped, Note};
use super::notice::Owed;
use super::relevance::Estimate;
use super::reminders::Reminder;
use super::tools::{ToolAnswered, ToolCalled, ToolConfirmed};
use super::trigger::Trigger;
use super::voice::interruption::{Interrupted, Stop};
use super::voice::segment::Kind;
use super::vote::{State, is_usual};

/// An event of the journal, with its number and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The event's number in the channel.
    pub seq: Seq,
    /// The time when it happened.
    pub at: Moment,
    /// The newest inbound event that the channel had handled when it made this event. For an inbound event: its own number.
    pub handled: Seq,
    /// The turn that the event belongs to. None if it belongs to no turn, like the messages of people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The event itself. Its fields are serialised on the same level as the others.
    #[serde(flatten)]
    pub event: Event,
}

/// An event that a channel made, to be appended to its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// When it happened, by the conversation's clock.
    pub at: Moment,
    /// The newest inbound event that the channel had handled.
    pub handled: Seq,
    /// The turn that the event belongs to. None if it belongs to no turn.
    pub turn: Option<TurnId>,
    pub event: Event,
}

/// An event in a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A person or a bot sent a message, or a companion's statement was posted.
    Said {
        /// The message, with the companions that it addresses.
        message: Message,
        /// The number of the message that it replies to. None if it replies to no journaled message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<Seq>,
        /// For a companion's statement: the number of the reply that it fulfils.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<Ticket>,
        /// When it was said, if it was accepted much later. None otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said_at: Option<Moment>,
    },
    /// A message was edited.
    Edited {
        message: Seq,
        /// The new text.
        text: Arc<str>,
        /// The captions by which alone the text differs, if a model wrote them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        captions: Vec<Caption>,
        /// The version of a statement that stands from now on (docs/design/speaking.md S-21), if that is the only change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Standing>,
    },
    /// Messages were deleted.
    Deleted {
        messages: Vec<Seq>,
        /// Messages that lose a person's name, because the person is forgotten or the quoted original was deleted. The name is that of the person who
        /// cut them off, or is in a quote.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unnamed: Vec<Seq>,
        /// A user requested a replacement of the newest message (docs/design/speaking.md S-17), which is deleted once the new one is written. Older
        /// versions deleted it with this event.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
        /// With `again`: the new statement extends the newest one (S-22).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        continues: bool,
        /// The next event is the statement that takes the place of the deleted one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replaced: bool,
    },
    /// A companion joined the channel.
    Joined {
        companion: CompanionId,
        /// Whether an external program plays it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        external: bool,
    },
    /// A companion left the channel.
    Left { companion: CompanionId },
    /// An operator paused companions, or ended the pause.
    Paused {
        /// The companion. None: all companions in the channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        companion: Option<CompanionId>,
        /// Whether the pause begins (`true`) or ends.
        paused: bool,
    },
    /// A person chose who speaks next, without a vote (docs/design/turn-taking.md T-24, T-25).
    Chosen {
        /// The companions, by id: one, or everybody who could speak.
        companions: Vec<CompanionId>,
        /// Each of them speaks once. Then all companions wait for people.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        everybody: bool,
        /// The person. None if the caller named none, or the person was forgotten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<PersonId>,
    },
    /// Everything in progress was cancelled (`clear`, docs/design/gate.md G-25). The history remains.
    Cleared {
        /// A new conversation began: prompts show no earlier messages, but the summary and the notes stay. Older versions drop these, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        anew: bool,
    },
    /// After a lost connection, the missed messages were read. They precede this event. Messages that could not be read are not read later.
    CaughtUp {
        /// The number of messages that were read.
        read: u32,
        /// The messages that were omitted. None if there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed: Option<Gap>,
    },
    /// The server disclosed to people that companions are AI, below the statement that precedes this event (docs/design/safety.md).
    Disclosed(Box<Disclosed>),
    /// A person entered the channel's voice call.
    VoiceJoined { from: Author },
    /// A person left the channel's voice call.
    VoiceLeft { from: Author },
    /// A person put a reaction on a companion's statement, or removed it. Only with `discord.reactions`.
    Reacted {
        /// The number of the statement.
        message: Seq,
        by: PersonId,
        /// The emoji, or `:name:` for one of a server.
        emoji: Arc<str>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        removed: bool,
    },
    /// Reminders were cancelled, or erased.
    RemindersCancelled {
        /// Their numbers.
        reminders: Vec<u64>,
        /// Whether they were erased with their person's data.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        erased: bool,
    },
    /// A recogniser returned a final result for a person's speech in the voice call. It becomes part of a message at the hand-over.
    Segment(Box<Segment>),

    /// The first interjection interval of a gate was drawn at random.
    JitterDrawn {
        /// The companion of the gate.
        companion: CompanionId,
        /// The message count of the first interjection check.
        next_interjection_at: u64,
    },
    /// Lull timers fired, because there was no message for their timeouts.
    LullFired {
        /// The companions of the timers, by id.
        companions: Vec<CompanionId>,
    },
    /// A voice lull has ended without new words, and earlier voice messages are unsettled for these companions (docs/design/voice.md A-12).
    VoiceQuiet {
        /// The companions whose lull has ended, by id.
        companions: Vec<CompanionId>,
    },
    /// There was no message for the `starts_after` of these companions.
    SilenceFired { companions: Vec<CompanionId> },
    /// Events that must be acknowledged wait, because `gate.acknowledgements_per_minute` is used up.
    EventsDeferred {
        /// When the next statement may acknowledge them. It acknowledges all of them.
        until: Moment,
    },
    /// Deferred events may be acknowledged.
    EventsReleased,
    /// Back-offs ended, because their time was over or a person's address cut them short.
    BackOffEnded {
        /// The companions of the back-offs, by id.
        companions: Vec<CompanionId>,
    },
    /// Deadlines were extended after a restart, because questions and requests for statements were sent again.
    DeadlinesExtended {
        /// The new deadline for the States of the open round.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<Moment>,
        /// The new deadline for questions about transcribed speech outside a round.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        questions: Option<Moment>,
        /// The new deadline for the text of the external companion that has the floor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        floor: Option<Moment>,
    },
    /// A person addressed companions more often than `gate.addresses_per_minute` allows. No companion is asked about this message. The event is
    /// journaled before the message is handled. Older versions journaled it afterwards if the message was journaled before a restart.
    AddressRefused {
        /// The number of the refused message.
        message: Seq,
    },
    /// A round was opened. The States of some companions are known. The others are asked, each with an `Evaluated`.
    RoundOpened(RoundOpened),
    /// A companion was asked whether it wants to speak.
    Evaluated(Evaluated),
    /// A decision whether companions speak.
    Decided(Decided),
    /// A question failed or timed out. It will be asked again.
    Unanswered {
        companion: CompanionId,
        ticket: Ticket,
        trigger: Trigger,
        /// A stable code, such as `timeout`, `unreachable`, `circuit_open`, `overloaded`, `refused`, `too_long`, `no_prompt`, `cancelled`.
        #[serde(deserialize_with = "current_code")]
        error: Arc<str>,
        /// The pause before it is asked again.
        back_off: Duration,
    },
    /// The closing stage of a companion changed.
    StageChanged {
        /// The companion whose stage changed.
        companion: CompanionId,
        from: Stage,
        to: Stage,
        /// The cause of the change.
        cause: Cause,
    },
    /// A round was closed. It selected one companion or none.
    RoundClosed(RoundClosed),
    /// The side model was asked how much the last statements repeat each other.
    RepetitionAsked {
        ticket: Ticket,
        /// The number of the newest of these statements.
        message: Seq,
    },
    /// The repetition of the last statements was judged.
    RepetitionJudged {
        /// The number of the newest of these statements.
        message: Seq,
        /// From 0 (all different) to 1 (repetition).
        score: f64,
        /// The number of judgements in a row that found repetition, including this one.
        detections: u32,
        /// The minimum stage that it forces on all companions except those in `exempt`. `none`: all minimum stages end.
        #[serde(default, skip_serializing_if = "Stage::is_none")]
        forced: Stage,
        /// The companions that are exempt from forced stages, by id.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        exempt: Vec<CompanionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
    },
    /// A companion got the floor and owes a statement.
    ReplyOwed {
        /// The companion that has the floor.
        companion: CompanionId,
        ticket: Ticket,
        /// The trigger that led to the reply.
        trigger: Trigger,
        /// The snapshot: the numbers of all unsettled messages, which settle with this event.
        messages: Vec<Seq>,
        /// The number of the newest event that settles.
        upto: Seq,
        /// The message count of the next interjection check, after the reset.
        next_interjection_at: u64,
        /// For an external companion: the deadline for its text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due_at: Option<Moment>,
        /// When the companion loses the floor, unless its statement is being posted. None: it keeps the floor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Moment>,
        /// The companion ends the conversation with this statement. Its stage becomes `terminal` once the statement is posted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_farewell: bool,
        /// The companion's statements are not judged for repetition.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_unjudged: bool,
        /// The number of the message that triggered it. None for a long silence, and in journals of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Seq>,
        /// Whether it is spoken in the voice call or posted as text (docs/design/voice.md A-44).
        #[serde(default, skip_serializing_if = "Modality::is_text")]
        modality: Modality,
        /// The number of the statement that it replaces, because a user pressed Replace this answer. None if it replaces none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<Seq>,
        /// It extends that statement.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        continues: bool,
    },
    /// A spoken reply in preparation was extended by more words of people, and starts again (docs/design/voice.md A-23).
    ReplyExtended {
        /// The companion that has the floor.
        companion: CompanionId,
        /// The number of the stopped reply.
        ticket: Ticket,
        /// The number of the owed reply from now on.
        next: Ticket,
        /// The trigger that led to the reply.
        trigger: Trigger,
        /// The snapshot: the numbers of all messages that it answers now.
        messages: Vec<Seq>,
        /// The number of the newest event that settles.
        upto: Seq,
    },
    /// A sentence of a spoken reply is about to play. Its first frame follows.
    SentenceStarting {
        companion: CompanionId,
        ticket: Ticket,
        /// The number of the sentence, from 0. The texts of the sentences form the reply without any text between them.
        sentence: u32,
        text: Arc<str>,
    },
    /// How much of a sentence was heard. It is journaled at the end of the sentence, at a pause, and at the end of the reply. The newest event
    /// counts.
    SentencePlayed {
        companion: CompanionId,
        ticket: Ticket,
        /// The number of the sentence, from 0.
        sentence: u32,
        /// The duration of its played audio, in milliseconds.
        ms: u64,
        /// The number of characters that were heard.
        heard: u32,
        /// The synthesis stalled, and the rest of the sentence was dropped.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        dropped: bool,
    },
    /// A person talked into a spoken reply, or stopped it.
    Interrupted {
        companion: CompanionId,
        ticket: Ticket,
        /// The person, the draw and the verdict.
        #[serde(flatten)]
        interrupted: Interrupted,
    },
    /// While a statement was being made, further messages arrived, or messages that it answers were edited or deleted. Its call is stopped, and the
    /// reply waits for its next attempt.
    Replanning {
        /// The companion that owes the reply.
        companion: CompanionId,
        ticket: Ticket,
        /// The number of the inbound event that caused it.
        message: Seq,
        /// When the next attempt starts, unless further messages arrive.
        until: Moment,
    },
    /// The next attempt of a reply starts. It also answers the messages that arrived in the meantime.
    Replanned {
        /// The companion that owes the reply.
        companion: CompanionId,
        /// The number of the stopped attempt.
        ticket: Ticket,
        /// The number of the next attempt, which is the number of the owed reply from now on.
        next: Ticket,
        /// The trigger that led to the reply.
        trigger: Trigger,
        /// The snapshot: the numbers of all messages that the next attempt answers.
        messages: Vec<Seq>,
        /// The number of the newest event that settles.
        upto: Seq,
    },
    /// A person stopped a companion before its statement was posted, by a message or by the Stop button. The event is journaled before the message is
    /// handled. Older versions journaled it afterwards if the message was journaled before a restart.
    Cancelled {
        /// The companion that would have spoken.
        companion: CompanionId,
        /// The number of the reply. None if the companion was selected and had not begun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<Ticket>,
        /// The trigger that led to the reply.
        trigger: Trigger,
        /// The number of the message that asks to stop. None for the Stop button.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Seq>,
    },
    /// A companion wrote longer than `turn_taking.floor_timeout_secs`. It continues to write without the floor, and others may speak.
    FloorExpired {
        /// The companion that had the floor.
        companion: CompanionId,
        ticket: Ticket,
    },
    /// A late text is complete, and takes the free floor to be posted.
    FloorTaken { companion: CompanionId, ticket: Ticket },
    /// The floor is free, and a speaker was selected among the companions that wanted to speak while it was taken.
    HeldSelected {
        /// The companion that speaks next.
        selected: CompanionId,
        /// The others, in their order of speaking.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<Outvoted>,
    },
    /// A reply failed; no statement was posted.
    ReplyFailed {
        /// The companion that owed the reply.
        companion: CompanionId,
        ticket: Ticket,
        /// The trigger that led to the reply.
        trigger: Trigger,
        /// A stable code, such as those of `Unanswered`, `empty`, `budget` and `risk`. `deleted` if all its messages were deleted, and `closed` if
        /// the companion of a late reply was closed, was paused or left. A spoken reply may also have `interrupted` if nothing was heard of it, and
        /// `unvoiced` if no audio arrived in time. `moderated` if moderation refused its text, and `moderation_failed` if moderation could not check
        /// it.
        #[serde(deserialize_with = "current_code")]
        error: Arc<str>,
        /// For `moderated`: the category of the refusal, as the moderation service names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Arc<str>>,
    },
    /// A model asked for a call of a tool (docs/design/tools.md). The call is made after this event, once it is confirmed, or not at all.
    ToolCalled(Box<ToolCalled>),
    /// A person confirmed or declined a call.
    ToolConfirmed(Box<ToolConfirmed>),
    /// A call has ended.
    ToolAnswered(Box<ToolAnswered>),
    /// The filter of a model's endpoint refused a prompt. Later prompts to that model omit the messages of the finding.
    Filtered(Finding),
    /// The rolling summary was refreshed.
    Summarised {
        /// The number of the newest event that the summary covers.
        upto: Seq,
        /// The text of the summary.
        text: Arc<str>,
        /// The number of messages that this summary covers and the previous one does not. 0 in journals of older versions, whose summaries covered
        /// all counted messages.
        #[serde(default, skip_serializing_if = "is_zero")]
        messages: u64,
    },
    /// A note was made (docs/design/memory.md).
    Noted(Box<Note>),
    /// The side model was asked for notes about what was said. The notes precede this event.
    NotesTaken(NotesTaken),
    /// A person set a reminder (docs/design/reminders.md).
    ReminderSet(Box<Reminder>),
}

/// Reads an error code. Journals of older versions have other names for some codes.
fn current_code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    let code = Arc::deserialize(deserializer)?;
    let current = match &*code {
        "left_alone" => "circuit_open",
        "unworded" => "no_prompt",
        "taken_back" => "deleted",
        _ => return Ok(code),
    };
    Ok(current.into())
}

/// The code of a reply whose text was refused by moderation.
pub const MODERATED: &str = "moderated";

/// Why a reply failed: a stable code, as in [`Event::ReplyFailed`], with the category of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Arc<str>,
    pub category: Option<Arc<str>>,
}

impl From<Arc<str>> for Failure {
    fn from(code: Arc<str>) -> Self {
        Self { code, category: None }
    }
}

impl From<&str> for Failure {
    fn from(code: &str) -> Self {
        Arc::<str>::from(code).into()
    }
}

/// Whether a number is omitted from the serialised event.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A range of messages of the platform that are not journaled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The platform's id of the last message before the gap.
    pub after: Arc<str>,
    /// The platform's id of the first message after the gap.
    pub before: Arc<str>,
    /// The cause, as a stable code: `too_many`, `too_old`, `refused`, `nothing_shown`, `unreachable`.
    pub why: Arc<str>,
}

/// The content of the event that the side model was asked for notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesTaken {
    /// The number of the newest event that was read. None if a person's request to remember something was refused.
    pub upto: Seq,
    /// The number of messages that were read.
    pub messages: u64,
    /// The number of notes that were made.
    pub made: u32,
    /// The number of proposed notes that were dropped, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<Dropped, u32>,
}

impl NotesTaken {
    /// Whether it says why a person's request to remember something was refused.
    pub fn is_refused_request(&self) -> bool {
        self.upto == Seq::NONE
    }
}

/// A version of a statement that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub index: usize,
    /// Whether somebody edited it.
    pub edited: bool,
}

/// The content of the event that people were informed that companions are AI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disclosed {
    /// The people and the occasion. Without people if all of them were forgotten since.
    #[serde(flatten)]
    pub owed: Owed,
    /// The number of the reply whose statement carried the notice.
    pub ticket: Ticket,
    /// On a platform: its id of the message that carried the notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Arc<str>>,
    /// The operator of the server, as named in the notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<Arc<str>>,
    /// The URL of the privacy policy, as given in the notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Arc<str>>,
}

/// A final result of a recogniser for a person's speech in a voice call. It has words. The names in it are resolved when it is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub from: Author,
    pub text: Arc<str>,
    /// The beginning of its first voiced hop.
    pub started: Moment,
    /// The end of its last voiced hop.
    pub ended: Moment,
    /// The confidence of the recogniser, in thousandths. `None` if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u16>,
    /// The recogniser, as in the span attribute `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// The kind of the words.
    pub kind: Kind,
    #[serde(default)]
    pub address: Address,
    /// Whether it is a stop phrase and contains no other words (docs/design/speaking.md S-15).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_to_stop: bool,
    /// Whether it begins with a stop word of speech (docs/design/voice.md A-26).
    #[serde(default, skip_serializing_if = "Stop::is_none")]
    pub stop: Stop,
    /// Whether it is the last result of the recogniser for the utterance (docs/design/voice.md A-10).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_last: bool,
}

impl Segment {
    /// Whether its text was deleted. An original segment is never empty.
    pub fn is_redacted(&self) -> bool {
        self.text.is_empty()
    }

    pub fn person(&self) -> PersonId {
        PersonId::from(&*self.from.id)
    }
}

/// The group of an event. Code that reads only some kinds of events need not name the others. A new kind of event gets its group here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Inbound: messages and segments, their edits and their deletions.
    Words,
    /// Inbound: changes of the members of a channel or its call, pauses, clears, catch-ups, disclosures and reactions.
    Members,
    /// A timer fired, or an address was refused. It may lead to a turn.
    Occasion,
    /// Events that belong to no turn.
    Upkeep,
    /// A question to a companion, and its outcome.
    Question,
    Round,
    /// Closing stages and repetition.
    Closing,
    /// An owed statement, until it is posted or has failed.
    Reply,
    /// A call of a tool. It belongs to the turn of its reply, which may have ended.
    Tool,
}

/// The content of an event that opens a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundOpened {
    /// The newest inbound event, which the round's States are about.
    pub message: Seq,
    /// The deadline for missing States.
    pub deadline: Moment,
    /// The companions that are asked, by id.
    pub asked: Vec<CompanionId>,
    /// The States of the companions that listen without being asked, by id.
    pub listening: Vec<State>,
}

/// The content of an event that closes a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundClosed {
    /// The inbound event that the States were about.
    pub message: Seq,
    /// The States, by the id of the companion.
    pub states: Vec<State>,
    /// The selected companion. None if no companion may speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<CompanionId>,
    /// When the selected companion starts to speak. None for a spoken reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speak_at: Option<Moment>,
    /// The other companions that wanted to speak, in their order of speaking.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Outvoted>,
    /// The companions that wanted to speak and must wait for the floor, a judgement or the loop guard, in their order of speaking. Their votes are
    /// held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<CompanionId>,
}

/// A companion that wanted to speak and did not get the floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outvoted {
    pub companion: CompanionId,
    /// The message count of its next interjection check. None if it does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_interjection_at: Option<u64>,
}

/// The content of a question to a companion whether it wants to speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    pub companion: CompanionId,
    pub ticket: Ticket,
    pub trigger: Trigger,
    /// The number of the message that triggered it.
    pub message: Seq,
    /// The numbers of the messages that the question is about: all unsettled ones.
    pub messages: Vec<Seq>,
    /// The newest of these messages.
    pub upto: Seq,
    /// The number of messages since the companion spoke last.
    pub message_count: u64,
    /// The number of interjection checks since the companion spoke last.
    pub check_count: u64,
    /// The message count at which the next interjection check is due. None before it was drawn.
    pub threshold: Option<u64>,
    /// For a question about transcribed speech outside a round: when it counts as unanswered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Moment>,
}

/// The content of a decision whether companions speak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The companions that the decision is about: several only for the reasons `closed`, `paused` and `backchannel`.
    pub companions: Vec<CompanionId>,
    pub trigger: Trigger,
    pub decision: Decision,
    /// The reason, from a closed list.
    pub reason: Reason,
    /// The number of the question. None if the decision was made without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// The numbers of the messages that the decision settles. For the reason `event`: the messages that the statement is about.
    pub messages: Vec<Seq>,
    /// The newest event that settles. `Seq::NONE` for a YES, because the reply's snapshot settles later. `Seq::NONE` for a NO means that only
    /// `messages` settle, each alone: an address over the budget of its author, a backchannel message, or messages that their author retracted. The
    /// stop phrase that retracts them is the last of `messages`, and is handled after the decision.
    pub upto: Seq,
    /// The number of messages since the companion spoke last, before this decision.
    pub message_count: u64,
    /// The number of interjection checks since the companion spoke last, before this decision.
    pub check_count: u64,
    /// The message count at which an interjection check was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// The message count of the next interjection check, if this decision changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_interjection_at: Option<u64>,
    /// For the reason `budget`: the budget that was used up. Absent in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_up: Option<UsedUp>,
    /// For the reason `irrelevant`: the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevance: Option<Box<Estimate>>,
    /// For the reason `event`: when the companion starts to speak. None: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speak_at: Option<Moment>,
    /// In a round: the State that the companion submits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<State>,
    /// The mood of the answer, −0.2 to 0.2.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub mood: f64,
    /// The companion's own reason, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Arc<str>>,
    /// The message whose author may be at risk. None if there is no sign of risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_risk: Option<Seq>,
    /// For the reason `other_addressed`: whether the author of a message may not address companions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_role: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
    /// Without a call: the id of the trace that contains its span, as in [`Call::trace`]. Absent if it follows from the turn of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<str>>,
}

impl Decided {
    /// Whether everything up to `upto` settles. Otherwise only `messages` settle.
    pub fn settles_by_cursor(&self) -> bool {
        self.upto != Seq::NONE
    }

    /// Whether it ends a question about messages up to `considered`, or a YES to it, because some of these were retracted.
    pub fn retracts(&self, considered: Seq) -> bool {
        let is_considered = || self.messages.iter().any(|seq| *seq <= considered);
        self.reason == Reason::Cancelled && (self.settles_by_cursor() || is_considered())
    }
}

/// The record of a call to a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider, as in the span attribute `gen_ai.provider.name`.
    pub provider: Arc<str>,
    /// The model, as in the span attribute `gen_ai.request.model`.
    pub model: Arc<str>,
    /// The time that the call waited in the pool's queue, in milliseconds.
    pub wait_ms: u64,
    /// The duration of the model call, in milliseconds, including retries.
    pub model_ms: u64,
    /// The parts of the prompt, in order, and their estimated tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt: Vec<(Arc<str>, u64)>,
    /// The range of messages that the prompt showed, from the first number to the second. Absent in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<(Seq, Seq)>,
    /// The first 1,000 characters of the model's answer, unchanged. If the call asked several companions: this companion's part of it.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub answer: Arc<str>,
    /// The number of tokens read. 0 if the call asked several companions. Then they are counted only in the usage of the room.
    pub input_tokens: u64,
    /// The number of tokens written. 0 if the call asked several companions.
    pub output_tokens: u64,
    /// The number of companions that the call asked. None if it asked only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_together: Option<u32>,
    /// The id of the trace that contains its spans, as 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Arc<str>>,
}

impl Call {
    /// The sum of the tokens read and written.
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Whether the prompt showed any of these messages. Also true if its range is not known.
    pub fn showed(&self, messages: &BTreeSet<Seq>) -> bool {
        self.shown.is_none_or(|(first, last)| first <= last && messages.range(first..=last).next().is_some())
    }
}

impl Event {
    pub fn deleted(messages: Vec<Seq>) -> Self {
        Self::Deleted { messages, unnamed: Vec::new(), again: false, continues: false, replaced: false }
    }

    /// The event that a statement was deleted, in whose place the next one stands.
    pub fn replaced(statement: Seq) -> Self {
        Self::Deleted { messages: vec![statement], unnamed: Vec::new(), again: false, continues: false, replaced: true }
    }

    pub const fn cleared() -> Self {
        Self::Cleared { anew: false }
    }

    /// The event that a user requests a replacement of the newest statement, or its continuation.
    pub const fn again(continues: bool) -> Self {
        Self::Deleted { messages: Vec::new(), unnamed: Vec::new(), again: true, continues, replaced: false }
    }

    /// The number of the call of a tool that the event is about.
    pub fn call(&self) -> Option<Ticket> {
        match self {
            Self::ToolCalled(called) => Some(called.call),
            Self::ToolConfirmed(confirmed) => Some(confirmed.call),
            Self::ToolAnswered(answered) => Some(answered.call),
            _ => None,
        }
    }

    /// Whether this is an inbound event: accepted first, then handled in the order of its number.
    pub const fn is_inbound(&self) -> bool {
        matches!(self.group(), Group::Words | Group::Members)
    }

    pub const fn group(&self) -> Group {
        match self {
            Self::Said { .. } | Self::Edited { .. } | Self::Deleted { .. } | Self::Segment(_) => Group::Words,
            Self::Joined { .. }
            | Self::Left { .. }
            | Self::Paused { .. }
            | Self::Chosen { .. }
            | Self::Cleared { .. }
            | Self::CaughtUp { .. }
            | Self::Disclosed(_)
            | Self::Reacted { .. }
            | Self::RemindersCancelled { .. }
            | Self::VoiceJoined { .. }
            | Self::VoiceLeft { .. } => Group::Members,
            Self::JitterDrawn { .. }
            | Self::LullFired { .. }
            | Self::SilenceFired { .. }
            | Self::VoiceQuiet { .. }
            | Self::EventsReleased
            | Self::BackOffEnded { .. }
            | Self::AddressRefused { .. } => Group::Occasion,
            Self::EventsDeferred { .. }
            | Self::DeadlinesExtended { .. }
            | Self::Filtered(_)
            | Self::Summarised { .. }
            | Self::Noted(_)
            | Self::NotesTaken(_)
            | Self::ReminderSet(_) => Group::Upkeep,
            Self::ToolCalled(_) | Self::ToolConfirmed(_) | Self::ToolAnswered(_) => Group::Tool,
            Self::Evaluated(_) | Self::Decided(_) | Self::Unanswered { .. } => Group::Question,
            Self::RoundOpened(_) | Self::RoundClosed(_) | Self::HeldSelected { .. } => Group::Round,
            Self::StageChanged { .. } | Self::RepetitionAsked { .. } | Self::RepetitionJudged { .. } => Group::Closing,
            Self::ReplyOwed { .. }
            | Self::ReplyExtended { .. }
            | Self::SentenceStarting { .. }
            | Self::SentencePlayed { .. }
            | Self::Interrupted { .. }
            | Self::Replanning { .. }
            | Self::Replanned { .. }
            | Self::Cancelled { .. }
            | Self::FloorExpired { .. }
            | Self::FloorTaken { .. }
            | Self::ReplyFailed { .. } => Group::Reply,
        }
    }
}

/// The text that follows a person's name in the event for the first person in a voice call (docs/design/voice.md A-77).
pub const ENTERED_CALL: &str = " has entered the voice call";

/// Sorts events of one channel into the order in which the channel handled them.
pub fn order_of_handling(events: &mut [Recorded]) {
    events.sort_by_key(|recorded| (recorded.handled, !recorded.event.is_inbound(), recorded.seq));
}

/// Splits events, in the order of handling, into those that the channel has handled and those that it has not. The latter are the inbound events
/// after the newest event that the channel made.
pub fn split_handled(events: &[Recorded]) -> (&[Recorded], &[Recorded]) {
    let newest_made = events.iter().rposition(|recorded| !recorded.event.is_inbound());
    events.split_at(newest_made.map_or(0, |newest| newest + 1))
}

#[cfg(any(test, feature = "samples"))]
pub mod samples;
