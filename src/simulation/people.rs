//! People and operators do what is planned. They send a message again if they do not know whether it was accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use super::acts::Say;
use super::gateway::Delivery;
use super::life::{Life, Props};
use super::manners::Answer;
use super::plan::Beat;
use super::stage::lock;
use crate::actors::inbound::Inbound;
use crate::actors::messages::writer;
use crate::domain::id::Seq;
use crate::domain::message::{Author, Role};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;
use crate::ports::inbound_events::{Answered, ChannelRef, InboundMessage, ReplyTo};
use crate::samples;

/// The pause before the same request is sent again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A sent message, and its outcome.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) say: Say,
    /// The sender's own id for it.
    pub(super) id: Option<String>,
    /// When it was sent, by the wall clock.
    pub(super) at: Moment,
    /// When it was sent first, and when it was known to be accepted, as numbers in the order of events.
    pub(super) first_sent_at: u64,
    pub(super) accepted_at: u64,
    pub(super) fate: Fate,
    /// The message that it answers on the platform.
    pub(super) answers: Option<ReplyTo>,
    /// It was edited, deleted or forgotten, or may have been.
    pub(super) is_changed: bool,
    /// An operator had it sent once more, as another message.
    pub(super) is_resent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is being sent.
    Open,
    Accepted(Seq),
    /// It is unknown whether it was accepted, and it is not sent again.
    Unknown,
    /// It was not accepted, and never will be.
    NotTaken,
}

#[derive(Default)]
pub(super) struct People {
    pub(super) sent: Mutex<BTreeMap<usize, Sent>>,
    order: AtomicU64,
    opened: AtomicUsize,
    next_act: AtomicUsize,
    /// The messages that became dead letters on purpose, by room.
    pub(super) dead_letters: Mutex<Vec<(usize, Seq)>>,
    /// Rooms that nobody created.
    pub(super) unmade: Mutex<BTreeSet<usize>>,
    /// Rooms that were deleted once.
    pub(super) deleted: Mutex<BTreeSet<usize>>,
    /// Messages whose deletion, or whose person's deletion, was acknowledged.
    pub(super) redacted: Mutex<BTreeSet<usize>>,
    /// Persons to be forgotten, by guild, until that is known to be done. True: with the answers to them.
    pub(super) to_forget: Mutex<BTreeMap<(usize, &'static str), bool>>,
    pub(super) deletions: Mutex<Deletions>,
    /// Persons who are known to have opted out, by guild. False: they opted in again, which may have taken effect.
    pub(super) opted_out: Mutex<BTreeMap<(usize, &'static str), bool>>,
}

/// Messages whose deletion was requested. Answers are found only together with the messages that they answer.
#[derive(Default)]
pub(super) struct Deletions {
    started: BTreeSet<usize>,
    /// Messages that are only deleted together with the answers to them.
    with_answers: BTreeSet<usize>,
    /// The deletion of these with their answers was acknowledged.
    pub(super) redacted_with_answers: BTreeSet<usize>,
}

impl Deletions {
    pub(super) fn begin(&mut self, messages: &BTreeSet<usize>, with_answers: bool) {
        if with_answers {
            self.with_answers.extend(messages - &self.started);
        } else {
            self.with_answers.retain(|number| !messages.contains(number));
        }
        self.started.extend(messages);
    }

    pub(super) fn end_with_answers(&mut self, messages: &BTreeSet<usize>) {
        self.redacted_with_answers.extend(&self.with_answers & messages);
    }
}

impl People {
    /// Whether no message waits to be accepted.
    pub(super) fn are_all_accepted(&self) -> bool {
        lock(&self.sent).values().all(|sent| sent.fate != Fate::Open)
    }

    /// The messages of a person in a guild that are known to be accepted.
    pub(super) fn accepted_of(&self, person: &str, is_in_guild: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let is_by_person = |sent: &Sent| !sent.say.is_by_bot && sent.say.from == person && is_in_guild(sent.say.room);
        let sent = lock(&self.sent);
        let accepted = sent.iter().filter(|(_, sent)| is_by_person(sent) && matches!(sent.fate, Fate::Accepted(_)));
        accepted.map(|(number, _)| *number).collect()
    }

    pub(super) fn next(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed)
    }
}

impl Life {
    /// Creates the rooms, continues the unfinished sends, and does what is planned until faults are over.
    pub(super) async fn act(&self) {
        let (stage, people) = (&self.props.stage, &self.props.people);
        let rooms = &stage.plan.rooms;
        while people.opened.load(Ordering::Relaxed) < rooms.len() {
            let room = people.opened.load(Ordering::Relaxed);
            // The configured companions may have changed before the room was created.
            let mut companions = rooms[room].companions.clone();
            companions.retain(|companion| self.props.is_configured(companion));
            let has_external = rooms[room].has_external;
            // If no companion is left to be admitted, a platform has no room to create.
            let is_left_alone = rooms[room].opens_with_first_message() || companions.is_empty() && rooms[room].is_on_platform;
            if is_left_alone {
                lock(&people.unmade).insert(room);
            }
            while !is_left_alone && let Err(refused) = self.move_to(room, &companions, has_external).await {
                if !matches!(refused, Refused::Unavailable { .. } | Refused::TooMany { .. }) {
                    stage.violate(format!("room {room} cannot be made: {refused}"));
                    break;
                }
                stage.pass(AGAIN_AFTER).await;
            }
            people.opened.fetch_add(1, Ordering::Relaxed);
        }
        let mut open = Vec::new();
        // The platform's connections deliver its messages.
        let is_open = |sent: &Sent| sent.fate == Fate::Open && !rooms[sent.say.room].is_on_platform;
        for (number, sent) in lock(&people.sent).iter_mut().filter(|(_, sent)| is_open(sent)) {
            // Without an id of its own a resent message would be another message.
            match sent.id {
                Some(_) => open.push(*number),
                None => sent.fate = Fate::Unknown,
            }
        }
        for number in open {
            let life = self.clone();
            tokio::spawn(async move { life.say(number).await });
        }
        self.rejoin_calls();
        while let Some((at, act)) = stage.plan.acts.get(people.next_act.load(Ordering::Relaxed)) {
            stage.pass(at.saturating_sub(stage.now())).await;
            people.next_act.fetch_add(1, Ordering::Relaxed);
            let (life, act) = (self.clone(), act.clone());
            tokio::spawn(async move { life.perform(act).await });
        }
        stage.pass(stage.plan.calm_at.saturating_sub(stage.now())).await;
        self.end_calls().await;
    }

