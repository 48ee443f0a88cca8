//! The state of the connections, with descriptions for the operator.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::json;

use crate::domain::moment::Moment;
use crate::ports::backend::Detail;
use crate::ports::gateway::{Condition, Disconnected, Shard};
use crate::telemetry::instruments::Instruments;
use crate::telemetry::instruments::kinds::Counted;

/// The limit of listed reasons.
const MOST_REASONS: usize = 3;

/// The state of a shard's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardStatus {
    /// The shard is connecting or reconnecting.
    Connecting,
    /// The shard waits before the next attempt, for this reason.
    Waiting(Detail),
    /// The shard has a session.
    Connected,
    /// The shard has stopped until the operator acts. The text says what to do.
    Stopped(Detail),
}

impl ShardStatus {
    /// A metric label.
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Waiting(_) => "waiting",
            Self::Connected => "connected",
            Self::Stopped(_) => "stopped",
        }
    }
}

/// The states of all shards of a process.
#[derive(Debug, Default)]
pub struct Statuses {
    shards: Mutex<BTreeMap<u32, Entry>>,
    /// Since when at least one connection is down.
    since: Mutex<Option<Moment>>,
    /// The error if Discord did not return the number of shards.
    gateway_error: Mutex<Option<Disconnected>>,
}

#[derive(Debug)]
struct Entry {
    of: u32,
    status: ShardStatus,
    _counted: Counted,
}

impl Statuses {
    /// Sets the state of a shard.
    pub fn set(&self, shard: Shard, status: ShardStatus, now: Moment, instruments: &Instruments) {
        let mut shards = self.shards.lock();
        // If the number of shards has changed, all earlier connections are gone.
        shards.retain(|_, entry| entry.of == shard.of.get());
        if shards.get(&shard.number).is_some_and(|entry| entry.status == status) {
            return;
        }
        let counted = instruments.discord_connections.one([status.as_str()]);
        shards.insert(shard.number, Entry { of: shard.of.get(), status, _counted: counted });
        let mut since = self.since.lock();
        *since = if is_complete(&shards) { None } else { since.or(Some(now)) };
    }

    /// Sets or clears the error of the request for the number of shards.
    pub fn set_gateway_error(&self, error: Option<Disconnected>, now: Moment) {
        if error.is_some() {
            self.since.lock().get_or_insert(now);
        }
        *self.gateway_error.lock() = error;
    }

    /// Whether the gateway or a shard has stopped until the operator acts.
    pub fn has_stopped(&self) -> bool {
        let is_refused = matches!(*self.gateway_error.lock(), Some(Disconnected::Never(_)));
        is_refused || self.shards.lock().values().any(|entry| matches!(entry.status, ShardStatus::Stopped(_)))
    }

    /// Removes a shard that is no longer run. A shard that stopped permanently stays in the description.
    pub fn remove(&self, shard: Shard) {
        let mut shards = self.shards.lock();
        if shards.get(&shard.number).is_some_and(|entry| !matches!(entry.status, ShardStatus::Stopped(_))) {
            shards.remove(&shard.number);
        }
    }

    /// Describes the connections, followed by `note`.
    pub fn condition(&self, note: Option<Detail>) -> Condition {
        let shards = self.shards.lock();
        let of = shards.values().next().map_or(0, |entry| entry.of);
        let connected = shards.values().filter(|entry| entry.status == ShardStatus::Connected).count();
        let ready = is_complete(&shards);
        let some = json!({ "connected": connected, "of": of });
        let count = match of {
            0 => Detail::key("refusals.discord_unconnected"),
            1 => Detail::from(format!("{connected} of 1 connection")).coded("refusals.discord_connections", some),
            _ => Detail::of("refusals.discord_connections", some),
        };
        let mut why = vec![count.why()];
        let mut texts = vec![count.to_string()];
        let mut reasons: BTreeMap<&str, (&Detail, Vec<u32>)> = BTreeMap::new();
        for (number, entry) in &*shards {
            if let ShardStatus::Waiting(why) | ShardStatus::Stopped(why) = &entry.status {
                reasons.entry(why).or_insert((why, Vec::new())).1.push(*number);
            }
        }
        // Usually, all connections have the same reason.
        why.extend(reasons.values().take(MOST_REASONS).map(|(reason, _)| reason.why()));
        texts.extend(reasons.iter().take(MOST_REASONS).map(|(why, (_, numbers))| match numbers.as_slice() {
            _ if numbers.len() == of as usize => (*why).to_owned(),
            [number] => format!("connection {number}: {why}"),
            numbers => format!("{} of them: {why}", numbers.len()),
        }));
        if of == 0 {
            let error = self.gateway_error.lock();
            if let Some(Disconnected::Later { detail, .. } | Disconnected::Never(detail)) = &*error {
                why.push(detail.why());
                texts.push(detail.to_string());
            }
        }
        if let Some(note) = note {
            why.push(note.why());
            texts.push(note.to_string());
        }
        Condition { ready, detail: texts.join("; "), why, since: *self.since.lock(), ..Condition::default() }
    }
}

