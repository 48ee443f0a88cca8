//! What a connection counts.

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
    /// Packets that are missing before newer ones.
    pub missing: u64,
    /// Packets that came after newer ones. They were missing before.
    pub overtaken: u64,
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

impl Counts {
    /// Packets that never came.
    pub const fn lost(&self) -> u64 {
        self.missing.saturating_sub(self.overtaken)
    }

    /// Packets of people that came, whatever became of them.
    pub const fn packets(&self) -> u64 {
        self.received.saturating_sub(self.not_audio)
    }
}