    pub(super) fn room(&self, room: usize) -> RoomId {
        self.props.room(room)
    }

    pub(super) fn channel_key(&self, room: usize) -> ChannelKey {
        self.props.channel_key(room)
    }

    pub(super) fn channel_ref(&self, room: usize) -> ChannelRef {
        self.props.channel_ref(room)
    }

    /// Sends a message. With an id, it is resent until its outcome is known. On a platform, a connection delivers it.
    pub(super) async fn say(&self, number: usize) {
        let stage = &self.props.stage;
        let Some(Sent { say, id, .. }) = lock(&self.props.people.sent).get(&number).cloned() else { return };
        stage.beat(Beat::Sent);
        if stage.plan.rooms[say.room].is_on_platform {
            return self.props.wire.deliver(&stage.plan, say.room, Delivery { number, is_resend: false });
        }
        loop {
            let fate = match self.hand_over(&say, id.as_deref()).await {
                Ok(Some(seq)) => Fate::Accepted(seq),
                Ok(None) => Fate::NotTaken,
                Err(Refused::Unavailable { .. } | Refused::TooMany { .. }) if id.is_some() => {
                    stage.reach("message resent with its id");
                    stage.pass(AGAIN_AFTER).await;
                    continue;
                }
                Err(Refused::Unavailable { .. } | Refused::TooMany { .. }) => Fate::Unknown,
                Err(Refused::NotFound(_)) if lock(&self.props.people.deleted).contains(&say.room) => Fate::NotTaken,
                Err(refused) => {
                    stage.violate(format!("message {number} was rejected: {refused}"));
                    Fate::NotTaken
                }
            };
            let accepted_at = self.props.people.next();
            if let Some(sent) = lock(&self.props.people.sent).get_mut(&number) {
                (sent.fate, sent.accepted_at) = (fate, accepted_at);
            }
            return;
        }
    }

