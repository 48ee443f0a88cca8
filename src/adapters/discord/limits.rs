//! When a request to Discord's REST API may leave: by route and resource, for the bot and for this address as a whole, and before Discord
//! shuts us out.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::domain::moment::Moment;

/// Requests a second that a bot may make, and an address without one (Discord's documentation, "Rate Limits", "Global Rate Limit").
pub const GLOBAL_PER_SECOND: usize = 50;
/// Invalid requests after which nothing leaves for a while. At 10,000 in ten minutes Discord shuts the address out.
pub const INVALID_STOP: u32 = 5_000;
/// Invalid requests after which only what somebody needs should leave.
pub const INVALID_CAREFUL: u32 = 1_000;
const INVALID_WINDOW: Duration = Duration::from_secs(600);
/// Invalid requests are counted together for so long.
const INVALID_SPAN: Duration = Duration::from_secs(10);
/// How long to wait if a 429 does not say.
const UNTOLD_WAIT: Duration = Duration::from_secs(5);
/// No wait is longer, whatever an answer says.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);
/// Buckets that are kept before those that hold nothing up are dropped.
const MANY_BUCKETS: usize = 4_096;

/// What a request is counted under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// The method and the path with names in the place of ids: `GET /channels/{channel}/messages`.
    pub name: &'static str,
    /// The id (and the token, of a webhook) that stands at the path's beginning: channels, guilds and webhooks count for themselves.
    pub resource: String,
    /// Whose requests a second it counts among.
    pub account: Account,
}

/// Whose requests a second a request counts among (Discord's documentation, "Rate Limits", "Global Rate Limit").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The bot's: the request carries its token.
    Bot,
    /// This machine's address: the request carries no token of the bot's, as a webhook's.
    Address,
    /// Nobody's: an answer to an interaction.
    None,
}

/// What an answer tells of limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The status: 429 is one request too many, 401 and 403 are invalid too.
    pub status: u16,
    /// `X-RateLimit-Bucket`
    pub bucket: Option<String>,
    /// `X-RateLimit-Remaining`
    pub remaining: Option<u32>,
    /// `X-RateLimit-Reset-After`, in seconds. Unlike `X-RateLimit-Reset` it needs no clock that agrees with Discord's.
    pub reset_after_secs: Option<f64>,
    /// `Retry-After`, or `retry_after` in the body, whichever is longer, in seconds.
    pub retry_after_secs: Option<f64>,
    /// `X-RateLimit-Scope`, sent with a 429 alone.
    pub scope: Option<Scope>,
}

/// Whose limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The bot's, on this route and resource.
    User,
    /// The bot's, on everything.
    Global,
    /// The resource's, whoever asks; it is not counted as invalid.
    Shared,
}

/// Whether a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Now, and it is counted: tell what came of it.
    Go,
    /// Not before this moment.
    WaitUntil(Moment),
    /// Not before another request of this route and resource was answered.
    AwaitAnswer,
}

/// All limits. Asked before a request leaves, told what came of it; never waits.
///
/// A window's limit is not known before the answer to its first request, so that one goes alone. What holds one resource up holds up no
/// other.
#[derive(Debug)]
pub struct Limits {
    per_second: usize,
    /// The bucket of each route and resource, as Discord told.
    names: BTreeMap<Route, String>,
    buckets: BTreeMap<(String, String), Bucket>,
    bot: PerSecond,
    address: PerSecond,
    /// Nothing leaves before this: somebody before Discord's API has enough of us.
    closed_until: Moment,
    invalid: InvalidRequests,
}

/// The requests of one account.
#[derive(Clone, Debug)]
struct PerSecond {
    /// The requests of the last second.
    sent: VecDeque<Moment>,
    /// Nothing of the account's leaves before this.
    closed_until: Moment,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    known: Option<Known>,
    under_way: u32,
    /// The only one under way is the first of a window.
    is_trying: bool,
    closed_until: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// What is left, those under way taken off.
    remaining: u32,
    resets_at: Moment,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(GLOBAL_PER_SECOND)
    }
}

