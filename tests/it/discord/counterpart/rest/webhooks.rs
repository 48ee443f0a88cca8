//! Webhooks over REST.
//!
//! <https://docs.discord.com/developers/resources/webhook>

use super::super::messages::image_hash;
use super::super::webhooks::{PER_CHANNEL, avatar_url, name};
use super::super::{Author, Content, Draft, Id, Kind, Message, Permissions, Refusal, Sender, State, Unknown, Webhook};
use super::messages::find_message;
use super::{Call, Reply, done, ok};

impl State {
    pub fn channel_webhooks(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.check_webhook_channel(channel)?;
        let webhooks = self.world.webhooks.values().filter(|webhook| webhook.channel == channel);
        ok(webhooks.map(|webhook| webhook.json(&self.world, true)).collect())
    }

    pub fn create_webhook(&mut self, call: &Call) -> Reply {
        let channel = call.id("channel");
        self.check_webhook_channel(channel)?;
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

    /// Checks that the bot may create webhooks in a channel.
    fn check_webhook_channel(&self, channel: Id) -> Result<(), Refusal> {
        let target_channel = self.world.permitted(channel, Permissions::MANAGE_WEBHOOKS)?;
        self.check_two_factors(target_channel.guild)?;
        if target_channel.guild.is_none() {
            return Err(Refusal::new(403, 50003, "Cannot execute action on a DM channel"));
        }
        if !target_channel.kind.takes_webhooks() {
            return Err(Refusal::new(400, 50024, "Cannot execute action on this channel type"));
        }
        Ok(())
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
        let webhook = self.world.webhooks.get(&id).ok_or_else(|| Refusal::unknown(Unknown::Webhook))?;
        if webhook.token == token { Ok(webhook) } else { Err(Refusal::new(401, 50027, "Invalid Webhook Token")) }
    }

    pub fn execute_webhook(&mut self, call: &Call) -> Reply {
        let webhook = self.webhook_by(call)?.clone();
        let draft = Draft::read(&call.body, 1 << 2 | 1 << 12)?;
        let username = match &call.body["username"] {
            serde_json::Value::Null => webhook.name.clone(),
            given => name("username", given)?,
        };
        let avatar_url = avatar_url(&call.body["avatar_url"])?;
        let channel = self.webhook_target(&webhook, call)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(webhook.channel), Sender::Webhook);
        let author = Author::Webhook { webhook: webhook.id, username, avatar_url, application: webhook.application };
        let message = self.say(Message { mentions, flags: draft.flags, ..Message::new(channel, author, &draft.content) });
        if call.flag("wait") { ok(find_message(&self.world, channel, message)?.json(&self.world, Content::All)) } else { done() }
    }

    /// The channel of a webhook's message: its channel, or a thread of it.
    fn webhook_target(&self, webhook: &Webhook, call: &Call) -> Result<Id, Refusal> {
        let unknown = || Refusal::unknown(Unknown::Channel);
        let target_channel = self.world.channels.get(&webhook.channel).ok_or_else(unknown)?;
        let thread = call.query.get("thread_id").map(|id| Id::parse(id).ok_or_else(unknown)).transpose()?;
        match thread {
            None if target_channel.kind == Kind::Forum => {
                Err(Refusal::new(400, 220_001, "Webhooks posted to forum channels must have a thread_name or thread_id"))
            }
            None => Ok(target_channel.id),
            Some(thread) => {
                let found = self.world.channels.get(&thread).filter(|thread| thread.parent == Some(target_channel.id));
                let found = found.and_then(|thread| thread.thread.as_ref()).ok_or_else(unknown)?;
                if found.locked { Err(Refusal::new(400, 160_005, "Thread is locked")) } else { Ok(thread) }
            }
        }
    }

    /// The channel and id of a message that was sent with this token.
    fn sent_by_token(&self, call: &Call) -> Result<(Id, Id), Refusal> {
        let webhook = self.webhook_by(call)?;
        let channel = call.query.get("thread_id").and_then(|id| Id::parse(id)).unwrap_or(webhook.channel);
        let message = call.id("message");
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
        let (channel, message) = self.sent_by_token(call)?;
        self.edit_by(call, Sender::Webhook, channel, message)?;
        self.webhook_message(call)
    }

    pub fn delete_webhook_message(&mut self, call: &Call) -> Reply {
        let (channel, message) = self.sent_by_token(call)?;
        self.delete(channel, &[message], false);
        done()
    }
}
