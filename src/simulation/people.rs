//! People and operators: they do what is planned, and say again what they do not know to be heard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::acts::Say;
use super::gateway::Told;
use super::life::{Life, Props};
use super::manners::Answer;
use super::plan::Beat;
use super::stage::lock;
use crate::actors::inbound::{Inbound, Speech};
use crate::actors::messages::writer;
use crate::domain::id::Seq;
use crate::domain::message::{Author, Modality, Role};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Backend, Refused};
use crate::ports::inbound_events::{Answered, Answers, ChannelRef, InboundMessage};

/// How long somebody waits before the same is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What was said, and what became of it.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) say: Say,
    /// The sender's own id of it.
    pub(super) id: Option<String>,
    /// When it was said, by the wall clock.
    pub(super) at: Moment,
    /// When it was said first, and when it was known to be heard, in the order in which things happened.
    pub(super) first_at: u64,
    pub(super) heard_at: u64,
    pub(super) fate: Fate,
    /// What it answers on the platform.
    pub(super) answers: Option<Answers>,
    /// It was changed, taken back or forgotten, or may have been.
    pub(super) is_changed: bool,
    /// An operator had it said once more, as another message.
    pub(super) is_said_anew: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is being said.
    Open,
    Accepted(Seq),
    /// Nobody knows, and it is not said again.
    Unknown,
    /// It was not taken in, and never will be.
    NotTaken,
}

