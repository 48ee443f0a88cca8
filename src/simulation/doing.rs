//! What people and operators do, besides sending messages.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::acts::{Act, PEOPLE};
use super::life::{Life, Props};
use super::people::{Fate, Sent};
use super::plan::EXTERNAL;
use super::stage::lock;
use crate::actors::inbound::Inbound;
use crate::actors::membership::opt_out::OptOutService;
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Request, WriteMeta, WriterMessage};
use crate::actors::runtime::actor_keys::{ChannelActorKey, WriterKey};
use crate::domain::event::Gap;
use crate::domain::id::GuildId;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::journal::record::{DeadLetterRecord, encode};
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{DecisionQuery, WhyQuery};
use crate::ports::backend::keeping::{Forget, Person};
use crate::ports::backend::messages::{Edit, HistoryQuery};
use crate::ports::backend::room::{RoomPatch, RoomPlan};
use crate::ports::backend::usage::UsageQuery;
use crate::ports::inbound_events::InboundEvents;
use crate::ports::opt_out::OptOut;
use crate::ports::store::Write;
use crate::texts::Language;

/// A person is being forgotten. Messages that the person sends until forgetting ends, or is interrupted, may be deleted, too.
struct Forgetting<'a> {
    props: &'a Props,
    guild: usize,
    person: &'static str,
}

impl Forgetting<'_> {
    fn mark(&self) {
        let rooms = &self.props.stage.plan.rooms;
        for sent in lock(&self.props.people.sent).values_mut() {
            sent.is_changed |= sent.say.from == self.person && rooms[sent.say.room].guild == self.guild;
        }
    }
}

impl Drop for Forgetting<'_> {
    fn drop(&mut self) {
        self.mark();
    }
}

/// The error of a dead letter that killed nobody.
pub(super) const PLANNED: &str = "as planned";

