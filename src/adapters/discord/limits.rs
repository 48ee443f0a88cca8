//! Decides when a request to Discord's REST API may be sent. It obeys the limits per route and resource and the global limits of the bot and of
//! this machine's address. It stops before Discord would block the address.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::domain::moment::Moment;

/// The global limits in requests per second, of a bot and of an address without a bot token (Discord's documentation, "Rate Limits", "Global Rate
/// Limit").
pub const GLOBAL_PER_SECOND: usize = 50;
/// After this many invalid requests, nothing is sent for a while. After 10,000 in ten minutes, Discord would block the address.
pub const INVALID_STOP: u32 = 5_000;
/// After this many invalid requests only required requests should be sent.
pub const INVALID_CAREFUL: u32 = 1_000;
const INVALID_WINDOW: Duration = Duration::from_secs(600);
/// Invalid requests within this time are counted together.
const INVALID_SPAN: Duration = Duration::from_secs(10);
/// The wait after a 429 that gives none.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
/// The upper limit of waits, whatever a response demands.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);
/// Idle buckets are dropped when there are at least this many buckets.
const MANY_BUCKETS: usize = 4_096;

/// The key under which a request is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// The method and the path with placeholders for ids: `GET /channels/{channel}/messages`.
    pub name: &'static str,
    /// The first id of the path (with the token, for a webhook). Channels, guilds and webhooks are counted separately.
    pub resource: String,
    /// The account whose global limit the request counts towards.
    pub account: Account,
}

/// The account of a request's global limit (Discord's documentation, "Rate Limits", "Global Rate Limit").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The bot: the request carries its token.
    Bot,
    /// This machine's address: the request carries no bot token, like a webhook's.
    Address,
    /// No global limit: an answer to an interaction.
    None,
}

/// The rate limit information of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The HTTP status. 429 means too many requests. 401, 403 and most 429 count as invalid requests.
    pub status: u16,
    /// `X-RateLimit-Bucket`
    pub bucket: Option<String>,
    /// `X-RateLimit-Remaining`
    pub remaining: Option<u32>,
    /// `X-RateLimit-Reset-After`, in seconds. Unlike `X-RateLimit-Reset`, it does not depend on synchronized clocks.
    pub reset_after_secs: Option<f64>,
    /// In seconds: `Retry-After`, or `retry_after` in the body, whichever is longer.
    pub retry_after_secs: Option<f64>,
    /// `X-RateLimit-Scope`, present only with a 429.
    pub scope: Option<Scope>,
}

/// The limit that a 429 reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The bot's limit for this route and resource.
    User,
    /// The bot's global limit.
    Global,
    /// The resource's limit for all its users. It does not count as an invalid request.
    Shared,
}

/// Whether a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Now. The request is counted; report its result.
    Go,
    /// Not before this moment.
    WaitUntil(Moment),
    /// Not before another request of this route and resource is answered.
    AwaitAnswer,
}

/// All rate limits. Permits requests and records their results, without waiting itself.
///
/// The limit of a window is unknown until its first request is answered, so that request is sent alone. A limit for one resource does not delay
/// other resources.
#[derive(Debug)]
pub struct Limits {
    per_second: usize,
    /// The bucket of each route and resource, as Discord named it.
    names: BTreeMap<Route, String>,
    buckets: BTreeMap<(String, String), Bucket>,
    bot: PerSecond,
    address: PerSecond,
    /// Nothing is sent before this, because a proxy in front of Discord's API limits the address.
    closed_until: Moment,
    invalid: InvalidRequests,
}

/// The global limit of one account.
#[derive(Clone, Debug)]
struct PerSecond {
    /// The requests of the last second, oldest first.
    sent: VecDeque<Moment>,
    /// No request of the account is sent before this.
    closed_until: Moment,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    window: Option<Window>,
    in_flight: u32,
    /// Whether the only request in flight is the first of a window.
    is_first_of_window: bool,
    closed_until: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    /// The remaining requests, minus those in flight.
    remaining: u32,
    resets_at: Moment,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(GLOBAL_PER_SECOND)
    }
}

impl Answer {
    /// The wait that the response demands, at most a day. `None` if it demands none.
    pub fn wait(&self) -> Option<Duration> {
        let wait = self.retry_after_secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        wait.map(|wait| wait.min(LONGEST_WAIT))
    }
}

