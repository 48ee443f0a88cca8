//! Runs a script: one queue, ordered by time, then kind, then channel, then companion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::happening::{Happening, What};
use super::players::{Lists, Players, Question, Turns};
use super::script::{Answer, Deed, Saying, Script};
use crate::domain::address::{self, Heard};
use crate::domain::answer::Verdict;
use crate::domain::budget::Ledger;
use crate::domain::conversation::{Conversation, Input, Output, Rules, World};
use crate::domain::event::{Evaluated, Event, Recorded};
use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::{ChannelId, CompanionId, Seq, Ticket, TurnId};
use crate::domain::message::{Author, Message, Role};
use crate::domain::moment::Moment;
use crate::domain::names::Names;
use crate::domain::{repetition, vote};

/// Why a script cannot be run.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Impossible {
    /// One deadline after the other is due at the same moment, without end: a mistake of the conversation's, not of the script.
    #[error("channel {channel} comes to no end at {at} s; this is a mistake in tertulia, please report the script")]
    Endless {
        /// Where.
        channel: String,
        /// When, in seconds.
        at: f64,
    },
    /// Two companions share a name.
    #[error("companions: {0}")]
    SharedName(String),
}

/// Deadlines of one moment in one channel are one step: more in a row than there are channels are suspect, so many are one too many.
const MOST_DEADLINES_AT_ONCE: usize = 1_000;

/// Runs a script to its end and gives what happened, in order.
///
/// # Errors
/// When the script asks for what the conversation cannot do.
pub fn run(script: &Script) -> Result<Vec<Happening>, Impossible> {
    run_with(script, &mut Lists::of(script))
}

/// Runs a script to its end, its models played by somebody else than its lists, and gives what happened, in order.
///
/// # Errors
/// When the script asks for what the conversation cannot do.
pub fn run_with(script: &Script, players: &mut dyn Players) -> Result<Vec<Happening>, Impossible> {
    let mut run = Run::new(script, players)?;
    while let Some(next) = run.next() {
        run.take(next)?;
    }
    run.tell_states();
    Ok(run.told)
}

/// What comes of a question or of a reply.
enum Arrival {
    /// A decision in two lines, or in a round a vote.
    Side {
        evaluated: Box<Evaluated>,
        answer: Answer,
        is_vote: bool,
        /// The answer before could not be read.
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
}

impl Arrival {
    fn delay(&self) -> std::time::Duration {
        match self {
            Self::Side { answer, .. } | Self::Main { answer, .. } | Self::Judge { answer, .. } => answer.delay,
        }
    }

    fn ticket(&self) -> Ticket {
        match self {
            Self::Side { evaluated, .. } => evaluated.ticket,
            Self::Main { ticket, .. } | Self::Judge { ticket, .. } => *ticket,
        }
    }
}

/// The order of the queue. Kinds: answers, script events, deadlines.
type Place = (Moment, Kind, String, Option<CompanionId>, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Answer,
    Script,
    Deadline,
}

struct Run<'a> {
    script: &'a Script,
    names: Names,
    policies: BTreeMap<CompanionId, InterjectionPolicy>,
    channels: BTreeMap<String, Channel>,
    arrivals: BTreeMap<Place, Arrival>,
    events: BTreeMap<Place, usize>,
    ledger: Ledger,
    jitter: Turns,
    players: &'a mut dyn Players,
    asked: u64,
    now: Moment,
    deadlines_in_row: usize,
    told: Vec<Happening>,
}

#[derive(Default)]
struct Channel {
    conversation: Conversation,
    texts: Vec<Arc<str>>,
}

impl<'a> Run<'a> {
    fn new(script: &'a Script, players: &'a mut dyn Players) -> Result<Self, Impossible> {
        let names = Names::new(script.companions.values().map(|companion| (companion.id.clone(), companion.names())))
            .map_err(|shared| Impossible::SharedName(shared.to_string()))?;
        let policies = script.companions.values().map(|companion| (companion.id.clone(), companion.policy())).collect();
        let events = script
            .events
            .iter()
            .enumerate()
            .map(|(index, event)| ((event.at, Kind::Script, event.channel.clone(), None, index as u64), index));
        Ok(Self {
            script,
            names,
            policies,
            channels: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            events: events.collect(),
            ledger: Ledger::default(),
            jitter: Turns::default(),
            players,
            asked: 0,
            now: Moment::ZERO,
            deadlines_in_row: 0,
            told: Vec::new(),
        })
    }

