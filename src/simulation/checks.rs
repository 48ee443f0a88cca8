//! The reference: what must be true of a run, determined from its record alone.

mod budgets;
mod calls;
mod connections;
mod gone;
mod handling;
mod measures;
mod recalled;
mod replies;
mod room;
mod times;

pub(super) use handling::watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::book::CountedKind;
use super::life::{Life, Props};
use super::people::{Fate, Sent};
use super::stage::lock;
use super::store::{Committed, is_gapless};
use crate::domain::conversation::poison;
use crate::domain::event::{Event, Recorded, order_of_handling};
use crate::domain::id::{Seq, Ward};
use crate::domain::message::{Message, Role};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::{DeadLetterRecord, decode, decode_event};
use crate::ports::backend::room::RoomId;
use crate::ports::store::key::{Key, Kind};

/// Checks the last life, while it lives.
pub(super) async fn of_life(life: &Life) -> String {
    connections::at_rest(&life.props);
    measures::check(life).await
}

/// Checks a life that has ended: its metrics until then.
pub(super) fn of_ended(life: &Life) {
    measures::ended(life);
}

/// Checks the last life as soon as nothing is pending, before any actor sleeps.
pub(super) fn of_quiet(life: &Life) {
    measures::awake(life);
    connections::at_rest(&life.props);
}

/// Checks everything that is stored, after the last life.
pub(super) fn of_record(props: &Props) {
    let stage = &props.stage;
    let (journals, dead_letters) = stored(props);
    let deleted = deleted(props);
    let lateness = times::Lateness::of(stage);
    for (channel_key, events) in &journals {
        if !is_gapless(events, deleted.contains(channel_key)) {
            stage.violate(format!(
                "{channel_key}: its journal has gaps: {:?}",
                events.iter().map(|event| event.seq.0).collect::<Vec<_>>()
            ));
            continue;
        }
        let mut handled = events.clone();
        order_of_handling(&mut handled);
        if is_with_call(props, channel_key) {
            continue;
        }
        let skipped = dead_letters.get(channel_key).cloned().unwrap_or_default();
        let (when, sent, authors) = (when(props, channel_key), sent(props, channel_key), authors(props, channel_key));
        let watch = room::Watch { when, sent, authors, lateness: &lateness };
        room::Record::read(channel_key, &handled, &skipped, stage, &watch);
    }
    calls::check(props, &journals, &dead_letters);
    accepted(props, &journals, &deleted);
    connections::in_order(props, &deleted);
    posted(props, &journals, &deleted);
    poison(props, &dead_letters);
    tenancy(props);
    gone::check(props, &journals, &deleted);
    times::check(props);
    recalled::check(props);
    replies::check(props);
    budgets::check(props);
}

/// Whether a room has a voice call. Such rooms have their own checks.
fn is_with_call(props: &Props, channel_key: &ChannelKey) -> bool {
    let with_call = (0..props.stage.plan.rooms.len()).filter(|room| props.stage.plan.rooms[*room].has_call);
    with_call.into_iter().any(|room| channel_key_of(props, room) == *channel_key)
}

/// When each event of a room was really on disk.
fn when(props: &Props, channel_key: &ChannelKey) -> BTreeMap<Seq, Duration> {
    let committed = lock(&props.store.committed);
    committed.iter().filter(|entry| entry.channel_key == *channel_key).map(|entry| (entry.recorded.seq, entry.at)).collect()
}

/// Who sent each message of a room. Redaction removes that from the journal.
fn authors(props: &Props, channel_key: &ChannelKey) -> BTreeMap<Seq, Arc<str>> {
    let committed = lock(&props.store.committed);
    let author = |entry: &Committed| match &entry.recorded.event {
        Event::Said { message, .. } if entry.channel_key == *channel_key => Some((entry.recorded.seq, message.from.id.clone())),
        _ => None,
    };
    committed.iter().filter_map(author).collect()
}

/// When parts of a room's statements were posted on another platform.
fn sent(props: &Props, channel_key: &ChannelKey) -> Vec<Duration> {
    let counted = lock(&props.store.book.counted);
    let sent = counted.iter().filter(|write| write.channel_key == *channel_key && write.kind == CountedKind::Sent);
    sent.map(|write| write.at).collect()
}

/// The rooms that were deleted once.
fn deleted(props: &Props) -> BTreeSet<ChannelKey> {
    lock(&props.people.deleted).iter().map(|room| channel_key_of(props, *room)).collect()
}

