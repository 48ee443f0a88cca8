//! The reference: what must be true of a run, found out from its record alone.

mod budgets;
mod connections;
mod gone;
mod handling;
mod measures;
mod replies;
mod room;
mod times;

pub(super) use handling::watch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::life::{Life, Props};
use super::people::{Fate, Said};
use super::stage::lock;
use super::store::is_gapless;
use crate::domain::conversation::poison;
use crate::domain::event::{Event, Recorded, order_of_handling};
use crate::domain::id::{Seq, Ward};
use crate::domain::message::Role;
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::record::{SetAsideRecord, decode, decode_event};
use crate::ports::backend::room::RoomId;
use crate::ports::store::key::{Key, Kind};

/// Of the last life, while it lives.
pub(super) async fn of_life(life: &Life) -> String {
    connections::at_rest(&life.props);
    measures::check(life).await
}

/// Of a life that is over: what it measured until then.
pub(super) fn of_ended(life: &Life) {
    measures::ended(life);
}

/// Of the last life, as soon as nothing is pending and before anybody sleeps.
pub(super) fn of_quiet(life: &Life) {
    measures::awake(life);
    connections::at_rest(&life.props);
}

/// Of all that is stored, after the last life.
pub(super) fn of_record(props: &Props) {
    let stage = &props.stage;
    let (journals, set_aside) = stored(props);
    let deleted = deleted(props);
    let lateness = times::Lateness::of(stage);
    for (place, events) in &journals {
        if !is_gapless(events, deleted.contains(place)) {
            stage.violate(format!(
                "{place}: its journal has gaps: {:?}",
                events.iter().map(|event| event.seq.0).collect::<Vec<_>>()
            ));
            continue;
        }
        let mut handled = events.clone();
        order_of_handling(&mut handled);
        let skipped = set_aside.get(place).cloned().unwrap_or_default();
        let when = when(props, place);
        room::Record::read(place, &handled, &skipped, stage, &room::Watch { when, lateness: &lateness });
    }
    accepted(props, &journals, &deleted);
    connections::in_order(props, &deleted);
    posted(props, &journals, &deleted);
    poison(props, &journals, &set_aside);
    tenancy(props);
    gone::check(props, &journals, &deleted);
    times::check(props);
    replies::check(props);
    budgets::check(props);
}

/// When each event of a room was really on disk.
fn when(props: &Props, place: &Place) -> BTreeMap<Seq, Duration> {
    let committed = lock(&props.store.committed);
    committed.iter().filter(|entry| entry.place == *place).map(|entry| (entry.recorded.seq, entry.at)).collect()
}

/// Where rooms were deleted once.
fn deleted(props: &Props) -> BTreeSet<Place> {
    lock(&props.people.deleted).iter().map(|room| place_of(props, *room)).collect()
}

fn place_of(props: &Props, room: usize) -> Place {
    let home = &props.stage.plan.rooms[room];
    let id = RoomId::parse(&home.id).expect("a plain name");
    Place::new(&props.stage.plan.guilds[home.guild].id.as_str().into(), &id.channel())
}

pub(super) fn is_statement(recorded: &Recorded) -> bool {
    matches!(&recorded.event, Event::Said { message, .. } if message.from.role == Role::Companion)
}

type Journals = BTreeMap<Place, Vec<Recorded>>;

