//! People and operators: they do what is planned, and say again what they do not know to be heard.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::acts::{Act, Say};
use super::life::Life;
use super::plan::{Beat, EXTERNAL};
use super::stage::lock;
use crate::actors::inbound::{Inbound, Speech};
use crate::actors::places::{ChannelPlace, ScribePlace};
use crate::actors::scribe::{Administer, Reply, ScribeMessage};
use crate::domain::id::{GuildId, Seq};
use crate::domain::message::{Author, Modality, Role};
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::reader::Reader;
use crate::journal::record::{SetAsideRecord, encode};
use crate::ports::company::Company;
use crate::ports::hearing::{Hearing, NotTaken, Spot, Taken, Utterance};
use crate::ports::house::decisions::{DecisionQuery, WhyQuery};
use crate::ports::house::keeping::Forget;
use crate::ports::house::messages::{Edit, HistoryQuery};
use crate::ports::house::room::{RoomId, RoomPatch, RoomPlan};
use crate::ports::house::{House, Refused};
use crate::ports::store::Write;

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
    /// It was changed, taken back or forgotten, or may have been.
    pub(super) is_changed: bool,
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
}

impl People {
    /// Whether nobody waits to be heard.
    pub(super) fn are_heard(&self) -> bool {
        lock(&self.said).values().all(|said| said.fate != Fate::Open)
    }

