//! Derives from a channel's record how people received each statement of a companion (docs/design/telemetry.md O-16).
//!
//! A statement is watched until the addressee's next words, or for three times the median gap between the messages before it. No model is asked.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::event::{Event, Recorded};
use super::id::{CompanionId, Seq, Ticket};
use super::message::{Message, Role};
use super::moment::Moment;
use super::named::named;
use super::trigger::Trigger;
use super::voice::interruption::Verdict;

/// The number of messages before a statement that its watch depends on.
pub const REMEMBERED: usize = 51;
/// The limits of a watch.
const SHORTEST: Duration = Duration::from_secs(2 * 60);
pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// A watch lasts this many median gaps.
const GAPS: u32 = 3;

named! {
    /// How a statement was received. If several apply, the first one counts.
    #[derive(schemars::JsonSchema)]
    pub enum Reception {
        /// It was deleted, at any time, or replaced at a user's request.
        Deleted = "deleted",
        /// A person interrupted it, or said a stop phrase after it.
        Stopped = "stopped",
        /// The companion was paused.
        Paused = "paused",
        /// A message replied to it explicitly.
        Replied = "replied",
        /// The addressee answered without words, such as with an emoji or a reaction.
        Reacted = "reacted",
        /// The addressee's next message answered it.
        Answered = "answered",
        /// The addressee's next message addressed another participant, or at least two other people continued among themselves.
        TalkedPast = "talked_past",
        /// There is no evidence. It is not a bad sign.
        NothingSeen = "nothing_seen",
    }
}

/// A statement whose reception is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub seq: Seq,
    pub at: Moment,
    pub companion: CompanionId,
    pub trigger: Trigger,
    pub reception: Reception,
}

/// Whether [`receptions`] reads such an event.
pub const fn is_evidence(event: &Event) -> bool {
    matches!(
        event,
        Event::Said { .. }
            | Event::Deleted { .. }
            | Event::Paused { .. }
            | Event::ReplyOwed { .. }
            | Event::Replanned { .. }
            | Event::ReplyExtended { .. }
            | Event::Interrupted { .. }
            | Event::Reacted { .. }
    )
}

/// The statements among these events, which are in the order of their numbers. Left out are statements whose watch is not over, those whose beginning
/// is not among the events, and those that were deleted together with a message that they answered: they say nothing about the companion.
pub fn receptions(events: &[Recorded], now: Moment) -> Vec<Received> {
    let record = Record::read(events);
    let mut recent = Recent::default();
    let mut found = Vec::new();
    for (index, recorded) in events.iter().enumerate() {
        let Event::Said { message, reply, said_at, .. } = &recorded.event else { continue };
        recent.add(said_at.unwrap_or(recorded.at), person(message));
        let Some((ticket, owed)) = reply.as_ref().and_then(|ticket| Some((ticket, record.owed.get(ticket)?))) else { continue };
        let asker = owed.message.and_then(|message| record.people.get(&message).copied().flatten());
        let statement = Statement {
            seq: recorded.seq,
            at: recorded.at,
            companion: CompanionId::from(&*message.from.id),
            addressee: asker.filter(|_| owed.trigger.is_call() || owed.trigger == Trigger::Lull).or_else(|| recent.only_person()),
            end: recorded.at + recent.watch(),
        };
        let is_deleted = message.text.is_empty() || record.deleted.contains(&recorded.seq);
        let reception = if is_deleted {
            let is_erased = owed.messages.iter().chain(&owed.message).any(|message| record.people.get(message) == Some(&None));
            (!is_erased).then_some(Reception::Deleted)
        } else {
            let is_interrupted = record.interrupted.contains(ticket);
            let seen = statement.watch(&events[index + 1..], now);
            seen.map(|seen| if is_interrupted { seen.min(Reception::Stopped) } else { seen })
        };
        let Statement { seq, at, companion, .. } = statement;
        found.extend(reception.map(|reception| Received { seq, at, companion, trigger: owed.trigger, reception }));
    }
    found
}

/// The author of a message, if it has words of a person. An erased message has no author any more.
fn person(message: &Message) -> Option<&str> {
    (message.from.role == Role::Person && !message.text.is_empty() && !message.from.id.is_empty()).then_some(&*message.from.id)
}

/// Indexes over the events.
struct Record<'a> {
    owed: BTreeMap<Ticket, Owed<'a>>,
    /// The authors of people's messages. `None`: it was erased.
    people: BTreeMap<Seq, Option<&'a str>>,
    deleted: BTreeSet<Seq>,
    /// The spoken replies that a person interrupted.
    interrupted: BTreeSet<Ticket>,
}

/// An owed reply: its trigger, the message that triggered it, and the messages that it answers.
#[derive(Clone, Copy)]
struct Owed<'a> {
    trigger: Trigger,
    message: Option<Seq>,
    messages: &'a [Seq],
}

