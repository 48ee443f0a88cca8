//! Channels, threads and direct messages, and their JSON.
//!
//! <https://docs.discord.com/developers/resources/channel>, <https://docs.discord.com/developers/topics/threads>

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Id, Permissions, iso8601};

/// <https://docs.discord.com/developers/resources/channel#channel-object-channel-types>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text = 0,
    Direct = 1,
    Voice = 2,
    Category = 4,
    Announcement = 5,
    PublicThread = 11,
    Stage = 13,
    Forum = 15,
}

impl Kind {
    pub fn is_thread(self) -> bool {
        self == Self::PublicThread
    }

    pub fn takes_messages(self) -> bool {
        !matches!(self, Self::Category | Self::Forum)
    }

    /// Whether the channel has a call.
    pub fn has_call(self) -> bool {
        matches!(self, Self::Voice | Self::Stage)
    }

    /// Whether the channel can have webhooks.
    pub fn takes_webhooks(self) -> bool {
        matches!(self, Self::Text | Self::Announcement | Self::Voice | Self::Stage | Self::Forum)
    }
}

/// The permissions that a channel allows or denies to a role or a member. The guild's id stands for everyone.
#[derive(Clone, Debug)]
pub struct Overwrite {
    pub id: Id,
    pub member: bool,
    pub allow: Permissions,
    pub deny: Permissions,
}

impl Overwrite {
    fn json(&self) -> Value {
        json!({ "id": self.id, "type": i32::from(self.member), "allow": self.allow, "deny": self.deny })
    }
}

#[derive(Clone, Debug)]
pub struct Channel {
    pub id: Id,
    pub kind: Kind,
    /// None for direct messages.
    pub guild: Option<Id>,
    pub name: String,
    /// A category; of a thread, the channel in which it was started.
    pub parent: Option<Id>,
    pub position: usize,
    pub overwrites: Vec<Overwrite>,
    /// The newest message; of a forum, the newest thread. The id stays when that message is deleted.
    pub last_message: Option<Id>,
    pub thread: Option<Thread>,
    /// The person in a channel of direct messages.
    pub recipient: Option<Id>,
    /// How many users can be in a voice channel. 0: no limit.
    pub user_limit: usize,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub owner: Id,
    pub archived: bool,
    pub locked: bool,
    pub archive_changed_ms: u64,
    pub members: BTreeSet<Id>,
    pub messages: u64,
    pub total_sent: u64,
}

impl Channel {
    pub fn new(id: Id, kind: Kind, guild: Option<Id>, name: &str) -> Self {
        Self {
            id,
            kind,
            guild,
            name: name.to_owned(),
            parent: None,
            position: 0,
            overwrites: Vec::new(),
            last_message: None,
            thread: None,
            recipient: None,
            user_limit: 0,
        }
    }

    pub fn new_thread(id: Id, parent: &Self, name: &str, owner: Id) -> Self {
        let thread = Thread {
            owner,
            archived: false,
            locked: false,
            archive_changed_ms: id.made_at_ms(),
            members: BTreeSet::from([owner]),
            messages: 0,
            total_sent: 0,
        };
        Self { parent: Some(parent.id), thread: Some(thread), ..Self::new(id, Kind::PublicThread, parent.guild, name) }
    }

    /// The channel for viewers with the permission.
    pub fn json(&self) -> Value {
        let mut json = json!({
            "id": self.id,
            "type": self.kind as u8,
            "guild_id": self.guild,
            "name": self.name,
            "parent_id": self.parent,
            "last_message_id": self.last_message,
            "flags": 0,
        });
        match &self.thread {
            Some(thread) => {
                json["owner_id"] = json!(thread.owner);
                json["message_count"] = json!(thread.messages);
                json["total_message_sent"] = json!(thread.total_sent);
                json["member_count"] = json!(thread.members.len().min(50));
                json["rate_limit_per_user"] = json!(0);
                json["thread_metadata"] = thread.json(self);
            }
            None => {
                json["position"] = json!(self.position);
                json["permission_overwrites"] = self.overwrites.iter().map(Overwrite::json).collect();
                json["topic"] = Value::Null;
                json["nsfw"] = json!(false);
                json["rate_limit_per_user"] = json!(0);
            }
        }
        if self.kind.has_call() {
            json["bitrate"] = json!(64_000);
            json["user_limit"] = json!(self.user_limit);
            json["rtc_region"] = Value::Null;
        }
        json
    }

    /// The channel as the gateway shows it to a bot that may not view it.
    ///
    /// <https://docs.discord.com/developers/resources/channel#channel-object-obfuscated-channels>
    pub fn obfuscated_json(&self) -> Value {
        let mut json = self.json();
        json["name"] = json!("___hidden___");
        json["last_message_id"] = Value::Null;
        json["flags"] = json!(1 << 17);
        json
    }

    /// The channel of direct messages with this person.
    pub fn direct_json(&self, recipient: &Value) -> Value {
        json!({
            "id": self.id,
            "type": self.kind as u8,
            "last_message_id": self.last_message,
            "recipients": [recipient],
            "flags": 0,
        })
    }

    /// The data of THREAD_DELETE.
    pub fn deleted_thread_json(&self) -> Value {
        json!({ "id": self.id, "guild_id": self.guild, "parent_id": self.parent, "type": self.kind as u8 })
    }
}

impl Thread {
    fn json(&self, channel: &Channel) -> Value {
        json!({
            "archived": self.archived,
            "archive_timestamp": iso8601(self.archive_changed_ms),
            "auto_archive_duration": 4_320,
            "locked": self.locked,
            "create_timestamp": iso8601(channel.id.made_at_ms()),
        })
    }

    /// The membership of a user, or none if the user is not a member of the thread.
    pub fn member_json(&self, thread: Id, user: Id) -> Option<Value> {
        let joined = iso8601(self.archive_changed_ms);
        self.members.contains(&user).then(|| json!({ "id": thread, "user_id": user, "join_timestamp": joined, "flags": 0 }))
    }
}
