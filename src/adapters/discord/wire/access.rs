//! The objects that determine a member's permissions: a guild's roles, the member's roles, and a channel's overwrites (Discord's documentation,
//! "Guild Resource", "Channels Resource").

use serde::Deserialize;
use twilight_model::channel::ChannelType;
use twilight_model::channel::permission_overwrite::PermissionOverwrite;
use twilight_model::guild::Permissions;

use super::super::snowflake::Snowflake;
use crate::domain::moment::Moment;
use crate::ports::backend::stamp;

/// A guild with its roles.
#[derive(Debug, Deserialize)]
pub struct Server {
    pub id: Snowflake,
    #[serde(default)]
    pub name: String,
    pub owner_id: Snowflake,
    pub roles: Vec<ServerRole>,
}

#[derive(Debug, Deserialize)]
pub struct ServerRole {
    pub id: Snowflake,
    pub permissions: Permissions,
}

/// A member of a guild.
#[derive(Debug, Deserialize)]
pub struct ServerMember {
    #[serde(default)]
    pub roles: Vec<Snowflake>,
    communication_disabled_until: Option<String>,
}

impl ServerMember {
    /// Whether the member is timed out. A timeout removes nearly all permissions.
    pub fn is_timed_out(&self, now: Moment) -> bool {
        let until = self.communication_disabled_until.as_deref().and_then(stamp::from_rfc3339);
        until.is_some_and(|until| now < until)
    }
}

/// A channel of a guild, without threads.
#[derive(Debug, Deserialize)]
pub struct ServerChannel {
    pub id: Snowflake,
    #[serde(rename = "type")]
    pub kind: ChannelType,
    pub name: Option<String>,
    pub permission_overwrites: Option<Vec<PermissionOverwrite>>,
}