impl Answer {
    /// How long whoever asked is to wait, if the answer says so: a day at most.
    pub fn wait(&self) -> Option<Duration> {
        let told = self.retry_after_secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        told.map(|told| told.min(LONGEST_WAIT))
    }
}

impl Limits {
    /// With this many requests a second for each account; Discord grants large bots more.
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

    /// Asks whether a request may leave, and counts it if so.
    pub fn ask(&mut self, route: &Route, now: Moment) -> Ask {
        if let Caution::Stop(until) = self.invalid.caution(now) {
            return Ask::WaitUntil(until);
        }
        let account_closed_until = self.account(route).map_or(Moment::ZERO, |account| account.closed_until);
        let closed_until = self.closed_until.max(account_closed_until);
        if now < closed_until {
            return Ask::WaitUntil(closed_until);
        }
        self.drop_idle(now);
        let key = self.key(route);
        let bucket = self.buckets.entry(key.clone()).or_default();
        if now < bucket.closed_until {
            return Ask::WaitUntil(bucket.closed_until);
        }
        let window = bucket.known.filter(|known| now < known.resets_at);
        match window {
            None if bucket.under_way > 0 => return Ask::AwaitAnswer,
            Some(known) if known.remaining == 0 => return Ask::WaitUntil(known.resets_at),
            _ => {}
        }
        let account = match route.account {
            Account::Bot => Some(&mut self.bot),
            Account::Address => Some(&mut self.address),
            Account::None => None,
        };
        if let Some(until) = account.and_then(|account| account.count(self.per_second, now)) {
            return Ask::WaitUntil(until);
        }
        bucket.under_way += 1;
        match &mut bucket.known {
            Some(known) if window.is_some() => known.remaining -= 1,
            _ => bucket.is_trying = true,
        }
        Ask::Go
    }

    /// An answer came.
    pub fn answered(&mut self, route: &Route, answer: &Answer, now: Moment) {
        let was_trying = self.ended(route);
        let key = self.key(route);
        // What is under way ends in the bucket that it was counted in. The first request of a window is alone, so it never takes long.
        let is_empty = self.buckets.get(&key).is_none_or(|bucket| bucket.under_way == 0);
        if let Some(name) = &answer.bucket
            && is_empty
            && self.names.get(route) != Some(name)
        {
            self.names.insert(route.clone(), name.clone());
        }
        let key = self.key(route);
        let bucket = self.buckets.entry(key).or_default();
        if let (Some(remaining), Some(secs)) = (answer.remaining, answer.reset_after_secs) {
            bucket.learn(Known { remaining, resets_at: now + wait(Some(secs)) }, was_trying, now);
        }
        self.invalid.note(answer.status, answer.scope, now);
        if answer.status != 429 {
            return;
        }
        let until = now + wait(answer.retry_after_secs);
        let names_its_bucket = answer.bucket.is_some() || matches!(answer.scope, Some(Scope::User | Scope::Shared));
        if answer.scope == Some(Scope::Global) {
            // Nobody counts an answer to an interaction; what is refused all the same came from the address.
            let account = if route.account == Account::Bot { &mut self.bot } else { &mut self.address };
            account.closed_until = account.closed_until.max(until);
        } else if !names_its_bucket {
            // It came from before Discord's API, and concerns the address.
            self.closed_until = self.closed_until.max(until);
        } else {
            bucket.closed_until = bucket.closed_until.max(until);
        }
    }

    /// A request ended without an answer. It may have been counted by Discord.
    pub fn unanswered(&mut self, route: &Route) {
        self.ended(route);
    }

    /// How careful to be because of invalid requests.
    pub fn caution(&mut self, now: Moment) -> Caution {
        self.invalid.caution(now)
    }

    fn account(&self, route: &Route) -> Option<&PerSecond> {
        match route.account {
            Account::Bot => Some(&self.bot),
            Account::Address => Some(&self.address),
            Account::None => None,
        }
    }

