//! Channels, threads and webhooks come, change and go.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::channels::{Channel, Thread};
use super::super::id::Id;
use super::super::intents::{GUILD_WEBHOOKS, GUILDS};
use super::super::moment::now_ms;
use super::super::sessions::{Event, Place};
use super::super::state::State;
use super::super::webhooks::Webhook;

impl State {
    /// A new channel of a guild.
    pub fn add_channel(&mut self, channel: Channel) {
        let id = channel.id;
        self.world.channels.insert(id, channel);
        self.tell_of_channel("CHANNEL_CREATE", id);
    }

    /// Changes a channel.
    pub fn change_channel(&mut self, id: Id, change: impl FnOnce(&mut Channel)) {
        let Some(guild) = self.world.channels.get(&id).and_then(|channel| channel.guild) else { return };
        self.changing_access(guild, Some(id), |state| {
            if let Some(channel) = state.world.channels.get_mut(&id) {
                change(channel);
            }
        });
    }

    /// Does something that may change what the bot can view in a guild. Every channel that it gains or loses, and the one that
    /// was changed in any case, is told as an update; threads of one that it gains are told with it.
    pub fn changing_access(&mut self, guild: Id, changed: Option<Id>, change: impl FnOnce(&mut Self)) {
        let viewed = |state: &Self| -> BTreeSet<Id> {
            let channels = state.world.channels_of(guild).filter(|channel| state.world.may_view(channel, state.world.bot()));
            channels.map(|channel| channel.id).collect()
        };
        let before = viewed(self);
        change(self);
        let after = viewed(self);
        for id in before.symmetric_difference(&after).copied().chain(changed).collect::<BTreeSet<Id>>() {
            self.tell_of_channel("CHANNEL_UPDATE", id);
        }
        let gained: Vec<Id> = after.difference(&before).copied().collect();
        if gained.is_empty() {
            return;
        }
        let threads = self.world.active_threads(guild);
        let threads: Vec<&Channel> =
            threads.filter(|thread| thread.parent.is_some_and(|parent| gained.contains(&parent))).collect();
        let bot = self.world.bot();
        let members = threads.iter().filter_map(|thread| thread.thread.as_ref()?.member_json(thread.id, bot));
        let data = json!({
            "guild_id": guild,
            "channel_ids": gained,
            "threads": threads.iter().map(|thread| self.world.channel_json(thread)).collect::<Vec<_>>(),
            "members": members.collect::<Vec<_>>(),
        });
        self.tell(&Event::new("THREAD_LIST_SYNC", Place::Guild(guild), GUILDS, data));
    }

    /// Takes a channel or a thread away, with everything in it.
    pub fn remove_channel(&mut self, id: Id) {
        let Some(channel) = self.world.channels.get(&id).cloned() else { return };
        let Some(guild) = channel.guild else { return };
        let viewed = self.world.may_view(&channel, self.world.bot());
        let data = self.world.gateway_channel(&channel, self.rules.obfuscates_channels);
        self.world.remove_channel(id);
        let event = if channel.kind.is_thread() {
            if !viewed {
                return;
            }
            Event::new("THREAD_DELETE", Place::Guild(guild), GUILDS, channel.deleted_thread_json())
        } else {
            Event::new("CHANNEL_DELETE", Place::Guild(guild), GUILDS, data)
        };
        self.tell(&Event { channel: Some(id), ..event });
    }

    /// A new thread. Of a forum it is the newest thing.
    pub fn add_thread(&mut self, thread: Channel) {
        let (id, parent) = (thread.id, thread.parent);
        self.world.channels.insert(id, thread);
        let forum = parent.and_then(|parent| self.world.channels.get_mut(&parent));
        if let Some(forum) = forum.filter(|forum| !forum.kind.takes_messages()) {
            forum.last_message = Some(id);
        }
        self.tell_of_thread("THREAD_CREATE", id, true);
    }

    /// Changes a thread.
    pub fn change_thread(&mut self, id: Id, change: impl FnOnce(&mut Thread)) {
        let Some(thread) = self.world.channels.get_mut(&id).and_then(|channel| channel.thread.as_mut()) else { return };
        let archived = thread.archived;
        change(thread);
        if thread.archived != archived {
            thread.archive_changed_ms = now_ms();
        }
        self.tell_of_thread("THREAD_UPDATE", id, false);
    }

    /// Lets somebody take part in a thread. The bot is told when it is itself, as if the thread were new.
    pub fn join_thread(&mut self, id: Id, user: Id) {
        let Some(thread) = self.world.channels.get_mut(&id).and_then(|channel| channel.thread.as_mut()) else { return };
        thread.members.insert(user);
        let (count, bot) = (thread.members.len(), self.world.bot());
        if user != bot {
            return;
        }
        self.tell_of_thread("THREAD_CREATE", id, false);
        let channel = &self.world.channels[&id];
        let Some(guild) = channel.guild else { return };
        let member = channel.thread.as_ref().and_then(|thread| thread.member_json(id, bot));
        let data = json!({ "id": id, "guild_id": guild, "member_count": count, "added_members": [member] });
        self.tell(&Event::new("THREAD_MEMBERS_UPDATE", Place::Guild(guild), GUILDS, data));
    }

    /// A new webhook.
    pub fn add_webhook(&mut self, webhook: Webhook) {
        let channel = webhook.channel;
        self.world.webhooks.insert(webhook.id, webhook);
        self.tell_of_webhooks(channel);
    }

    /// Changes a webhook, perhaps its channel.
    pub fn change_webhook(&mut self, id: Id, change: impl FnOnce(&mut Webhook)) {
        let Some(webhook) = self.world.webhooks.get_mut(&id) else { return };
        let before = webhook.channel;
        change(webhook);
        let after = webhook.channel;
        for channel in BTreeSet::from([before, after]) {
            self.tell_of_webhooks(channel);
        }
    }

    /// Takes a webhook away.
    pub fn remove_webhook(&mut self, id: Id) {
        if let Some(webhook) = self.world.webhooks.remove(&id) {
            self.tell_of_webhooks(webhook.channel);
        }
    }

    fn tell_of_webhooks(&mut self, channel: Id) {
        let Some(guild) = self.world.guild_of(channel).map(|guild| guild.id) else { return };
        let data = json!({ "guild_id": guild, "channel_id": channel });
        self.tell(&Event { channel: Some(channel), ..Event::new("WEBHOOKS_UPDATE", Place::Guild(guild), GUILD_WEBHOOKS, data) });
    }

    fn tell_of_channel(&mut self, name: &'static str, id: Id) {
        let channel = &self.world.channels[&id];
        let Some(guild) = channel.guild else { return };
        let data = self.world.gateway_channel(channel, self.rules.obfuscates_channels);
        self.tell(&Event { channel: Some(id), ..Event::new(name, Place::Guild(guild), GUILDS, data) });
    }

    /// The gateway tells of threads that the bot may view, and of no others.
    fn tell_of_thread(&mut self, name: &'static str, id: Id, newly_created: bool) {
        let channel = &self.world.channels[&id];
        let Some(guild) = channel.guild.filter(|_| self.world.may_view(channel, self.world.bot())) else { return };
        let mut data = self.world.channel_json(channel);
        if newly_created {
            data["newly_created"] = json!(true);
        }
        self.tell(&Event { channel: Some(id), ..Event::new(name, Place::Guild(guild), GUILDS, data) });
    }
}
