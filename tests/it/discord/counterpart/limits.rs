//! Rate limits.
//!
//! <https://docs.discord.com/developers/topics/rate-limits>

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::{Bucket, Rules, Scope, now_ms};

/// The counters of all limits.
#[derive(Default)]
pub struct Limits {
    windows: BTreeMap<(&'static str, String), Window>,
    global: BTreeMap<String, Window>,
    invalid: VecDeque<Instant>,
    banned_until: Option<Instant>,
}

struct Window {
    began: Instant,
    used: u32,
}

/// The state of a bucket after a request.
#[derive(Clone, Debug)]
pub struct BucketState {
    pub bucket: &'static str,
    pub limit: u32,
    pub remaining: u32,
    pub reset_after: Duration,
}

/// A request over a limit.
#[derive(Clone, Debug)]
pub struct Exceeded {
    pub scope: Scope,
    pub retry_after: Duration,
}

impl Window {
    /// Counts a request. If the window is full, returns the time until it ends.
    fn take(&mut self, requests: u32, length: Duration) -> Result<(), Duration> {
        if self.began.elapsed() >= length {
            *self = Self::new();
        }
        if self.used >= requests {
            return Err(length.saturating_sub(self.began.elapsed()));
        }
        self.used += 1;
        Ok(())
    }

    fn new() -> Self {
        Self { began: Instant::now(), used: 0 }
    }
}

impl Limits {
    /// Counts a request of a bot, or of an address without a token, towards the global limit.
    ///
    /// # Errors
    ///
    /// The request is over the limit.
    pub fn global(&mut self, client: &str, rules: &Rules) -> Result<(), Exceeded> {
        let window = self.global.entry(client.to_owned()).or_insert_with(Window::new);
        let taken = window.take(rules.global_requests, rules.global_window);
        taken.map_err(|retry_after| Exceeded { scope: Scope::Global, retry_after })
    }

    /// Counts a request in the bucket of its route and its top-level resource.
    pub fn bucket(&mut self, route: &'static str, major: &str, rules: &Rules) -> (BucketState, Result<(), Exceeded>) {
        let Bucket { requests, window: length } = *rules.buckets.get(route).unwrap_or(&rules.bucket);
        let window = self.windows.entry((route, major.to_owned())).or_insert_with(Window::new);
        let taken = window.take(requests, length);
        let reset_after = length.saturating_sub(window.began.elapsed());
        let state = BucketState { bucket: route, limit: requests, remaining: requests - window.used, reset_after };
        (state, taken.map_err(|retry_after| Exceeded { scope: Scope::User, retry_after }))
    }

    /// How long the address is still banned.
    pub fn banned(&self) -> Option<Duration> {
        let left = self.banned_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Counts an answer of 401, 403 or 429. Returns whether the address is banned because of it.
    pub fn invalid(&mut self, rules: &Rules) -> bool {
        self.invalid.retain(|at| at.elapsed() < rules.invalid_window);
        self.invalid.push_back(Instant::now());
        let banned = self.invalid.len() >= rules.invalid_requests;
        if banned {
            self.invalid.clear();
            self.banned_until = Some(Instant::now() + rules.ban);
        }
        banned
    }

    /// How many answers were invalid within the window.
    pub fn invalid_requests(&self) -> usize {
        self.invalid.len()
    }
}

impl BucketState {
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let reset_after = self.reset_after.as_secs_f64();
        let reset = now_ms() as f64 / 1_000.0 + reset_after;
        vec![
            ("x-ratelimit-limit", self.limit.to_string()),
            ("x-ratelimit-remaining", self.remaining.to_string()),
            ("x-ratelimit-reset", format!("{reset:.3}")),
            ("x-ratelimit-reset-after", format!("{reset_after:.3}")),
            ("x-ratelimit-bucket", super::messages::image_hash(self.bucket)),
        ]
    }
}
