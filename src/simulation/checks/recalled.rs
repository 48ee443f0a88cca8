//! Checks what was recalled for statements: notes of other rooms of the guild exist, and everything else was said before in the same room, after the
//! `clear` that was the newest when the statement was owed. (Erased messages are checked by `journeys/recalling.rs`.)

use std::collections::{BTreeMap, BTreeSet};

use super::super::life::Props;
use super::super::stage::lock;
use super::super::store::Committed;
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ticket};
use crate::domain::message::Recalled;
use crate::journal::channel_key::ChannelKey;

/// What is on record of a room, in the order of commits.
#[derive(Default)]
struct Room {
    said: BTreeSet<Seq>,
    /// The oldest source of each note.
    notes: BTreeMap<Seq, Seq>,
    cleared: Seq,
    /// The newest `clear` when each attempt of a reply began.
    owed: BTreeMap<Ticket, Seq>,
}

pub(super) fn check(props: &Props) {
    let mut rooms = BTreeMap::<_, Room>::new();
    let mut noted = BTreeSet::<(ChannelKey, Seq)>::new();
    for Committed { channel_key, recorded, .. } in lock(&props.store.committed).iter() {
        let room = rooms.entry(channel_key).or_default();
        match &recorded.event {
            Event::Cleared { .. } => room.cleared = recorded.seq,
            Event::ReplyOwed { ticket, .. }
            | Event::Replanned { next: ticket, .. }
            | Event::ReplyExtended { next: ticket, .. } => {
                room.owed.insert(*ticket, room.cleared);
            }
            Event::Noted(note) => {
                props.stage.reach("note made");
                if !note.sources.iter().all(|source| room.said.contains(source)) {
                    props.stage.violate(format!("{channel_key}: the note {} has a source that nobody said", recorded.seq));
                }
                noted.insert((channel_key.clone(), recorded.seq));
                room.notes.insert(recorded.seq, note.sources.iter().min().copied().unwrap_or_default());
            }
            Event::Said { message, reply, .. } => {
                let cleared = reply.and_then(|ticket| room.owed.get(&ticket).copied()).unwrap_or_default();
                for recalled in &message.recalled {
                    let Recalled::Elsewhere(channel, seq) = recalled else { continue };
                    let source = ChannelKey::new(&channel_key.guild, channel);
                    if !noted.contains(&(source.clone(), *seq)) {
                        let statement = recorded.seq;
                        props.stage.violate(format!(
                            "{channel_key}: the statement {statement} was given {seq} of {source}, which is no note"
                        ));
                    }
                }
                for seq in message.recalled.iter().filter_map(Recalled::here) {
                    // A note is as old as its oldest source.
                    let said = room.notes.get(&seq).copied();
                    props.stage.reach(if said.is_some() { "note used" } else { "older message recalled" });
                    if said.unwrap_or(seq) <= cleared || !(said.is_some() || room.said.contains(&seq)) {
                        props.stage.violate(format!("{channel_key}: {seq} was recalled for the statement {}", recorded.seq));
                    }
                }
                room.said.insert(recorded.seq);
            }
            _ => {}
        }
    }
}
