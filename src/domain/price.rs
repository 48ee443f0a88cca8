//! What calls to models cost, at the price that was set when they were made.

use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The parts that prices and costs are counted in: trillionths of a currency's unit. A price of a millionth of it for a million tokens is
/// one of them for one token, so that sums are exact.
const PARTS: f64 = 1e12;
/// Of those, what one token costs at a price of one unit for a million.
const PARTS_PER_TOKEN: f64 = 1e6;

/// What tokens of one model cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// For each token read, in trillionths of the currency's unit.
    pub input: u64,
    /// For each token written, in the same.
    pub output: u64,
    /// Which currency, as ISO 4217 writes it: `USD`.
    pub currency: Arc<str>,
}

impl Price {
    /// A price as models are sold: in units of a currency for a million tokens, kept to a millionth of a unit.
    pub fn per_million(input: f64, output: f64, currency: &str) -> Self {
        // Whatever is no price in its range becomes the nearest that is.
        let part = |price: f64| (price * PARTS_PER_TOKEN).round() as u64;
        Self { input: part(input), output: part(output), currency: currency.into() }
    }

    /// The price of what is known to cost nothing.
    pub fn free(currency: &str) -> Self {
        Self { input: 0, output: 0, currency: currency.into() }
    }

    /// What so many tokens cost.
    pub fn of(&self, input_tokens: u64, output_tokens: u64) -> Cost {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        Cost(part(input_tokens, self.input).saturating_add(part(output_tokens, self.output)))
    }
}

/// An amount of money, exact to a trillionth of its currency's unit. Written and read in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Cost {
    /// In units of its currency, as near as a floating point number comes.
    pub fn as_units(self) -> f64 {
        self.0 as f64 / PARTS
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, more: Self) {
        self.0 = self.0.saturating_add(more.0);
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_units())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is below nothing is nothing.
        f64::deserialize(deserializer).map(|units| Self((units * PARTS).round() as u128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_tokens_by_price() {
        let price = Price::per_million(0.15, 0.6, "USD");

        let cost = price.of(2_000_000, 500_000);

        assert_eq!(cost.as_units(), 0.6);
        assert_eq!(price.of(10, 0).as_units(), 0.000_001_5);
        assert_eq!(Price::free("USD").of(1_000, 1_000), Cost::default());
    }

    #[test]
    fn many_small_costs_add_up_exactly() {
        let price = Price::per_million(0.1, 0.3, "USD");
        let mut sum = Cost::default();

        for _ in 0..1_000_000 {
            sum += price.of(1, 1);
        }

        assert_eq!(sum, price.of(1_000_000, 1_000_000));
        assert_eq!(sum.as_units(), 0.4);
    }

    #[test]
    fn no_number_of_tokens_is_too_large() {
        let price = Price::per_million(1_000_000.0, 1_000_000.0, "USD");

        let mut cost = price.of(u64::MAX, u64::MAX);
        cost += cost;

        assert!(cost > price.of(u64::MAX, 0));
    }

    #[test]
    fn a_cost_reads_as_it_was_written() {
        let cost = Price::per_million(0.15, 0.6, "USD").of(123_456, 7_891);

        let written = serde_json::to_string(&cost).unwrap();

        assert_eq!(written, "0.023253");
        assert_eq!(serde_json::from_str::<Cost>(&written).unwrap(), cost);
    }
}