impl Limits {
    /// `per_second` is the limit of requests per second for each account. Discord allows more for large bots.
    pub fn new(per_second: usize) -> Self {
        Self {
            per_second: per_second.max(1),
            names: BTreeMap::new(),
            buckets: BTreeMap::new(),
            bot: PerSecond::new(),
            address: PerSecond::new(),
            closed_until: Moment::ZERO,
            invalid: InvalidRequests::default(),
        }
    }

    /// Asks whether a request may be sent now, and counts it if so.
    pub fn ask(&mut self, route: &Route, now: Moment) -> Ask {
        if let Caution::Stop(until) = self.invalid.caution(now) {
            return Ask::WaitUntil(until);
        }
        self.drop_idle(now);
        let key = self.key(route);
        let mut account = match route.account {
            Account::Bot => Some(&mut self.bot),
            Account::Address => Some(&mut self.address),
            Account::None => None,
        };
        let account_closed_until = account.as_ref().map_or(Moment::ZERO, |account| account.closed_until);
        let closed_until = self.closed_until.max(account_closed_until);
        if now < closed_until {
            return Ask::WaitUntil(closed_until);
        }
        let bucket = self.buckets.entry(key).or_default();
        if now < bucket.closed_until {
            return Ask::WaitUntil(bucket.closed_until);
        }
        let current = bucket.window.filter(|window| now < window.resets_at);
        match current {
            None if bucket.in_flight > 0 => return Ask::AwaitAnswer,
            Some(window) if window.remaining == 0 => return Ask::WaitUntil(window.resets_at),
            _ => {}
        }
        if let Some(until) = account.as_mut().and_then(|account| account.count(self.per_second, now)) {
            return Ask::WaitUntil(until);
        }
        bucket.in_flight += 1;
        match &mut bucket.window {
            Some(window) if current.is_some() => window.remaining -= 1,
            _ => bucket.is_first_of_window = true,
        }
        Ask::Go
    }

    /// Records the response to a request.
    pub fn answered(&mut self, route: &Route, answer: &Answer, now: Moment) {
        let was_first_of_window = self.ended(route);
        let key = self.key(route);
        // Requests in flight must end in the bucket in which they were counted. The first request of a window is sent alone, so the bucket soon
        // becomes empty.
        let is_empty = self.buckets.get(&key).is_none_or(|bucket| bucket.in_flight == 0);
        if let Some(name) = &answer.bucket
            && is_empty
            && self.names.get(route) != Some(name)
        {
            self.names.insert(route.clone(), name.clone());
        }
        let key = self.key(route);
        let bucket = self.buckets.entry(key).or_default();
        if let (Some(remaining), Some(secs)) = (answer.remaining, answer.reset_after_secs) {
            bucket.learn(Window { remaining, resets_at: now + wait(Some(secs)) }, was_first_of_window, now);
        }
        self.invalid.record_invalid(answer.status, answer.scope, now);
        if answer.status != 429 {
            return;
        }
        let until = now + wait(answer.retry_after_secs);
        let names_its_bucket = answer.bucket.is_some() || matches!(answer.scope, Some(Scope::User | Scope::Shared));
        if answer.scope == Some(Scope::Global) {
            // An answer to an interaction has no account. Its 429 applies to the address.
            let account = if route.account == Account::Bot { &mut self.bot } else { &mut self.address };
            account.closed_until = account.closed_until.max(until);
        } else if !names_its_bucket {
            // A proxy in front of Discord's API sent it, so it applies to the address.
            self.closed_until = self.closed_until.max(until);
        } else {
            bucket.closed_until = bucket.closed_until.max(until);
        }
    }

    /// Records that a request got no response. Discord may have counted it.
    pub fn unanswered(&mut self, route: &Route) {
        self.ended(route);
    }

    /// The caution required because of invalid requests.
    pub fn caution(&mut self, now: Moment) -> Caution {
        self.invalid.caution(now)
    }

    /// Ends a request in flight. Returns whether it was the first of a window.
    fn ended(&mut self, route: &Route) -> bool {
        let key = self.key(route);
        let Some(bucket) = self.buckets.get_mut(&key) else { return false };
        bucket.in_flight = bucket.in_flight.saturating_sub(1);
        std::mem::take(&mut bucket.is_first_of_window)
    }

    fn key(&self, route: &Route) -> (String, String) {
        let name = self.names.get(route).map_or(route.name, String::as_str);
        (name.to_owned(), route.resource.clone())
    }

