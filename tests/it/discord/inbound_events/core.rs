//! A core that keeps a record, as the real one does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tertulia::domain::id::{ChannelId, GuildId, Seq};
use tertulia::domain::message::Role;
use tertulia::domain::moment::Moment;
use tertulia::ports::chat_platform::Serves;
use tertulia::ports::inbound_events::{Acceptance, ChannelRef, InboundError, InboundEvents, InboundMessage, Missed, Reached};
use tertulia::ports::notes::{NoteError, Notes};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::super::counterpart::id::Id;
use crate::harness::PATIENCE;

/// A core in which companions live where they were let in.
#[derive(Default)]
pub struct Core {
    kept: Mutex<Kept>,
    changed: Notify,
    /// Channels in which nothing is taken at the moment.
    held: Mutex<BTreeSet<ChannelId>>,
}

#[derive(Default)]
struct Kept {
    homes: BTreeMap<ChannelId, (GuildId, Moment)>,
    said: Vec<(ChannelRef, InboundMessage)>,
    gone: Vec<String>,
    read: Vec<(ChannelId, u32, Option<Missed>)>,
    notes: BTreeMap<(String, String), Vec<u8>>,
}

fn channel(id: Id) -> ChannelId {
    format!("discord:{id}").as_str().into()
}

impl Core {
    /// A companion moves in, before anything was said.
    pub fn load_rooms(&self, guild: Id, id: Id) {
        self.move_in_at(format!("discord:{guild}"), id, Moment::ZERO);
    }

    pub fn move_in_at(&self, guild: String, id: Id, since: Moment) {
        self.kept.lock().unwrap().homes.insert(channel(id), (guild.into(), since));
    }

