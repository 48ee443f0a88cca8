//! Runs a script with a single queue, ordered by time, then kind, then channel, then companion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::mouth::Player;
use super::replay_event::{ReplayEvent, ReplayEventKind};
use super::responder::{Cursor, Question, Responder, ScriptedAnswers};
use super::script::{Action, Answer, Script, ScriptedMessage};
use super::speech::{VoiceAction, VoiceEvent};
use crate::domain::address::{self, Incoming};
use crate::domain::answer::Verdict;
use crate::domain::budget::Ledger;
use crate::domain::conversation::{self, CallEffect, Conversation, Input, Notice, Output, Posting, Rules, World};
use crate::domain::event::{Evaluated, Event, Recorded, Segment};
use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::{ChannelId, CompanionId, PersonId, Seq, Ticket, TurnId};
use crate::domain::message::{Address, Author, Message, Modality, Role};
use crate::domain::moment::Moment;
use crate::domain::names::Names;
use crate::domain::stop_phrase::is_stop_phrase;
use crate::domain::trigger::Trigger;
use crate::domain::voice::interruption;
use crate::domain::voice::invented::is_invented;
use crate::domain::voice::segment::{Heard, Kind as SegmentKind, kind_of};
use crate::domain::voice::speech::HOP;
use crate::domain::voice::utterance;
use crate::domain::{repetition, vote};

/// The reason why a script cannot be run.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// An endless sequence of deadlines at one moment. This is a bug in the conversation, not in the script.
    #[error("channel {channel} does not come to an end at {at} s; this is a bug in tertulia, please report the script")]
    Endless {
        /// The channel's name in the script.
        channel: String,
        /// The time, in seconds.
        at: f64,
    },
    /// Two companions share a name. The text names them.
    #[error("companions: {0}")]
    SharedName(String),
}

/// All deadlines of one moment in one channel are one step, so more consecutive steps than channels indicate a loop. This many
/// more are an error.
const MOST_DEADLINES_AT_ONCE: usize = 1_000;

/// Runs a script to its end. Returns its events, in order.
///
/// # Errors
/// Returns an error if two companions share a name, or the conversation does not end.
pub fn run(script: &Script) -> Result<Vec<ReplayEvent>, RunError> {
    run_with(script, &mut ScriptedAnswers::of(script))
}

/// Like [`run`], with answers from `responder` instead of the script's lists.
///
/// # Errors
/// Returns an error if two companions share a name, or the conversation does not end.
pub fn run_with(script: &Script, responder: &mut dyn Responder) -> Result<Vec<ReplayEvent>, RunError> {
    let mut run = Run::new(script, responder)?;
    while let Some(next) = run.next() {
        run.handle(next)?;
    }
    run.print_states();
    Ok(run.printed)
}

/// The scheduled arrival of an answer or of a step of a reply.
pub(super) enum Arrival {
    /// A decision and a vote.
    Side {
        evaluated: Box<Evaluated>,
        answer: Answer,
        /// Whether the first answer was unreadable.
        is_repeat: bool,
    },
    Main {
        ticket: Ticket,
        answer: Answer,
    },
    Judge {
        ticket: Ticket,
        answer: Answer,
    },
    /// The first audio of a spoken reply is available.
    FirstAudio(Ticket),
    /// Playback of a spoken reply continues.
    Playing(Ticket),
    /// A spoken reply has paused at this position.
    Paused(Ticket, Duration),
    /// A person has talked since this moment.
    Hop(String, Moment),
}

impl Arrival {
    fn delay(&self) -> std::time::Duration {
        match self {
            Self::Side { answer, .. } | Self::Main { answer, .. } | Self::Judge { answer, .. } => answer.delay,
            Self::FirstAudio(_) | Self::Playing(_) | Self::Paused(..) => Duration::ZERO,
            Self::Hop(..) => HOP,
        }
    }

    fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::Side { evaluated, .. } => Some(evaluated.ticket),
            Self::Main { ticket, .. } | Self::Judge { ticket, .. } => Some(*ticket),
            Self::FirstAudio(ticket) | Self::Playing(ticket) | Self::Paused(ticket, _) => Some(*ticket),
            Self::Hop(..) => None,
        }
    }
}

