//! Delays requests until the rate limits allow them. Requests to different resources do not wait for each other.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::super::limits::{Answer, Ask, Caution, Limits, Route};
use crate::domain::moment::Moment;

/// The limits, shared by all requests. Waiting requests are notified of changes.
pub(super) struct RateLimiter {
    limits: Mutex<Limits>,
    changed: Notify,
    /// The origin of times in `limits`. Monotonic, because the system clock may jump.
    began: Instant,
}

/// Permits one request. Dropping it without [`Permit::answered`] reports that no response arrived.
pub(super) struct Permit<'a> {
    rate_limiter: &'a RateLimiter,
    route: &'a Route,
    is_open: bool,
    /// Whether the request had to wait.
    pub has_waited: bool,
}

impl RateLimiter {
    pub fn new(limits: Limits) -> Self {
        Self { limits: Mutex::new(limits), changed: Notify::new(), began: Instant::now() }
    }

    /// Waits until a request may be sent.
    ///
    /// # Errors
    /// Returns an error if the request may not be sent before `by`. The error is the remaining wait, if known.
    pub async fn acquire<'a>(&'a self, route: &'a Route, by: Instant) -> Result<Permit<'a>, Option<Duration>> {
        let mut has_waited = false;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let ask = self.limits.lock().ask(route, self.now());
            match ask {
                Ask::Go => return Ok(Permit { rate_limiter: self, route, is_open: true, has_waited }),
                Ask::WaitUntil(moment) => {
                    let at = self.began + moment.since(Moment::ZERO);
                    if at > by {
                        return Err(Some(at.saturating_duration_since(Instant::now())));
                    }
                    sleep_until(at).await;
                }
                Ask::AwaitAnswer => timeout_at(by, changed).await.map_err(|_| None)?,
            }
            has_waited = true;
        }
    }

    /// Permits an optional request if it may be sent now and there are not too many invalid requests.
    pub fn try_acquire<'a>(&'a self, route: &'a Route) -> Option<Permit<'a>> {
        let mut limits = self.limits.lock();
        let now = self.now();
        if limits.caution(now) != Caution::None || limits.ask(route, now) != Ask::Go {
            return None;
        }
        drop(limits);
        Some(Permit { rate_limiter: self, route, is_open: true, has_waited: false })
    }

    fn now(&self) -> Moment {
        Moment::ZERO + self.began.elapsed()
    }
}

impl Permit<'_> {
    /// Reports the response.
    pub fn answered(mut self, answer: &Answer) {
        self.is_open = false;
        self.rate_limiter.limits.lock().answered(self.route, answer, self.rate_limiter.now());
        self.rate_limiter.changed.notify_waiters();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.rate_limiter.limits.lock().unanswered(self.route);
            self.rate_limiter.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::limits::Account;
    use super::*;

    #[test]
    fn an_optional_request_that_would_wait_gets_no_permit() {
        let rate_limiter = RateLimiter::new(Limits::default());
        let route = Route { name: "POST /channels/{channel}/typing", resource: "1".to_owned(), account: Account::Bot };

        // Until the first response shows its limits, a route allows one request at a time.
        let first = rate_limiter.try_acquire(&route);
        let second = rate_limiter.try_acquire(&route);

        assert!(first.is_some() && second.is_none());
        drop(first);
        assert!(rate_limiter.try_acquire(&route).is_some());
    }
}