impl<'a> Record<'a> {
    fn read(events: &'a [Recorded]) -> Self {
        let (mut owed, mut people) = (BTreeMap::<_, Owed<'a>>::new(), BTreeMap::new());
        let (mut deleted, mut interrupted) = (BTreeSet::new(), BTreeSet::new());
        for recorded in events {
            if let Some(reply) = recorded.event.owed() {
                let earlier = reply.replaces.and_then(|ticket| owed.get(&ticket)).map(|reply| (reply.trigger, reply.message));
                let first = match &recorded.event {
                    Event::ReplyOwed { trigger, message, .. } => Some((*trigger, *message)),
                    _ => earlier,
                };
                owed.extend(first.map(|(trigger, message)| (reply.ticket, Owed { trigger, message, messages: reply.messages })));
            }
            match &recorded.event {
                Event::Said { message, .. } if message.from.role == Role::Person => {
                    people.insert(recorded.seq, person(message));
                }
                Event::Deleted { messages, .. } => deleted.extend(messages),
                Event::Interrupted { ticket, interrupted: by, .. } if is_cut_by_person(by.verdict) => {
                    interrupted.insert(*ticket);
                }
                _ => {}
            }
        }
        Self { owed, people, deleted, interrupted }
    }
}

const fn is_cut_by_person(verdict: Verdict) -> bool {
    use Verdict::{Addressed, ManyWords, StopPressed, StopWord, TookTooLong};
    matches!(verdict, StopWord | Addressed | ManyWords | TookTooLong | StopPressed)
}

/// The newest messages: when each was said, and by which person.
#[derive(Default)]
struct Recent<'a>(VecDeque<(Moment, Option<&'a str>)>);

impl<'a> Recent<'a> {
    fn add(&mut self, at: Moment, person: Option<&'a str>) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((at, person));
    }

    /// The only person who talked.
    fn only_person(&self) -> Option<&'a str> {
        let mut people = self.0.iter().filter_map(|(_, person)| *person);
        let first = people.next()?;
        people.all(|person| person == first).then_some(first)
    }

    /// How long a statement is watched.
    fn watch(&self) -> Duration {
        let mut gaps: Vec<_> = self.0.iter().zip(self.0.iter().skip(1)).map(|((one, _), (next, _))| next.since(*one)).collect();
        gaps.sort_unstable();
        let median = gaps.get(gaps.len() / 2).copied().unwrap_or_default();
        median.saturating_mul(GAPS).clamp(SHORTEST, LONGEST)
    }
}

struct Statement<'a> {
    seq: Seq,
    at: Moment,
    companion: CompanionId,
    /// The addressed person. `None`: it addresses no particular person.
    addressee: Option<&'a str>,
    /// The last moment of its watch.
    end: Moment,
}

impl Statement<'_> {
    /// What these later events show. `None` while the watch is not over.
    fn watch(&self, later: &[Recorded], now: Moment) -> Option<Reception> {
        let mut reception = Reception::NothingSeen;
        let (mut others, mut reactions) = (BTreeSet::new(), BTreeSet::new());
        for recorded in later.iter().take_while(|recorded| recorded.at <= self.end) {
            match &recorded.event {
                Event::Paused { companion, paused: true } if companion.as_ref().is_none_or(|one| *one == self.companion) => {
                    reception = reception.min(Reception::Paused);
                }
                Event::Said { message, reply_to, said_at, .. } => {
                    let Some(author) =
                        person(message).filter(|_| !message.is_event() && !message.awaits_words() && !message.background)
                    else {
                        continue;
                    };
                    // A message from before a lost connection may be recorded later.
                    if said_at.is_some_and(|at| at < self.at) {
                        continue;
                    }
                    let is_addressee = self.addressee == Some(author);
                    let is_first = self.addressee.is_none() && others.is_empty();
                    if !message.address.includes(&self.companion) {
                        others.insert(author);
                    }
                    let of_words = self.of_words(message, *reply_to, is_addressee, is_first, others.len());
                    reception = of_words.map_or(reception, |of_words| reception.min(of_words));
                    if is_addressee {
                        return Some(with_reactions(reception, !reactions.is_empty()));
                    }
                }
                Event::Reacted { message, by, emoji, removed } if *message == self.seq => {
                    // Anybody's reaction counts if the statement addresses no particular person.
                    let counts = self.addressee.is_none_or(|addressee| addressee == by.as_str());
                    if *removed {
                        reactions.remove(&(by, emoji));
                    } else if counts && !by.as_str().is_empty() {
                        reactions.insert((by, emoji));
                    }
                }
                _ => {}
            }
        }
        (now > self.end).then_some(with_reactions(reception, !reactions.is_empty()))
    }

    /// What the words of one message show. `is_first`: it is the first message after a statement without an addressee. `others` is the number of
    /// people so far who did not talk to the companion.
    fn of_words(
        &self,
        message: &Message,
        reply_to: Option<Seq>,
        is_addressee: bool,
        is_first: bool,
        others: usize,
    ) -> Option<Reception> {
        let is_elsewhere = message.address.is_elsewhere(&self.companion);
        let is_to_companion = message.address.includes(&self.companion);
        if message.asks_to_stop && !is_elsewhere {
            Some(Reception::Stopped)
        } else if reply_to.map_or(is_to_companion && self.addressee.is_none(), |seq| seq == self.seq) {
            Some(Reception::Replied)
        } else if is_elsewhere && is_addressee {
            Some(Reception::TalkedPast)
        } else if (is_addressee || is_first) && !is_elsewhere && is_reaction(message) {
            Some(Reception::Reacted)
        } else if is_addressee {
            Some(Reception::Answered)
        } else {
            (others >= 2 && !is_to_companion).then_some(Reception::TalkedPast)
        }
    }
}

fn with_reactions(reception: Reception, has_reactions: bool) -> Reception {
    if has_reactions { reception.min(Reception::Reacted) } else { reception }
}

/// Whether a message has no words: emojis, also those of a guild (`:wave:`), or "mhm" in a call.
fn is_reaction(message: &Message) -> bool {
    let is_emoji = |text: &str| text.len() > 2 && text.starts_with(':') && text.ends_with(':');
    let is_wordless = |text: &str| is_emoji(text) || !text.chars().any(char::is_alphanumeric);
    message.is_backchannel() || message.text.split_whitespace().all(is_wordless)
}
