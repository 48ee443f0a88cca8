//! Messages from connections are on record in order, and each connection is run once.

use std::collections::{BTreeMap, BTreeSet};

use super::super::life::Props;
use super::super::people::Fate;
use super::super::stage::lock;
use super::channel_key_of;
use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;

/// Every connection runs once, and no message is left unprocessed.
pub(super) fn at_rest(props: &Props) {
    for (number, runs) in props.wire.runs().into_iter().enumerate().filter(|(_, runs)| *runs != 1) {
        props.stage.violate(format!("connection {number} is run {runs} times at rest"));
    }
    if !props.wire.is_all_taken(props.stage.life()) {
        props.stage.violate("a connection has unprocessed messages");
    }
}

/// A room's record has the platform's messages in the order they were sent, whatever was killed and however often they were delivered.
pub(super) fn in_order(props: &Props, deleted: &BTreeSet<ChannelKey>) {
    let sent = lock(&props.people.sent);
    let mut newest = BTreeMap::<ChannelKey, (usize, Seq)>::new();
    for delivery in props.wire.deliveries().iter().flatten().filter(|delivery| !delivery.is_resend) {
        let Some(sent) = sent.get(&delivery.number) else { continue };
        let (channel_key, Fate::Accepted(seq)) = (channel_key_of(props, sent.say.room), sent.fate) else { continue };
        // Messages that were deleted with their room can be delivered again as new ones.
        if deleted.contains(&channel_key) {
            continue;
        }
        if let Some((before, greater)) =
            newest.insert(channel_key.clone(), (delivery.number, seq)).filter(|(_, before)| *before >= seq)
        {
            let number = delivery.number;
            props.stage.violate(format!(
                "{channel_key}: message {number} is {seq}, and {before}, which was delivered before it, {greater}"
            ));
        }
    }
}
