//! The address and the credentials of a call.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

/// The address and the credentials of a call, from the main gateway's events `VOICE_SERVER_UPDATE` and `VOICE_STATE_UPDATE`.
#[derive(Clone)]
pub struct Server {
    /// The host, with a port if there is one, without a scheme.
    pub endpoint: String,
    pub token: SecretString,
    /// The session id of our own voice state.
    pub session_id: SecretString,
    pub guild: u64,
    pub channel: u64,
    /// Our own user id.
    pub user: u64,
}

impl Server {
    /// Whether this is the same voice server, with the same token.
    pub fn is_same(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint && self.token.expose_secret() == other.token.expose_secret()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guild, channel, .. } = self;
        formatter.debug_struct("Server").field("guild", guild).field("channel", channel).finish_non_exhaustive()
    }
}