    async fn hand_over(&self, say: &Say, id: Option<&str>) -> Result<Option<Seq>, Refused> {
        if let Some(id) = id.filter(|_| say.is_event) {
            self.props.stage.reach("event posted");
            let (id, who, text) = (id.into(), say.from.into(), say.text.as_str().into());
            let raid =
                InboundMessage { id: Some(id), kind: Some("raid".into()), ..InboundMessage::new(Author::of_name(who), text) };
            return self.backend.messages.say(&self.room(say.room), raid).await.map(Some);
        }
        if !say.is_by_bot {
            let mut message = json!({ "from": say.from, "text": say.text });
            if let Some(id) = id {
                message["id"] = id.into();
            }
            let message = serde_json::from_value(message).expect("a good message");
            return self.backend.messages.say(&self.room(say.room), message).await.map(Some);
        }
        let message = InboundMessage { id: id.map(Into::into), ..InboundMessage::new(author(say), say.text.as_str().into()) };
        let taken = Inbound::new(self.context.clone()).say(&self.channel_key(say.room), message, None).await;
        let unavailable = |error: writer::Refused| Refused::unavailable(error.to_string());
        taken.map(|accepted| accepted.map(|accepted| accepted.seq)).map_err(unavailable)
    }

    /// Sends the same message once more. It is the same message, whatever its words are now.
    pub(super) async fn resend(&self, number: usize) {
        let stage = &self.props.stage;
        let Some(sent) = lock(&self.props.people.sent).get(&number).cloned() else { return };
        // A message by a bot is not resent with other words, because those may not be admitted.
        if sent.id.is_none() || sent.say.is_by_bot {
            return;
        }
        stage.reach("duplicate");
        if let Some(sent) = lock(&self.props.people.sent).get_mut(&number) {
            // The first one that arrives is the message.
            sent.is_changed |= !matches!(sent.fate, Fate::Accepted(_));
        }
        if stage.plan.rooms[sent.say.room].is_on_platform {
            return self.props.wire.deliver(&stage.plan, sent.say.room, Delivery { number, is_resend: true });
        }
        let other = Say { text: self.props.other_words(&sent.say), ..sent.say };
        let resent_at = self.props.people.next();
        if let Ok(Some(seq)) = self.hand_over(&other, sent.id.as_deref()).await {
            self.props.accepted_again(number, seq, resent_at);
        }
    }

    /// Where a message is on record, if that is known. `is_to_change` marks that its words may differ from now on.
    pub(super) fn record_of(&self, number: usize, is_to_change: bool) -> Option<(usize, Seq)> {
        let mut all = lock(&self.props.people.sent);
        let sent = all.get_mut(&number)?;
        let Fate::Accepted(seq) = sent.fate else { return None };
        sent.is_changed |= is_to_change;
        Some((sent.say.room, seq))
    }

    pub(super) fn id_on_platform(&self, number: usize) -> Option<String> {
        let sent = lock(&self.props.people.sent).get(&number).cloned()?;
        sent.id.filter(|_| self.props.stage.plan.rooms[sent.say.room].is_on_platform)
    }
}

impl Props {
    fn room(&self, room: usize) -> RoomId {
        RoomId::parse(&self.stage.plan.rooms[room].id).expect("a room name is valid")
    }

    fn channel_key(&self, room: usize) -> ChannelKey {
        let plan = &self.stage.plan;
        ChannelKey::new(&plan.guilds[plan.rooms[room].guild].id.as_str().into(), &self.room(room).channel())
    }

    pub(super) fn channel_ref(&self, room: usize) -> ChannelRef {
        let ChannelKey { guild, channel } = self.channel_key(room);
        let parent = self.stage.plan.rooms[room].within.map(|parent| self.room(parent).channel());
        ChannelRef { guild, channel, parent }
    }

