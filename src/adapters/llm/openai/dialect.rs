//! Learns which optional parameters an endpoint refuses, so that it is asked without them from then on.

use std::sync::atomic::{AtomicBool, Ordering};

/// What one endpoint understands, as far as it has said.
#[derive(Debug, Default)]
pub(super) struct Dialect {
    without_stream_options: AtomicBool,
    completion_tokens: AtomicBool,
    without_temperature: AtomicBool,
}

/// The parameters of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spoken {
    /// `stream_options`, which older servers do not know.
    pub stream_options: bool,
    /// `max_completion_tokens` in place of `max_tokens`, which newer models of OpenAI demand.
    pub completion_tokens: bool,
    /// `temperature`, which reasoning models refuse.
    pub temperature: bool,
}

impl Dialect {
    /// How to speak now.
    pub fn now(&self) -> Spoken {
        Spoken {
            stream_options: !self.without_stream_options.load(Ordering::Relaxed),
            completion_tokens: self.completion_tokens.load(Ordering::Relaxed),
            temperature: !self.without_temperature.load(Ordering::Relaxed),
        }
    }

    /// Whether a refusal of what was `spoken` names a parameter that can be left out, and this was not tried yet.
    pub fn give_way(&self, spoken: Spoken, refusal: &[u8]) -> bool {
        let refusal = String::from_utf8_lossy(refusal);
        let changed = if spoken.stream_options && refusal.contains("stream_options") {
            &self.without_stream_options
        } else if !spoken.completion_tokens && wants_completion_tokens(&refusal) {
            &self.completion_tokens
        } else if spoken.temperature && refusal.contains("temperature") {
            &self.without_temperature
        } else {
            return false;
        };
        changed.store(true, Ordering::Relaxed);
        true
    }
}

/// A limit that is too high is refused by its name too; another name would not help then.
fn wants_completion_tokens(refusal: &str) -> bool {
    let unknown =
        ["unsupported", "not supported", "unrecognized", "unknown", "not permitted", "Unsupported", "Unrecognized", "Unknown"];
    refusal.contains("max_completion_tokens")
        || (refusal.contains("max_tokens") && unknown.iter().any(|word| refusal.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_is_given_up_once() {
        let dialect = Dialect::default();
        let refusal = br#"{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}"#;

        let first = dialect.give_way(dialect.now(), refusal);
        let second = dialect.give_way(dialect.now(), refusal);

        assert!(first && !second);
        assert_eq!(dialect.now(), Spoken { stream_options: true, completion_tokens: true, temperature: true });
    }

    #[test]
    fn a_limit_that_is_too_high_changes_nothing() {
        let dialect = Dialect::default();

        let gave_way = dialect.give_way(dialect.now(), br#"{"error":{"message":"max_tokens is too large: 99999"}}"#);

        assert!(!gave_way);
    }
}
