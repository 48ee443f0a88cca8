//! Limits, durations, and what the documentation leaves to Discord. A test can change every one of them.
//!
//! <https://docs.discord.com/developers/topics/voice-connections>, <https://daveprotocol.com>

use std::time::Duration;

use super::Mode;

#[derive(Clone, Debug)]
pub struct Rules {
    /// The interval that HELLO announces. Not documented; the example is 41.25 s.
    pub heartbeat_interval: Duration,
    /// How late a heartbeat may come. Not documented.
    pub heartbeat_tolerance: Duration,
    /// How long a session without a connection can be resumed and stays in the call. Not documented.
    pub resume_window: Duration,
    /// How many numbered messages a session keeps for RESUME. Not documented.
    pub resume_buffer: usize,
    /// The number of a session's first message. Numbers have 16 bits and wrap.
    pub first_sequence: u16,
    /// Whether RESUMED comes before the replayed messages, as the documentation lists them, or after.
    pub resumed_first: bool,
    /// Whether VOICE_SERVER_UPDATE precedes VOICE_STATE_UPDATE. The documentation promises both and no order.
    pub server_update_first: bool,
    /// Whether CLIENTS CONNECT can precede the session description. The documentation does not say.
    pub clients_before_description: bool,
    /// How many payloads a connection may send in [`Rules::sends_window`]. Not documented.
    pub sends: usize,
    pub sends_window: Duration,
    /// The modes that READY offers. `aead_xchacha20_poly1305_rtpsize` is always among them at Discord.
    pub modes: Vec<Mode>,
    /// Whether a client without end-to-end encryption is refused. Discord does so since March 2026. If not, such a client downgrades the call.
    pub requires_dave: bool,
    /// How long proposals are collected before they are sent. Discord may do so in busy calls.
    pub proposal_delay: Duration,
    /// How long a transition waits for members that are not ready. "Roughly two seconds".
    pub transition_timeout: Duration,
    /// How many packets may come before the first speaking payload, which they can overtake. Discord disconnects a client without one; neither
    /// the number nor the code is documented.
    pub packets_before_speaking: usize,
    /// Whether endpoints have the prefix `ws://`. At Discord they have none, and clients use TLS.
    pub endpoints_with_scheme: bool,
    /// The seed of keys and of the decisions of injected faults.
    pub seed: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_millis(41_250),
            heartbeat_tolerance: Duration::from_secs(20),
            resume_window: Duration::from_secs(30),
            resume_buffer: 1_000,
            first_sequence: 1,
            resumed_first: true,
            server_update_first: false,
            clients_before_description: false,
            sends: 600,
            sends_window: Duration::from_secs(60),
            modes: vec![Mode::Aes256Gcm, Mode::XChaCha20Poly1305],
            requires_dave: true,
            proposal_delay: Duration::ZERO,
            transition_timeout: Duration::from_secs(2),
            packets_before_speaking: 50,
            endpoints_with_scheme: true,
            seed: 1,
        }
    }
}

impl Rules {
    /// The defaults with delays that a test can afford: heartbeats every 200 ms. What waits for a client waits longer, for a busy machine.
    pub fn quick() -> Self {
        Self {
            heartbeat_interval: Duration::from_millis(200),
            heartbeat_tolerance: Duration::from_secs(30),
            transition_timeout: Duration::from_secs(10),
            ..Self::default()
        }
    }
}