    /// What comes next, unless the run is over: at `until`, or when nothing is left but retries after errors.
    fn next(&self) -> Option<Place> {
        let deadline = self
            .channels
            .iter()
            .filter_map(|(name, channel)| Some((channel.conversation.wake_at()?, Kind::Deadline, name.clone(), None, 0)))
            .min();
        let waiting = [self.arrivals.keys().next().cloned(), self.events.keys().next().cloned()];
        let only_retries = || self.channels.values().all(|channel| channel.conversation.wake_at_but_for_retries().is_none());
        if self.script.until.is_none() && waiting.iter().all(Option::is_none) && only_retries() {
            return None;
        }
        let next = waiting.into_iter().chain([deadline]).flatten().min()?;
        self.script.until.is_none_or(|until| next.0 <= until).then_some(next)
    }

    fn take(&mut self, place: Place) -> Result<(), Impossible> {
        let goes_round = place.1 == Kind::Deadline && self.now == place.0;
        self.deadlines_in_row = if goes_round { self.deadlines_in_row + 1 } else { 0 };
        if self.deadlines_in_row > MOST_DEADLINES_AT_ONCE + self.channels.len() {
            return Err(Impossible::Endless { channel: place.2, at: place.0.as_secs_f64() });
        }
        self.now = place.0;
        match place.1 {
            Kind::Answer => {
                let Some(arrival) = self.arrivals.remove(&place) else { return Ok(()) };
                self.arrived(&place.2, arrival);
            }
            Kind::Script => {
                let Some(index) = self.events.remove(&place) else { return Ok(()) };
                self.open(&place.2);
                self.happen(&place.2, &self.script.events[index].deed);
            }
            Kind::Deadline => self.step(&place.2, Input::Woken),
        }
        Ok(())
    }

    /// A channel's conversation begins: everyone is present whose first event there is not a join.
    fn open(&mut self, channel: &str) {
        if self.channels.contains_key(channel) {
            return;
        }
        self.channels.insert(channel.to_owned(), Channel::default());
        let mut seen = BTreeSet::new();
        let mut absent = BTreeSet::new();
        let mut there: Vec<_> = self.script.events.iter().filter(|event| event.channel == channel).collect();
        there.sort_by_key(|event| event.at);
        for event in there {
            if let Deed::Join(companion) | Deed::Leave(companion) = &event.deed
                && seen.insert(companion)
                && matches!(event.deed, Deed::Join(_))
            {
                absent.insert(companion);
            }
        }
        for companion in self.script.companions.keys().filter(|companion| !absent.contains(companion)) {
            self.join(channel, companion);
        }
    }

    fn join(&mut self, channel: &str, companion: &CompanionId) {
        self.hear(channel, Seq::NONE, Event::Joined { companion: companion.clone(), external: false });
    }

    fn happen(&mut self, channel: &str, deed: &Deed) {
        match deed {
            Deed::Say(saying) => self.say(channel, saying),
            Deed::Join(companion) => self.join(channel, companion),
            Deed::Leave(companion) => self.hear(channel, Seq::NONE, Event::Left { companion: companion.clone() }),
            Deed::Clear => self.hear(channel, Seq::NONE, Event::Cleared),
        }
    }

    fn say(&mut self, channel: &str, saying: &Saying) {
        let role = if saying.bot { Role::Bot } else { Role::Person };
        let from = Author { id: saying.from.as_str().into(), name: saying.from.as_str().into(), role };
        let is_companion = |id: &str| self.script.companions.contains_key(&id.into());
        let role_of = |author: &str| match author {
            companion if is_companion(companion) => Role::Companion,
            speaker if speaker == saying.from => role,
            _ => Role::Person,
        };
        let reply_to = saying.reply_to.as_deref().map(|author| (author, role_of(author)));
        let mentions: Vec<_> = saying.mentions.iter().map(String::as_str).collect();
        let present: Vec<_> = self.channels[channel].conversation.companions().map(|view| view.companion.clone()).collect();
        let heard = Heard {
            speaker: &from,
            text: &saying.text,
            mentions: &mentions,
            reply_to,
            to_all_of: if saying.direct { &present } else { &[] },
        };
        if !address::admits(self.script.settings.gate.foreign_bots, is_companion, &heard) {
            return;
        }
        let message = Message {
            id: None,
            address: address::resolve(&self.names, is_companion, &heard),
            text: saying.text.as_str().into(),
            modality: saying.modality,
            lull_endpoint: saying.lull_endpoint,
            from,
        };
        self.hear_message(channel, message, None);
    }