/// The sort key of the queue. At the same time, answers come before script events, and script events before deadlines.
pub(super) type QueueKey = (Moment, Kind, String, Option<CompanionId>, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Answer,
    Script,
    Deadline,
}

pub(super) struct Run<'a> {
    pub(super) script: &'a Script,
    pub(super) names: Names,
    /// The names as speech recognition may spell them.
    pub(super) sounds: Names,
    policies: BTreeMap<CompanionId, InterjectionPolicy>,
    pub(super) channels: BTreeMap<String, Channel>,
    pub(super) arrivals: BTreeMap<QueueKey, Arrival>,
    events: BTreeMap<QueueKey, usize>,
    ledger: Ledger,
    jitter: Cursor,
    pub(super) rolls: Cursor,
    pub(super) mouths: Cursor,
    responder: &'a mut dyn Responder,
    question_count: u64,
    pub(super) now: Moment,
    deadlines_in_row: usize,
    printed: Vec<ReplayEvent>,
}

#[derive(Default)]
pub(super) struct Channel {
    pub(super) conversation: Conversation,
    texts: Vec<Arc<str>>,
    /// The current and earlier speakers, with the start and end of their speech.
    pub(super) speakers: BTreeMap<String, (Moment, Option<Moment>)>,
    /// The spoken reply in playback.
    pub(super) player: Option<(Ticket, Player)>,
    /// During a spoken reply, the time up to which each person's voice was reported.
    pub(super) voiced: BTreeMap<String, Moment>,
    /// The events, in the order of handling.
    #[cfg(test)]
    record: Vec<Recorded>,
}

impl<'a> Run<'a> {
    fn new(script: &'a Script, responder: &'a mut dyn Responder) -> Result<Self, RunError> {
        let names = Names::new(script.companions.values().map(|companion| (companion.id.clone(), companion.names())))
            .map_err(|shared| RunError::SharedName(shared.to_string()))?
            .with(script.settings.names.common);
        let heard = script.companions.values();
        let sounds = heard.map(|companion| (companion.id.clone(), companion.voice.sounds_like.iter().map(|sound| &**sound)));
        let sounds = Names::of_sounds(&names, sounds).with(script.settings.names.common);
        let policies = script.companions.values().map(|companion| (companion.id.clone(), companion.policy())).collect();
        let events = script
            .events
            .iter()
            .enumerate()
            .map(|(index, event)| ((event.at, Kind::Script, event.channel.clone(), None, index as u64), index));
        Ok(Self {
            script,
            sounds,
            names,
            policies,
            channels: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            events: events.collect(),
            ledger: Ledger::default(),
            jitter: Cursor::default(),
            rolls: Cursor::default(),
            mouths: Cursor::default(),
            responder,
            question_count: 0,
            now: Moment::ZERO,
            deadlines_in_row: 0,
            printed: Vec::new(),
        })
    }

    /// The next queue entry. `None` if the run has ended: at `until`, or when only retries after errors are left.
    fn next(&self) -> Option<QueueKey> {
        let deadline = self
            .channels
            .iter()
            .filter_map(|(name, channel)| Some((channel.conversation.wake_at()?, Kind::Deadline, name.clone(), None, 0)))
            .min();
        let waiting = [self.arrivals.keys().next().cloned(), self.events.keys().next().cloned()];
        let only_retries = || self.channels.values().all(|channel| channel.conversation.wake_at_except_retries().is_none());
        if self.script.until.is_none() && waiting.iter().all(Option::is_none) && only_retries() {
            return None;
        }
        let next = waiting.into_iter().chain([deadline]).flatten().min()?;
        self.script.until.is_none_or(|until| next.0 <= until).then_some(next)
    }