fn channel_key_of(props: &Props, room: usize) -> ChannelKey {
    let home = &props.stage.plan.rooms[room];
    let id = RoomId::parse(&home.id).expect("a plain name");
    ChannelKey::new(&props.stage.plan.guilds[home.guild].id.as_str().into(), &id.channel())
}

pub(super) fn is_statement(recorded: &Recorded) -> bool {
    matches!(&recorded.event, Event::Said { message, .. } if message.from.role == Role::Companion)
}

type Journals = BTreeMap<ChannelKey, Vec<Recorded>>;

/// Every journal, and the dead letters.
fn stored(props: &Props) -> (Journals, BTreeMap<ChannelKey, BTreeSet<Seq>>) {
    let (mut journals, mut dead_letters) = (Journals::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for (key, value) in props.store.all() {
        let (ward, kind) = (Ward(key.as_bytes()[0]), key.as_bytes()[1]);
        let channel_key = || key::channel_in(&key).and_then(|no| props.store.channel_key_of(ward, no));
        if kind == Kind::Journal as u8 {
            match (channel_key(), decode_event(&key, &value)) {
                (Some(channel_key), Ok(recorded)) => journals.entry(channel_key).or_default().push(recorded),
                (channel_key, recorded) => props.stage.violate(format!("{channel_key:?}: {recorded:?} is stored")),
            }
        } else if kind == Kind::DeadLetter as u8
            && let Ok(record) = decode::<DeadLetterRecord>(&key, &value)
        {
            props.stage.reach("dead letter on record");
            dead_letters.entry(ChannelKey::new(&record.guild, &record.channel)).or_default().insert(record.seq);
        }
    }
    (journals, dead_letters)
}

/// Every accepted message is on record once, with its words, and in the order of arrival.
fn accepted(props: &Props, journals: &Journals, deleted: &BTreeSet<ChannelKey>) {
    let stage = &props.stage;
    let sent = lock(&props.people.sent);
    let channel_key_of = |sent: &Sent| channel_key_of(props, sent.say.room);
    let message = |channel_key: &ChannelKey, seq: Seq| {
        let recorded = journals.get(channel_key)?.iter().find(|recorded| recorded.seq == seq)?;
        match &recorded.event {
            Event::Said { message, .. } => Some(message),
            _ => None,
        }
    };
    let mut owner: BTreeMap<(ChannelKey, Seq), usize> = BTreeMap::new();
    for (number, sent) in sent.iter() {
        let channel_key = channel_key_of(sent);
        match sent.fate {
            Fate::Accepted(seq) => {
                if let Some(other) = owner.insert((channel_key.clone(), seq), *number) {
                    stage.violate(format!("{channel_key}: {seq} is message {number} and message {other}"));
                }
                match message(&channel_key, seq) {
                    None if deleted.contains(&channel_key) => {}
                    None => stage.violate(format!("{channel_key}: message {number} was accepted as {seq}, which is missing")),
                    Some(stored_message) if !sent.is_changed && *stored_message.text != *sent.say.text => {
                        stage.violate(format!(
                            "{channel_key}: message {number} was accepted as {seq}, on record is {:?}",
                            stored_message.text
                        ));
                    }
                    Some(_) => {}
                }
            }
            Fate::Open => stage.violate(format!("{channel_key}: message {number} has no known outcome")),
            Fate::Unknown | Fate::NotTaken => {}
        }
    }
    for (channel_key, events) in journals {
        let mut marks = BTreeMap::<String, Seq>::new();
        for recorded in events {
            let Event::Said { message, .. } = &recorded.event else { continue };
            if message.from.role == Role::Companion {
                continue;
            }
            let Some(mark) = message.text.split_whitespace().find(|word| number_of(word).is_some()) else { continue };
            let is_resent = number_of(mark).and_then(|number| sent.get(&number)).is_some_and(|sent| sent.is_resent);
            if let Some(first) = marks.insert(mark.to_owned(), recorded.seq).filter(|_| !is_resent) {
                stage.violate(format!("{channel_key}: {mark} is on record twice: as {first} and {}", recorded.seq));
            }
        }
    }
    let mut arrivals: Vec<_> = sent
        .values()
        .filter_map(|sent| match sent.fate {
            Fate::Accepted(seq) => Some((channel_key_of(sent), sent.first_sent_at, sent.accepted_at, seq)),
            _ => None,
        })
        .collect();
    arrivals.sort();
    for (channel_key, _, accepted_at, seq) in &arrivals {
        // A message that was sent after this one was known to be accepted must have a greater number.
        let later = arrivals.iter().filter(|(other, said_at, ..)| other == channel_key && said_at > accepted_at);
        for (.., number) in later.filter(|(.., number)| number < seq) {
            stage.violate(format!("{channel_key}: {number} was sent after {seq} was accepted"));
        }
    }
}

/// The number of a message, from its mark.
fn number_of(mark: &str) -> Option<usize> {
    mark.strip_prefix('m')?.strip_suffix('m')?.parse().ok()
}

/// Checks that no message becomes a dead letter, except those that kill their handler and those that the plan wrote as dead letters. Does nothing if
/// handlers panicked on request, because any message may be blamed for that.
fn poison(props: &Props, dead_letters: &BTreeMap<ChannelKey, BTreeSet<Seq>>) {
    let stage = &props.stage;
    if !stage.rng.panicked().is_empty() {
        return;
    }
    let planned: BTreeSet<_> =
        lock(&props.people.dead_letters).iter().map(|(room, seq)| (channel_key_of(props, *room), *seq)).collect();
    let committed = lock(&props.store.committed);
    for (channel_key, seq) in dead_letters.iter().flat_map(|(channel_key, all)| all.iter().map(move |seq| (channel_key, *seq))) {
        if planned.contains(&(channel_key.clone(), seq)) {
            continue;
        }
        let mut sent = committed.iter().filter(|entry| entry.channel_key == *channel_key && entry.recorded.seq == seq);
        let kills = |message: &Message| message.text.contains(poison::TAKEN_IN);
        if sent.any(|entry| matches!(&entry.recorded.event, Event::Said { message, .. } if kills(message))) {
            stage.reach("deadly message became a dead letter");
        } else {
            stage.violate(format!("{channel_key}: {seq} is a dead letter and has killed nobody"));
        }
    }
}

/// No part was posted twice, and every posted part is on record.
fn posted(props: &Props, journals: &Journals, deleted: &BTreeSet<ChannelKey>) {
    let stage = &props.stage;
    let mut nonces = BTreeSet::new();
    let parts = props.platform.parts().into_iter();
    for part in parts.filter(|part| !deleted.contains(&ChannelKey::new(&part.guild, &part.channel))) {
        if !nonces.insert(part.nonce.clone()) {
            stage.violate(format!("{} was posted twice: {:?}", part.nonce, part.text));
        }
        let channel_key = ChannelKey::new(&part.guild, &part.channel);
        let ticket = part.nonce.rsplit_once('#').and_then(|(_, rest)| rest.split_once('.')).map(|(ticket, _)| ticket.to_owned());
        let is_statement_of_part = |recorded: &Recorded| {
            let Event::Said { reply: Some(reply), message, .. } = &recorded.event else { return false };
            Some(reply.to_string()) == ticket && (message.text.is_empty() || message.text.contains(part.text.trim()))
        };
        if !journals.get(&channel_key).is_some_and(|events| events.iter().any(is_statement_of_part)) {
            stage.violate(format!("{} was posted and is not on record: {:?}", part.nonce, part.text));
        }
    }
}

/// Nothing of one guild is stored under another.
fn tenancy(props: &Props) {
    let stage = &props.stage;
    for (key, value) in props.store.all() {
        let guild = match guild_of(&key, props) {
            Some(guild) => guild,
            None => continue,
        };
        let text = String::from_utf8_lossy(&value);
        if let Some(word) = stage.plan.foreign_word(&guild, &text) {
            stage.violate(format!("{key} of guild {guild} holds {word:?}, a word of another guild"));
        }
    }
}

fn guild_of(key: &Key, props: &Props) -> Option<String> {
    let ward = Ward(*key.as_bytes().first()?);
    let by_channel = [Kind::Journal, Kind::Snapshot, Kind::Outbox, Kind::MessageId, Kind::Summary, Kind::DeadLetter];
    if !by_channel.into_iter().any(|kind| key.is(kind)) {
        return None;
    }
    let channel_key = props.store.channel_key_of(ward, key::channel_in(key)?)?;
    Some(channel_key.guild.as_str().to_owned())
}