/// Every journal, and what was set aside.
fn stored(props: &Props) -> (Journals, BTreeMap<Place, BTreeSet<Seq>>) {
    let (mut journals, mut set_aside) = (Journals::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for (key, value) in props.store.all() {
        let (ward, kind) = (Ward(key.as_bytes()[0]), key.as_bytes()[1]);
        let place = || key::channel_in(&key).and_then(|no| props.store.place_of(ward, no));
        if kind == Kind::Journal as u8 {
            match (place(), decode_event(&key, &value)) {
                (Some(place), Ok(recorded)) => journals.entry(place).or_default().push(recorded),
                (place, recorded) => props.stage.violate(format!("{place:?}: {recorded:?} is stored")),
            }
        } else if kind == Kind::SetAside as u8
            && let Ok(record) = decode::<SetAsideRecord>(&key, &value)
        {
            props.stage.reach("message set aside on record");
            set_aside.entry(Place::new(&record.guild, &record.channel)).or_default().insert(record.seq);
        }
    }
    (journals, set_aside)
}

/// What was accepted is on record, once, as it was said, and in the order in which it was heard.
fn accepted(props: &Props, journals: &Journals, deleted: &BTreeSet<Place>) {
    let stage = &props.stage;
    let said = lock(&props.people.said);
    let place_of = |said: &Said| place_of(props, said.say.room);
    let message = |place: &Place, seq: Seq| {
        let recorded = journals.get(place)?.iter().find(|recorded| recorded.seq == seq)?;
        match &recorded.event {
            Event::Said { message, .. } => Some(message),
            _ => None,
        }
    };
    let mut owner: BTreeMap<(Place, Seq), usize> = BTreeMap::new();
    for (number, said) in said.iter() {
        let place = place_of(said);
        match said.fate {
            Fate::Accepted(seq) => {
                if let Some(other) = owner.insert((place.clone(), seq), *number) {
                    stage.violate(format!("{place}: {seq} is message {number} and message {other}"));
                }
                match message(&place, seq) {
                    None if deleted.contains(&place) => {}
                    None => stage.violate(format!("{place}: message {number} was accepted as {seq}, which is not there")),
                    Some(kept) if !said.is_changed && *kept.text != *said.say.text => {
                        stage.violate(format!("{place}: message {number} was accepted as {seq}, on record is {:?}", kept.text));
                    }
                    Some(_) => {}
                }
            }
            Fate::Open => stage.violate(format!("{place}: message {number} was never heard to be accepted")),
            Fate::Unknown | Fate::NotTaken => {}
        }
    }
    for (place, events) in journals {
        let mut marks = BTreeMap::<String, Seq>::new();
        for recorded in events {
            let Event::Said { message, .. } = &recorded.event else { continue };
            if message.from.role == Role::Companion {
                continue;
            }
            let Some(mark) = message.text.split_whitespace().find(|word| number_of(word).is_some()) else { continue };
            let is_said_anew = number_of(mark).and_then(|number| said.get(&number)).is_some_and(|said| said.is_said_anew);
            if let Some(first) = marks.insert(mark.to_owned(), recorded.seq).filter(|_| !is_said_anew) {
                stage.violate(format!("{place}: {mark} is on record twice: as {first} and {}", recorded.seq));
            }
        }
    }
    let mut heard: Vec<_> = said
        .values()
        .filter_map(|said| match said.fate {
            Fate::Accepted(seq) => Some((place_of(said), said.first_at, said.heard_at, seq)),
            _ => None,
        })
        .collect();
    heard.sort();
    for (place, _, heard_at, seq) in &heard {
        // Whatever was said after this was known to be accepted has a greater number.
        let later = heard.iter().filter(|(other, said_at, ..)| other == place && said_at > heard_at);
        for (.., number) in later.filter(|(.., number)| number < seq) {
            stage.violate(format!("{place}: {number} was said after {seq} was accepted"));
        }
    }
}

/// The number of a message, by its mark.
fn number_of(mark: &str) -> Option<usize> {
    mark.strip_prefix('m')?.strip_suffix('m')?.parse().ok()
}

/// What kills is set aside, and nothing else is. Where handlers panicked without a reason, anything may be blamed; of two that kill only
/// together, the later is.
fn poison(props: &Props, journals: &Journals, set_aside: &BTreeMap<Place, BTreeSet<Seq>>) {
    let stage = &props.stage;
    if !stage.chance.panicked().is_empty() {
        return;
    }
    let planned: BTreeSet<_> = lock(&props.people.set_aside).iter().map(|(room, seq)| (place_of(props, *room), *seq)).collect();
    let committed = lock(&props.store.committed);
    for (place, seq) in set_aside.iter().flat_map(|(place, all)| all.iter().map(move |seq| (place, *seq))) {
        if planned.contains(&(place.clone(), seq)) {
            continue;
        }
        let kills = |seq: Seq, how: &str| {
            let mut said = committed.iter().filter(|entry| entry.place == *place && entry.recorded.seq == seq);
            said.any(|entry| matches!(&entry.recorded.event, Event::Said { message, .. } if message.text.contains(how)))
        };
        // Of the addresses that a record leaves open, only the newest may be refused after a restart. What kills while it is unsettled, and
        // would be refused and thereby settle, kills only together with an address after it.
        let is_harmless_without = |recorded: &Recorded| match recorded.event {
            Event::AddressRefused { message } => {
                let kills_while_open = kills(message, poison::GONE_ON) || kills(message, poison::WOKEN);
                message < seq && seq <= recorded.handled && kills_while_open
            }
            _ => false,
        };
        if kills(seq, "poison-") {
            stage.reach("message that kills set aside");
        } else if !journals.get(place).is_some_and(|events| events.iter().any(is_harmless_without)) {
            stage.violate(format!("{place}: {seq} is set aside and has killed nobody"));
        }
    }
}

/// No part was posted twice, and what was posted is on record.
fn posted(props: &Props, journals: &Journals, deleted: &BTreeSet<Place>) {
    let stage = &props.stage;
    let mut nonces = BTreeSet::new();
    let parts = props.platform.parts().into_iter();
    for part in parts.filter(|part| !deleted.contains(&Place::new(&part.guild, &part.channel))) {
        if !nonces.insert(part.nonce.clone()) {
            stage.violate(format!("{} was posted twice: {:?}", part.nonce, part.text));
        }
        let place = Place::new(&part.guild, &part.channel);
        let ticket = part.nonce.rsplit_once('#').and_then(|(_, rest)| rest.split_once('.')).map(|(ticket, _)| ticket.to_owned());
        let is_its = |recorded: &Recorded| {
            let Event::Said { reply: Some(reply), message, .. } = &recorded.event else { return false };
            Some(reply.to_string()) == ticket && (message.text.is_empty() || message.text.contains(part.text.trim()))
        };
        if !journals.get(&place).is_some_and(|events| events.iter().any(is_its)) {
            stage.violate(format!("{} was posted and is not on record: {:?}", part.nonce, part.text));
        }
    }
}

/// Nothing of one guild is kept under another.
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
    let by_channel = [Kind::Journal, Kind::Snapshot, Kind::Outbox, Kind::MessageId, Kind::Summary, Kind::SetAside];
    if !by_channel.into_iter().any(|kind| key.is(kind)) {
        return None;
    }
    let place = props.store.place_of(ward, key::channel_in(key)?)?;
    Some(place.guild.as_str().to_owned())
}