    fn handle(&mut self, key: QueueKey) -> Result<(), RunError> {
        let is_same_moment = key.1 == Kind::Deadline && self.now == key.0;
        self.deadlines_in_row = if is_same_moment { self.deadlines_in_row + 1 } else { 0 };
        if self.deadlines_in_row > MOST_DEADLINES_AT_ONCE + self.channels.len() {
            return Err(RunError::Endless { channel: key.2, at: key.0.as_secs_f64() });
        }
        self.now = key.0;
        match key.1 {
            Kind::Answer => {
                let Some(arrival) = self.arrivals.remove(&key) else { return Ok(()) };
                self.arrived(&key.2, arrival);
            }
            Kind::Script => {
                let Some(index) = self.events.remove(&key) else { return Ok(()) };
                self.open(&key.2);
                self.apply(&key.2, &self.script.events[index].action);
            }
            Kind::Deadline => self.step(&key.2, Input::Woken),
        }
        Ok(())
    }

    /// Begins a channel's conversation. Its members are all companions whose first event there is not a join.
    fn open(&mut self, channel: &str) {
        if self.channels.contains_key(channel) {
            return;
        }
        self.channels.insert(channel.to_owned(), Channel::default());
        let mut seen = BTreeSet::new();
        let mut absent = BTreeSet::new();
        let (mut heard, mut callers) = (BTreeSet::new(), Vec::new());
        let mut channel_events: Vec<_> = self.script.events.iter().filter(|event| event.channel == channel).collect();
        channel_events.sort_by_key(|event| event.at);
        for event in channel_events {
            if let Action::Join(companion) | Action::Leave(companion) = &event.action
                && seen.insert(companion)
                && matches!(event.action, Action::Join(_))
            {
                absent.insert(companion);
            }
            // Likewise, people are in the call from the start if their first event in it is not a join.
            if let Action::Voice(action) = &event.action
                && heard.insert(&action.from)
                && !matches!(action.what, VoiceEvent::Join)
            {
                callers.push(action.from.as_str());
            }
        }
        for companion in self.script.companions.keys().filter(|companion| !absent.contains(companion)) {
            self.join(channel, companion);
        }
        for caller in callers {
            self.apply_inbound(channel, Seq::NONE, Event::VoiceJoined { from: person(caller) });
        }
    }

    fn join(&mut self, channel: &str, companion: &CompanionId) {
        self.apply_inbound(channel, Seq::NONE, Event::Joined { companion: companion.clone(), external: false });
    }

    fn apply(&mut self, channel: &str, action: &Action) {
        match action {
            Action::Say(saying) => self.say(channel, saying),
            Action::Voice(action) => self.apply_voice_action(channel, action),
            Action::Join(companion) => self.join(channel, companion),
            Action::Leave(companion) => self.apply_inbound(channel, Seq::NONE, Event::Left { companion: companion.clone() }),
            Action::Stop(companion) => self.step(channel, Input::StopPressed { companion: companion.clone() }),
            Action::Again(companion) => {
                let conversation = &self.channels[channel].conversation;
                let newest = conversation.replaceable_of(companion).filter(|newest| conversation.check_again(*newest).is_ok());
                if newest.is_some() {
                    self.apply_inbound(channel, Seq::NONE, Event::again(false));
                }
            }
            Action::Choose(chosen) => {
                let helps_at_risk = self.script.settings.safety.crisis;
                let conversation = &self.channels[channel].conversation;
                let is_chosen = |companion: &CompanionId| chosen.as_ref().is_none_or(|chosen| chosen == companion);
                let present = conversation.companions().map(|view| view.companion);
                let able = present
                    .filter(|companion| is_chosen(companion) && conversation.check_chosen(companion, helps_at_risk).is_ok());
                let companions: Vec<_> = able.cloned().collect();
                if !companions.is_empty() {
                    self.apply_inbound(channel, Seq::NONE, Event::Chosen { companions, everybody: chosen.is_none(), by: None });
                }
            }
            Action::Pause(companion, paused) => {
                let event = Event::Paused { companion: Some(companion.clone()), paused: *paused };
                self.apply_inbound(channel, Seq::NONE, event);
            }
            Action::ReplaceModels => {
                for channel in self.channels.keys().cloned().collect::<Vec<_>>() {
                    self.step(&channel, Input::ModelsReplaced);
                }
            }
            Action::Clear => self.apply_inbound(channel, Seq::NONE, Event::cleared()),
            Action::Edit { message, text } => {
                self.set_text(channel, *message, text.as_str().into());
                self.apply_inbound(
                    channel,
                    Seq::NONE,
                    Event::Edited { message: *message, text: text.as_str().into(), captions: Vec::new(), version: None },
                );
            }
            Action::Delete(message) => self.delete(channel, *message),
        }
    }

