//! What connections tell is on record as it was told, and each is lived once.

use std::collections::{BTreeMap, BTreeSet};

use super::super::life::Props;
use super::super::people::Fate;
use super::super::stage::lock;
use super::channel_key_of;
use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;

/// Each connection is there, once, and nothing is left that was not taken.
pub(super) fn at_rest(props: &Props) {
    for (number, lives) in props.wire.lives().into_iter().enumerate().filter(|(_, lives)| *lives != 1) {
        props.stage.violate(format!("connection {number} is lived {lives} times at rest"));
    }
    if !props.wire.is_all_taken(props.stage.life()) {
        props.stage.violate("not everything was taken that connections told");
    }
}

/// In a room's record is in its order what was said on the platform, whoever was killed, and however often it was told.
pub(super) fn in_order(props: &Props, deleted: &BTreeSet<ChannelKey>) {
    let said = lock(&props.people.said);
    let mut newest = BTreeMap::<ChannelKey, (usize, Seq)>::new();
    for told in props.wire.told().iter().flatten().filter(|told| !told.is_again) {
        let Some(said) = said.get(&told.number) else { continue };
        let (channel_key, Fate::Accepted(seq)) = (channel_key_of(props, said.say.room), said.fate) else { continue };
        // What goes with its room can be told again as something new.
        if deleted.contains(&channel_key) {
            continue;
        }
        if let Some((before, greater)) =
            newest.insert(channel_key.clone(), (told.number, seq)).filter(|(_, before)| *before >= seq)
        {
            let number = told.number;
            props
                .stage
                .violate(format!("{channel_key}: message {number} is {seq}, and {before}, which was told before it, {greater}"));
        }
    }
}
