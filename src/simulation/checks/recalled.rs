//! What was recalled for a statement was said before in the same room, after the newest `clear`, and had not been deleted when the statement was owed.

use std::collections::BTreeMap;

use super::super::life::Props;
use super::super::stage::lock;
use super::super::store::Committed;
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ticket};

/// What is on record of a room, in the order of commits.
#[derive(Default)]
struct Room {
    /// The messages, each with the place of its deletion among all commits.
    said: BTreeMap<Seq, Option<usize>>,
    cleared: Seq,
    /// The replies: the place of the commit since which each attempt is owed, and the newest `clear` by then.
    owed: BTreeMap<Ticket, (usize, Seq)>,
}

pub(super) fn check(props: &Props) {
    let mut rooms = BTreeMap::<_, Room>::new();
    for (place, Committed { channel_key, recorded, .. }) in lock(&props.store.committed).iter().enumerate() {
        let room = rooms.entry(channel_key).or_default();
        match &recorded.event {
            Event::Cleared => room.cleared = recorded.seq,
            Event::Deleted { messages, .. } => {
                for seq in messages {
                    room.said.entry(*seq).and_modify(|deleted| *deleted = deleted.or(Some(place)));
                }
            }
            Event::ReplyOwed { ticket, .. }
            | Event::Replanned { next: ticket, .. }
            | Event::ReplyExtended { next: ticket, .. } => {
                room.owed.insert(*ticket, (place, room.cleared));
            }
            Event::Said { message, reply, .. } => {
                let (since, cleared) = reply.and_then(|ticket| room.owed.get(&ticket).copied()).unwrap_or_default();
                for seq in &message.recalled {
                    props.stage.reach("older message recalled");
                    let is_fine = match room.said.get(seq) {
                        Some(deleted) => *seq > cleared && deleted.is_none_or(|deleted| deleted > since),
                        None => false,
                    };
                    if !is_fine {
                        props.stage.violate(format!("{channel_key}: {seq} was recalled for the statement {}", recorded.seq));
                    }
                }
                room.said.insert(recorded.seq, None);
            }
            _ => {}
        }
    }
}
