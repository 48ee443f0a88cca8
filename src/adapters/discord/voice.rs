//! The connection to one voice call: from a server's address and a token to the Opus packets of people, and from the audio of companions to packets.
//!
//! [`Connection`] decides everything and does nothing itself: messages, datagrams and the time go in, [`Effect`]s come out. [`VoiceConnection`] is the
//! task with the sockets that carries the effects out.
//!
//! The documentation that it follows: Discord's "Voice", gateway version 8, and "Opcodes and Status Codes"; the DAVE protocol, version 1.1; RFC 3550
//! (RTP).

mod closing;
mod commands;
mod connection;
mod dave;
mod discovery;
#[cfg(test)]
pub(crate) mod fuzz;
mod hearing;
mod messages;
mod rtp;
mod socket;
mod speaking;
mod stream;
mod task;
#[cfg(test)]
mod tests;
mod transport;

use std::fmt;

use secrecy::SecretString;

pub use self::closing::Ended;
pub use self::commands::{Full, MOST_WAITING};
pub use self::connection::{Connection, Effect};
pub use self::speaking::Frame;
pub use self::task::{Options, VoiceConnection};

/// What is needed to enter a call: the events `VOICE_SERVER_UPDATE` and `VOICE_STATE_UPDATE` of the main gateway tell it.
#[derive(Clone)]
pub struct Server {
    /// The host, and the port if there is one, without a scheme.
    pub endpoint: String,
    /// The token for this call.
    pub token: SecretString,
    /// The id of our own voice state's session.
    pub session_id: SecretString,
    /// The guild.
    pub guild: u64,
    /// The channel.
    pub channel: u64,
    /// Our own user.
    pub user: u64,
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guild, channel, .. } = self;
        formatter.debug_struct("Server").field("guild", guild).field("channel", channel).finish_non_exhaustive()
    }
}

/// What happens in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// People are heard and companions can speak. Comes again after a move to another server, and when the session had to
    /// begin again.
    Connected,
    /// A packet of somebody.
    Heard(Heard),
    /// Somebody has left, as the voice server tells it.
    Left(u64),
    /// Whether what companions say is encrypted end to end. Comes after `Connected`, and when it changes.
    EndToEnd(bool),
    /// How much of a reply was sent: about every 100 ms, when nothing waits any more, when another reply begins, and after a flush.
    Sent(Sent),
    /// The connection to the gateway is lost. People are heard and companions speak on while it is resumed.
    Resuming,
    /// The connection to the gateway is back.
    Resumed,
    /// Nothing follows.
    Ended(Ended),
}

/// A packet of somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The person. With end-to-end encryption it is whose key opened the packet, otherwise whom the voice server named.
    pub user: u64,
    /// The stream of packets to which it belongs. Each has numbers of its own.
    pub line: u64,
    /// The time of capture, in frames of 20 ms. It goes on while nothing is sent, and may jump ahead.
    pub number: u32,
    /// The packet.
    pub opus: Vec<u8>,
}

/// How much of a reply was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The reply.
    pub reply: u64,
    /// The frames of it that have left this machine. What is heard is about 200 ms behind.
    pub frames: u32,
    /// The frames that wait, also those of later replies.
    pub waiting: usize,
}

/// Counts since the connection was opened. None of them ever decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that came, of any kind.
    pub received: u64,
    /// Packets of people that were passed on.
    pub heard: u64,
    /// Datagrams that are no audio, such as answers to keepalives.
    pub not_audio: u64,
    /// Packets whose header, padding or extension is wrong.
    pub malformed: u64,
    /// Packets that the transport's key does not open.
    pub unauthenticated: u64,
    /// Packets that came before.
    pub duplicates: u64,
    /// Packets that are too late, or belong to a stream that their speaker has replaced.
    pub late: u64,
    /// Packets without end-to-end encryption in a call that has it.
    pub plain_refused: u64,
    /// Packets that were kept because no key opened them, or nobody was named as their speaker.
    pub kept: u64,
    /// Of those, the ones that were opened later.
    pub opened_later: u64,
    /// Of those, the ones that never were.
    pub undecryptable: u64,
    /// Packets whose speaker was found by trying the keys.
    pub discovered: u64,
    /// Packets that were dropped because the receiver of the events takes too little.
    pub unread: u64,
    /// Messages of the gateway that cannot be parsed, or are more than fits.
    pub messages_refused: u64,
    /// Messages of the gateway that came again after a resume.
    pub messages_repeated: u64,
    /// Messages about end-to-end encryption that could not be followed.
    pub dave_failures: u64,
    /// Requests to be added to the group again after such a failure.
    pub dave_recoveries: u64,
    /// Sessions that were resumed.
    pub resumes: u64,
    /// Heartbeats that were not acknowledged in time.
    pub missed_acknowledgements: u64,
    /// Frames of companions that were sent.
    pub sent: u64,
    /// Frames of silence that were sent.
    pub silence_sent: u64,
    /// Moments of 20 ms in which audio had to wait for a key, or for the connection.
    pub held: u64,
    /// Frames of companions that were dropped: refused by the codec or the encryption, or more than fits.
    pub frames_dropped: u64,
}
