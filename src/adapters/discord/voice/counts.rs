//! The counters of a voice connection.

/// Counters since the connection was opened. They never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams received, of any kind.
    pub received: u64,
    /// Packets of people that were reported.
    pub heard: u64,
    /// Datagrams without audio, such as answers to keepalives.
    pub not_audio: u64,
    /// Packets with an invalid header, padding or extension.
    pub malformed: u64,
    /// Packets that the transport key does not decrypt.
    pub unauthenticated: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Packets that are too late, or belong to a stream that their speaker has replaced.
    pub late: u64,
    /// Gaps: packets that had not arrived when a newer one did.
    pub missing: u64,
    /// Packets that arrived after newer ones. Each was counted in `missing` before.
    pub overtaken: u64,
    /// Packets without end-to-end encryption in a call that has it.
    pub plain_refused: u64,
    /// Packets that were kept because no key decrypts them, or their speaker is unknown.
    pub kept: u64,
    /// Kept packets that were decrypted later.
    pub opened_later: u64,
    /// Kept packets that were dropped undecrypted.
    pub undecryptable: u64,
    /// Packets whose speaker was found by trying all keys.
    pub discovered: u64,
    /// Events that were dropped because the receiver is too slow.
    pub unread: u64,
    /// Messages of the voice gateway that cannot be parsed, or exceed a limit.
    pub messages_refused: u64,
    /// Messages of the voice gateway that were repeated after a resume.
    pub messages_repeated: u64,
    /// Messages about end-to-end encryption that could not be processed.
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
    /// Periods of 20 ms in which audio waited for a key or for the connection.
    pub held: u64,
    /// Frames of companions that were dropped, because the codec or the encryption refused them or the queue was full.
    pub frames_dropped: u64,
}

impl Counts {
    /// Packets that have not arrived.
    pub const fn lost(&self) -> u64 {
        self.missing.saturating_sub(self.overtaken)
    }

    /// Packets of people that arrived, including the dropped ones.
    pub const fn packets(&self) -> u64 {
        self.received.saturating_sub(self.not_audio)
    }
}
