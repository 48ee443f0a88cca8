//! Sets, lists, cancels and erases reminders, and keeps the time zones of people.

use std::sync::Arc;

use async_trait::async_trait;
use ractor::RpcReplyPort;
use serde_json::json;
use tokio::sync::oneshot;

use super::ActorBackend;
use super::errors::invalid;
use super::external::not_known;
use crate::actors::erasure::deletion::redact_traces;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::writer::requests::drained;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::domain::moment::Moment;
use crate::domain::policy::zone::Zone;
use crate::domain::reminders::{MOST_CHARS, NewReminder, NotSet, Reminder};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::ReadError;
use crate::journal::record::encode_bytes;
use crate::journal::redaction::redact;
use crate::ports::backend::reminder_service::{ReminderService, ReminderSet, ReminderView};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::store::Write;

#[async_trait]
impl ReminderService for ActorBackend {
    async fn reminders(&self, room: &RoomId, person: Option<&PersonId>) -> Result<Vec<ReminderView>, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let conversation = self.current_state(&channel_key).await?.inspection.conversation;
        let wanted = conversation.reminders().open().filter(|reminder| person.is_none_or(|person| reminder.is_of(person)));
        Ok(wanted.map(|reminder| self.reminder_view(reminder, &channel_key.guild)).collect())
    }

    async fn remind(&self, room: &RoomId, new: NewReminder) -> Result<ReminderSet, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        if let Some(companion) = new.companion.iter().find(|companion| !membership.companions.contains(companion)) {
            return Err(Refused::not_found(self.not_in_room(companion, room)));
        }
        if !(1..=MOST_CHARS).contains(&new.text.chars().count()) {
            return Err(not_set(NotSet::Text, "text"));
        }
        let zone = match &new.zone {
            Some(zone) => Some(checked(zone)?),
            None => self.reader().time_zone(&channel_key.guild, &PersonId::from(&*new.of.id)).await?,
        };
        let time_field = if new.at.is_none() && new.in_minutes.is_some() { "in_minutes" } else { "at" };
        let channel = self.running(&channel_key).await?;
        let (sender, answer) = oneshot::channel();
        let wanted = Box::new(NewReminder { zone, ..new });
        channel.cast(ChannelMessage::Remind { wanted, reply: RpcReplyPort::from(sender) }).map_err(|_| not_known())?;
        let planned = answer.await.map_err(|_| not_known())?;
        let (reminder, reading) = planned.map_err(|error| not_set(error, time_field))?;
        Ok(ReminderSet { reminder: self.reminder_view(&reminder, &channel_key.guild), reading })
    }

    async fn cancel_reminder(&self, room: &RoomId, number: u64, by: Option<&PersonId>) -> Result<(), Refused> {
        if !self.reminders(room, by).await?.iter().any(|reminder| reminder.id == number) {
            return Err(Refused::not_found(Detail::of("refusals.no_reminder", json!({ "number": number }))));
        }
        let (channel_key, _) = self.room_of(room)?;
        self.accept(&channel_key, Event::RemindersCancelled { reminders: vec![number], erased: false }, None).await?;
        Ok(drained(&self.context, &channel_key).await?)
    }

    async fn erase_reminders(&self, guild: &GuildId, room: Option<&RoomId>, person: &PersonId) -> Result<u64, Refused> {
        let mut erased = Ok(0);
        for (channel, membership) in self.context.memberships.all() {
            if membership.guild == *guild && room.is_none_or(|room| room.channel() == channel) {
                let here = self.erase_reminders_in(&ChannelKey::new(guild, &channel), person).await;
                // A room that cannot be read must not prevent the erasure in the others.
                erased = erased.and_then(|sum| here.map(|here| sum + here));
            }
        }
        erased
    }

    async fn time_zone(&self, guild: &GuildId, person: &PersonId) -> Result<Arc<str>, Refused> {
        let now = self.context.clock.now();
        let guilds = || now.zoned(self.context.in_force().prompt.zone_of(guild)).strftime("%:Q").to_string().into();
        Ok(self.reader().time_zone(guild, person).await?.unwrap_or_else(guilds))
    }

    async fn set_time_zone(&self, guild: &GuildId, person: &PersonId, zone: Option<&str>) -> Result<(), Refused> {
        let (key, zone) = (key::time_zone(guild, person), zone.map(checked).transpose()?);
        let write = match &zone {
            Some(zone) => Write::Put(key, encode_bytes(zone.as_bytes())),
            None => Write::Remove(key),
        };
        self.write_meta(Ward::of(guild), vec![write]).await
    }
}

impl ActorBackend {
    /// Erases a person's reminders in a channel: from the conversation, from its snapshot and from the journal.
    async fn erase_reminders_in(&self, channel_key: &ChannelKey, person: &PersonId) -> Result<u64, Refused> {
        let Some(no) = self.reader().channel_no(channel_key).await? else { return Ok(0) };
        // A channel with a reminder has such a record.
        if self.context.store.get(key::pending(channel_key.ward(), no)).await.map_err(ReadError::from)?.is_none() {
            return Ok(0);
        }
        let numbers = self.current_state(channel_key).await?.inspection.conversation.reminders().of(person);
        if numbers.is_empty() {
            return Ok(0);
        }
        let _lock = self.context.rewrite_locks.lock(channel_key).await;
        let event = Event::RemindersCancelled { reminders: numbers.clone(), erased: true };
        self.accept(channel_key, event.clone(), None).await?;
        // Removes from the snapshot those whose own events have expired. Without a number, it is not stored again.
        let mut events = vec![Recorded { seq: Seq::NONE, at: Moment::ZERO, handled: Seq::NONE, turn: None, event }];
        let listed = self.reader().listed(&channel_key.guild, person).await?;
        for (_, stretches) in listed.into_iter().filter(|(listed, _)| *listed == no) {
            let theirs = self.reader().messages_by(channel_key.ward(), no, stretches.keys(), person).await?;
            for seq in theirs.messages {
                let recorded = self.reader().event(channel_key, seq).await?;
                let is_theirs =
                    |recorded: &Recorded| matches!(&recorded.event, Event::ReminderSet(set) if numbers.contains(&set.number));
                events.extend(recorded.filter(is_theirs).as_ref().map(redact));
            }
        }
        redact_traces(&self.context, channel_key, events, Vec::new()).await?;
        Ok(numbers.len() as u64)
    }

    fn reminder_view(&self, reminder: &Reminder, guild: &GuildId) -> ReminderView {
        let settings = self.context.in_force();
        ReminderView {
            id: reminder.number,
            from: reminder.of.name.clone(),
            text: reminder.text.clone(),
            due: reminder.due.into(),
            local: reminder.local(settings.prompt.zone_of(guild)).into(),
            companion: reminder.companion.clone(),
        }
    }
}

fn checked(zone: &str) -> Result<Arc<str>, Refused> {
    let zone = zone.trim();
    let is_known = zone.len() <= 64 && Zone::parse(zone).is_some();
    is_known.then(|| zone.into()).ok_or_else(|| invalid("zone", Detail::key("refusals.no_time_zone")))
}

/// `time_field` is the field with the time.
fn not_set(not_set: NotSet, time_field: &'static str) -> Refused {
    let detail = Detail::of(not_set.key(), json!({}));
    match not_set {
        NotSet::TooMany => Refused::conflict(detail),
        NotSet::Text => invalid("text", detail),
        NotSet::OneTime | NotSet::Unreadable | NotSet::TooSoon | NotSet::TooLate => invalid(time_field, detail),
    }
}
