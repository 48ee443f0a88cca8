//! Metrics of requests: class, outcome, duration, and waits for rate limits.

use std::time::Duration;

use crate::limits::{Answer, InvalidRequests, Route};
use crate::refusals::Refusal;
use crate::telemetry::instruments::{Instruments, NONE};

#[derive(Debug, Default)]
pub(super) struct Metrics(pub Instruments);

impl Metrics {
    /// Records that a request waited for the rate limits.
    pub fn waited(&self, route: &Route, waited: Duration) {
        self.0.discord_waits.add(1, [class(route.name)]);
        self.0.discord_waited.add(waited.as_secs_f64(), NONE);
    }

    /// Records that a request was not sent, because its wait would have been too long.
    pub fn rejected_by_limits(&self, route: &Route) {
        self.0.discord_requests.add(1, [class(route.name), "held_back"]);
    }

    pub fn answered(&self, route: &Route, took: Duration, answer: &Answer, is_whole: bool) {
        let outcome = match answer.status {
            200..=299 if is_whole => "2xx",
            200..=299 => "broken",
            429 => "429",
            408 | 500.. => "5xx",
            // A redirect counts as a refusal.
            _ => "4xx",
        };
        self.ended(route, took, outcome);
        if InvalidRequests::counts(answer.status, answer.scope) {
            self.0.discord_invalid.add(1, NONE);
        }
    }

    /// Records the end of a request, with or without a response.
    pub fn ended(&self, route: &Route, took: Duration, outcome: &'static str) {
        self.0.discord_requests.add(1, [class(route.name), outcome]);
        self.0.discord_request_duration.record(took.as_secs_f64(), [class(route.name)]);
    }

    pub fn refused(&self, refusal: &Refusal) {
        self.0.discord_refusals.add(1, [refusal.kind()]);
    }
}

/// The metric label of a route, from a closed list.
fn class(name: &str) -> &'static str {
    let path = name.split_once(' ').map_or(name, |(_, path)| path);
    let has = |part: &str| path.split('/').any(|found| found == part);
    match path.split('/').nth(1).unwrap_or_default() {
        "interactions" => "interaction",
        // The response to an interaction goes through a webhook of the application.
        "webhooks" if path.contains("{application}") => "interaction",
        "webhooks" => "webhook",
        _ if has("webhooks") => "webhook",
        _ if has("commands") => "commands",
        "gateway" => "gateway",
        "guilds" => "guild",
        "channels" if has("messages") => "messages",
        "channels" if has("typing") => "typing",
        "channels" => "channel",
        _ => "account",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_a_class() {
        for (name, expected) in [
            ("GET /users/@me", "account"),
            ("GET /applications/@me", "account"),
            ("GET /users/@me/guilds", "account"),
            ("GET /gateway/bot", "gateway"),
            ("GET /channels/{channel}", "channel"),
            ("GET /channels/{channel}/messages", "messages"),
            ("GET /channels/{channel}/messages/{message}", "messages"),
            ("POST /channels/{channel}/typing", "typing"),
            ("GET /channels/{channel}/webhooks", "webhook"),
            ("POST /webhooks/{webhook}/{token}", "webhook"),
            ("DELETE /webhooks/{webhook}/{token}/messages/{message}", "webhook"),
            ("GET /guilds/{guild}/webhooks", "webhook"),
            ("GET /guilds/{guild}/channels", "guild"),
            ("PATCH /guilds/{guild}/voice-states/@me", "guild"),
            ("GET /applications/{application}/guilds/{guild}/commands", "commands"),
            ("POST /applications/{application}/commands", "commands"),
            ("POST /interactions/{interaction}/{token}/callback", "interaction"),
            ("PATCH /webhooks/{application}/{token}/messages/@original", "interaction"),
        ] {
            assert_eq!(class(name), expected, "{name}");
        }
    }
}