    fn delete(&mut self, channel: &str, message: Seq) {
        self.set_text(channel, message, "".into());
        self.apply_inbound(channel, Seq::NONE, Event::deleted(vec![message]));
    }

    fn say(&mut self, channel: &str, saying: &ScriptedMessage) {
        let role = if saying.bot { Role::Bot } else { Role::Person };
        let from = Author { id: saying.from.as_str().into(), name: saying.from.as_str().into(), role };
        let role_of = |author: &str| match author {
            companion if self.is_companion(companion) => Role::Companion,
            speaker if speaker == saying.from => role,
            _ => Role::Person,
        };
        let reply_to = saying.reply_to.as_deref().map(|author| (author, role_of(author)));
        let mentions: Vec<_> = saying.mentions.iter().map(String::as_str).collect();
        let present: Vec<_> = self.channels[channel].conversation.companions().map(|view| view.companion.clone()).collect();
        let to_all_of = if saying.direct { &present[..] } else { &[] };
        let is_spoken = !saying.modality.is_text();
        let incoming = Incoming { mentions: &mentions, reply_to, to_all_of, is_spoken, ..Incoming::new(&from, &saying.text) };
        if !address::admits(self.script.settings.gate.foreign_bots, |id| self.is_companion(id), &incoming) {
            return;
        }
        let message = Message {
            address: self.address(&incoming),
            modality: saying.modality,
            lull_endpoint: saying.lull_endpoint,
            kind: saying.kind.as_deref().map(Arc::from),
            asks_to_stop: saying.kind.is_none()
                && role == Role::Person
                && is_stop_phrase(&saying.text, Some(&self.names), self.script.settings.reply.all_stop_phrases()),
            ..Message::new(from, saying.text.as_str().into())
        };
        self.receive_message(channel, message, None);
    }

    /// Applies an event of the voice call. The hops of the detector are those of the script, so an offset is detected
    /// immediately.
    fn apply_voice_action(&mut self, channel: &str, action: &VoiceAction) {
        let (now, from) = (self.now, person(&action.from));
        let user = PersonId::from(action.from.as_str());
        let Some(channel_state) = self.channels.get_mut(channel) else { return };
        let input = match &action.what {
            VoiceEvent::Join => return self.apply_inbound(channel, Seq::NONE, Event::VoiceJoined { from }),
            VoiceEvent::Leave => {
                self.end_speech(channel, &action.from);
                return self.apply_inbound(channel, Seq::NONE, Event::VoiceLeft { from });
            }
            VoiceEvent::Mute => {
                self.end_speech(channel, &action.from);
                utterance::Input::Muted { user }
            }
            VoiceEvent::Start => {
                channel_state.speakers.insert(action.from.clone(), (now, None));
                utterance::Input::Started { user, started: now }
            }
            VoiceEvent::End => {
                self.end_speech(channel, &action.from);
                utterance::Input::Ended { user, ended: now }
            }
            VoiceEvent::Partial(text) if text.trim().is_empty() => return,
            VoiceEvent::Partial(text) => {
                let started = channel_state.speakers.get(&action.from).map_or(now, |(started, _)| *started);
                let words = self.words(&from, text, SegmentKind::Words);
                return self.step(channel, Input::Voice(Notice::Partial { user, started, words }));
            }
            VoiceEvent::Final { text, started, ended } => {
                let spoken = channel_state.speakers.get(&action.from).copied();
                let is_last = spoken.is_none_or(|(_, ended)| ended.is_some());
                let ended = ended.or(spoken.and_then(|(_, ended)| ended)).unwrap_or(now);
                let started = started.or(spoken.map(|(started, _)| started)).unwrap_or(ended).min(ended);
                if !text.trim().is_empty() {
                    return self.hear_segment(channel, from, text, (started, ended), is_last);
                }
                utterance::Input::Final { user, is_last, segment: None }
            }
        };
        self.step(channel, Input::Voice(Notice::Call(input)));
    }