    fn hear_message(&mut self, channel: &str, message: Message, reply: Option<Ticket>) {
        let Some(known) = self.channels.get_mut(channel) else { return };
        known.texts.push(message.text.clone());
        let seq = Seq(known.texts.len() as u64);
        self.tell(channel, What::Message { seq, from: message.from.id.to_string(), text: message.text.to_string() });
        self.hear(channel, seq, Event::Said { message, reply_to: None, reply, said_at: None });
    }

    fn hear(&mut self, channel: &str, seq: Seq, event: Event) {
        self.step(channel, Input::Heard(Box::new(Recorded { seq, at: self.now, handled: seq, turn: None, event })));
    }

    fn arrived(&mut self, channel: &str, arrival: Arrival) {
        let input = match arrival {
            Arrival::Side { evaluated, answer, is_vote, is_repeat } => match answer.outcome {
                Ok(text) => {
                    let vote = vote::read(&text, self.script.settings.prompt.verdict_words());
                    if vote.verdict == Verdict::Unreadable && !is_repeat {
                        self.put_question(channel, evaluated, is_vote, true);
                        return;
                    }
                    Input::Answered { ticket: evaluated.ticket, vote, call: None }
                }
                Err(error) => Input::Unanswered { ticket: evaluated.ticket, error: error.into() },
            },
            Arrival::Main { ticket, answer } => match answer.outcome {
                Ok(text) if text.trim().is_empty() => Input::ReplyFailed { ticket, error: "empty".into() },
                Ok(text) => Input::Written { ticket, text: text.into() },
                Err(error) => Input::ReplyFailed { ticket, error: error.into() },
            },
            Arrival::Judge { ticket, answer } => {
                Input::Judged { ticket, score: answer.outcome.map_or(0.0, |text| repetition::read_score(&text)), call: None }
            }
        };
        self.step(channel, input);
    }

    fn put_question(&mut self, channel: &str, evaluated: Box<Evaluated>, is_vote: bool, is_repeat: bool) {
        let answer = self.ask(channel, Question::Decision { evaluated: &evaluated, is_vote });
        let companion = evaluated.companion.clone();
        self.expect(channel, Some(&companion), Arrival::Side { evaluated, answer, is_vote, is_repeat });
    }

    fn step(&mut self, channel: &str, input: Input) {
        let Some(known) = self.channels.get_mut(channel) else { return };
        let mut jitter = || self.jitter.take(&self.script.jitter).copied().unwrap_or(0);
        let mut world = World {
            channel: &ChannelId::from(channel),
            rules: Rules { asks_everyone: self.players.asks_everyone(), ..Rules::from(&self.script.settings) },
            policies: &self.policies,
            jitter: &mut jitter,
            // Nothing here tells of turns.
            turn: &mut || TurnId(0),
            ledger: &mut self.ledger,
            summary_after: None,
            tokens_per_day: None,
            is_unpostable: false,
        };
        // First what was heard; then each companion, in the order of ids; then who is asked.
        let mut heard = self.told.len();
        for output in known.conversation.step(self.now, input, &mut world) {
            let is_heard = is_heard(&output);
            self.carry_out(channel, output);
            if is_heard {
                heard = self.told.len();
            }
        }
        self.told[heard..]
            .sort_by_key(|happening| (matches!(happening.what, What::Evaluate { .. }), happening.what.companion().cloned()));
    }

    fn carry_out(&mut self, channel: &str, output: Output) {
        match output {
            Output::Made(made) => self.made(channel, made.event),
            Output::LullArmed { companion, lull_at } => self.tell(channel, What::LullArmed { companion, lull_at }),
            Output::LullCancelled { companion } => self.tell(channel, What::LullCancelled { companion }),
            Output::Post(posting) => self.post(channel, &posting.companion, posting.ticket, posting.text),
            Output::Cancel { ticket } => {
                self.arrivals.retain(|place, arrival| place.2 != channel || arrival.ticket() != ticket);
            }
            Output::Dropped { .. } | Output::Summarise { .. } => {}
        }
    }

