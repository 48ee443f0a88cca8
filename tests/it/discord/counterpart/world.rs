//! The objects of one Discord: an application, users, guilds, channels, messages, webhooks, commands and interactions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::id::Ids;
use super::interactions::components_in;
use super::moment::http_date;
use super::{
    Application, Channel, Command, Content, Guild, Id, Intents, Interaction, Kind, Message, Permissions, Refusal, Unknown, User,
    VoiceState, Webhook, iso8601, now_ms, permissions,
};

pub struct World {
    pub application: Application,
    pub users: BTreeMap<Id, User>,
    pub guilds: BTreeMap<Id, Guild>,
    pub channels: BTreeMap<Id, Channel>,
    messages: BTreeMap<Id, BTreeMap<Id, Message>>,
    pub webhooks: BTreeMap<Id, Webhook>,
    pub commands: Vec<Command>,
    /// Guilds that invited the bot without the scope `applications.commands`.
    pub without_commands: BTreeSet<Id>,
    /// Guilds that require two-factor authentication for moderators, which the application's owner does not have.
    pub without_two_factors: BTreeSet<Id>,
    pub interactions: BTreeMap<Id, Interaction>,
    /// Who is in a voice channel, by guild and user.
    pub voice_states: BTreeMap<(Id, Id), VoiceState>,
    /// The languages of people and guilds. Without an entry: English.
    pub languages: BTreeMap<Id, &'static str>,
    /// People who accept no direct messages.
    pub closed_directs: BTreeSet<Id>,
    ids: Ids,
    /// How far Discord's clock is behind this machine's.
    behind: Duration,
}