    /// A request is not under way any more. Whether it was the first of a window.
    fn ended(&mut self, route: &Route) -> bool {
        let key = self.key(route);
        let Some(bucket) = self.buckets.get_mut(&key) else { return false };
        bucket.under_way = bucket.under_way.saturating_sub(1);
        std::mem::take(&mut bucket.is_trying)
    }

    fn key(&self, route: &Route) -> (String, String) {
        let name = self.names.get(route).map_or(route.name, String::as_str);
        (name.to_owned(), route.resource.clone())
    }

    fn drop_idle(&mut self, now: Moment) {
        if self.buckets.len() >= MANY_BUCKETS {
            self.buckets.retain(|_, bucket| {
                let counts = bucket.known.is_some_and(|known| known.resets_at > now);
                bucket.under_way > 0 || bucket.closed_until > now || counts
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

    /// Counts a request; if there are too many already, says when there is room again.
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
    /// Takes in what an answer tells.
    ///
    /// A window begins with its first request, so only that one's answer tells of it; an answer that comes after its window tells nothing.
    /// Answers may overtake each other: within a window the lower count is the newer.
    fn learn(&mut self, told: Known, was_trying: bool, now: Moment) {
        let remaining = told.remaining.saturating_sub(self.under_way);
        if let Some(known) = self.known.filter(|known| now < known.resets_at) {
            let resets_at = told.resets_at.max(known.resets_at);
            self.known = Some(Known { remaining: remaining.min(known.remaining), resets_at });
        } else if was_trying {
            self.known = Some(Known { remaining, ..told });
        }
    }
}

/// How careful to be because of invalid requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caution {
    /// All is well.
    None,
    /// Only what somebody needs: nobody is shown as typing.
    Careful,
    /// Nothing until this moment.
    Stop(Moment),
}

/// Counts what Discord calls invalid: answers 401, 403 and 429, but for a 429 on a resource that all share.
#[derive(Clone, Debug, Default)]
pub struct InvalidRequests {
    /// When each span began, and how many there were in it.
    spans: VecDeque<(Moment, u32)>,
}

impl InvalidRequests {
    /// Whether an answer is one of them.
    pub const fn counts(status: u16, scope: Option<Scope>) -> bool {
        matches!(status, 401 | 403) || (status == 429 && !matches!(scope, Some(Scope::Shared)))
    }

    /// Counts an answer, if it is one of them.
    pub fn note(&mut self, status: u16, scope: Option<Scope>, now: Moment) {
        if !Self::counts(status, scope) {
            return;
        }
        match self.spans.back_mut() {
            Some((begun, count)) if now.since(*begun) < INVALID_SPAN => *count = count.saturating_add(1),
            _ => self.spans.push_back((now, 1)),
        }
    }

    /// How many there were within the last ten minutes, a little more at most.
    pub fn count(&mut self, now: Moment) -> u32 {
        while self.spans.front().is_some_and(|(begun, _)| now.since(*begun) >= INVALID_WINDOW + INVALID_SPAN) {
            self.spans.pop_front();
        }
        self.spans.iter().fold(0, |sum: u32, (_, count)| sum.saturating_add(*count))
    }

    /// What follows from it.
    pub fn caution(&mut self, now: Moment) -> Caution {
        let mut count = self.count(now);
        if count < INVALID_CAREFUL {
            return Caution::None;
        }
        if count < INVALID_STOP {
            return Caution::Careful;
        }
        for (begun, of_span) in &self.spans {
            count = count.saturating_sub(*of_span);
            if count < INVALID_STOP {
                return Caution::Stop(*begun + INVALID_WINDOW + INVALID_SPAN);
            }
        }
        Caution::Stop(now + INVALID_WINDOW)
    }
}

/// A wait that an answer tells, in its bounds.
fn wait(secs: Option<f64>) -> Duration {
    let told = secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    told.unwrap_or(if secs.is_some_and(|secs| secs > 0.0) { LONGEST_WAIT } else { UNTOLD_WAIT }).min(LONGEST_WAIT)
}