    fn other_words(&self, say: &Say) -> String {
        let word = self.stage.plan.guilds[self.stage.plan.rooms[say.room].guild].word;
        format!("{word} twice m{}m", say.number)
    }

    /// What a message that is sent now answers.
    pub(super) fn answered(&self, say: &Say) -> Option<ReplyTo> {
        Some(match say.turn.answers? {
            Answer::Message(number) => {
                let other = lock(&self.people.sent).get(&number).cloned()?;
                let Author { id, role, .. } = author(&other.say);
                self.stage.reach("answers a message");
                ReplyTo::Foreign { id: other.id?.into(), by: Some(Answered::Other(id, role)), quoted: None }
            }
            Answer::Statement => {
                let newest = self.platform.newest_of_ours(&self.room(say.room).channel())?;
                self.stage.reach("answers a statement");
                ReplyTo::Foreign { id: newest.to_string().into(), by: Some(Answered::Ours(None)), quoted: None }
            }
            Answer::Named(name) => ReplyTo::Foreign { id: "0".into(), by: Some(Answered::Ours(Some(name.into()))), quoted: None },
        })
    }

    /// Whether the sender is known to have opted out in the guild of this message.
    pub(super) fn has_opted_out(&self, say: &Say) -> bool {
        let guild = self.stage.plan.rooms[say.room].guild;
        !say.is_by_bot && lock(&self.people.opted_out).get(&(guild, say.from)) == Some(&true)
    }

    /// The message as the platform delivers it.
    pub(super) fn inbound_message(&self, sent: &Sent, is_resend: bool) -> InboundMessage {
        let Sent { say, id, at, .. } = sent;
        let text: Arc<str> = if is_resend { self.other_words(say).into() } else { say.text.as_str().into() };
        InboundMessage {
            id: Some(id.as_deref().expect("a platform gives everything an id").into()),
            said_at: Some(*at),
            mentions: say.turn.mentions.iter().map(|mention| Arc::from(*mention)).collect(),
            to_all: say.turn.to_all || self.stage.plan.rooms[say.room].is_direct,
            reply_to: sent.answers.clone(),
            ..InboundMessage::new(author(say), text)
        }
    }

    /// Notes the outcome of a message that a connection handed over. `None`: it was not accepted.
    pub(super) fn note_platform_outcome(&self, delivery: Delivery, seq: Option<Seq>, handed_over_at: u64) {
        let accepted_at = self.people.next();
        {
            let mut all = lock(&self.people.sent);
            let Some(sent) = all.get_mut(&delivery.number) else { return };
            if sent.fate == Fate::Open {
                (sent.fate, sent.accepted_at) = (seq.map_or(Fate::NotTaken, Fate::Accepted), accepted_at);
                return;
            }
        }
        if !delivery.is_resend {
            self.stage.reach("message delivered twice");
        }
        if let Some(seq) = seq {
            self.accepted_again(delivery.number, seq, handed_over_at);
        }
    }

    /// Notes that a resent message was accepted. It was accepted before, or is about to be.
    fn accepted_again(&self, number: usize, seq: Seq, resent_at: u64) {
        let mut all = lock(&self.people.sent);
        let Some(sent) = all.get_mut(&number) else { return };
        match sent.fate {
            Fate::Accepted(first) if first != seq && lock(&self.people.deleted).contains(&sent.say.room) => {
                // A message that was deleted with its room can be accepted as a new one.
                (sent.fate, sent.is_changed) = (Fate::Accepted(seq), true);
                (sent.first_sent_at, sent.accepted_at) = (resent_at, u64::MAX);
            }
            Fate::Accepted(first) if first != seq && !sent.is_resent => {
                self.stage.violate(format!("message {number} is {first} and {seq}"));
            }
            Fate::Open => sent.fate = Fate::Accepted(seq),
            _ => {}
        }
    }
}

fn author(say: &Say) -> Author {
    let (name, role) = if say.is_by_bot { ("Bot", Role::Bot) } else { (say.from, Role::Person) };
    samples::author(name, role)
}
