//! A small stand-in for the core: it stores accepted events, as the real one does.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tertulia::domain::event::Gap;
use tertulia::domain::id::{ChannelId, GuildId, PersonId, Seq};
use tertulia::domain::message::Role;
use tertulia::domain::moment::Moment;
use tertulia::ports::chat_platform::Serves;
use tertulia::ports::inbound_events::{
    Acceptance, ChannelRef, InboundError, InboundEvents, InboundMessage, Reached, ReactionChange,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::client::Notepad;
use super::counterpart::Id;
use crate::harness::PATIENCE;

/// A core with memberships that the test sets.
#[derive(Default)]
pub struct Core {
    record: Mutex<Record>,
    changed: Notify,
    /// The channels whose messages wait until the test releases them, once so many are on record.
    held: Mutex<BTreeMap<ChannelId, usize>>,
    /// How far channels were received without being recorded.
    pub notes: Arc<Notepad>,
}

#[derive(Default)]
struct Record {
    /// For each channel with a companion: its guild, and when the companion joined.
    memberships: BTreeMap<ChannelId, (GuildId, Moment)>,
    messages: Vec<(ChannelRef, InboundMessage)>,
    deleted: Vec<Arc<str>>,
    gone: Vec<String>,
    opted_out: HashSet<PersonId>,
    catch_ups: Vec<(ChannelId, u32, Option<Gap>)>,
}

fn channel(id: Id) -> ChannelId {
    format!("discord:{id}").as_str().into()
}

impl Core {
    /// Adds a companion to a channel, as if it had joined before the first message.
    pub fn add_companion(&self, guild: Id, id: Id) {
        self.add_companion_since(format!("discord:{guild}"), id, Moment::ZERO);
    }

    pub fn add_companion_since(&self, guild: String, id: Id, since: Moment) {
        self.record.lock().memberships.insert(channel(id), (guild.into(), since));
    }

    /// The messages of a channel on record, each as `author: text`.
    pub fn texts(&self, id: Id) -> Vec<String> {
        let record = self.record.lock();
        let messages = record.messages.iter().filter(|(channel_ref, _)| channel_ref.channel == channel(id));
        messages.map(|(_, inbound_message)| format!("{}: {}", inbound_message.from.name, inbound_message.text)).collect()
    }

    /// All messages on record.
    pub fn messages(&self) -> Vec<(ChannelRef, InboundMessage)> {
        self.record.lock().messages.clone()
    }

    /// The ids of messages that were deleted.
    pub fn deleted(&self) -> Vec<Arc<str>> {
        self.record.lock().deleted.clone()
    }

    /// The newest message of a channel on record.
    pub fn last(&self, id: Id) -> (ChannelRef, InboundMessage) {
        let record = self.record.lock();
        record
            .messages
            .iter()
            .rfind(|(channel_ref, _)| channel_ref.channel == channel(id))
            .expect("the channel has a message")
            .clone()
    }

    /// The channels and guilds that were reported as gone. Guilds have the prefix `guild`.
    pub fn gone(&self) -> Vec<String> {
        self.record.lock().gone.clone()
    }

    /// The catch-ups of a channel: the number of messages read, and the code of the gap if there was one.
    pub fn catch_ups(&self, id: Id) -> Vec<(u32, Option<Arc<str>>)> {
        let record = self.record.lock();
        let catch_ups = record.catch_ups.iter().filter(|(caught_up, ..)| *caught_up == channel(id));
        catch_ups.map(|(_, count, missed)| (*count, missed.as_ref().map(|missed| missed.why.clone()))).collect()
    }

    /// The recorded gaps of a channel.
    pub fn gaps(&self, id: Id) -> Vec<Gap> {
        let record = self.record.lock();
        let catch_ups = record.catch_ups.iter().filter(|(caught_up, ..)| *caught_up == channel(id));
        catch_ups.filter_map(|(.., missed)| missed.clone()).collect()
    }

    /// Waits until the newest message that was received in a channel without being recorded is this one.
    pub async fn until_marked(&self, id: Id, message: Id) {
        self.notes.until_note(&format!("discord/heard/{id}"), |mark| *mark == *message.to_string().as_bytes()).await;
    }

    /// A person opts out.
    pub fn opt_out(&self, person: Id) {
        self.change(|record| record.opted_out.insert(format!("discord:{person}").as_str().into()));
    }

    /// Lets messages of a channel wait until [`Core::release`].
    pub fn hold(&self, id: Id) {
        self.hold_after(id, 0);
    }

    /// Lets messages of a channel wait until [`Core::release`], once so many are on record.
    pub fn hold_after(&self, id: Id, count: usize) {
        self.held.lock().insert(channel(id), count);
    }

    pub fn release(&self, id: Id) {
        self.held.lock().remove(&channel(id));
        self.changed.notify_waiters();
    }

    /// Waits until a condition holds. `what` names it in the failure message.
    pub async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if condition(self) {
                    return;
                }
                changed.await;
            }
        };
        assert!(timeout(PATIENCE, waiting).await.is_ok(), "timed out waiting for {what}");
    }

    async fn until_released(&self, id: &ChannelId) {
        loop {
            let changed = self.changed.notified();
            let recorded = self.record.lock().messages.iter().filter(|(channel_ref, _)| channel_ref.channel == *id).count();
            if self.held.lock().get(id).is_none_or(|count| recorded < *count) {
                return;
            }
            changed.await;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let changed = change(&mut self.record.lock());
        self.changed.notify_waiters();
        changed
    }
}