impl World {
    /// The language of a person or a guild.
    pub fn language(&self, of: Id) -> &'static str {
        self.languages.get(&of).copied().unwrap_or("en-US")
    }

    /// A world with only an application, its bot and its owner.
    pub fn new(name: &str, token: &str, behind: Duration) -> Self {
        let mut ids = Ids::default();
        let now = now_ms() - behind.as_millis() as u64;
        let (bot, owner) = (ids.next(now), ids.next(now));
        let user = |id, name: &str, bot| User { id, name: name.to_owned(), global_name: None, bot };
        let application = Application {
            id: bot,
            name: name.to_owned(),
            token: token.to_owned(),
            privileged: Intents::MESSAGE_CONTENT,
            owner,
            public: true,
            code_grant: false,
            interactions_url: None,
            description: "A bot of the tests".to_owned(),
        };
        Self {
            application,
            users: BTreeMap::from([(bot, user(bot, name, true)), (owner, user(owner, "owner", false))]),
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            messages: BTreeMap::new(),
            webhooks: BTreeMap::new(),
            commands: Vec::new(),
            without_commands: BTreeSet::new(),
            without_two_factors: BTreeSet::new(),
            interactions: BTreeMap::new(),
            voice_states: BTreeMap::new(),
            languages: BTreeMap::new(),
            closed_directs: BTreeSet::new(),
            ids,
            behind,
        }
    }

    /// The bot's user. Its id is the application's, as for every application made since 2016.
    pub fn bot(&self) -> Id {
        self.application.id
    }

    pub fn new_id(&mut self) -> Id {
        self.ids.next(self.now_ms())
    }

    /// The time on Discord's clock, in milliseconds since 1970.
    fn now_ms(&self) -> u64 {
        now_ms() - self.behind.as_millis() as u64
    }

    /// The time on Discord's clock, in the format of the header `Date`.
    pub fn date(&self) -> String {
        http_date(self.now_ms())
    }

    pub fn new_guild_id(&mut self) -> Id {
        self.ids.next_guild()
    }

    /// Guilds that the bot is in.
    pub fn joined(&self) -> impl Iterator<Item = &Guild> {
        self.guilds.values().filter(|guild| guild.members.contains_key(&self.bot()))
    }

    /// A guild that the bot is in.
    ///
    /// # Errors
    ///
    /// Unknown Guild, or Missing Access when the bot is not in it.
    pub fn joined_guild(&self, id: Id) -> Result<&Guild, Refusal> {
        let guild = self.guilds.get(&id).ok_or_else(|| Refusal::unknown(Unknown::Guild))?;
        if !guild.members.contains_key(&self.bot()) {
            return Err(Refusal::missing_access());
        }
        Ok(guild)
    }

    pub fn guild_of(&self, channel: Id) -> Option<&Guild> {
        self.guilds.get(&self.channels.get(&channel)?.guild?)
    }

    /// The channel that has the overwrites, webhooks and threads: a thread's parent, otherwise the channel itself.
    pub fn root_channel<'a>(&'a self, channel: &'a Channel) -> &'a Channel {
        let parent = channel.parent.filter(|_| channel.kind.is_thread());
        parent.and_then(|parent| self.channels.get(&parent)).unwrap_or(channel)
    }

    /// A user's permissions in a channel. In direct messages both participants have the default ones.
    pub fn permissions(&self, channel: &Channel, user: Id) -> Permissions {
        let Some(guild) = channel.guild.and_then(|guild| self.guilds.get(&guild)) else {
            let takes_part = channel.recipient == Some(user) || user == self.bot();
            return if takes_part { permissions::USUAL } else { Permissions::empty() };
        };
        permissions::in_channel(guild, self.root_channel(channel), channel.kind.is_thread(), user)
    }

    pub fn may_view(&self, channel: &Channel, user: Id) -> bool {
        if channel.kind == Kind::Category {
            let mut children = self.channels.values().filter(|child| child.parent == Some(channel.id));
            return self.permissions(channel, user).contains(Permissions::VIEW_CHANNEL)
                || children.any(|child| self.may_view(child, user));
        }
        self.permissions(channel, user).contains(Permissions::VIEW_CHANNEL)
    }

    /// A channel that the bot may view and in which it has these permissions.
    ///
    /// # Errors
    ///
    /// Unknown Channel, Missing Access without the permission to view it, Missing Permissions without another.
    pub fn permitted(&self, id: Id, needed: Permissions) -> Result<&Channel, Refusal> {
        let channel = self.channels.get(&id).ok_or_else(|| Refusal::unknown(Unknown::Channel))?;
        let permissions = self.permissions(channel, self.bot());
        let voice = channel.kind.has_call() && !permissions.contains(Permissions::CONNECT);
        if !permissions.contains(Permissions::VIEW_CHANNEL) || voice {
            return Err(Refusal::missing_access());
        }
        if !permissions.contains(needed) {
            return Err(Refusal::missing_permissions());
        }
        Ok(channel)
    }

    /// The channel for direct messages with this person. It is created if there is none yet.
    pub fn open_direct(&mut self, person: Id) -> Id {
        let existing = self.channels.values().find(|channel| channel.recipient == Some(person)).map(|channel| channel.id);
        existing.unwrap_or_else(|| {
            let id = self.new_id();
            self.channels.insert(id, Channel { recipient: Some(person), ..Channel::new(id, Kind::Direct, None, "") });
            id
        })
    }

    pub fn message(&self, channel: Id, id: Id) -> Option<&Message> {
        self.messages.get(&channel)?.get(&id)
    }

    pub fn message_mut(&mut self, channel: Id, id: Id) -> Option<&mut Message> {
        self.messages.get_mut(&channel)?.get_mut(&id)
    }

    /// The messages of a channel that everybody sees, oldest first.
    pub fn messages(&self, channel: Id) -> impl DoubleEndedIterator<Item = &Message> {
        self.messages.get(&channel).into_iter().flat_map(BTreeMap::values).filter(|message| !message.is_ephemeral())
    }

    /// The newest message with this component.
    pub fn message_with(&self, channel: Id, component: &str) -> Option<&Message> {
        let has_it = |message: &&Message| components_in(&message.components).any(|found| found["custom_id"] == component);
        self.messages.get(&channel)?.values().rev().find(has_it)
    }

    pub fn put_message(&mut self, message: Message) {
        if let Some(channel) = self.channels.get_mut(&message.channel).filter(|_| !message.is_ephemeral()) {
            channel.last_message = Some(message.id);
            if let Some(thread) = &mut channel.thread {
                thread.messages += 1;
                thread.total_sent += 1;
            }
        }
        self.messages.entry(message.channel).or_default().insert(message.id, message);
    }

    pub fn remove_message(&mut self, channel: Id, id: Id) -> Option<Message> {
        let removed = self.messages.get_mut(&channel)?.remove(&id)?;
        if let Some(thread) = self.channels.get_mut(&channel).and_then(|channel| channel.thread.as_mut()) {
            thread.messages = thread.messages.saturating_sub(1);
        }
        Some(removed)
    }

    /// Deletes a channel with its threads, messages and webhooks. Returns the channel and its threads.
    pub fn remove_channel(&mut self, id: Id) -> (Option<Channel>, Vec<Channel>) {
        let threads: Vec<Id> = self
            .channels
            .values()
            .filter(|channel| channel.parent == Some(id) && channel.kind.is_thread())
            .map(|channel| channel.id)
            .collect();
        let threads = threads.into_iter().filter_map(|thread| self.channels.remove(&thread)).collect();
        self.webhooks.retain(|_, webhook| webhook.channel != id);
        self.messages.remove(&id);
        (self.channels.remove(&id), threads)
    }

    /// The content that the application may read over REST. It depends on the portal, not on the intents of a session.
    ///
    /// <https://docs.discord.com/developers/events/gateway#http-restrictions>
    pub fn rest_content(&self) -> Content {
        if self.application.privileged.contains(Intents::MESSAGE_CONTENT) { Content::All } else { Content::Own }
    }

    /// Channels of a guild without its threads.
    pub fn channels_of(&self, guild: Id) -> impl Iterator<Item = &Channel> {
        self.channels.values().filter(move |channel| channel.guild == Some(guild) && !channel.kind.is_thread())
    }

    /// Threads of a guild that are not archived and that the bot may view.
    pub fn active_threads(&self, guild: Id) -> impl Iterator<Item = &Channel> {
        let active = |channel: &&Channel| channel.thread.as_ref().is_some_and(|thread| !thread.archived);
        let threads = self.channels.values().filter(move |channel| channel.guild == Some(guild)).filter(active);
        threads.filter(|thread| self.may_view(thread, self.bot()))
    }

    /// Threads, with the bot's membership in each.
    pub fn threads_json<'a>(&'a self, threads: impl Iterator<Item = &'a Channel>) -> Value {
        let threads: Vec<&Channel> = threads.collect();
        let members = threads.iter().filter_map(|thread| thread.thread.as_ref()?.member_json(thread.id, self.bot()));
        json!({
            "members": members.collect::<Vec<_>>(),
            "threads": threads.iter().map(|thread| self.channel_json(thread)).collect::<Vec<_>>(),
        })
    }

    /// A channel as the gateway shows it to the bot.
    pub fn gateway_channel(&self, channel: &Channel, obfuscates: bool) -> Value {
        if obfuscates && !self.may_view(channel, self.bot()) { channel.obfuscated_json() } else { self.channel_json(channel) }
    }

    /// A channel as the bot sees it. A thread includes the bot's membership.
    pub fn channel_json(&self, channel: &Channel) -> Value {
        if let Some(recipient) = channel.recipient {
            return channel.direct_json(&self.users.get(&recipient).map_or(Value::Null, User::json));
        }
        let mut json = channel.json();
        if let Some(member) = channel.thread.as_ref().and_then(|thread| thread.member_json(channel.id, self.bot())) {
            json["member"] = member;
        }
        json
    }

    /// The data of GUILD_CREATE. Without the intent for presences, the only listed members are the bot and those in voice channels.
    ///
    /// <https://docs.discord.com/developers/events/gateway-events#guild-create>
    pub fn guild_create(&self, guild: &Guild, obfuscates: bool) -> Value {
        let bot = self.bot();
        let own_member = guild.members.get(&bot);
        let mut json = guild.json();
        json["joined_at"] = json!(own_member.map(|member| iso8601(member.joined_ms)));
        json["large"] = json!(guild.members.len() > 50);
        json["member_count"] = json!(guild.members.len());
        let in_voice = self.voice_states_of(guild.id).map(|state| state.user).filter(|user| *user != bot);
        let listed = [bot].into_iter().chain(in_voice);
        let members = listed.filter_map(|id| Some(guild.members.get(&id)?.json(self.users.get(&id)?)));
        json["members"] = members.collect();
        json["channels"] = self.channels_of(guild.id).map(|channel| self.gateway_channel(channel, obfuscates)).collect();
        // Here a membership contains neither the user nor the thread.
        let thread_json = |thread: &Channel| {
            let mut json = self.channel_json(thread);
            if let Some(member) = json["member"].as_object_mut() {
                member.retain(|field, _| field != "id" && field != "user_id");
            }
            json
        };
        json["threads"] = self.active_threads(guild.id).map(thread_json).collect();
        json["voice_states"] = self.voice_states_of(guild.id).map(VoiceState::partial_json).collect();
        for empty in ["presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds"] {
            json[empty] = json!([]);
        }
        json
    }
}
