//! Limits what a run costs.

use parking_lot::Mutex;

use crate::domain::price::Price;
use crate::ports::language_model::{Request, Usage};

/// The most that a run may cost, and what it has cost. Calls in flight count at their estimate.
#[derive(Debug, Default)]
pub(super) struct Cap {
    most: Option<f64>,
    so_far: Mutex<SoFar>,
}

#[derive(Debug, Default)]
struct SoFar {
    spent: f64,
    /// The cost of the dearest call.
    dearest: f64,
}

impl Cap {
    pub(super) fn of(most: Option<f64>) -> Self {
        Self { most, so_far: Mutex::default() }
    }

    pub(super) const fn is_set(&self) -> bool {
        self.most.is_some()
    }

    /// What the run has cost, with the estimates of calls in flight.
    pub(super) fn spent(&self) -> f64 {
        self.so_far.lock().spent
    }

    /// Begins a call. `None`: it could exceed the cap. The call costs what it is estimated at until its usage is known.
    pub(super) fn begin(&self, request: &Request, price: Option<&Price>) -> Option<Spending<'_>> {
        let estimate =
            price.map_or(0.0, |price| price.of(Usage::estimate(request, "").input_tokens, request.max_tokens.into()).as_units());
        let mut so_far = self.so_far.lock();
        // Models that think use more tokens than a prompt lets one expect.
        let estimate = estimate.max(so_far.dearest);
        if self.most.is_some_and(|most| so_far.spent + estimate > most) {
            return None;
        }
        so_far.spent += estimate;
        Some(Spending { cap: self, estimate, actual: 0.0 })
    }
}

/// A call that is being made. Dropping it ends it.
pub(super) struct Spending<'a> {
    cap: &'a Cap,
    estimate: f64,
    actual: f64,
}

impl Spending<'_> {
    /// The call has used this.
    pub(super) fn used(&mut self, usage: Usage, price: Option<&Price>) {
        self.actual = price.map_or(0.0, |price| price.of(usage.input_tokens, usage.output_tokens).as_units());
    }
}

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        let mut so_far = self.cap.so_far.lock();
        so_far.spent += self.actual - self.estimate;
        so_far.dearest = so_far.dearest.max(self.actual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::language_model::{Message, ModelRole};

    #[test]
    fn calls_in_flight_count_until_their_cost_is_known() {
        let messages = Message::prompt(String::new(), "x".repeat(4_000_000));
        let request = Request { messages, ..Request::new(ModelRole::Side, "g".into(), 500_000) };
        let price = Price::per_million(1.0, 2.0, "USD");
        let cap = Cap::of(Some(3.0));

        let mut first = cap.begin(&request, Some(&price)).expect("2 are left of 3");
        assert!(cap.begin(&request, Some(&price)).is_none());
        first.used(Usage { input_tokens: 1_000_000, output_tokens: 0 }, Some(&price));
        drop(first);

        assert_eq!(cap.spent(), 1.0);
        assert!(cap.begin(&request, Some(&price)).is_some());
        assert!(Cap::of(None).begin(&request, Some(&price)).is_some());
    }
}