    /// Applies a final result of speech recognition.
    fn hear_segment(&mut self, channel: &str, from: Author, text: &str, (started, ended): (Moment, Moment), is_last: bool) {
        let settings = &self.script.settings;
        let address = self.address(&Incoming { sounds: Some(&self.sounds), is_spoken: true, ..Incoming::new(&from, text) });
        let stop = self.words(&from, text, SegmentKind::Words).stop;
        let heard = Heard {
            text,
            started,
            ended,
            voiced: Some(ended.since(started)),
            no_speech: None,
            is_invented: is_invented(text, ended.since(started), &settings.speech.noise),
            is_during_reply: self.channels[channel].conversation.voice().is_during_spoken_reply(started),
            begins_with_stop: !stop.is_none(),
        };
        let kind = kind_of(&heard, settings.speech.word_lists(None), &self.channels[channel].conversation.voice().played_words());
        let segment = Segment {
            text: text.into(),
            started,
            ended,
            confidence: None,
            provider: "rehearsal".into(),
            kind,
            stop,
            address,
            asks_to_stop: is_stop_phrase(text, [&self.names, &self.sounds], settings.reply.all_stop_phrases()),
            is_last,
            from,
        };
        let seq = self.number(channel, text.into());
        self.apply_inbound(channel, seq, Event::Segment(Box::new(segment)));
    }

    fn receive_message(&mut self, channel: &str, message: Message, reply: Option<Ticket>) {
        let Some(channel_state) = self.channels.get_mut(channel) else { return };
        channel_state.texts.push(message.text.clone());
        let seq = Seq(channel_state.texts.len() as u64);
        let kind = message.kind.as_deref().map(str::to_owned);
        let (from, text) = (message.from.id.to_string(), message.text.to_string());
        self.print(channel, ReplayEventKind::Message { seq, from, kind, text });
        self.apply_inbound(channel, seq, Event::Said { message, reply_to: None, reply, said_at: None });
    }

    fn apply_inbound(&mut self, channel: &str, seq: Seq, event: Event) {
        self.step(channel, Input::Inbound(Box::new(Recorded { seq, at: self.now, handled: seq, turn: None, event })));
    }

    fn arrived(&mut self, channel: &str, arrival: Arrival) {
        let input = match arrival {
            Arrival::Side { evaluated, answer, is_repeat } => match answer.outcome {
                Ok(text) => {
                    let vote = vote::read(&text, self.script.settings.prompt.verdict_words());
                    if vote.verdict == Verdict::Unreadable && !is_repeat {
                        self.put_question(channel, evaluated, true);
                        return;
                    }
                    Input::Answered { ticket: evaluated.ticket, vote, call: None }
                }
                Err(error) => Input::Unanswered { ticket: evaluated.ticket, error: error.into() },
            },
            Arrival::Main { ticket, answer } => match answer.outcome {
                Ok(text) if text.trim().is_empty() => Input::ReplyFailed { ticket, error: "empty".into() },
                Ok(text) => {
                    let reply = self.channels[channel].conversation.turns().owed_reply(ticket);
                    if let Some(replaced) = reply.and_then(|reply| reply.again) {
                        self.delete(channel, replaced);
                    }
                    Input::Written { ticket, text: text.into() }
                }
                Err(error) => Input::ReplyFailed { ticket, error: error.as_str().into() },
            },
            Arrival::FirstAudio(ticket) => return self.first_audio(channel, ticket),
            Arrival::Playing(ticket) => return self.play_on(channel, ticket),
            Arrival::Paused(ticket, position) => {
                Input::Voice(Notice::Reply { ticket, told: interruption::Input::Played { position } })
            }
            Arrival::Hop(from, since) => return self.hop(channel, from, since),
            Arrival::Judge { ticket, answer } => {
                Input::Judged { ticket, score: answer.outcome.map_or(0.0, |text| repetition::read_score(&text)), call: None }
            }
        };
        self.step(channel, input);
    }

    fn put_question(&mut self, channel: &str, evaluated: Box<Evaluated>, is_repeat: bool) {
        let answer = self.ask(channel, Question::Decision { evaluated: &evaluated });
        let companion = evaluated.companion.clone();
        self.schedule(channel, Some(&companion), Arrival::Side { evaluated, answer, is_repeat });
    }