#[derive(Default)]
pub(super) struct People {
    pub(super) said: Mutex<BTreeMap<usize, Said>>,
    order: AtomicU64,
    opened: AtomicUsize,
    next_act: AtomicUsize,
    /// Which messages were set aside, by room.
    pub(super) set_aside: Mutex<Vec<(usize, Seq)>>,
    /// Rooms that nobody made.
    pub(super) unmade: Mutex<BTreeSet<usize>>,
    /// Rooms that were deleted once.
    pub(super) deleted: Mutex<BTreeSet<usize>>,
    /// Messages of which somebody was told that they are taken back, or forgotten.
    pub(super) gone: Mutex<BTreeSet<usize>>,
    /// Who was to be forgotten in which guild, and nobody knows whether it was done; and whether with what was answered to them.
    pub(super) to_forget: Mutex<BTreeMap<(usize, &'static str), bool>>,
    pub(super) regrets: Mutex<Regrets>,
    /// Who is known to be heard no more in which guild; false: they wanted to be again, and perhaps are.
    pub(super) ignored: Mutex<BTreeMap<(usize, &'static str), bool>>,
}

/// Messages that were to be taken back. Answers are found only together with what they answer.
#[derive(Default)]
pub(super) struct Regrets {
    begun: BTreeSet<usize>,
    /// They go with their answers, and in no other way.
    with_answers: BTreeSet<usize>,
    /// Of these somebody was told that they have gone with their answers.
    pub(super) gone_with_answers: BTreeSet<usize>,
}

impl Regrets {
    pub(super) fn begin(&mut self, messages: &BTreeSet<usize>, with_answers: bool) {
        if with_answers {
            self.with_answers.extend(messages - &self.begun);
        } else {
            self.with_answers.retain(|number| !messages.contains(number));
        }
        self.begun.extend(messages);
    }

    pub(super) fn end_with_answers(&mut self, messages: &BTreeSet<usize>) {
        self.gone_with_answers.extend(&self.with_answers & messages);
    }
}

impl People {
    /// Whether nobody waits to be heard.
    pub(super) fn are_heard(&self) -> bool {
        lock(&self.said).values().all(|said| said.fate != Fate::Open)
    }

    /// What is known to be accepted of a person in a guild.
    pub(super) fn accepted_of(&self, person: &str, is_in_guild: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let is_theirs = |said: &Said| !said.say.is_by_bot && said.say.from == person && is_in_guild(said.say.room);
        let said = lock(&self.said);
        let accepted = said.iter().filter(|(_, said)| is_theirs(said) && matches!(said.fate, Fate::Accepted(_)));
        accepted.map(|(number, _)| *number).collect()
    }

    pub(super) fn next(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed)
    }
}

impl Life {
    /// Makes the rooms, goes on with what was being said, and does what is planned until faults are over.
    pub(super) async fn act(&self) {
        let (stage, people) = (&self.props.stage, &self.props.people);
        let rooms = &stage.plan.rooms;
        while people.opened.load(Ordering::Relaxed) < rooms.len() {
            let room = people.opened.load(Ordering::Relaxed);
            // Who is configured may have changed before anybody came to make the room.
            let mut companions = rooms[room].companions.clone();
            companions.retain(|companion| self.props.is_configured(companion));
            let has_external = rooms[room].has_external;
            // Where nobody is left to be let in, a platform has no room to be made.
            let is_left_alone = rooms[room].opens_by_itself() || companions.is_empty() && rooms[room].is_on_platform;
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
        // What was said on the platform its connections tell.
        let is_open = |said: &Said| said.fate == Fate::Open && !rooms[said.say.room].is_on_platform;
        for (number, said) in lock(&people.said).iter_mut().filter(|(_, said)| is_open(said)) {
            // Without an id of its own it would be another message.
            match said.id {
                Some(_) => open.push(*number),
                None => said.fate = Fate::Unknown,
            }
        }
        for number in open {
            let life = self.clone();
            tokio::spawn(async move { life.say(number).await });
        }
        while let Some((at, act)) = stage.plan.acts.get(people.next_act.load(Ordering::Relaxed)) {
            stage.pass(at.saturating_sub(stage.now())).await;
            people.next_act.fetch_add(1, Ordering::Relaxed);
            let (life, act) = (self.clone(), act.clone());
            tokio::spawn(async move { life.perform(act).await });
        }
        stage.pass(stage.plan.calm_at.saturating_sub(stage.now())).await;
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

    /// Says it until it is known what became of it.
    pub(super) async fn say(&self, number: usize) {
        let stage = &self.props.stage;
        let Some(Said { say, id, .. }) = lock(&self.props.people.said).get(&number).cloned() else { return };
        stage.beat(Beat::Said);
        if stage.plan.rooms[say.room].is_on_platform {
            return self.props.wire.tell(&stage.plan, say.room, Told { number, is_again: false });
        }
        loop {
            let fate = match self.hand_over(&say, id.as_deref()).await {
                Ok(Some(seq)) => Fate::Accepted(seq),
                Ok(None) => Fate::NotTaken,
                Err(Refused::Unavailable { .. } | Refused::TooMany { .. }) if id.is_some() => {
                    stage.reach("said again with its id");
                    stage.pass(AGAIN_AFTER).await;
                    continue;
                }
                Err(Refused::Unavailable { .. } | Refused::TooMany { .. }) => Fate::Unknown,
                Err(Refused::NotFound(_)) if lock(&self.props.people.deleted).contains(&say.room) => Fate::NotTaken,
                Err(refused) => {
                    stage.violate(format!("message {number} was refused: {refused}"));
                    Fate::NotTaken
                }
            };
            let heard_at = self.props.people.next();
            if let Some(said) = lock(&self.props.people.said).get_mut(&number) {
                (said.fate, said.heard_at) = (fate, heard_at);
            }
            return;
        }
    }

    async fn hand_over(&self, say: &Say, id: Option<&str>) -> Result<Option<Seq>, Refused> {
        if !say.is_by_bot {
            let mut message = json!({ "from": say.from, "text": say.text });
            if let Some(id) = id {
                message["id"] = id.into();
            }
            let message = serde_json::from_value(message).expect("a good message");
            return self.backend.say(&self.room(say.room), message).await.map(Some);
        }
        let speech = Speech {
            id: id.map(Into::into),
            from: author(say),
            text: say.text.as_str().into(),
            own_words: None,
            modality: Modality::Text,
            lull_endpoint: false,
            mentions: Vec::new(),
            reply_to: None,
            to_all: false,
            said_at: None,
        };
        let taken = Inbound::new(self.context.clone()).say(&self.channel_key(say.room), speech).await;
        let unavailable = |error: writer::Refused| Refused::Unavailable { detail: error.to_string(), retry_after: None };
        taken.map(|accepted| accepted.map(|accepted| accepted.seq)).map_err(unavailable)
    }

    /// The same once more: it is the same message, whatever it says now.
    pub(super) async fn say_again(&self, number: usize) {
        let stage = &self.props.stage;
        let Some(said) = lock(&self.props.people.said).get(&number).cloned() else { return };
        // What was said by a bot is looked for under no other words, because they may not be admitted.
        if said.id.is_none() || said.say.is_by_bot {
            return;
        }
        stage.reach("duplicate");
        if let Some(said) = lock(&self.props.people.said).get_mut(&number) {
            // Whichever comes first is the message.
            said.is_changed |= !matches!(said.fate, Fate::Accepted(_));
        }
        if stage.plan.rooms[said.say.room].is_on_platform {
            return self.props.wire.tell(&stage.plan, said.say.room, Told { number, is_again: true });
        }
        let other = Say { text: self.props.other_words(&said.say), ..said.say };
        let said_again_at = self.props.people.next();
        if let Ok(Some(seq)) = self.hand_over(&other, said.id.as_deref()).await {
            self.props.heard_again(number, seq, said_again_at);
        }
    }

    /// Where a message is on record, if that is known; from now on its words may be others.
    pub(super) fn heard_of(&self, number: usize, is_to_change: bool) -> Option<(usize, Seq)> {
        let mut all = lock(&self.props.people.said);
        let said = all.get_mut(&number)?;
        let Fate::Accepted(seq) = said.fate else { return None };
        said.is_changed |= is_to_change;
        Some((said.say.room, seq))
    }

    pub(super) fn id_on_platform(&self, number: usize) -> Option<String> {
        let said = lock(&self.props.people.said).get(&number).cloned()?;
        said.id.filter(|_| self.props.stage.plan.rooms[said.say.room].is_on_platform)
    }
}

impl Props {
    fn room(&self, room: usize) -> RoomId {
        RoomId::parse(&self.stage.plan.rooms[room].id).expect("rooms have plain names")
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

    /// What a message answers that is said now.
    pub(super) fn answered(&self, say: &Say) -> Option<Answers> {
        Some(match say.turn.answers? {
            Answer::Message(number) => {
                let other = lock(&self.people.said).get(&number).cloned()?;
                let Author { id, role, .. } = author(&other.say);
                self.stage.reach("answers a message");
                Answers { message: other.id?.into(), by: Some(Answered::Other(id, role)) }
            }
            Answer::Statement => {
                let newest = self.platform.newest_of_ours(&self.room(say.room).channel())?;
                self.stage.reach("answers a statement");
                Answers { message: newest.to_string().into(), by: Some(Answered::Ours(None)) }
            }
            Answer::Named(name) => Answers { message: "0".into(), by: Some(Answered::Ours(Some(name.into()))) },
        })
    }

    /// Whether somebody is known to be heard no more where they say this.
    pub(super) fn is_ignored(&self, say: &Say) -> bool {
        let guild = self.stage.plan.rooms[say.room].guild;
        !say.is_by_bot && lock(&self.people.ignored).get(&(guild, say.from)) == Some(&true)
    }

    /// What the platform tells of a message.
    pub(super) fn inbound_message(&self, said: &Said, is_again: bool) -> InboundMessage {
        let Said { say, id, at, .. } = said;
        let text: Arc<str> = if is_again { self.other_words(say).into() } else { say.text.as_str().into() };
        InboundMessage {
            id: id.as_deref().expect("a platform gives everything an id").into(),
            from: author(say),
            own_words: text.clone(),
            text,
            modality: Modality::Text,
            lull_endpoint: false,
            at: *at,
            mentions: say.turn.mentions.iter().map(|mention| Arc::from(*mention)).collect(),
            to_all: say.turn.to_all || self.stage.plan.rooms[say.room].is_direct,
            answers: said.answers.clone(),
        }
    }

    /// What became of what a connection handed over; none: it was not taken in.
    pub(super) fn heard_on_platform(&self, told: Told, seq: Option<Seq>, handed_over_at: u64) {
        let heard_at = self.people.next();
        {
            let mut all = lock(&self.people.said);
            let Some(said) = all.get_mut(&told.number) else { return };
            if said.fate == Fate::Open {
                (said.fate, said.heard_at) = (seq.map_or(Fate::NotTaken, Fate::Accepted), heard_at);
                return;
            }
        }
        if !told.is_again {
            self.stage.reach("heard twice");
        }
        if let Some(seq) = seq {
            self.heard_again(told.number, seq, handed_over_at);
        }
    }

    /// It was heard before, or is about to be.
    fn heard_again(&self, number: usize, seq: Seq, said_again_at: u64) {
        let mut all = lock(&self.people.said);
        let Some(said) = all.get_mut(&number) else { return };
        match said.fate {
            Fate::Accepted(first) if first != seq && lock(&self.people.deleted).contains(&said.say.room) => {
                // What went with the room is said as something new.
                (said.fate, said.is_changed) = (Fate::Accepted(seq), true);
                (said.first_at, said.heard_at) = (said_again_at, u64::MAX);
            }
            Fate::Accepted(first) if first != seq && !said.is_said_anew => {
                self.stage.violate(format!("message {number} is {first} and {seq}"));
            }
            Fate::Open => said.fate = Fate::Accepted(seq),
            _ => {}
        }
    }
}

fn author(say: &Say) -> Author {
    let (name, role) = if say.is_by_bot { ("Bot", Role::Bot) } else { (say.from, Role::Person) };
    Author { id: name.into(), name: name.into(), role }
}