    fn next(&self) -> u64 {
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
            let (companions, has_external) = (&rooms[room].companions, rooms[room].has_external);
            while let Err(refused) = self.move_to(room, companions, has_external).await {
                if !matches!(refused, Refused::Unavailable { .. } | Refused::TooMany { .. }) {
                    stage.violate(format!("room {room} cannot be made: {refused}"));
                    break;
                }
                stage.pass(AGAIN_AFTER).await;
            }
            people.opened.fetch_add(1, Ordering::Relaxed);
        }
        let mut open = Vec::new();
        for (number, said) in lock(&people.said).iter_mut().filter(|(_, said)| said.fate == Fate::Open) {
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

    async fn perform(&self, act: Act) {
        let stage = &self.props.stage;
        stage.tell(format!("act: {}", short(&format!("{act:?}"))));
        match act {
            Act::Say(say) => {
                let (number, first_at) = (say.number, self.props.people.next());
                let home = &stage.plan.rooms[say.room];
                let id = match home.is_on_platform {
                    true => Some(self.props.platform.hear(&self.room(say.room).channel())),
                    false => say.has_id.then(|| format!("id{number}")),
                };
                let said =
                    Said { say, id, at: self.kit.clock.now(), first_at, heard_at: u64::MAX, fate: Fate::Open, is_changed: false };
                lock(&self.props.people.said).insert(number, said);
                self.say(number).await;
            }
            Act::Again(number) => self.say_again(number).await,
            Act::Edit(number) => {
                let Some((room, seq)) = self.heard_of(number, true) else { return };
                stage.reach("edit");
                let word = stage.plan.guilds[stage.plan.rooms[room].guild].word;
                let text: Arc<str> = format!("{word} m{number}m edited").into();
                match self.id_on_platform(number) {
                    Some(id) => drop(Hearing::edited(&Inbound::new(self.kit.clone()), &self.spot(room), &id, text).await),
                    None => drop(self.house.edit(&self.room(room), seq, Edit { text }).await),
                }
            }
            Act::Unsay(number) => {
                let Some((room, seq)) = self.heard_of(number, true) else { return };
                stage.reach("deletion");
                match self.id_on_platform(number) {
                    Some(id) => {
                        drop(Hearing::deleted(&Inbound::new(self.kit.clone()), &self.spot(room), &[id.as_str().into()]).await);
                    }
                    None => drop(self.house.unsay(&self.room(room), seq).await),
                }
            }
            Act::Forget { guild, person } => {
                stage.reach("forget");
                let rooms = &stage.plan.rooms;
                for said in lock(&self.props.people.said).values_mut() {
                    said.is_changed |= said.say.from == person && rooms[said.say.room].guild == guild;
                }
                let guild = GuildId::from(stage.plan.guilds[guild].id.as_str());
                drop(self.house.forget(Forget { guild, person: person.into(), answers: false }).await);
            }
            Act::Clear(room) => {
                stage.reach("clear");
                drop(self.house.clear(&self.room(room)).await);
            }
            Act::Move { room, companions, has_external } => {
                stage.reach("companions come and go");
                drop(self.move_to(room, &companions, has_external).await);
            }
            Act::Pause { room, whom, paused } => {
                stage.reach("pause");
                let patch = match whom {
                    Some(whom) => json!({ "companions": { whom: { "paused": paused } } }),
                    None => json!({ "paused": paused }),
                };
                self.patch(room, patch).await;
            }
            Act::Temper { room, whom, tier } => {
                stage.reach("settings changed in a room");
                self.patch(room, json!({ "companions": { whom: { "interjection": tier } } })).await;
            }
            Act::Recast(ids) => {
                stage.reach("companions reloaded");
                self.recast(&ids);
            }
            Act::Jump(secs) => {
                stage.reach("wall clock set");
                stage.clock.jump(secs);
                stage.disturb();
            }
            Act::Panic(times) => {
                stage.reach("handlers panic");
                stage.disturb();
                stage.notes().killed.insert((stage.life(), "channel"));
                stage.chance.panics(times);
            }
            Act::SetAside(number) => self.set_aside(number).await,
            Act::Look(room) => self.look_around(room).await,
        }
    }

    pub(super) fn room(&self, room: usize) -> RoomId {
        RoomId::parse(&self.props.stage.plan.rooms[room].id).expect("rooms have plain names")
    }

    fn place(&self, room: usize) -> Place {
        let plan = &self.props.stage.plan;
        Place::new(&plan.guilds[plan.rooms[room].guild].id.as_str().into(), &self.room(room).channel())
    }

    /// Says it until it is known what became of it.
    async fn say(&self, number: usize) {
        let stage = &self.props.stage;
        let Some(Said { say, id, at, .. }) = lock(&self.props.people.said).get(&number).cloned() else { return };
        stage.beat(Beat::Said);
        loop {
            let fate = match self.hand_over(&say, id.as_deref(), at).await {
                Ok(Some(seq)) => Fate::Accepted(seq),
                Ok(None) => Fate::NotTaken,
                Err(Refused::Unavailable { .. } | Refused::TooMany { .. }) if id.is_some() => {
                    stage.reach("said again with its id");
                    stage.pass(AGAIN_AFTER).await;
                    continue;
                }
                Err(Refused::Unavailable { .. } | Refused::TooMany { .. }) => Fate::Unknown,
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

    async fn hand_over(&self, say: &Say, id: Option<&str>, at: Moment) -> Result<Option<Seq>, Refused> {
        let unavailable = |detail: String| Refused::Unavailable { detail, retry_after: None };
        let (name, role) = if say.is_by_bot { ("Bot", Role::Bot) } else { (say.from, Role::Person) };
        let (from, text) = (Author { id: name.into(), name: name.into(), role }, Arc::<str>::from(say.text.as_str()));
        match id.filter(|_| self.props.stage.plan.rooms[say.room].is_on_platform) {
            Some(id) => {
                let (own_words, mentions) = (text.clone(), Vec::new());
                let utterance = Utterance { id: id.into(), from, text, own_words, at, mentions, to_all: false, answers: None };
                match Hearing::said(&Inbound::new(self.kit.clone()), &self.spot(say.room), utterance).await {
                    Ok(Taken::New(seq) | Taken::Known(seq)) => Ok(Some(seq)),
                    Ok(Taken::Not) => Ok(None),
                    Err(NotTaken::Later { detail, .. }) => Err(unavailable(detail)),
                    Err(NotTaken::Broken(detail)) => Err(Refused::Broken(detail)),
                }
            }
            None if say.is_by_bot => {
                let speech = Speech {
                    id: id.map(Into::into),
                    from,
                    text,
                    own_words: None,
                    modality: Modality::Text,
                    lull_endpoint: false,
                    mentions: Vec::new(),
                    reply_to: None,
                    to_all: false,
                    said_at: None,
                };
                let taken = Inbound::new(self.kit.clone()).say(&self.place(say.room), speech).await;
                taken.map(|accepted| accepted.map(|accepted| accepted.seq)).map_err(|error| unavailable(error.to_string()))
            }
            None => {
                let mut message = json!({ "from": say.from, "text": say.text });
                if let Some(id) = id {
                    message["id"] = id.into();
                }
                let message = serde_json::from_value(message).expect("a good message");
                self.house.say(&self.room(say.room), message).await.map(Some)
            }
        }
    }

    fn spot(&self, room: usize) -> Spot {
        let Place { guild, channel } = self.place(room);
        Spot { guild, channel, parent: None }
    }

    /// The same once more: it is the same message, whatever it says now.
    async fn say_again(&self, number: usize) {
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
        let word = stage.plan.guilds[stage.plan.rooms[said.say.room].guild].word;
        let other = Say { text: format!("{word} twice m{number}m"), ..said.say };
        if let Ok(Some(seq)) = self.hand_over(&other, said.id.as_deref(), said.at).await {
            let mut all = lock(&self.props.people.said);
            let Some(said) = all.get_mut(&number) else { return };
            match said.fate {
                Fate::Accepted(first) if first != seq => stage.violate(format!("message {number} is {first} and {seq}")),
                Fate::Open => said.fate = Fate::Accepted(seq),
                _ => {}
            }
        }
    }

    /// Where a message is on record, if that is known; from now on its words may be others.
    fn heard_of(&self, number: usize, is_to_change: bool) -> Option<(usize, Seq)> {
        let mut all = lock(&self.props.people.said);
        let said = all.get_mut(&number)?;
        let Fate::Accepted(seq) = said.fate else { return None };
        said.is_changed |= is_to_change;
        Some((said.say.room, seq))
    }

    fn id_on_platform(&self, number: usize) -> Option<String> {
        let said = lock(&self.props.people.said).get(&number).cloned()?;
        said.id.filter(|_| self.props.stage.plan.rooms[said.say.room].is_on_platform)
    }

    async fn move_to(&self, room: usize, companions: &[&str], has_external: bool) -> Result<(), Refused> {
        let is_on_platform = self.props.stage.plan.rooms[room].is_on_platform;
        if is_on_platform && self.kit.residents.get(&self.room(room).channel()).is_none() {
            for companion in companions {
                self.house.admit(&self.spot(room), &(*companion).into()).await?;
            }
        }
        let mut invited: Vec<Value> = companions.iter().map(|id| json!(id)).collect();
        if has_external && !is_on_platform {
            invited.push(json!({ "id": EXTERNAL, "external": true }));
        }
        let plan = json!({ "guild": self.place(room).guild, "companions": invited });
        let plan: RoomPlan = serde_json::from_value(plan).expect("a good plan");
        self.house.put_room(&self.room(room), plan).await.map(drop)
    }

    async fn patch(&self, room: usize, patch: Value) {
        let patch: RoomPatch = serde_json::from_value(patch).expect("a good patch");
        drop(self.house.patch_room(&self.room(room), patch).await);
    }

    /// As if the message had killed its handler again and again.
    async fn set_aside(&self, number: usize) {
        let Some((room, seq)) = self.heard_of(number, false) else { return };
        let place = self.place(room);
        let Ok(Some(no)) = Reader::new(&*self.kit.store).channel_no(&place).await else { return };
        let Some(scribe) = self.kit.directory.find(&ScribePlace()) else { return };
        let (ward, (guild, channel)) = (place.ward(), (place.guild.clone(), place.channel.clone()));
        let at = self.kit.clock.now();
        let record = SetAsideRecord { guild, channel, seq, at, deaths: 3, error: "as planned".into(), is_closed: false };
        lock(&self.props.people.set_aside).push((room, seq));
        let writes = vec![Write::Put(key::set_aside(ward, no, seq), encode(&record))];
        let (reply, done) = Reply::awaited();
        drop(scribe.cast(ScribeMessage::Administer(Administer { ward, writes, fresh: Vec::new(), reply })));
        drop(done.await);
        self.props.stage.reach("message set aside");
        if let Some(channel) = self.kit.directory.find(&ChannelPlace(place.channel)) {
            self.props.stage.disturb();
            self.props.stage.notes().killed.insert((self.props.stage.life(), "channel"));
            channel.kill();
        }
    }

    /// Reading never changes anything, and never fails while the process lives.
    async fn look_around(&self, room: usize) {
        let (stage, id) = (&self.props.stage, self.room(room));
        stage.reach("everything looked at");
        let query = HistoryQuery { after: None, before: None, limit: 100 };
        let history = self.house.history(&id, query).await.map(drop);
        let state = self.house.state(&id).await.map(drop);
        let query = DecisionQuery { room: Some(id.clone()), companion: None, after: None, limit: 100 };
        let decisions = self.house.decisions(query).await.map(drop);
        let why = match self.house.why(WhyQuery { room: id, companion: None, at: None }).await {
            Err(Refused::NotFound(_)) => Ok(()),
            other => other.map(drop),
        };
        for (what, outcome) in [("history", history), ("state", state), ("decisions", decisions), ("why", why)] {
            if let Err(refused) = outcome {
                stage.violate(format!("{what} cannot be read: {refused}"));
            }
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(160).collect()
}