    pub(super) fn step(&mut self, channel: &str, input: Input) {
        let Some(channel_state) = self.channels.get_mut(channel) else { return };
        let mut jitter = || self.jitter.next_or_last(&self.script.jitter).copied().unwrap_or(0);
        let mut world = World {
            channel: &ChannelId::from(channel),
            rules: Rules::from(&self.script.settings),
            policies: &self.policies,
            jitter: &mut jitter,
            roll: &mut || self.rolls.take_once(&self.script.rolls).copied(),
            // A replay prints no turns.
            turn: &mut || TurnId(0),
            ledger: &mut self.ledger,
            summary: None,
            notes: None,
            tokens_per_day: None,
            is_unpostable: false,
        };
        // Inbound events and answers come first, then each companion in the order of ids, then the questions.
        let mut unsorted_from = self.printed.len();
        #[cfg(test)]
        let inbound = tests::inbound(&input);
        let outputs = channel_state.conversation.step(self.now, input, &mut world);
        #[cfg(test)]
        tests::record(&mut channel_state.record, self.now, inbound, &outputs);
        for output in outputs {
            let is_printed_first = is_printed_first(&output);
            self.carry_out(channel, output);
            if is_printed_first {
                unsorted_from = self.printed.len();
            }
        }
        self.follow_voices(channel);
        self.printed[unsorted_from..]
            .sort_by_key(|printed| (matches!(printed.kind, ReplayEventKind::Evaluate { .. }), printed.kind.companion().cloned()));
    }

    fn carry_out(&mut self, channel: &str, output: Output) {
        match output {
            Output::Made(made) => self.on_event(channel, made.event),
            Output::LullArmed { companion, lull_at } => self.print(channel, ReplayEventKind::LullArmed { companion, lull_at }),
            Output::LullCancelled { companion } => self.print(channel, ReplayEventKind::LullCancelled { companion }),
            Output::Post(posting) => self.post(channel, *posting),
            Output::Cancel { ticket } => self.cancel(channel, ticket),
            Output::HandOver(messages) => self.hand_over(channel, messages),
            Output::Call(effect) => {
                if let CallEffect::Reply { ticket, aloud, .. } = *effect {
                    self.speak(channel, ticket, aloud);
                }
            }
            Output::Dropped { .. }
            | Output::Summarise { .. }
            | Output::TakeNotes { .. }
            | Output::HasLeft { .. }
            | Output::RedactSpeech { .. } => {}
        }
    }

    fn cancel(&mut self, channel: &str, ticket: Ticket) {
        self.arrivals.retain(|key, arrival| key.2 != channel || arrival.ticket() != Some(ticket));
    }