    /// What is on record of a channel: who said what.
    pub fn texts(&self, id: Id) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        let there = kept.said.iter().filter(|(channel_ref, _)| channel_ref.channel == channel(id));
        there.map(|(_, inbound_message)| format!("{}: {}", inbound_message.from.name, inbound_message.text)).collect()
    }

    /// What was said last in a channel.
    pub fn last(&self, id: Id) -> (ChannelRef, InboundMessage) {
        let kept = self.kept.lock().unwrap();
        kept.said.iter().rfind(|(channel_ref, _)| channel_ref.channel == channel(id)).expect("something was said").clone()
    }

    /// What is gone: channels and guilds.
    pub fn gone(&self) -> Vec<String> {
        self.kept.lock().unwrap().gone.clone()
    }

    /// How a channel was read after downtimes: how much, and why something is missing.
    pub fn read(&self, id: Id) -> Vec<(u32, Option<&'static str>)> {
        let kept = self.kept.lock().unwrap();
        let there = kept.read.iter().filter(|(read, ..)| *read == channel(id));
        there.map(|(_, count, missed)| (*count, missed.as_ref().map(|missed| missed.why))).collect()
    }

    /// What was left out of a channel.
    pub fn missed(&self, id: Id) -> Vec<Missed> {
        let kept = self.kept.lock().unwrap();
        let there = kept.read.iter().filter(|(read, ..)| *read == channel(id));
        there.filter_map(|(.., missed)| missed.clone()).collect()
    }

    /// How far a channel was heard where nothing of it is on record.
    pub fn mark(&self, id: Id) -> Option<String> {
        let kept = self.kept.lock().unwrap();
        let mark = kept.notes.iter().find(|((_, name), _)| *name == format!("discord/heard/{id}"))?.1;
        Some(String::from_utf8(mark.clone()).unwrap())
    }

    /// Nothing is taken in a channel for the time being.
    pub fn hold(&self, id: Id) {
        self.held.lock().unwrap().insert(channel(id));
    }

    pub fn release(&self, id: Id) {
        self.held.lock().unwrap().remove(&channel(id));
        self.changed.notify_waiters();
    }

    /// Waits until it is so.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if is_so(self) {
                    return;
                }
                changed.await;
            }
        };
        assert!(timeout(PATIENCE, waiting).await.is_ok(), "{what} did not come");
    }

    async fn let_in(&self, id: &ChannelId) {
        loop {
            let changed = self.changed.notified();
            if !self.held.lock().unwrap().contains(id) {
                return;
            }
            changed.await;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> T {
        let changed = change(&mut self.kept.lock().unwrap());
        self.changed.notify_waiters();
        changed
    }
}

#[async_trait]
impl InboundEvents for Core {
    fn listens(&self, channel_ref: &ChannelRef) -> bool {
        let kept = self.kept.lock().unwrap();
        let lives = |id: &ChannelId| kept.homes.contains_key(id);
        channel_ref.guild.as_str().starts_with("dm:")
            || lives(&channel_ref.channel)
            || channel_ref.parent.as_ref().is_some_and(lives)
    }

    async fn reached(&self, channel_ref: &ChannelRef) -> Result<Option<Reached>, InboundError> {
        let kept = self.kept.lock().unwrap();
        let home = kept.homes.get(&channel_ref.channel).or_else(|| kept.homes.get(channel_ref.parent.as_ref()?));
        let there = kept.said.iter().filter(|(said, _)| said.channel == channel_ref.channel);
        let newest = there.map(|(_, inbound_message)| inbound_message.id.clone()).max_by_key(|id| id.parse::<u64>().unwrap());
        Ok(home.map(|(_, since)| Reached { newest, since: *since }))
    }

    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError> {
        self.let_in(&channel_ref.channel).await;
        if inbound_message.from.role == Role::Bot {
            return Ok(Acceptance::Ignored);
        }
        Ok(self.change(|kept| {
            if let Some(at) = kept.said.iter().position(|(_, said)| said.id == inbound_message.id) {
                return Acceptance::Duplicate(Seq(at as u64));
            }
            kept.said.push((channel_ref.clone(), inbound_message));
            Acceptance::New(Seq(kept.said.len() as u64))
        }))
    }

    async fn edited(&self, _: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError> {
        self.change(|kept| {
            kept.said.iter_mut().filter(|(_, said)| *said.id == *id).for_each(|(_, said)| said.text = text.clone())
        });
        Ok(())
    }

    async fn deleted(&self, _: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError> {
        self.change(|kept| kept.said.retain(|(_, said)| !ids.contains(&said.id)));
        Ok(())
    }

    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Missed>) -> Result<(), InboundError> {
        self.change(|kept| kept.read.push((channel_ref.channel.clone(), read, missed)));
        Ok(())
    }

    async fn channel_gone(&self, _: &GuildId, channel: &ChannelId) -> Result<(), InboundError> {
        self.change(|kept| kept.gone.push(channel.to_string()));
        Ok(())
    }

    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError> {
        self.change(|kept| kept.gone.push(format!("guild {guild}")));
        Ok(())
    }

    fn guilds(&self, _: Serves) -> Vec<GuildId> {
        let guilds: BTreeSet<GuildId> = self.kept.lock().unwrap().homes.values().map(|(guild, _)| guild.clone()).collect();
        guilds.into_iter().collect()
    }
}

#[async_trait]
impl Notes for Core {
    async fn read(&self, guild: Option<&GuildId>, name: &str) -> Result<Option<Vec<u8>>, NoteError> {
        let key = (guild.map(ToString::to_string).unwrap_or_default(), name.to_owned());
        Ok(self.kept.lock().unwrap().notes.get(&key).cloned())
    }

    async fn all(&self, _: Option<&GuildId>, _: &str) -> Result<Vec<(String, Vec<u8>)>, NoteError> {
        Ok(Vec::new())
    }

    async fn write(&self, guild: Option<&GuildId>, notes: Vec<(String, Option<Vec<u8>>)>) -> Result<(), NoteError> {
        let guild = guild.map(ToString::to_string).unwrap_or_default();
        self.change(|kept| {
            for (name, note) in notes {
                match note {
                    Some(note) => kept.notes.insert((guild.clone(), name), note),
                    None => kept.notes.remove(&(guild.clone(), name)),
                };
            }
        });
        Ok(())
    }
}
