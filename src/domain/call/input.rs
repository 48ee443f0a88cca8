//! What a call is told, and what its actor does for it.

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
    /// The time since the call began, by a clock that never jumps.
    pub now: Duration,
    pub at: Moment,
    /// How long audio is waited for.
    pub patience: Patience,
    /// Whether a person wants to be ignored in the whole guild.
    pub is_opted_out: &'a dyn Fn(&PersonId) -> bool,
    /// Whether the guild may have no more spoken today by the service of a companion.
    pub is_used_up: &'a dyn Fn(&CompanionId) -> bool,
}

/// What happened in or around a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The call's actor has started. What a predecessor played is lost.
    Started,
    /// A person has one more connection, and it was tried to journal the entrance.
    Entered { user: PersonId },
    /// A connection has ended.
    Parted { line: u64, gone: Gone },
    /// A person did something at a connection.
    Acted { line: u64, action: PersonAction },
    /// A person's voice was heard.
    Pulse { user: PersonId, pulse: Pulse },
    /// A typed text has been said to its end.
    SaidAll { user: PersonId },
    /// A person wants to be ignored in the guild, or to be listened to again.
    OptOutChanged { user: PersonId },
    /// A person without a connection may have been away for long enough.
    Away { user: PersonId },
    /// The call may have lasted for as long as it may.
    Limit { limit: Duration },
    /// The conversation wants something done.
    Conversation(CallEffect),
    /// Audio of a sentence of the reply with this number. None: all of it is made.
    Audio { reply: u64, sentence: usize, piece: Option<Piece> },
    /// No more audio of a sentence can be made.
    AudioFailed { reply: u64, sentence: usize },
    /// Packets may be due, or audio may be late.
    Tick,
}

/// Something that the conversation wants done in its call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEffect {
    /// Tell the recogniser of this person to finish its segment.
    Finalize { user: PersonId },
    /// Show that nobody waits for this person, who counts as noise until the next offset or word (docs/design/voice.md A-5).
    CountsAsNoise { user: PersonId },
    /// The channel has restarted, or was told that the call has ([`Notice::PlayerRestarted`]): stop what is played, and forget what was prepared. What is
    /// left to do for a reply follows. Report again who wants to be ignored in this call alone, whether the companions are
    /// [silenced](Notice::Silenced), and who of these people has no connection.
    Restarted {
        /// The people who are in the call on record.
        people: Vec<PersonId>,
    },
    /// Something to do for a reply that is spoken. What is to be done for a reply that has ended is ignored.
    ///
    /// For a reply the call reports ([`Notice::Reply`]): each sentence before its audio, in order; `FirstAudio` once, when the first audio is there;
    /// from `Speak` on, `Audio` and `Whole` of each sentence, which is played from its `Start` on; `Played` about every 100 ms and after `Pause`; and
    /// `Finished` after all audio, or without any if none can be made. A sentence without first audio for `voice.first_audio_timeout_secs`, or without
    /// more of it for `voice.stall_timeout_secs`, is a `Stall`. After `Ended` or `Prepare` it reports nothing more about earlier commands.
    Reply {
        ticket: Ticket,
        /// The turn in whose trace the work for it belongs. The channel fills it in.
        turn: Option<TurnId>,
        aloud: Aloud,
    },
}

/// Something that happens in a voice call and is not on record.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Speech pulses, final results without words, people who mute themselves.
    Call(utterance::Input),
    /// A person's voice was heard, from the beginning of a voiced hop to the end of one.
    Voiced { user: PersonId, from: Moment, to: Moment },
    /// A recogniser has words that were begun then and may still change.
    Partial { user: PersonId, started: Moment, words: interruption::Words },
    /// What became of a reply that is spoken: what [`CallEffect::Reply`] asked for, and how far it was played. What people do comes as the other notices.
    Reply { ticket: Ticket, told: interruption::Input },
    /// Whether nobody hears the companions in the call, or they hear nobody: then they answer in writing.
    Silenced(bool),
    /// What makes and plays the companions' audio was restarted. It needs the reply in force again.
    PlayerRestarted,
}

/// What a call does for a reply that is spoken.
#[derive(Clone, Debug, PartialEq)]
pub enum Aloud {
    /// A reply is being prepared: its companion thinks.
    Prepare { companion: CompanionId },
    /// Make audio of a sentence, of which the first is 0. Report its words and its audio as [`Notice::Reply`].
    Say { sentence: usize, text: Arc<str> },
    /// No more sentences follow.
    SaidAll,
    /// Audio of this sentence may be played from now on: that it starts is on record.
    Start { sentence: usize },
    /// Play, duck, pause, resume, or stop because the reply has ended.
    Play(interruption::Effect),
}

/// What the caller does next. The first six do not need the call's own actor.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Show this to an audience.
    Show(Audience, View),
    /// Forget a connection, and end it if it has not ended by itself.
    Disconnect(u64, Option<End>),
    /// Report this to the channel.
    Notice(Notice),
    /// The speech of this person ends here.
    StopSpeech(PersonId),
    /// The recogniser of this person returns what it has.
    Finalize(PersonId),
    /// The recogniser of this person forgets what it has.
    ForgetWords(PersonId),
    /// Run the actors that hear this person.
    Hear(PersonId),
    /// Stop them: the person is not in the call any more.
    Remove(PersonId),
    /// Bring the record in line with the call, for this person or for everybody.
    Record(Option<PersonId>),
    /// Forget that the person is on record as present: the channel itself journals that the person has left.
    ForgetRecord(PersonId),
    /// Have a companion greet this person.
    Greet(PersonId),
    /// Say a typed text as this person.
    Say(PersonId, Said),
    /// Stop saying it.
    StopSaying(PersonId),
    /// Handle this after this time. Only the newest [`Input::Tick`] counts.
    After(Duration, Input),
    /// Make the audio of a sentence.
    Synthesise { reply: u64, ticket: Ticket, companion: CompanionId, sentence: usize, text: Arc<str> },
    /// The audio of this sentence is not waited for any longer.
    GiveUpAudio { reply: u64, sentence: usize },
    /// The reply has ended: no audio of it is needed.
    DropAudio,
    /// Play the next packet of a reply to all.
    Play(u32, super::playback::Next),
    /// Measure: it was ducked this long after somebody had begun to talk.
    Ducked(Duration),
    /// Measure: it begins this long after somebody had stopped talking.
    Answered(Duration),
}

/// Who is shown something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everybody who was greeted, and what plays to all.
    All,
    /// Everybody else who was greeted.
    Others(PersonId),
    /// This person, and what plays to all: it shows the person nothing else.
    Person(PersonId),
    /// These connections.
    Lines(Vec<u64>),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The connection was lost. The person keeps the place for a while.
    Lost,
    /// The person left. What was said last is still recognised.
    Left,
}