#[async_trait]
impl InboundEvents for Core {
    fn listens(&self, channel_ref: &ChannelRef) -> bool {
        let record = self.record.lock();
        let has_member = |id: &ChannelId| record.memberships.contains_key(id);
        channel_ref.guild.as_str().starts_with("dm:")
            || has_member(&channel_ref.channel)
            || channel_ref.parent.as_ref().is_some_and(has_member)
    }

    fn opted_out(&self, _: &ChannelRef) -> HashSet<PersonId> {
        self.record.lock().opted_out.clone()
    }

    async fn reached(&self, channel_ref: &ChannelRef) -> Result<Option<Reached>, InboundError> {
        let record = self.record.lock();
        let membership =
            record.memberships.get(&channel_ref.channel).or_else(|| record.memberships.get(channel_ref.parent.as_ref()?));
        let messages = record.messages.iter().filter(|(message_channel, _)| message_channel.channel == channel_ref.channel);
        let newest =
            messages.filter_map(|(_, inbound_message)| inbound_message.id.clone()).max_by_key(|id| id.parse::<u64>().unwrap());
        Ok(membership.map(|(_, since)| Reached { newest, since: *since }))
    }

    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError> {
        self.until_released(&channel_ref.channel).await;
        if inbound_message.from.role == Role::Bot {
            return Ok(Acceptance::Ignored);
        }
        Ok(self.change(|record| {
            if let Some(index) = record.messages.iter().position(|(_, message)| message.id == inbound_message.id) {
                return Acceptance::Duplicate(Seq(index as u64));
            }
            record.messages.push((channel_ref.clone(), inbound_message));
            Acceptance::New(Seq(record.messages.len() as u64))
        }))
    }

    async fn edited(&self, _: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError> {
        self.change(|record| {
            record
                .messages
                .iter_mut()
                .filter(|(_, message)| message.id.as_deref() == Some(id))
                .for_each(|(_, message)| message.text = text.clone())
        });
        Ok(())
    }

    async fn deleted(&self, _: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError> {
        self.change(|record| {
            record.messages.retain(|(_, message)| message.id.as_ref().is_none_or(|message| !ids.contains(message)));
            record.deleted.extend_from_slice(ids);
        });
        Ok(())
    }

    async fn reacted(&self, _: &ChannelRef, _: ReactionChange) -> Result<(), InboundError> {
        Ok(())
    }

    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Gap>) -> Result<(), InboundError> {
        self.change(|record| record.catch_ups.push((channel_ref.channel.clone(), read, missed)));
        Ok(())
    }

    async fn channel_gone(&self, _: &GuildId, channel: &ChannelId) -> Result<(), InboundError> {
        self.change(|record| record.gone.push(channel.to_string()));
        Ok(())
    }

    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError> {
        self.change(|record| record.gone.push(format!("guild {guild}")));
        Ok(())
    }

    fn guilds(&self, _: Serves) -> Vec<GuildId> {
        let guilds: BTreeSet<GuildId> = self.record.lock().memberships.values().map(|(guild, _)| guild.clone()).collect();
        guilds.into_iter().collect()
    }
}
