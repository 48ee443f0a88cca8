//! The cost of calls to models and speech services, at the price configured at the time of the call.

use std::ops::AddAssign;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::token_usage::TokenUsage;

/// The number of parts in a unit of a currency. Prices and costs are counted in trillionths. A price of a millionth of a unit per million tokens is
/// one trillionth per token, so sums are exact.
const PARTS: f64 = 1e12;
/// The price of one token in trillionths, at a price of one unit per million tokens.
const PARTS_PER_TOKEN: f64 = 1e6;

/// The price of the tokens of one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// The price of each input token, in trillionths of the currency's unit.
    pub input: u64,
    /// The price of each output token, in trillionths of the currency's unit.
    pub output: u64,
    /// The price of each input token that is read from a cache. Absent: that of other input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// The price of each input token that is written to a cache. Absent: that of other input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// The currency's code of ISO 4217: `USD`.
    pub currency: Arc<str>,
}

impl Price {
    /// A price as providers publish it: in units of a currency per million tokens, rounded to a millionth of a unit.
    pub fn per_million(input: f64, output: f64, currency: &str) -> Self {
        Self { input: per_token(input), output: per_token(output), ..Self::free(currency) }
    }

    /// Sets the prices of cached tokens, in units of the currency per million tokens.
    pub fn with_cache(self, read: Option<f64>, write: Option<f64>) -> Self {
        Self { cache_read: read.map(per_token), cache_write: write.map(per_token), ..self }
    }

    /// The price of a free model.
    pub fn free(currency: &str) -> Self {
        Self { input: 0, output: 0, cache_read: None, cache_write: None, currency: currency.into() }
    }

    /// The cost of these tokens. Each token is counted once: cached ones at their own price, if there is one.
    pub fn of(&self, usage: TokenUsage) -> Cost {
        let (read, written) = (usage.cache_read_tokens.unwrap_or_default(), usage.cache_write_tokens.unwrap_or_default());
        let others = usage.input_tokens.saturating_sub(read).saturating_sub(written);
        let parts = [
            (others, self.input),
            (read, self.cache_read.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        let costs = parts.map(|(tokens, price)| u128::from(tokens) * u128::from(price));
        Cost(costs.into_iter().fold(0, u128::saturating_add))
    }
}

/// A price per million tokens as the price of one. A value out of range becomes the nearest valid price.
fn per_token(price: f64) -> u64 {
    (price * PARTS_PER_TOKEN).round() as u64
}

/// The price of one unit of a service: a millisecond of recognised audio, a character of synthesised text, or a call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPrice {
    /// The price of a unit, in trillionths of the currency's unit.
    pub unit: u64,
    /// The currency's code of ISO 4217: `USD`.
    pub currency: Arc<str>,
}

impl UnitPrice {
    /// A price in units of a currency per minute of audio, rounded to a whole number of parts per millisecond.
    pub fn per_minute(price: f64, currency: &str) -> Self {
        Self { unit: (price * PARTS / 60_000.0).round() as u64, currency: currency.into() }
    }

    /// A price in units of a currency per million characters.
    pub fn per_million_characters(price: f64, currency: &str) -> Self {
        Self { unit: (price * PARTS / 1e6).round() as u64, currency: currency.into() }
    }

    /// A price in units of a currency per call.
    pub fn per_call(price: f64, currency: &str) -> Self {
        Self { unit: (price * PARTS).round() as u64, currency: currency.into() }
    }

    /// The cost of this number of units.
    pub fn of(&self, units: u64) -> Cost {
        Cost(u128::from(units) * u128::from(self.unit))
    }
}

/// An amount of money, exact to a trillionth of its currency's unit. It is serialised in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(inline)]
pub struct Cost(#[schemars(with = "f64")] u128);

impl Cost {
    /// The amount in units of its currency, as the nearest floating-point number.
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
        // A negative amount becomes zero.
        f64::deserialize(deserializer).map(|units| Self((units * PARTS).round() as u128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_tokens_times_the_price() {
        let price = Price::per_million(0.15, 0.6, "USD");

        let cost = price.of(TokenUsage::new(2_000_000, 500_000));

        assert_eq!(cost.as_units(), 0.6);
        assert_eq!(price.of(TokenUsage::new(10, 0)).as_units(), 0.000_001_5);
        assert_eq!(Price::free("USD").of(TokenUsage::new(1_000, 1_000)), Cost::default());
    }

    #[test]
    fn a_cached_token_is_paid_for_once_at_its_own_price_or_at_that_of_the_input() {
        let usage = TokenUsage {
            cache_read_tokens: Some(800_000),
            cache_write_tokens: Some(150_000),
            ..TokenUsage::new(1_000_000, 100_000)
        };
        let plain = Price::per_million(1.0, 2.0, "USD");
        let cached = plain.clone().with_cache(Some(0.1), Some(1.25));

        assert_eq!(plain.of(usage).as_units(), 1.2);
        assert_eq!(cached.of(usage).as_units(), 0.5175);
        assert_eq!(plain.clone().with_cache(Some(0.0), None).of(usage).as_units(), 0.4);
        assert_eq!(cached.of(TokenUsage::new(1_000_000, 0)).as_units(), 1.0, "nothing was cached");
        let impossible = TokenUsage { cache_read_tokens: Some(10), cache_write_tokens: Some(10), ..TokenUsage::new(5, 0) };
        assert_eq!(plain.of(impossible).as_units(), 0.000_02, "nothing is subtracted twice");
    }

    #[test]
    fn a_price_without_prices_of_cached_tokens_is_written_as_before() {
        let old = r#"{"input":150000,"output":600000,"currency":"USD"}"#;

        let price: Price = serde_json::from_str(old).unwrap();

        assert_eq!(price, Price::per_million(0.15, 0.6, "USD"));
        assert_eq!(serde_json::to_string(&price).unwrap(), old);
    }

    #[test]
    fn the_cost_of_speech_is_its_length_times_the_price() {
        assert_eq!(UnitPrice::per_minute(0.006, "USD").of(90_000).as_units(), 0.009);
        assert_eq!(UnitPrice::per_million_characters(15.0, "USD").of(200).as_units(), 0.003);
    }

    #[test]
    fn many_small_costs_add_up_exactly() {
        let price = Price::per_million(0.1, 0.3, "USD");
        let mut sum = Cost::default();

        for _ in 0..1_000_000 {
            sum += price.of(TokenUsage::new(1, 1));
        }

        assert_eq!(sum, price.of(TokenUsage::new(1_000_000, 1_000_000)));
        assert_eq!(sum.as_units(), 0.4);
    }

    #[test]
    fn no_number_of_tokens_is_too_large() {
        let price = Price::per_million(1_000_000.0, 1_000_000.0, "USD");

        let mut cost = price.of(TokenUsage::new(u64::MAX, u64::MAX));
        cost += cost;

        assert!(cost > price.of(TokenUsage::new(u64::MAX, 0)));
    }

    #[test]
    fn a_serialised_cost_can_be_read_back() {
        let cost = Price::per_million(0.15, 0.6, "USD").of(TokenUsage::new(123_456, 7_891));

        let written = serde_json::to_string(&cost).unwrap();

        assert_eq!(written, "0.023253");
        assert_eq!(serde_json::from_str::<Cost>(&written).unwrap(), cost);
    }
}
