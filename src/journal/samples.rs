//! Keys, records and a store for tests, of other crates too (feature `samples`).

pub mod store;

use crate::channel_key::ChannelKey;
use crate::domain::id::Seq;
use crate::domain::trigger::Trigger;
use crate::record::OutboxRecord;

/// The entry of the outbox for Aria's reply to the first message.
pub fn outbox_record(trigger: Trigger) -> OutboxRecord {
    OutboxRecord::new("aria".into(), trigger, vec![Seq(1)], Seq(1))
}

/// A channel of the guild `home`.
pub fn channel_key(channel: &str) -> ChannelKey {
    ChannelKey::new(&"home".into(), &channel.into())
}

/// The room `lobby` of the guild `home`.
pub fn lobby() -> ChannelKey {
    channel_key("console:lobby")
}
