//! A core that keeps a record, as the real one does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tertulia::domain::id::{ChannelId, GuildId, Seq};
use tertulia::domain::message::Role;
use tertulia::domain::moment::Moment;
use tertulia::ports::chat_platform::Serves;
use tertulia::ports::hearing::{Hearing, Missed, NotTaken, Reached, Spot, Taken, Utterance};
use tertulia::ports::notes::{Notes, Unkept};
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
    said: Vec<(Spot, Utterance)>,
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
        let there = kept.said.iter().filter(|(spot, _)| spot.channel == channel(id));
        there.map(|(_, utterance)| format!("{}: {}", utterance.from.name, utterance.text)).collect()
    }

    /// What was said last in a channel.
    pub fn last(&self, id: Id) -> (Spot, Utterance) {
        let kept = self.kept.lock().unwrap();
        kept.said.iter().rfind(|(spot, _)| spot.channel == channel(id)).expect("something was said").clone()
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
impl Hearing for Core {
    fn listens(&self, spot: &Spot) -> bool {
        let kept = self.kept.lock().unwrap();
        let lives = |id: &ChannelId| kept.homes.contains_key(id);
        spot.guild.as_str().starts_with("dm:") || lives(&spot.channel) || spot.parent.as_ref().is_some_and(lives)
    }

    async fn reached(&self, spot: &Spot) -> Result<Option<Reached>, NotTaken> {
        let kept = self.kept.lock().unwrap();
        let home = kept.homes.get(&spot.channel).or_else(|| kept.homes.get(spot.parent.as_ref()?));
        let there = kept.said.iter().filter(|(said, _)| said.channel == spot.channel);
        let newest = there.map(|(_, utterance)| utterance.id.clone()).max_by_key(|id| id.parse::<u64>().unwrap());
        Ok(home.map(|(_, since)| Reached { newest, since: *since }))
    }

    async fn said(&self, spot: &Spot, utterance: Utterance) -> Result<Taken, NotTaken> {
        self.let_in(&spot.channel).await;
        if utterance.from.role == Role::Bot {
            return Ok(Taken::Not);
        }
        Ok(self.change(|kept| {
            if let Some(at) = kept.said.iter().position(|(_, said)| said.id == utterance.id) {
                return Taken::Known(Seq(at as u64));
            }
            kept.said.push((spot.clone(), utterance));
            Taken::New(Seq(kept.said.len() as u64))
        }))
    }

    async fn edited(&self, _: &Spot, id: &str, text: Arc<str>) -> Result<(), NotTaken> {
        self.change(|kept| {
            kept.said.iter_mut().filter(|(_, said)| *said.id == *id).for_each(|(_, said)| said.text = text.clone())
        });
        Ok(())
    }

    async fn deleted(&self, _: &Spot, ids: &[Arc<str>]) -> Result<(), NotTaken> {
        self.change(|kept| kept.said.retain(|(_, said)| !ids.contains(&said.id)));
        Ok(())
    }

    async fn caught_up(&self, spot: &Spot, read: u32, missed: Option<Missed>) -> Result<(), NotTaken> {
        self.change(|kept| kept.read.push((spot.channel.clone(), read, missed)));
        Ok(())
    }

    async fn channel_gone(&self, _: &GuildId, channel: &ChannelId) -> Result<(), NotTaken> {
        self.change(|kept| kept.gone.push(channel.to_string()));
        Ok(())
    }

    async fn guild_gone(&self, guild: &GuildId) -> Result<(), NotTaken> {
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
    async fn read(&self, guild: Option<&GuildId>, name: &str) -> Result<Option<Vec<u8>>, Unkept> {
        let key = (guild.map(ToString::to_string).unwrap_or_default(), name.to_owned());
        Ok(self.kept.lock().unwrap().notes.get(&key).cloned())
    }

    async fn all(&self, _: Option<&GuildId>, _: &str) -> Result<Vec<(String, Vec<u8>)>, Unkept> {
        Ok(Vec::new())
    }

    async fn write(&self, guild: Option<&GuildId>, notes: Vec<(String, Option<Vec<u8>>)>) -> Result<(), Unkept> {
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