    fn made(&mut self, channel: &str, event: Event) {
        match event {
            Event::Evaluated(evaluated) => {
                let is_vote = self.channels[channel].conversation.round().is_some();
                self.put_question(channel, Box::new(evaluated.clone()), is_vote, false);
                let buffer = self.texts(channel, &evaluated.messages);
                self.tell(
                    channel,
                    What::Evaluate {
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
                    self.tell(channel, What::Decision { companion: companion.clone(), trigger, decision, reason });
                    if decision == crate::domain::decision::Decision::No {
                        self.tell(channel, What::Silence { companion, trigger, messages: messages.clone() });
                    }
                }
            }
            Event::RepetitionAsked { ticket, .. } => {
                let answer = self.ask(channel, Question::Judgement);
                self.expect(channel, None, Arrival::Judge { ticket, answer });
            }
            // A round that everybody has left is over without a word.
            Event::RoundClosed(closed) if closed.states.is_empty() => {}
            Event::RoundClosed(closed) => {
                self.tell(channel, What::Round { message_id: closed.message, states: closed.states, selected: closed.selected })
            }
            Event::StageChanged { companion, from, to, cause } => {
                self.tell(channel, What::Closing { companion, from, to, cause });
            }
            Event::Unanswered { companion, trigger, .. } => self.tell(channel, What::Error { companion, trigger }),
            Event::ReplyOwed { companion, ticket, trigger, messages, .. } => {
                let answer = self.ask(channel, Question::Statement { companion: &companion, trigger, messages: &messages });
                self.expect(channel, Some(&companion), Arrival::Main { ticket, answer });
                let messages = self.texts(channel, &messages);
                self.tell(channel, What::Respond { companion, trigger, messages });
            }
            Event::ReplyFailed { companion, trigger, .. } => self.tell(channel, What::Failed { companion, trigger }),
            Event::Said { .. }
            | Event::Edited { .. }
            | Event::Deleted { .. }
            | Event::Joined { .. }
            | Event::Left { .. }
            | Event::Paused { .. }
            | Event::Cleared
            | Event::CaughtUp { .. }
            | Event::JitterDrawn { .. }
            | Event::LullFired { .. }
            | Event::BackOffEnded { .. }
            | Event::DeadlinesExtended { .. }
            | Event::AddressRefused { .. }
            | Event::RoundOpened(_)
            | Event::RepetitionJudged { .. }
            | Event::Summarised { .. } => {}
        }
    }

    fn post(&mut self, channel: &str, companion: &CompanionId, ticket: Ticket, text: Arc<str>) {
        self.tell(channel, What::Statement { companion: companion.clone(), text: text.to_string() });
        let name = self.script.companions.get(companion).map_or_else(|| companion.as_str().into(), |known| known.name.clone());
        let from = Author { id: companion.as_str().into(), name, role: Role::Companion };
        let is_companion = |id: &str| self.script.companions.contains_key(&id.into());
        let heard = Heard { speaker: &from, text: &text, mentions: &[], reply_to: None, to_all_of: &[] };
        let address = address::resolve(&self.names, is_companion, &heard);
        let message = Message { id: None, from, text, modality: Default::default(), lull_endpoint: false, address };
        self.hear_message(channel, message, Some(ticket));
    }

    fn ask(&mut self, channel: &str, question: Question<'_>) -> Answer {
        self.players.answer(question, &self.channels[channel].conversation)
    }

    fn expect(&mut self, channel: &str, companion: Option<&CompanionId>, arrival: Arrival) {
        self.asked += 1;
        let place = (self.now + arrival.delay(), Kind::Answer, channel.to_owned(), companion.cloned(), self.asked);
        self.arrivals.insert(place, arrival);
    }

    fn texts(&self, channel: &str, messages: &[Seq]) -> Vec<String> {
        let texts = &self.channels[channel].texts;
        messages.iter().filter_map(|seq| texts.get(seq.0 as usize - 1)).map(ToString::to_string).collect()
    }

    fn tell(&mut self, channel: &str, what: What) {
        self.told.push(Happening { what, at: self.now, channel: channel.to_owned() });
    }

    fn tell_states(&mut self) {
        let at = self.script.until.unwrap_or(self.now);
        for (name, channel) in &self.channels {
            for view in channel.conversation.companions() {
                let buffer = channel.conversation.buffer(view.companion);
                let what = What::State {
                    companion: view.companion.clone(),
                    buffer: buffer.map(|entry| entry.message.text.to_string()).collect(),
                    message_count: view.gate.message_counter,
                    check_count: view.gate.check_count,
                    next_interjection_at: view.gate.next_interjection_at,
                    lull_at: view.gate.lull_at,
                };
                self.told.push(Happening { what, at, channel: name.clone() });
            }
        }
    }
}

/// Whether this is something that came from outside, or what was waited for: it is told before what follows for each companion.
fn is_heard(output: &Output) -> bool {
    match output {
        Output::Post(_) => true,
        Output::Made(made) => match &made.event {
            Event::RoundClosed(_) | Event::ReplyFailed { .. } | Event::Unanswered { .. } => true,
            Event::Decided(decided) => decided.ticket.is_some(),
            _ => false,
        },
        _ => false,
    }
}