    fn on_event(&mut self, channel: &str, event: Event) {
        match event {
            Event::Evaluated(evaluated) => {
                self.put_question(channel, Box::new(evaluated.clone()), false);
                let buffer = self.texts(channel, &evaluated.messages);
                self.print(
                    channel,
                    ReplayEventKind::Evaluate {
                        companion: evaluated.companion,
                        trigger: evaluated.trigger,
                        message_count: evaluated.message_count,
                        check_count: evaluated.check_count,
                        threshold: evaluated.threshold,
                        buffer,
                    },
                );
            }
            Event::Decided(decided) => {
                let messages = self.texts(channel, &decided.messages);
                let (trigger, decision, reason) = (decided.trigger, decided.decision, decided.reason);
                for companion in decided.companions {
                    self.print(channel, ReplayEventKind::Decision { companion: companion.clone(), trigger, decision, reason });
                    if decision == crate::domain::decision::Decision::No {
                        self.print(channel, ReplayEventKind::Silence { companion, trigger, messages: messages.clone() });
                    }
                }
            }
            Event::RepetitionAsked { ticket, .. } => {
                let answer = self.ask(channel, Question::Judgement);
                self.schedule(channel, None, Arrival::Judge { ticket, answer });
            }
            // A round that all companions have left ends without output.
            Event::RoundClosed(closed) if closed.states.is_empty() => {}
            Event::RoundClosed(closed) => self.print(
                channel,
                ReplayEventKind::Round {
                    message_id: closed.message,
                    states: closed.states,
                    selected: closed.selected,
                    held: closed.held,
                },
            ),
            Event::StageChanged { companion, from, to, cause } => {
                self.print(channel, ReplayEventKind::Closing { companion, from, to, cause });
            }
            Event::Unanswered { companion, trigger, .. } => self.print(channel, ReplayEventKind::Error { companion, trigger }),
            Event::ReplyOwed { companion, ticket, trigger, messages, .. } => {
                let messages = self.ask_statement(channel, &companion, ticket, trigger, &messages);
                self.print(channel, ReplayEventKind::Respond { companion, trigger, messages });
            }
            Event::Replanning { companion, ticket, .. } => {
                self.cancel(channel, ticket);
                self.print(channel, ReplayEventKind::Replanning { companion });
            }
            Event::Replanned { companion, next, trigger, messages, .. } => {
                let messages = self.ask_statement(channel, &companion, next, trigger, &messages);
                self.print(channel, ReplayEventKind::Replanned { companion, trigger, messages });
            }
            Event::ReplyExtended { companion, ticket, next, trigger, messages, .. } => {
                self.cancel(channel, ticket);
                let messages = self.ask_statement(channel, &companion, next, trigger, &messages);
                self.print(channel, ReplayEventKind::Extended { companion, trigger, messages });
            }
            Event::Cancelled { companion, ticket, trigger, .. } => {
                if let Some(ticket) = ticket {
                    self.cancel(channel, ticket);
                }
                self.print(channel, ReplayEventKind::Failed { companion, trigger, reason: Some("cancelled".into()) });
            }
            Event::FloorExpired { companion, .. } => self.print(channel, ReplayEventKind::FloorExpired { companion }),
            Event::FloorTaken { companion, .. } => self.print(channel, ReplayEventKind::FloorTaken { companion }),
            Event::HeldSelected { selected, .. } => self.print(channel, ReplayEventKind::HeldSelected { selected }),
            Event::ReplyFailed { companion, trigger, error, .. } => {
                let reason = Some(error).filter(|error| {
                    matches!(&**error, conversation::CLOSED | conversation::INTERRUPTED | conversation::UNVOICED)
                });
                self.print(channel, ReplayEventKind::Failed { companion, trigger, reason });
            }
            Event::VoiceQuiet { companions } => self.print(channel, ReplayEventKind::VoiceQuiet { companions }),
            // The other events have no line of their own.
            _ => {}
        }
    }

    /// The messages of a hand-over return in one batch, as from a journal.
    fn hand_over(&mut self, channel: &str, messages: Vec<Event>) {
        let mut batch = Vec::with_capacity(messages.len());
        for event in messages {
            let Event::Said { message, .. } = &event else { continue };
            let (from, text) = (message.from.id.to_string(), message.text.clone());
            if let Some(speech) = &message.speech {
                let (from, started, ended) = (from.clone(), speech.started, speech.ended);
                self.print(channel, ReplayEventKind::Utterance { from, text: text.to_string(), started, ended });
            }
            let seq = self.number(channel, text.clone());
            self.print(channel, ReplayEventKind::Message { seq, from, kind: None, text: text.to_string() });
            batch.push(Recorded { seq, at: self.now, handled: seq, turn: None, event });
        }
        self.step(channel, Input::HandedOver(batch));
    }

    /// The number of the next event with a text.
    fn number(&mut self, channel: &str, text: Arc<str>) -> Seq {
        let Some(channel) = self.channels.get_mut(channel) else { return Seq::NONE };
        channel.texts.push(text);
        Seq(channel.texts.len() as u64)
    }

