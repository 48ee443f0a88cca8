//! Nothing is left of what was deleted or forgotten, and the index of persons lists everybody else.

use std::collections::{BTreeMap, BTreeSet};

use super::super::life::Props;
use super::super::people::{Fate, Sent};
use super::super::stage::lock;
use super::super::store::{Committed, is_unfinished_work};
use super::{Journals, channel_key_of};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::speakers::speakers;
use crate::ports::store::key::{Key, Kind};

pub(super) fn check(props: &Props, journals: &Journals, deleted: &BTreeSet<ChannelKey>) {
    let (stage, stored) = (&props.stage, props.store.all());
    let sent = lock(&props.people.sent);
    for number in &*lock(&props.people.redacted) {
        let Some(sent) = sent.get(number).filter(|sent| !sent.is_resent) else { continue };
        let channel_key = channel_key_of(props, sent.say.room);
        // Messages that were deleted with their room can be sent again as new ones.
        if deleted.contains(&channel_key) {
            continue;
        }
        stage.reach("words redacted for good");
        let mark = format!(" m{number}m ");
        for (key, _) in stored.iter().filter(|(_, value)| String::from_utf8_lossy(value).contains(&mark)) {
            stage.violate(format!("{channel_key}: message {number} was deleted, and {key} still holds its words"));
        }
    }
    answers(props, &sent, journals, deleted);
    for (key, _) in stored.iter().filter(|(key, _)| is_unfinished_work(key)) {
        stage.violate(format!("{key} was started, and is never finished"));
    }
    let listed: BTreeSet<&Key> =
        stored.iter().map(|(key, _)| key).filter(|key| key.as_bytes()[1] == Kind::Person as u8).collect();
    let numbers = stored.iter().map(|(key, _)| key).filter(|key| key.as_bytes()[1] == Kind::ChannelOf as u8);
    let mut there = BTreeSet::new();
    for (ward, no) in numbers.filter_map(|key| Some((Ward(key.as_bytes()[0]), key::channel_in(key)?))) {
        let Some(channel_key) = props.store.channel_key_of(ward, no) else { continue };
        for recorded in journals.get(&channel_key).into_iter().flatten() {
            there.extend(
                speakers(&recorded.event).map(|id| key::person(&channel_key.guild, &PersonId::from(&**id), no, recorded.seq)),
            );
        }
    }
    for key in listed.iter().filter(|key| !there.contains(**key)) {
        stage.violate(format!("{key} is listed, and has no message"));
    }
    for key in there.iter().filter(|key| !listed.contains(key)) {
        stage.violate(format!("{key} is not listed, and has a message"));
    }
}

/// Answers to a person who was forgotten with the answers have no words.
fn answers(props: &Props, sent: &BTreeMap<usize, Sent>, journals: &Journals, deleted: &BTreeSet<ChannelKey>) {
    let stage = &props.stage;
    let gone = std::mem::take(&mut lock(&props.people.deletions).redacted_with_answers);
    let mut answered = BTreeSet::new();
    for number in gone {
        let Some(Sent { say, fate: Fate::Accepted(seq), is_resent: false, .. }) = sent.get(&number) else { continue };
        answered.insert((channel_key_of(props, say.room), *seq));
    }
    let committed = lock(&props.store.committed);
    let owed = committed.iter().filter_map(|Committed { channel_key, recorded, .. }| match &recorded.event {
        Event::ReplyOwed { ticket, messages, .. }
        | Event::Replanned { next: ticket, messages, .. }
        | Event::ReplyExtended { next: ticket, messages, .. } => {
            Some((channel_key, ticket)).filter(|_| messages.iter().any(|seq| answered.contains(&(channel_key.clone(), *seq))))
        }
        _ => None,
    });
    for (channel_key, owed) in owed.filter(|(channel_key, _)| !deleted.contains(*channel_key)) {
        for Recorded { seq, event, .. } in journals.get(channel_key).into_iter().flatten() {
            let Event::Said { message, reply: Some(ticket), .. } = event else { continue };
            if ticket != owed {
                continue;
            }
            stage.reach("answer redacted with its question");
            if !message.text.is_empty() {
                stage.violate(format!(
                    "{channel_key}: {seq} answers a person who was forgotten with the answers, and still has words"
                ));
            }
        }
    }
}