impl Life {
    pub(super) async fn perform(&self, act: Act) {
        let stage = &self.props.stage;
        stage.log(format!("act: {}", short(&format!("{act:?}"))));
        match act {
            Act::Say(say) => {
                let (number, first_sent_at) = (say.number, self.props.people.next());
                let home = &stage.plan.rooms[say.room];
                let id = match home.is_on_platform {
                    true => Some(self.props.platform.post_by_person(&self.room(say.room).channel())),
                    false => say.has_id.then(|| format!("id{number}")),
                };
                if say.late_by > 0 {
                    stage.reach("message delivered late");
                }
                if say.is_deadly {
                    stage.reach("message that kills its handler");
                }
                let at = self.context.clock.now() - Duration::from_secs(say.late_by);
                let answers = self.props.answered(&say);
                let (accepted_at, fate, is_changed, is_resent) = (u64::MAX, Fate::Open, false, false);
                let sent = Sent { say, id, at, first_sent_at, accepted_at, fate, answers, is_changed, is_resent };
                lock(&self.props.people.sent).insert(number, sent);
                self.say(number).await;
            }
            Act::Resend(number) => self.resend(number).await,
            Act::Edit(number) => {
                let Some((room, seq)) = self.record_of(number, true) else { return };
                stage.reach("edit");
                let word = stage.plan.guilds[stage.plan.rooms[room].guild].word;
                let text: Arc<str> = format!("{word} m{number}m edited").into();
                match self.id_on_platform(number) {
                    Some(id) => {
                        drop(InboundEvents::edited(&Inbound::new(self.context.clone()), &self.channel_ref(room), &id, text).await)
                    }
                    None => drop(self.backend.messages.edit(&self.room(room), seq, Edit { text }).await),
                }
            }
            Act::DeleteMessage(number) => {
                let Some((room, seq)) = self.record_of(number, true) else { return };
                stage.reach("deletion");
                lock(&self.props.people.deletions).begin(&[number].into(), false);
                self.interrupt();
                let is_done = match self.id_on_platform(number) {
                    Some(id) => {
                        let inbound = Inbound::new(self.context.clone());
                        InboundEvents::deleted(&inbound, &self.channel_ref(room), &[id.as_str().into()]).await.is_ok()
                    }
                    None => self.backend.messages.delete(&self.room(room), seq).await.is_ok(),
                };
                if is_done {
                    lock(&self.props.people.redacted).insert(number);
                }
            }
            Act::Forget { guild, person, answers } => {
                stage.reach(if answers { "forget with answers" } else { "forget" });
                self.interrupt();
                self.forget(guild, person, answers).await;
            }
            Act::OptOut { guild, person, opted_out } => self.opt_out(guild, person, opted_out).await,
            Act::CaughtUp { room, read, has_gap } => {
                stage.reach("caught up");
                let missed = has_gap.then(|| Gap { after: "0".into(), before: "1".into(), why: "too_many".into() });
                drop(Inbound::new(self.context.clone()).caught_up(&self.channel_ref(room), read, missed).await);
            }
            Act::LoseGuild(guild) => {
                stage.reach("guild lost");
                let id = GuildId::from(stage.plan.guilds[guild].id.as_str());
                drop(Inbound::new(self.context.clone()).guild_gone(&id).await);
            }
            Act::Clear(room) => {
                stage.reach("clear");
                drop(self.backend.rooms.clear(&self.room(room)).await);
            }
            Act::SetMembers { room, companions, has_external } => {
                stage.reach("membership changed");
                drop(self.move_to(room, &companions, has_external).await);
            }
            Act::Pause { room, companion, paused } => {
                stage.reach("pause");
                let patch = match companion {
                    Some(companion) => json!({ "companions": { companion: { "paused": paused } } }),
                    None => json!({ "paused": paused }),
                };
                self.patch(room, patch).await;
            }
            Act::InterjectionPolicy { room, companion, tier } => {
                stage.reach("settings changed in a room");
                let (max_turns, repetition) = ((tier == "very_eager").then_some(3), (tier == "quiet").then_some(false));
                let patch = json!({ "interjection": tier, "max_turns": max_turns, "repetition": repetition });
                self.patch(room, json!({ "companions": { companion: patch } })).await;
            }
            Act::SetCompanions(ids) => {
                stage.reach("companions reloaded");
                self.reload_companions(&ids);
            }
            Act::SetClock(secs) => {
                stage.reach("wall clock set");
                stage.clock.jump(secs);
                stage.disturb();
            }
            Act::Panic(times) => {
                stage.reach("handlers panic");
                stage.disturb();
                stage.notes().killed.insert((stage.life(), "channel"));
                stage.rng.panics(times);
            }
            Act::DeadLetter(number) => self.write_dead_letter(number).await,
            Act::DeleteRoom(room) => self.delete_room(room).await,
            Act::UndeleteRoom(room) => {
                if self.backend.rooms.undelete(&self.room(room)).await.is_ok() {
                    stage.reach("room brought back");
                }
            }
            Act::Operate { retry } => self.operate(retry).await,
            Act::ReadAll(room) => self.read_all(room).await,
            Act::Call { room, what } => self.act_in_call(room, what).await,
        }
    }

    /// If forgetting fails, it is tried again later.
    pub(super) async fn forget(&self, guild: usize, person: &'static str, answers: bool) {
        let (stage, people) = (&self.props.stage, &self.props.people);
        *lock(&people.to_forget).entry((guild, person)).or_default() |= answers;
        let forgetting = Forgetting { props: &self.props, guild, person };
        forgetting.mark();
        let accepted = people.accepted_of(person, |room| stage.plan.rooms[room].guild == guild);
        lock(&people.deletions).begin(&accepted, answers);
        let id = GuildId::from(stage.plan.guilds[guild].id.as_str());
        match self.backend.maintenance.forget(Forget { guild: id, person: person.into(), answers }).await {
            Ok(_) | Err(Refused::NotFound(_)) => {
                if answers {
                    lock(&people.deletions).end_with_answers(&accepted);
                }
                lock(&people.redacted).extend(accepted);
                let mut to_forget = lock(&people.to_forget);
                // The answers may still have to be deleted.
                if answers || to_forget.get(&(guild, person)) == Some(&false) {
                    to_forget.remove(&(guild, person));
                }
            }
            Err(refused) => stage.log(format!("{person} is not forgotten: {refused}")),
        }
    }

