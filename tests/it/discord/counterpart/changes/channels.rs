//! Channels, threads and webhooks are created, changed and deleted.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::{Channel, Event, Id, Intents, Place, State, Thread, Webhook, now_ms};

impl State {
    pub fn add_channel(&mut self, channel: Channel) {
        let id = channel.id;
        self.world.channels.insert(id, channel);
        self.send_channel_event("CHANNEL_CREATE", id);
    }

    pub fn change_channel(&mut self, id: Id, change: impl FnOnce(&mut Channel)) {
        let Some(guild) = self.world.channels.get(&id).and_then(|channel| channel.guild) else { return };
        self.changing_access(guild, Some(id), |state| {
            if let Some(channel) = state.world.channels.get_mut(&id) {
                change(channel);
            }
        });
    }

    /// Makes a change that may affect which channels the bot can view in a guild. Sends an update for every channel that the bot gains or
    /// loses, and for the changed channel in any case. The threads of gained channels are sent with them.
    pub fn changing_access(&mut self, guild: Id, changed: Option<Id>, change: impl FnOnce(&mut Self)) {
        let viewable = |state: &Self| -> BTreeSet<Id> {
            let channels = state.world.channels_of(guild).filter(|channel| state.world.may_view(channel, state.world.bot()));
            channels.map(|channel| channel.id).collect()
        };
        let before = viewable(self);
        change(self);
        let after = viewable(self);
        for id in before.symmetric_difference(&after).copied().chain(changed).collect::<BTreeSet<Id>>() {
            self.send_channel_event("CHANNEL_UPDATE", id);
        }
        let gained: Vec<Id> = after.difference(&before).copied().collect();
        if gained.is_empty() {
            return;
        }
        let threads = self.world.active_threads(guild);
        let gained_threads = threads.filter(|thread| thread.parent.is_some_and(|parent| gained.contains(&parent)));
        let mut data = self.world.threads_json(gained_threads);
        data["guild_id"] = json!(guild);
        data["channel_ids"] = json!(gained);
        self.send_event(&Event::new("THREAD_LIST_SYNC", Place::Guild(guild), Intents::GUILDS, data));
    }

    /// Deletes a channel or a thread with everything in it.
    pub fn remove_channel(&mut self, id: Id) {
        let Some(channel) = self.world.channels.get(&id).cloned() else { return };
        let Some(guild) = channel.guild else { return };
        let viewed = self.world.may_view(&channel, self.world.bot());
        let data = self.world.gateway_channel(&channel, self.rules.obfuscates_channels);
        self.end_voice(id);
        self.world.remove_channel(id);
        let event = if channel.kind.is_thread() {
            if !viewed {
                return;
            }
            Event::new("THREAD_DELETE", Place::Guild(guild), Intents::GUILDS, channel.deleted_thread_json())
        } else {
            Event::new("CHANNEL_DELETE", Place::Guild(guild), Intents::GUILDS, data)
        };
        self.send_event(&event);
    }

    /// Adds a thread. A forum's last message is its newest thread.
    pub fn add_thread(&mut self, thread: Channel) {
        let (id, parent) = (thread.id, thread.parent);
        self.world.channels.insert(id, thread);
        let forum = parent.and_then(|parent| self.world.channels.get_mut(&parent));
        if let Some(forum) = forum.filter(|forum| !forum.kind.takes_messages()) {
            forum.last_message = Some(id);
        }
        self.send_thread_event("THREAD_CREATE", id, true);
    }

    pub fn change_thread(&mut self, id: Id, change: impl FnOnce(&mut Thread)) {
        let Some(thread) = self.world.channels.get_mut(&id).and_then(|channel| channel.thread.as_mut()) else { return };
        let archived = thread.archived;
        change(thread);
        if thread.archived != archived {
            thread.archive_changed_ms = now_ms();
        }
        self.send_thread_event("THREAD_UPDATE", id, false);
    }

    pub fn add_webhook(&mut self, webhook: Webhook) {
        let channel = webhook.channel;
        self.world.webhooks.insert(webhook.id, webhook);
        self.send_webhooks_event(channel);
    }

    /// Changes a webhook, possibly its channel.
    pub fn change_webhook(&mut self, id: Id, change: impl FnOnce(&mut Webhook)) {
        let Some(webhook) = self.world.webhooks.get_mut(&id) else { return };
        let before = webhook.channel;
        change(webhook);
        let after = webhook.channel;
        for channel in BTreeSet::from([before, after]) {
            self.send_webhooks_event(channel);
        }
    }

    pub fn remove_webhook(&mut self, id: Id) {
        if let Some(webhook) = self.world.webhooks.remove(&id) {
            self.send_webhooks_event(webhook.channel);
        }
    }

    fn send_webhooks_event(&mut self, channel: Id) {
        let Some(guild) = self.world.guild_of(channel).map(|guild| guild.id) else { return };
        let data = json!({ "guild_id": guild, "channel_id": channel });
        self.send_event(&Event::new("WEBHOOKS_UPDATE", Place::Guild(guild), Intents::GUILD_WEBHOOKS, data));
    }

    fn send_channel_event(&mut self, name: &'static str, id: Id) {
        let channel = &self.world.channels[&id];
        let Some(guild) = channel.guild else { return };
        let data = self.world.gateway_channel(channel, self.rules.obfuscates_channels);
        self.send_event(&Event::new(name, Place::Guild(guild), Intents::GUILDS, data));
    }

    /// The gateway sends events only of threads that the bot may view.
    fn send_thread_event(&mut self, name: &'static str, id: Id, newly_created: bool) {
        let channel = &self.world.channels[&id];
        let Some(guild) = channel.guild.filter(|_| self.world.may_view(channel, self.world.bot())) else { return };
        let mut data = self.world.channel_json(channel);
        if newly_created {
            data["newly_created"] = json!(true);
        }
        self.send_event(&Event::new(name, Place::Guild(guild), Intents::GUILDS, data));
    }
}
