//! The inputs of a call, and the effects that its actor carries out.

use std::sync::Arc;
use std::time::Duration;

use super::playback::{Patience, Piece};
use super::view::{End, PersonAction, View};
use crate::id::{CompanionId, PersonId, Ticket, TurnId};
use crate::moment::Moment;
use crate::voice::interruption;
use crate::voice::said::Said;
use crate::voice::speech::Pulse;
use crate::voice::utterance;

pub struct World<'a> {
    /// The time since the call began, by a monotonic clock.
    pub now: Duration,
    pub at: Moment,
    /// The timeouts for audio.
    pub patience: Patience,
    /// Whether a person has opted out in the whole guild.
    pub is_opted_out: &'a dyn Fn(&PersonId) -> bool,
    /// Whether the guild has used up today's allowance of the speech synthesis service of a companion.
    pub is_used_up: &'a dyn Fn(&CompanionId) -> bool,
}

/// An event in or around a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The call's actor has started. Playback of its predecessor is lost.
    Started,
    /// A person has a new connection. The entrance was journaled, or journaling it failed.
    Entered { user: PersonId },
    /// A connection has ended.
    Parted { line: u64, gone: Gone },
    /// A person did something at a connection.
    Acted { line: u64, action: PersonAction },
    /// The voice activity of a person changed or continued.
    Pulse { user: PersonId, pulse: Pulse },
    /// A typed text has been said to its end.
    SaidAll { user: PersonId },
    /// A person opted out in the guild, or opted in again.
    OptOutChanged { user: PersonId },
    /// A person without a connection may have been away for long enough.
    Away { user: PersonId },
    /// The call may have reached its time limit.
    Limit { limit: Duration },
    /// A command of the conversation.
    Conversation(CallEffect),
    /// Audio of a sentence of the reply with this number. `None`: all of it was made.
    Audio { reply: u64, sentence: usize, piece: Option<Piece> },
    /// No more audio of a sentence can be made.
    AudioFailed { reply: u64, sentence: usize },
    /// Packets may be due, or audio may be late.
    Tick,
}

/// A command of the conversation to its call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEffect {
    /// Ask this person's recogniser to finish its segment.
    Finalize { user: PersonId },
    /// Show that this person counts as noise, and is not waited for until the next offset or word (docs/design/voice.md A-5).
    CountsAsNoise { user: PersonId },
    /// The channel has restarted, or has learned that the call has ([`Notice::PlayerRestarted`]). The call stops playback and forgets prepared audio.
    /// Commands for a reply in progress follow. The call reports again which people opted out in this call alone, whether the companions are
    /// [silenced](Notice::Silenced), and which of `people` have no connection.
    Restarted {
        /// The people who are in the call according to the journal.
        people: Vec<PersonId>,
    },
    /// A command for a spoken reply. Commands for a reply that has ended are ignored.
    ///
    /// The call reports the progress of a reply with [`Notice::Reply`]: each sentence before its audio, in order; `FirstAudio` once, when the first
    /// audio has arrived; after `Speak`, `Audio` and `Whole` of each sentence, which is played after its `Start`; `Played` about every 100 ms and
    /// after `Pause`; and `Finished` after all audio, or without any if none can be made. If the audio of a sentence fails, its first audio does not
    /// arrive within `voice.first_audio_timeout_secs`, or more audio does not arrive within `voice.stall_timeout_secs`, it reports `Stall`. After
    /// `Ended` or `Prepare` it reports nothing more about earlier commands.
    Reply {
        ticket: Ticket,
        /// The turn whose trace contains the work for this command. The channel fills it in.
        turn: Option<TurnId>,
        aloud: Aloud,
    },
}

/// An event in a voice call that is not journaled.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Voice activity, final results without words, and mutes.
    Call(utterance::Input),
    /// A person's voice was heard, from the beginning of one voiced hop to the end of another.
    Voiced { user: PersonId, from: Moment, to: Moment },
    /// A partial result of a recogniser. `started` is when the person began to say the words.
    Partial { user: PersonId, started: Moment, words: interruption::Words },
    /// The progress of a spoken reply: results of [`CallEffect::Reply`], and the playback position. Actions of people arrive as the other notices.
    Reply { ticket: Ticket, told: interruption::Input },
    /// Whether the companions are silenced: people do not hear them, or they do not hear people. Then they answer in writing.
    Silenced(bool),
    /// The actor that makes and plays audio has restarted. It needs the current reply again.
    PlayerRestarted,
}

/// A command to the call for a spoken reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Aloud {
    /// The companion prepares a reply: show that it thinks.
    Prepare { companion: CompanionId },
    /// Make the audio of a sentence. Sentences count from 0. The words and the audio are reported as [`Notice::Reply`].
    Say { sentence: usize, text: Arc<str> },
    /// No more sentences follow.
    SaidAll,
    /// The audio of this sentence may be played now: its start is journaled.
    Start { sentence: usize },
    /// Play, duck, pause, resume, drop the rest of a sentence, or stop because the reply has ended.
    Play(interruption::Effect),
}

/// An action for the caller. The first six do not need the call's own actor.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Show this to an audience.
    Show(Audience, View),
    /// Remove a connection, and close it if it is still open.
    Disconnect(u64, Option<End>),
    /// Report this to the channel.
    Notice(Notice),
    /// End the current speech of this person.
    StopSpeech(PersonId),
    /// Request the outstanding results of this person's recogniser.
    Finalize(PersonId),
    /// Discard the words and audio that this person's recogniser holds.
    ForgetWords(PersonId),
    /// Run the actors that process this person's speech.
    Hear(PersonId),
    /// Stop the actors that process this person's speech: the person is no longer in the call.
    Remove(PersonId),
    /// Update the journal to the people in the call, for this person or for all.
    Record(Option<PersonId>),
    /// Stop tracking the person as journaled in the call: the channel itself journals that the person has left.
    ForgetRecord(PersonId),
    /// Let a companion greet this person.
    Greet(PersonId),
    /// Say a typed text as this person.
    Say(PersonId, Said),
    /// Stop saying the typed text of this person.
    StopSaying(PersonId),
    /// Handle this input after this time. Only the newest [`Input::Tick`] counts.
    After(Duration, Input),
    /// Make the audio of a sentence.
    Synthesise { reply: u64, ticket: Ticket, companion: CompanionId, sentence: usize, text: Arc<str> },
    /// Stop waiting for the audio of this sentence.
    GiveUpAudio { reply: u64, sentence: usize },
    /// Discard all audio of the reply: it has ended.
    DropAudio,
    /// Play the next packet of a reply to all.
    Play(u32, super::playback::Next),
    /// Measurement: the time from a person's onset to the ducking of the reply.
    Ducked(Duration),
    /// Measurement: the time from a person's offset to the first audio of the reply.
    Answered(Duration),
}

/// The recipients of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// All greeted connections, and the connection that plays to all.
    All,
    /// The greeted connections of all other people.
    Others(PersonId),
    /// The connections of this person, and the connection that plays to all. On a platform with such a connection, people have no listener of their
    /// own.
    Person(PersonId),
    /// These connections.
    Lines(Vec<u64>),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The connection was lost. The person stays in the call for [`KEPT_FOR`](super::KEPT_FOR).
    Lost,
    /// The person left. The person's last words are still recognised.
    Left,
}
