//! Decides how to continue after the voice gateway closed a connection (Discord's documentation, "Voice Close Event Codes").

/// The close code for a connection that we will resume. It is none of the codes that end a session.
pub const CLOSE_TO_RESUME: u16 = 4900;
/// The close code for leaving.
pub const CLOSE_TO_LEAVE: u16 = 1000;

/// Why a connection ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The bot left.
    #[error("the bot left")]
    Left,
    /// 4014: the bot was disconnected or moved, or the main gateway's session has ended. The main gateway reports which.
    #[error("4014: the bot was disconnected or moved")]
    Disconnected,
    /// 4022: the call was ended for all participants, for example because the channel was deleted, or its server has changed.
    #[error("4022: the call was ended")]
    CallTerminated,
    /// 4006 and 4009: the session is invalid. A new session needs a new voice state.
    #[error("4006 or 4009: the session is invalid")]
    SessionInvalid,
    /// 4004: the token is wrong. A new token needs a new voice state.
    #[error("4004: the token is wrong")]
    AuthenticationFailed,
    /// 4011: the voice server does not know the guild. Another server needs a new voice state.
    #[error("4011: the voice server does not know the guild")]
    ServerNotFound,
    /// 4017: the call demands a version of end-to-end encryption that we do not support.
    #[error("4017: the call demands a version of end-to-end encryption that this server does not have")]
    DaveRequired,
    /// 4021: the rate limit was exceeded. Wait before the next attempt.
    #[error("4021: too much was sent")]
    RateLimited,
    /// The server offers no encryption mode that we support, or refused the one that we chose (4016).
    #[error("the voice server has no mode of encryption that this server has")]
    NoMode,
    /// The server refuses our messages repeatedly, with this code.
    #[error("the voice server refuses what is sent, with code {0}")]
    Refused(u16),
    /// The server could not be reached in repeated attempts. Another attempt needs a new voice state.
    #[error("the voice server cannot be reached; check that UDP and the WebSocket leave this network")]
    Unreachable,
}

impl Ended {
    /// Whether the call may continue on another voice server. If a connection breaks while its server shuts down, that server refuses to resume the
    /// session.
    pub const fn may_continue_on_another_server(self) -> bool {
        !matches!(self, Self::Left | Self::RateLimited | Self::DaveRequired | Self::NoMode)
    }
}

/// How to continue after a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterClose {
    /// Resume the session.
    Resume,
    /// Begin a new session with the same token, because the server refused a message of ours with this code.
    IdentifyAgain(u16),
    /// End for good.
    End(Ended),
}

/// Decides how to continue. `None`: the connection broke without a close code.
pub fn after_close(code: Option<u16>) -> AfterClose {
    match code {
        // Unknown opcode, failed to decode, not authenticated, already authenticated, unknown protocol, bad request.
        Some(code @ (4001 | 4002 | 4003 | 4005 | 4012 | 4020)) => AfterClose::IdentifyAgain(code),
        Some(4004) => AfterClose::End(Ended::AuthenticationFailed),
        Some(4006 | 4009) => AfterClose::End(Ended::SessionInvalid),
        Some(4011) => AfterClose::End(Ended::ServerNotFound),
        Some(4014) => AfterClose::End(Ended::Disconnected),
        Some(4016) => AfterClose::End(Ended::NoMode),
        Some(4017) => AfterClose::End(Ended::DaveRequired),
        Some(4021) => AfterClose::End(Ended::RateLimited),
        Some(4022) => AfterClose::End(Ended::CallTerminated),
        // Includes 4015, "voice server crashed".
        _ => AfterClose::Resume,
    }
}
