//! The tokens of calls to models.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tokens of one or more calls. A part that no endpoint reported is `None`, which differs from a part of 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// All input tokens, including those that the endpoint read from its cache or wrote to it.
    pub input_tokens: u64,
    /// All output tokens, including those of thoughts.
    pub output_tokens: u64,
    /// The part of the input tokens that the endpoint read from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// The part of the input tokens that the endpoint wrote to its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of the output tokens that was spent on thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl TokenUsage {
    /// Tokens without reported parts.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, cache_read_tokens: None, cache_write_tokens: None, reasoning_tokens: None }
    }

    /// The sum of input and output tokens, saturating.
    pub const fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Limits the counts to these, and each part to what its whole has left for it.
    pub fn within(self, input_tokens: u64, output_tokens: u64) -> Self {
        let (input_tokens, output_tokens) = (self.input_tokens.min(input_tokens), self.output_tokens.min(output_tokens));
        let cache_read_tokens = self.cache_read_tokens.map(|read| read.min(input_tokens));
        let unread = input_tokens - cache_read_tokens.unwrap_or_default();
        let cache_write_tokens = self.cache_write_tokens.map(|written| written.min(unread));
        let reasoning_tokens = self.reasoning_tokens.map(|thoughts| thoughts.min(output_tokens));
        Self { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens }
    }

    /// The share of the input tokens that was read from a cache, from 0 to 1. `None`: no endpoint reported it.
    pub fn cached_share(self) -> Option<f64> {
        let read = self.cache_read_tokens.filter(|_| self.input_tokens > 0)?;
        Some(read as f64 / self.input_tokens as f64)
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, more: Self) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        *self = Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            cache_read_tokens: sum(self.cache_read_tokens, more.cache_read_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, more.cache_write_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, more.reasoning_tokens),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_is_larger_than_what_its_whole_has_left() {
        let parts = |read, write, reasoning| {
            let usage = TokenUsage {
                cache_read_tokens: Some(read),
                cache_write_tokens: Some(write),
                reasoning_tokens: Some(reasoning),
                ..TokenUsage::new(100, 20)
            };
            let usage = usage.within(80, u64::MAX);
            (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.reasoning_tokens)
        };

        assert_eq!(parts(30, 40, 20), (80, Some(30), Some(40), Some(20)));
        assert_eq!(parts(90, 40, 21), (80, Some(80), Some(0), Some(20)));
        assert_eq!(parts(70, u64::MAX, 0), (80, Some(70), Some(10), Some(0)));
    }

    #[test]
    fn a_part_that_nobody_reported_stays_unknown() {
        let mut sum = TokenUsage::new(100, 10);
        let unknown = (sum.cached_share(), serde_json::to_string(&sum).unwrap());

        sum += TokenUsage { cache_read_tokens: Some(0), ..TokenUsage::new(50, 1) };
        let none = sum.cached_share();
        sum += TokenUsage { cache_read_tokens: Some(50), ..TokenUsage::new(50, 1) };

        assert_eq!(unknown, (None, r#"{"input_tokens":100,"output_tokens":10}"#.to_owned()));
        assert_eq!((none, sum.cached_share(), sum.cache_write_tokens), (Some(0.0), Some(0.25), None));
    }
}
