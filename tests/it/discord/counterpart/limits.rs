//! How many requests are too many.
//!
//! <https://docs.discord.com/developers/topics/rate-limits>

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::faults::Scope;
use super::moment::now_ms;
use super::rules::{Bucket, Rules};

/// What is counted.
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

/// Where a request stands in its bucket.
#[derive(Clone, Debug)]
pub struct Standing {
    pub bucket: &'static str,
    pub limit: u32,
    pub remaining: u32,
    pub reset_after: Duration,
}

/// A request that is one too many.
#[derive(Clone, Debug)]
pub struct Exceeded {
    pub scope: Scope,
    pub retry_after: Duration,
}

impl Window {
    /// Takes a place in it. If there is none, says when there is.
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
    /// Counts a request of a bot, or of an address without one, whatever the route.
    ///
    /// # Errors
    ///
    /// One too many.
    pub fn global(&mut self, who: &str, rules: &Rules) -> Result<(), Exceeded> {
        let window = self.global.entry(who.to_owned()).or_insert_with(Window::new);
        let taken = window.take(rules.global_requests, rules.global_window);
        taken.map_err(|retry_after| Exceeded { scope: Scope::Global, retry_after })
    }

    /// Counts a request in the bucket of its route and its top-level resource.
    pub fn bucket(&mut self, route: &'static str, major: &str, rules: &Rules) -> (Standing, Result<(), Exceeded>) {
        let Bucket { requests, window: length } = *rules.buckets.get(route).unwrap_or(&rules.bucket);
        let window = self.windows.entry((route, major.to_owned())).or_insert_with(Window::new);
        let taken = window.take(requests, length);
        let reset_after = length.saturating_sub(window.began.elapsed());
        let standing = Standing { bucket: route, limit: requests, remaining: requests - window.used, reset_after };
        (standing, taken.map_err(|retry_after| Exceeded { scope: Scope::User, retry_after }))
    }

    /// How long the address is still banned.
    pub fn banned(&self) -> Option<Duration> {
        let left = self.banned_until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Counts an answer of 401, 403 or 429. Says whether the address is banned for it.
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

impl Standing {
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let reset_after = self.reset_after.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit")]
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