    /// A person's messages are not accepted from when the opt-out is on record until it is withdrawn.
    async fn opt_out(&self, guild: usize, person: &'static str, opted_out: bool) {
        let (stage, people) = (&self.props.stage, &self.props.people);
        let id = GuildId::from(stage.plan.guilds[guild].id.as_str());
        if !opted_out {
            lock(&people.opted_out).insert((guild, person), false);
        }
        let outcome = OptOutService::new(self.context.clone()).ignore(&id, &person.into(), opted_out).await;
        if opted_out && outcome.is_ok() {
            stage.reach("person opted out");
            lock(&people.opted_out).entry((guild, person)).or_insert(true);
        }
    }

    /// With a probability of one half, makes the process crash during the redaction that follows.
    fn interrupt(&self) {
        let mut dice = lock(&self.props.interruptions);
        if dice.chance(0.5) {
            self.props.store.crash_soon(dice.between(1, 8), dice.fraction());
        }
    }

    pub(super) async fn move_to(&self, room: usize, companions: &[&str], has_external: bool) -> Result<(), Refused> {
        let is_on_platform = self.props.stage.plan.rooms[room].is_on_platform;
        if is_on_platform && self.context.memberships.get(&self.room(room).channel()).is_none() {
            for companion in companions {
                self.backend.rooms.admit(&self.channel_ref(room), &(*companion).into()).await?;
            }
        }
        let mut invited: Vec<Value> = companions.iter().map(|id| json!(id)).collect();
        if has_external && !is_on_platform {
            invited.push(json!({ "id": EXTERNAL, "external": true }));
        }
        let plan = json!({ "guild": self.channel_key(room).guild, "companions": invited });
        let plan: RoomPlan = serde_json::from_value(plan).expect("a valid plan");
        self.backend.rooms.put(&self.room(room), plan).await.map(drop)
    }

    async fn patch(&self, room: usize, patch: Value) {
        let patch: RoomPatch = serde_json::from_value(patch).expect("a valid patch");
        drop(self.backend.rooms.patch(&self.room(room), patch).await);
    }

    /// Stores a dead letter, as if the message had killed its handler again and again.
    async fn write_dead_letter(&self, number: usize) {
        let Some((room, seq)) = self.record_of(number, false) else { return };
        let channel_key = self.channel_key(room);
        let Ok(Some(no)) = Reader::new(&*self.context.store).channel_no(&channel_key).await else { return };
        let Some(writer) = self.context.directory.find(&WriterKey()) else { return };
        let (ward, (guild, channel)) = (channel_key.ward(), (channel_key.guild.clone(), channel_key.channel.clone()));
        let at = self.context.clock.now();
        let record = DeadLetterRecord { guild, channel, seq, at, deaths: 3, error: PLANNED.into(), is_closed: false };
        lock(&self.props.people.dead_letters).push((room, seq));
        let writes = vec![Write::Put(key::dead_letter(ward, no, seq), encode(&record))];
        let (reply, done) = Reply::awaited();
        drop(writer.cast(WriterMessage::Request(Request::WriteMeta(WriteMeta { ward, writes, reply }))));
        drop(done.await);
        self.props.stage.reach("dead letter written");
        if let Some(channel) = self.context.directory.find(&ChannelActorKey(channel_key.channel)) {
            self.props.stage.disturb();
            self.props.stage.notes().killed.insert((self.props.stage.life(), "channel"));
            channel.kill();
        }
    }

    async fn delete_room(&self, room: usize) {
        let (stage, plan) = (&self.props.stage, &self.props.stage.plan);
        stage.reach("room deleted");
        stage.disturb();
        // Metrics of the room that were about to be counted are lost.
        stage.notes().killed.insert((stage.life(), "channel"));
        let is_gone = |other: usize| other == room || plan.rooms[other].within == Some(room);
        lock(&self.props.people.deleted).extend((0..plan.rooms.len()).filter(|other| is_gone(*other)));
        let ChannelKey { guild, channel } = self.channel_key(room);
        match plan.rooms[room].is_on_platform {
            true => drop(InboundEvents::channel_gone(&Inbound::new(self.context.clone()), &guild, &channel).await),
            false => drop(self.backend.rooms.delete(&self.room(room)).await),
        }
    }

