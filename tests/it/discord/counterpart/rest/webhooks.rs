//! Webhooks over REST.
//!
//! <https://docs.discord.com/developers/resources/webhook>

use super::super::messages::image_hash;
use super::super::webhooks::{PER_CHANNEL, avatar_url, name};
use super::super::{Author, Channel, Content, Draft, Id, Kind, Message, Permissions, Refusal, Sender, State, Unknown, Webhook};
use super::messages::find_message;
use super::{Call, Reply, done, ok};

impl State {
    pub fn channel_webhooks(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.webhook_channel(channel)?;
        let webhooks = self.world.webhooks.values().filter(|webhook| webhook.channel == channel);
        ok(webhooks.map(|webhook| webhook.json(&self.world, true)).collect())
    }

    pub fn create_webhook(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.webhook_channel(channel)?;
        let name = name("name", &call.body["name"])?;
        if self.world.webhooks.values().filter(|webhook| webhook.channel == channel).count() >= PER_CHANNEL {
            return Err(Refusal::new(400, 30007, "Maximum number of webhooks reached (15)"));
        }
        let id = self.world.new_id();
        let webhook = Webhook {
            id,
            channel,
            name,
            avatar: call.body["avatar"].as_str().map(image_hash),
            token: format!("{}-{}", image_hash(&id.to_string()), image_hash("token")),
            application: Some(self.world.application.id),
            creator: self.world.bot(),
        };
        let json = webhook.json(&self.world, true);
        self.add_webhook(webhook);
        ok(json)
    }

    /// A channel in which the bot may create webhooks.
    fn webhook_channel(&self, channel: Id) -> Result<&Channel, Refusal> {
        let target_channel = self.world.permitted(channel, Permissions::MANAGE_WEBHOOKS)?;
        self.check_two_factors(target_channel.guild)?;
        if target_channel.guild.is_none() {
            return Err(Refusal::new(403, 50003, "Cannot execute action on a DM channel"));
        }
        if !target_channel.kind.takes_webhooks() {
            return Err(Refusal::new(400, 50024, "Cannot execute action on this channel type"));
        }
        Ok(target_channel)
    }

    fn find_webhook(&self, id: Id) -> Result<&Webhook, Refusal> {
        self.world.webhooks.get(&id).ok_or_else(|| Refusal::unknown(Unknown::Webhook))
    }

    /// A webhook that the bot may manage.
    fn managed_webhook(&self, id: Id) -> Result<&Webhook, Refusal> {
        let webhook = self.find_webhook(id)?;
        let target_channel = self.world.permitted(webhook.channel, Permissions::MANAGE_WEBHOOKS)?;
        self.check_two_factors(target_channel.guild)?;
        Ok(webhook)
    }

    /// <https://docs.discord.com/developers/topics/oauth2#two-factor-authentication-requirement>
    pub(super) fn check_two_factors(&self, guild: Option<Id>) -> Result<(), Refusal> {
        match guild {
            Some(guild) if self.world.without_two_factors.contains(&guild) => {
                Err(Refusal::new(403, 60003, "Two factor is required for this operation"))
            }
            _ => Ok(()),
        }
    }

    /// A webhook by its token. No permission is needed.
    fn webhook_by(&self, call: &Call) -> Result<&Webhook, Refusal> {
        let (id, token) = call.token();
        let webhook = self.find_webhook(id)?;
        if webhook.token == token { Ok(webhook) } else { Err(Refusal::new(401, 50027, "Invalid Webhook Token")) }
    }

    pub fn webhook(&mut self, call: &Call) -> Reply {
        let id = call.id("webhook");
        let webhook = self.find_webhook(id)?;
        if webhook.application != Some(self.world.application.id) {
            self.managed_webhook(id)?;
        }
        ok(webhook.json(&self.world, true))
    }

    pub fn token_webhook(&mut self, call: &Call) -> Reply {
        ok(self.webhook_by(call)?.json(&self.world, false))
    }

    pub fn modify_webhook(&mut self, call: &Call) -> Reply {
        let id = call.id("webhook");
        self.managed_webhook(id)?;
        let renamed = call.body.get("name").map(|given| name("name", given)).transpose()?;
        let moved = call.body.get("channel_id").and_then(Id::read);
        if let Some(channel) = moved {
            self.webhook_channel(channel)?;
        }
        self.change_webhook(id, |webhook| {
            webhook.name = renamed.unwrap_or_else(|| webhook.name.clone());
            webhook.channel = moved.unwrap_or(webhook.channel);
            if let Some(avatar) = call.body.get("avatar") {
                webhook.avatar = avatar.as_str().map(image_hash);
            }
        });
        self.webhook(call)
    }

