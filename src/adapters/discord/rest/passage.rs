//! Lets requests leave when they may, each resource by itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::super::limits::{Answer, Ask, Caution, Limits, Route};
use crate::domain::moment::Moment;

/// The limits that all requests share, and word of their changes.
pub(super) struct Passages {
    limits: Mutex<Limits>,
    changed: Notify,
    /// Limits count from here: no clock that may jump.
    began: Instant,
}

/// A request on its way. Dropped without an answer, it ended without one.
pub(super) struct Passage<'a> {
    passages: &'a Passages,
    route: &'a Route,
    is_open: bool,
    /// It could not leave at once.
    pub has_waited: bool,
}

impl Passages {
    pub fn new(limits: Limits) -> Self {
        Self { limits: Mutex::new(limits), changed: Notify::new(), began: Instant::now() }
    }

    /// Waits until a request may leave.
    ///
    /// # Errors
    /// It may not by then: how long it would have to wait from now, if that is known.
    pub async fn enter<'a>(&'a self, route: &'a Route, by: Instant) -> Result<Passage<'a>, Option<Duration>> {
        let mut has_waited = false;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let ask = self.lock().ask(route, self.now());
            match ask {
                Ask::Go => return Ok(Passage { passages: self, route, is_open: true, has_waited }),
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

    /// Lets a request leave that nobody needs, if it may at once and there is no trouble.
    pub fn enter_now<'a>(&'a self, route: &'a Route) -> Option<Passage<'a>> {
        let mut limits = self.lock();
        let now = self.now();
        if limits.caution(now) != Caution::None || limits.ask(route, now) != Ask::Go {
            return None;
        }
        drop(limits);
        Some(Passage { passages: self, route, is_open: true, has_waited: false })
    }

    fn now(&self) -> Moment {
        Moment::ZERO + self.began.elapsed()
    }

    // Whoever panics in between leaves a count behind, at worst.
    fn lock(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passage<'_> {
    /// An answer came.
    pub fn answered(mut self, answer: &Answer) {
        self.is_open = false;
        self.passages.lock().answered(self.route, answer, self.passages.now());
        self.passages.changed.notify_waiters();
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.passages.lock().unanswered(self.route);
            self.passages.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::limits::Account;
    use super::*;

    #[test]
    fn a_request_that_may_not_leave_now_is_held_back_and_holds_nobody_up() {
        let passages = Passages::new(Limits::default());
        let route = Route { name: "POST /channels/{channel}/typing", resource: "1".to_owned(), account: Account::Bot };

        // Until the first answer tells its limits, a route lets one request out at a time.
        let first = passages.enter_now(&route);
        let second = passages.enter_now(&route);

        assert!(first.is_some() && second.is_none());
        drop(first);
        assert!(passages.enter_now(&route).is_some());
    }
}
