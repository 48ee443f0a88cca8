//! Limits the cost of a run.

use parking_lot::Mutex;
use tokio::sync::Notify;

use tertulia::domain::price::Price;
use tertulia::ports::language_model::{Request, TokenUsage};

/// The maximum cost of a run, and its cost so far. Calls in flight count with their estimates.
#[derive(Debug, Default)]
pub(super) struct Cap {
    most: Option<f64>,
    so_far: Mutex<SoFar>,
    /// Notified when a call ends.
    ended: Notify,
}

#[derive(Debug, Default)]
struct SoFar {
    spent: f64,
    /// The sum of the estimates of the calls in flight.
    reserved: f64,
    in_flight: usize,
    /// The cost of the most expensive call.
    dearest: f64,
}

impl Cap {
    pub(super) fn of(most: Option<f64>) -> Self {
        Self { most, ..Self::default() }
    }

    pub(super) const fn is_set(&self) -> bool {
        self.most.is_some()
    }

    /// The cost of the run without the calls in flight.
    pub(super) fn spent(&self) -> f64 {
        self.so_far.lock().spent
    }

    /// Starts a call, which counts with its estimate until its usage is known. Waits while the cap could be exceeded only because
    /// of calls in flight. `None` if the call alone could exceed it.
    pub(super) async fn begin(&self, request: &Request, price: Option<&Price>) -> Option<Spending<'_>> {
        let estimate = price.map_or(0.0, |price| {
            price.of(TokenUsage::new(request.estimated_usage("").input_tokens, request.max_tokens.into())).as_units()
        });
        loop {
            let ended = self.ended.notified();
            {
                let mut so_far = self.so_far.lock();
                // Reasoning models use more tokens than the prompt suggests.
                let estimate = estimate.max(so_far.dearest);
                if self.most.is_none_or(|most| so_far.spent + so_far.reserved + estimate <= most) {
                    so_far.reserved += estimate;
                    so_far.in_flight += 1;
                    return Some(Spending { cap: self, estimate, actual: 0.0 });
                }
                if so_far.in_flight == 0 {
                    return None;
                }
            }
            ended.await;
        }
    }
}

/// A call in flight. Dropping it ends the call.
pub(super) struct Spending<'a> {
    cap: &'a Cap,
    estimate: f64,
    actual: f64,
}

impl Spending<'_> {
    /// Records the usage of the call.
    pub(super) fn used(&mut self, usage: TokenUsage, price: Option<&Price>) {
        self.actual = price.map_or(0.0, |price| price.of(usage).as_units());
    }
}

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        let mut so_far = self.cap.so_far.lock();
        so_far.spent += self.actual;
        so_far.in_flight -= 1;
        // Without calls in flight, rounding errors are cleared.
        so_far.reserved = if so_far.in_flight == 0 { 0.0 } else { so_far.reserved - self.estimate };
        so_far.dearest = so_far.dearest.max(self.actual);
        drop(so_far);
        self.cap.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use tertulia::ports::language_model::{Message, ModelRole};

    #[tokio::test]
    async fn calls_in_flight_count_until_their_cost_is_known_and_others_wait_for_that() {
        let messages = Message::prompt(String::new(), "x".repeat(4_000_000));
        let request = Request { messages, ..Request::new(ModelRole::Side, "g".into(), 500_000) };
        let price = Price::per_million(1.0, 2.0, "USD");
        let cap = Cap::of(Some(3.0));

        let mut first = cap.begin(&request, Some(&price)).await.expect("2 are left of 3");
        let mut second = std::pin::pin!(cap.begin(&request, Some(&price)));
        assert!(second.as_mut().now_or_never().is_none());
        first.used(TokenUsage::new(1_000_000, 0), Some(&price));
        drop(first);

        assert_eq!(cap.spent(), 1.0);
        let mut second = second.await.expect("2 are left again");
        second.used(TokenUsage::new(1_000_000, 250_000), Some(&price));
        drop(second);
        assert!(cap.begin(&request, Some(&price)).await.is_none());
        assert!(Cap::of(None).begin(&request, Some(&price)).await.is_some());
    }
}