    /// Releases quarantined guilds. Dead letters are retried, and kill again, or are dropped.
    async fn operate(&self, retry: bool) {
        let stage = &self.props.stage;
        let Ok(quarantine) = self.backend.maintenance.quarantine().await else { return };
        for guild in quarantine.guilds {
            stage.reach("guild released by an operator");
            stage.disturb();
            if self.backend.maintenance.release(guild.id.as_str()).await.is_ok() {
                stage.note_release(guild.id.as_str());
            }
        }
        for entry in quarantine.messages {
            let is_entry = |sent: &Sent| {
                let channel_key = self.channel_key(sent.say.room);
                sent.fate == Fate::Accepted(entry.seq)
                    && channel_key.guild == entry.guild
                    && self.room(sent.say.room).as_str() == &*entry.room
            };
            for sent in lock(&self.props.people.sent).values_mut().filter(|sent| is_entry(sent)) {
                (sent.is_changed, sent.is_resent) = (true, sent.is_resent || retry);
            }
            match retry {
                true => {
                    stage.reach("dead letter retried by an operator");
                    drop(self.backend.maintenance.retry(&entry.id).await);
                }
                false => {
                    stage.reach("dead letter dropped by an operator");
                    drop(self.backend.maintenance.drop_entry(&entry.id).await);
                }
            }
        }
    }

    /// Reads everything. No read may fail unless something is missing, or show anything of another guild.
    async fn read_all(&self, room: usize) {
        let (stage, id) = (&self.props.stage, self.room(room));
        stage.reach("everything read");
        let query = HistoryQuery { after: None, before: None, limit: 100 };
        let history = to_json(self.backend.records.history(&id, query).await);
        let state = to_json(self.backend.rooms.state(&id).await);
        let query = DecisionQuery { room: Some(id.clone()), companion: None, after: None, limit: 100 };
        let decisions = to_json(self.backend.records.decisions(query).await);
        let why =
            to_json(self.backend.records.why(WhyQuery { room: id, companion: None, at: None, language: Language::German }).await);
        let home = &stage.plan.rooms[room];
        let is_in = |rooms: &Mutex<BTreeSet<usize>>| lock(rooms).contains(&room);
        let may_be_missing = is_in(&self.props.people.unmade) || is_in(&self.props.people.deleted);
        let is_empty = self.context.memberships.present(&self.room(room).channel()).is_empty();
        let guild = GuildId::from(stage.plan.guilds[stage.plan.rooms[room].guild].id.as_str());
        let usage = to_json(self.backend.records.usage(UsageQuery { guild: Some(guild.clone()), from: None, to: None }).await);
        let of_person = match self.backend.records.export_person(Person { guild, id: PEOPLE[room % PEOPLE.len()].into() }).await {
            Ok(lines) => lines.try_collect::<Vec<_>>().await.map(|lines| lines.concat()),
            // The person may have said nothing.
            Err(Refused::NotFound(_)) => Ok(String::new()),
            Err(refused) => Err(refused),
        };
        let all = [
            ("history", history),
            ("state", state),
            ("decisions", decisions),
            ("why", why),
            ("usage", usage),
            ("export of a person", of_person),
        ];
        for (what, outcome) in all {
            match outcome {
                Ok(text) => {
                    if let Some(word) = stage.plan.foreign_word(&stage.plan.guilds[home.guild].id, &text) {
                        stage.violate(format!("{what} of room {room} shows {word:?}, a word of another guild"));
                    }
                }
                Err(Refused::NotFound(_)) if what == "why" || may_be_missing => {}
                // Without companions there is nothing to explain.
                Err(Refused::Invalid { .. }) if what == "why" && is_empty => {}
                Err(refused) => stage.violate(format!("{what} cannot be read: {refused}")),
            }
        }
    }
}

fn to_json<T: serde::Serialize>(outcome: Result<T, Refused>) -> Result<String, Refused> {
    outcome.map(|answer| serde_json::to_string(&answer).unwrap_or_default())
}

fn short(text: &str) -> String {
    text.chars().take(160).collect()
}