    pub fn delete_webhook(&mut self, call: &Call) -> Reply {
        let id = call.id("webhook");
        self.managed_webhook(id)?;
        self.remove_webhook(id);
        done()
    }

    pub fn delete_token_webhook(&mut self, call: &Call) -> Reply {
        let id = self.webhook_by(call)?.id;
        self.remove_webhook(id);
        done()
    }

    pub fn execute_webhook(&mut self, call: &Call) -> Reply {
        if self.is_answer(call) {
            return self.follow_up(call);
        }
        let webhook = self.webhook_by(call)?.clone();
        let draft = Draft::read(&call.body, 1 << 2 | 1 << 12)?;
        let username = match &call.body["username"] {
            serde_json::Value::Null => webhook.name.clone(),
            given => name("username", given)?,
        };
        let avatar_url = avatar_url(&call.body["avatar_url"])?;
        let channel = self.webhook_target(&webhook, call)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(webhook.channel), Sender::Webhook, None);
        let author = Author::Webhook { webhook: webhook.id, username, avatar_url, application: webhook.application };
        let new = Message {
            mentions,
            embeds: draft.embeds,
            flags: draft.flags,
            tts: draft.tts,
            ..Message::new(channel, author, &draft.content)
        };
        let message = self.say(new);
        if call.flag("wait") { ok(find_message(&self.world, channel, message)?.json(&self.world, Content::All)) } else { done() }
    }

    /// The channel of a webhook's message: its channel, a thread of it, or a new post of its forum.
    fn webhook_target(&mut self, webhook: &Webhook, call: &Call) -> Result<Id, Refusal> {
        let target_channel =
            self.world.channels.get(&webhook.channel).cloned().ok_or_else(|| Refusal::unknown(Unknown::Channel))?;
        let thread =
            call.query.get("thread_id").map(|id| Id::parse(id).ok_or_else(|| Refusal::unknown(Unknown::Channel))).transpose()?;
        let post = call.body["thread_name"].as_str();
        match (thread, post) {
            (Some(_), Some(_)) => {
                Err(Refusal::new(400, 220_002, "Webhooks posted to forum channels cannot have both a thread_name and thread_id"))
            }
            (None, None) if target_channel.kind == Kind::Forum => {
                Err(Refusal::new(400, 220_001, "Webhooks posted to forum channels must have a thread_name or thread_id"))
            }
            (None, None) => Ok(target_channel.id),
            (None, Some(_)) if target_channel.kind != Kind::Forum => {
                Err(Refusal::new(400, 220_003, "Webhooks can only create threads in forum channels"))
            }
            (None, Some(name)) => {
                let id = self.world.new_id();
                self.add_thread(Channel::new_thread(id, Kind::PublicThread, &target_channel, name, webhook.id));
                Ok(id)
            }
            (Some(thread), None) => {
                let found = self.world.channels.get(&thread).filter(|thread| thread.parent == Some(target_channel.id));
                let found = found.and_then(|thread| thread.thread.as_ref()).ok_or_else(|| Refusal::unknown(Unknown::Channel))?;
                if found.locked {
                    return Err(Refusal::new(400, 160_005, "Thread is locked"));
                }
                Ok(thread)
            }
        }
    }

    /// Whether the token is that of an interaction. Answers to interactions are sent by the application's own webhook.
    fn is_answer(&self, call: &Call) -> bool {
        call.id("webhook") == self.world.application.id
    }

    /// The channel and id of a message that was sent with this token.
    fn sent_by_token(&self, call: &Call) -> Result<(Id, Id), Refusal> {
        if self.is_answer(call) {
            return self.sent_by_interaction(call);
        }
        let webhook = self.webhook_by(call)?;
        let channel = call.query.get("thread_id").and_then(|id| Id::parse(id)).unwrap_or(webhook.channel);
        let message = call.found.id("message").ok_or_else(|| Refusal::unknown(Unknown::Message))?;
        match &find_message(&self.world, channel, message)?.author {
            Author::Webhook { webhook: sender, .. } if *sender == webhook.id => Ok((channel, message)),
            _ => Err(Refusal::unknown(Unknown::Message)),
        }
    }

    pub fn webhook_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = self.sent_by_token(call)?;
        ok(find_message(&self.world, channel, message)?.json(&self.world, Content::All))
    }

    pub fn edit_webhook_message(&mut self, call: &Call) -> Reply {
        let (channel, edited) = self.sent_by_token(call)?;
        if self.is_answer(call) {
            return self.edit_answer(channel, edited, call);
        }
        self.rewrite(channel, edited, call, Sender::Webhook)
    }

    pub fn delete_webhook_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = self.sent_by_token(call)?;
        self.delete(channel, &[message], false);
        done()
    }
}