    fn drop_idle(&mut self, now: Moment) {
        if self.buckets.len() >= MANY_BUCKETS {
            self.buckets.retain(|_, bucket| {
                let is_limited = bucket.window.is_some_and(|window| window.resets_at > now);
                bucket.in_flight > 0 || bucket.closed_until > now || is_limited
            });
            let buckets = &self.buckets;
            self.names.retain(|route, name| buckets.contains_key(&(name.clone(), route.resource.clone())));
        }
    }
}

impl PerSecond {
    const fn new() -> Self {
        Self { sent: VecDeque::new(), closed_until: Moment::ZERO }
    }

    /// Counts a request. If the limit is reached, returns when the next request is possible instead.
    fn count(&mut self, most: usize, now: Moment) -> Option<Moment> {
        while self.sent.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(1)) {
            self.sent.pop_front();
        }
        if let Some(first) = self.sent.front().filter(|_| self.sent.len() >= most) {
            return Some(*first + Duration::from_secs(1));
        }
        self.sent.push_back(now);
        None
    }
}

impl Bucket {
    /// Updates the window from a response.
    ///
    /// A window begins with its first request, so only the response to that request starts a window. A response that arrives after the end of its
    /// window is ignored. Responses may arrive out of order: within a window, the lower count is the newer one.
    fn learn(&mut self, answer: Window, was_first_of_window: bool, now: Moment) {
        let remaining = answer.remaining.saturating_sub(self.in_flight);
        if let Some(window) = self.window.filter(|window| now < window.resets_at) {
            let resets_at = answer.resets_at.max(window.resets_at);
            self.window = Some(Window { remaining: remaining.min(window.remaining), resets_at });
        } else if was_first_of_window {
            self.window = Some(Window { remaining, ..answer });
        }
    }
}

/// The caution required because of invalid requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caution {
    /// No restriction.
    None,
    /// Send only required requests, and no typing indicators, for example.
    Careful,
    /// Send nothing before this moment.
    Stop(Moment),
}

/// Counts what Discord calls invalid requests: responses with 401, 403 and 429, except a 429 with the scope `shared`.
#[derive(Clone, Debug, Default)]
pub struct InvalidRequests {
    /// The start of each span, and its number of invalid requests.
    spans: VecDeque<(Moment, u32)>,
}

impl InvalidRequests {
    /// Whether a response counts as invalid.
    pub const fn counts(status: u16, scope: Option<Scope>) -> bool {
        matches!(status, 401 | 403) || (status == 429 && !matches!(scope, Some(Scope::Shared)))
    }

    /// Counts a response if it is invalid.
    pub fn record_invalid(&mut self, status: u16, scope: Option<Scope>, now: Moment) {
        if !Self::counts(status, scope) {
            return;
        }
        match self.spans.back_mut() {
            Some((begun, count)) if now.since(*begun) < INVALID_SPAN => *count = count.saturating_add(1),
            _ => self.spans.push_back((now, 1)),
        }
    }

    /// The number of invalid requests in the last ten minutes. It may include slightly older ones.
    pub fn count(&mut self, now: Moment) -> u32 {
        while self.spans.front().is_some_and(|(begun, _)| now.since(*begun) >= INVALID_WINDOW + INVALID_SPAN) {
            self.spans.pop_front();
        }
        self.spans.iter().fold(0, |sum: u32, (_, count)| sum.saturating_add(*count))
    }

    /// The caution required at the current count.
    pub fn caution(&mut self, now: Moment) -> Caution {
        let mut count = self.count(now);
        if count < INVALID_CAREFUL {
            return Caution::None;
        }
        if count < INVALID_STOP {
            return Caution::Careful;
        }
        for (begun, in_span) in &self.spans {
            count = count.saturating_sub(*in_span);
            if count < INVALID_STOP {
                return Caution::Stop(*begun + INVALID_WINDOW + INVALID_SPAN);
            }
        }
        Caution::Stop(now + INVALID_WINDOW)
    }
}

/// The wait that a response demands, within bounds.
fn wait(secs: Option<f64>) -> Duration {
    let wait = secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    wait.unwrap_or(if secs.is_some_and(|secs| secs > 0.0) { LONGEST_WAIT } else { DEFAULT_WAIT }).min(LONGEST_WAIT)
}