/// Whether all connections are up.
fn is_complete(shards: &BTreeMap<u32, Entry>) -> bool {
    let of = shards.values().next().map_or(0, |entry| entry.of);
    let connected = shards.values().filter(|entry| entry.status == ShardStatus::Connected).count();
    of > 0 && u32::try_from(connected) == Ok(of)
}

/// A moment in RFC 3339, in whole seconds.
pub fn timestamp(moment: Moment) -> String {
    let micros = i64::try_from(moment.as_micros()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const AT: Moment = Moment::from_micros(1_800_000_000_000_000);

    #[test]
    fn the_connections_are_described() {
        let statuses = Statuses::default();
        assert_eq!(described(&statuses, None), condition(false, "not connected yet"));

        set(&statuses, 0, ShardStatus::Connected);
        set(&statuses, 1, ShardStatus::Waiting("Discord cannot be reached".into()));
        assert_eq!(described(&statuses, None), condition(false, "1 of 2 connections; connection 1: Discord cannot be reached"));

        set(&statuses, 0, ShardStatus::Waiting("Discord cannot be reached".into()));
        assert_eq!(described(&statuses, None), condition(false, "0 of 2 connections; Discord cannot be reached"));

        set(&statuses, 0, ShardStatus::Connected);
        set(&statuses, 1, ShardStatus::Connected);
        assert_eq!(described(&statuses, Some("without content".into())), condition(true, "2 of 2 connections; without content"));
    }

    #[test]
    fn each_sentence_has_a_code_and_one_without_is_told_as_it_is() {
        let statuses = Statuses::default();
        let codes = |note: Option<Detail>| serde_json::to_value(statuses.condition(note).why).unwrap();
        assert_eq!(codes(None), json!([{ "code": "discord_unconnected" }]));

        set(&statuses, 0, ShardStatus::Waiting(Detail::of("refusals.discord_closed", json!({ "number": 4000 }))));
        set(&statuses, 1, ShardStatus::Waiting("an error".into()));
        assert_eq!(
            codes(Some(Detail::key("refusals.discord_no_content"))),
            json!([
                { "code": "discord_connections", "connected": 0, "of": 2 },
                { "code": "discord_closed", "number": 4000 },
                { "code": "other", "text": "an error" },
                { "code": "discord_no_content" },
            ])
        );
    }

    #[test]
    fn a_stopped_shard_stays_in_the_description_and_a_removed_one_does_not() {
        let statuses = Statuses::default();
        set(&statuses, 0, ShardStatus::Connected);
        set(&statuses, 1, ShardStatus::Stopped("bad token".into()));

        statuses.remove(shard(0));
        statuses.remove(shard(1));

        assert_eq!(described(&statuses, None), condition(false, "0 of 2 connections; connection 1: bad token"));
    }

    #[test]
    fn a_gateway_error_is_described_until_it_is_cleared() {
        let statuses = Statuses::default();

        statuses.set_gateway_error(Some(Disconnected::Never("bad token".into())), AT);
        assert_eq!(
            (described(&statuses, None), statuses.has_stopped()),
            (condition(false, "not connected yet; bad token"), true)
        );
        statuses.set_gateway_error(Some(Disconnected::Later { after: None, detail: "no answer".into() }), AT);
        assert_eq!(
            (described(&statuses, None), statuses.has_stopped()),
            (condition(false, "not connected yet; no answer"), false)
        );
        statuses.set_gateway_error(None, AT);
        assert_eq!((described(&statuses, None).detail, statuses.has_stopped()), ("not connected yet".to_owned(), false));
        assert_eq!(described(&statuses, None).since, Some(AT), "it is not connected all the same");
    }

    #[test]
    fn a_timestamp_has_whole_seconds() {
        assert_eq!(timestamp(Moment::from_micros(1_800_000_000_999_999)), "2027-01-15T08:00:00Z");
        assert!(timestamp(Moment::from_micros(u64::MAX)).starts_with("9999-12-3"));
    }

    /// Without the codes.
    fn described(statuses: &Statuses, note: Option<Detail>) -> Condition {
        Condition { why: Vec::new(), ..statuses.condition(note) }
    }

    fn set(statuses: &Statuses, number: u32, status: ShardStatus) {
        statuses.set(shard(number), status, AT, &Instruments::noop());
    }

    fn shard(number: u32) -> Shard {
        Shard { number, of: NonZeroU32::new(2).unwrap() }
    }

    fn condition(ready: bool, detail: &str) -> Condition {
        let is_set = !ready && detail != "not connected yet";
        Condition { ready, detail: detail.to_owned(), since: is_set.then_some(AT), ..Condition::default() }
    }
}