    fn post(&mut self, channel: &str, posting: Posting) {
        let Posting { companion, ticket, text, spoken } = posting;
        let kind = match spoken.as_ref().and_then(|spoken| spoken.cut.as_ref()) {
            Some(_) => ReplayEventKind::Cut { companion: companion.clone(), heard: text.to_string() },
            None => ReplayEventKind::Statement { companion: companion.clone(), text: text.to_string() },
        };
        self.print(channel, kind);
        let name = self.script.companions.get(&companion).map_or_else(|| companion.as_str().into(), |known| known.name.clone());
        let from = Author { id: companion.as_str().into(), name, role: Role::Companion };
        let address = self.address(&Incoming::new(&from, &text));
        let modality = if spoken.is_some() { Modality::Voice } else { Modality::Text };
        let cut = spoken.and_then(|spoken| spoken.cut);
        let message = Message { modality, cut, address, ..Message::new(from, text) };
        self.receive_message(channel, message, Some(ticket));
    }

    fn is_companion(&self, id: &str) -> bool {
        self.script.companions.contains_key(&id.into())
    }

    pub(super) fn address(&self, incoming: &Incoming<'_>) -> Address {
        address::resolve(&self.names, |id| self.is_companion(id), incoming)
    }

    fn ask(&mut self, channel: &str, question: Question<'_>) -> Answer {
        self.responder.answer(question, &self.channels[channel].conversation)
    }

    /// Requests a statement that answers these messages. Returns their texts.
    fn ask_statement(
        &mut self,
        channel: &str,
        companion: &CompanionId,
        ticket: Ticket,
        trigger: Trigger,
        messages: &[Seq],
    ) -> Vec<String> {
        let answer = self.ask(channel, Question::Statement { companion, trigger, messages });
        self.schedule(channel, Some(companion), Arrival::Main { ticket, answer });
        self.texts(channel, messages)
    }

    pub(super) fn schedule(&mut self, channel: &str, companion: Option<&CompanionId>, arrival: Arrival) {
        self.schedule_after(channel, arrival.delay(), companion, arrival);
    }

    pub(super) fn schedule_after(&mut self, channel: &str, delay: Duration, companion: Option<&CompanionId>, arrival: Arrival) {
        self.question_count += 1;
        let key = (self.now + delay, Kind::Answer, channel.to_owned(), companion.cloned(), self.question_count);
        self.arrivals.insert(key, arrival);
    }

    fn set_text(&mut self, channel: &str, message: Seq, text: Arc<str>) {
        let texts = self.channels.get_mut(channel).map(|channel| &mut channel.texts);
        if let Some(shown) = texts.and_then(|texts| texts.get_mut(message.0 as usize - 1)) {
            *shown = text;
        }
    }

    fn texts(&self, channel: &str, messages: &[Seq]) -> Vec<String> {
        let texts = &self.channels[channel].texts;
        messages.iter().filter_map(|seq| texts.get(seq.0 as usize - 1)).map(ToString::to_string).collect()
    }

    pub(super) fn print(&mut self, channel: &str, kind: ReplayEventKind) {
        self.printed.push(ReplayEvent { kind, at: self.now, channel: channel.to_owned() });
    }

    fn print_states(&mut self) {
        let at = self.script.until.unwrap_or(self.now);
        for (name, channel) in &self.channels {
            for view in channel.conversation.companions() {
                let buffer = channel.conversation.buffer(view.companion);
                let kind = ReplayEventKind::State {
                    companion: view.companion.clone(),
                    buffer: buffer.map(|entry| entry.message.text.to_string()).collect(),
                    message_count: view.gate.message_counter,
                    check_count: view.gate.check_count,
                    next_interjection_at: view.gate.next_interjection_at,
                    lull_at: view.gate.lull_at,
                };
                self.printed.push(ReplayEvent { kind, at, channel: name.clone() });
            }
        }
    }
}

fn person(name: &str) -> Author {
    Author { id: name.into(), name: name.into(), role: Role::Person }
}

/// Whether an output is an inbound event or an awaited answer. Those are printed before the consequences for each companion.
fn is_printed_first(output: &Output) -> bool {
    match output {
        Output::Post(_) | Output::HandOver(_) => true,
        Output::Made(made) => match &made.event {
            Event::RoundClosed(_) | Event::ReplyFailed { .. } | Event::Unanswered { .. } => true,
            Event::Cancelled { .. } | Event::Replanned { .. } | Event::FloorExpired { .. } | Event::FloorTaken { .. } => true,
            Event::Decided(decided) => decided.ticket.is_some(),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests;
