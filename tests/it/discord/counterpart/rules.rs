//! The numbers that Discord documents, and plausible values for those that it does not document.

use std::collections::BTreeMap;
use std::time::Duration;

use super::voice;

/// Limits and durations. The default is what Discord documents. Where it documents nothing, the field says so, and the default is plausible.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The interval that HELLO announces. Not documented; 41.25 s is what is observed.
    pub heartbeat_interval: Duration,
    /// How late a heartbeat may come. Not documented ("there is already tolerance in the interval").
    pub heartbeat_tolerance: Duration,
    /// At most one IDENTIFY per rate limit key is allowed in this time.
    pub identify_window: Duration,
    /// How many rate limit keys there are.
    pub max_concurrency: u64,
    /// How many IDENTIFYs are allowed in [`Rules::session_start_window`].
    pub session_starts: usize,
    pub session_start_window: Duration,
    /// The number that `/gateway/bot` recommends. None: one shard for each 1,000 guilds (not documented).
    pub recommended_shards: Option<u64>,
    /// A session that would have more guilds is refused.
    pub guilds_per_shard: usize,
    /// A large bot's number of shards must be a multiple of this.
    pub shard_multiple: u64,
    /// How long a session without a connection can be resumed. "A few minutes".
    pub resume_window: Duration,
    /// How many events a session keeps for RESUME. Not documented.
    pub resume_buffer: usize,
    /// How many payloads a connection may send in [`Rules::sends_window`].
    pub sends: usize,
    pub sends_window: Duration,
    /// The maximum length of a payload, in bytes.
    pub payload_limit: usize,
    /// The time from op 7 to the close of the connection. "A few seconds".
    pub reconnect_grace: Duration,
    /// How many requests a bot may make in [`Rules::global_window`], over all routes.
    pub global_requests: u32,
    pub global_window: Duration,
    /// How many answers of 401, 403 and 429 in [`Rules::invalid_window`] lead to a ban of the address.
    pub invalid_requests: usize,
    pub invalid_window: Duration,
    /// How long an address stays banned. Not documented.
    pub ban: Duration,
    /// Buckets by the name of their route (`Route::name`). Discord documents none, so that nobody relies on their sizes.
    pub buckets: BTreeMap<&'static str, Bucket>,
    /// The bucket of every route that is not in [`Rules::buckets`].
    pub bucket: Bucket,
    /// How long a nonce is remembered. "The past few minutes".
    pub nonce_window: Duration,
    /// How long an interaction waits for its first answer.
    pub interaction_deadline: Duration,
    /// How long an interaction's token can be used, from the start of the interaction.
    pub interaction_token: Duration,
    /// How many commands may be created per day.
    pub command_creates: usize,
    /// Whether channels that the bot cannot view are obfuscated. Discord does so since 16 November 2026.
    pub obfuscates_channels: bool,
    /// How far Discord's clock is behind this machine's.
    pub behind: Duration,
    /// Those of the voice servers.
    pub voice: voice::Rules,
}

/// How many requests are allowed in a window.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    pub requests: u32,
    pub window: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        let bucket = |requests, seconds| Bucket { requests, window: Duration::from_secs(seconds) };
        Self {
            heartbeat_interval: Duration::from_millis(41_250),
            heartbeat_tolerance: Duration::from_secs(20),
            identify_window: Duration::from_secs(5),
            max_concurrency: 1,
            session_starts: 1_000,
            session_start_window: Duration::from_secs(24 * 3_600),
            recommended_shards: None,
            guilds_per_shard: 2_500,
            shard_multiple: 1,
            resume_window: Duration::from_secs(180),
            resume_buffer: 1_000,
            sends: 120,
            sends_window: Duration::from_secs(60),
            payload_limit: 4_096,
            reconnect_grace: Duration::from_secs(5),
            global_requests: 50,
            global_window: Duration::from_secs(1),
            invalid_requests: 10_000,
            invalid_window: Duration::from_secs(600),
            ban: Duration::from_secs(600),
            buckets: BTreeMap::from([
                ("create_message", bucket(5, 5)),
                ("execute_webhook", bucket(5, 2)),
                ("typing", bucket(5, 5)),
                ("interaction_callback", bucket(1_000, 1)),
            ]),
            bucket: bucket(10, 1),
            nonce_window: Duration::from_secs(180),
            interaction_deadline: Duration::from_secs(3),
            interaction_token: Duration::from_secs(15 * 60),
            command_creates: 200,
            obfuscates_channels: true,
            behind: Duration::ZERO,
            voice: voice::Rules::default(),
        }
    }
}

impl Rules {
    /// The defaults with delays that a test can afford: heartbeats every 200 ms, one IDENTIFY per key every 100 ms.
    pub fn quick() -> Self {
        Self {
            heartbeat_interval: Duration::from_millis(200),
            heartbeat_tolerance: Duration::from_secs(5),
            identify_window: Duration::from_millis(100),
            reconnect_grace: Duration::from_millis(100),
            voice: voice::Rules::quick(),
            ..Self::default()
        }
    }

    /// As [`Rules::quick`], with limits that no test reaches, and Discord's usual heartbeats: for tests that are not about these. At 200 ms,
    /// heartbeats alone exceed Discord's limit of 120 gateway events a minute, and a slow machine misses some.
    pub fn roomy() -> Self {
        let bucket = Bucket { requests: 10_000, window: Duration::from_secs(1) };
        Self {
            buckets: BTreeMap::new(),
            bucket,
            global_requests: 10_000,
            heartbeat_interval: Self::default().heartbeat_interval,
            identify_window: Duration::ZERO,
            ..Self::quick()
        }
    }

    /// How long a connection may be without a heartbeat.
    pub fn heartbeat_timeout(&self) -> Duration {
        self.heartbeat_interval + self.heartbeat_tolerance
    }
}
