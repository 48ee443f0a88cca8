//! Nothing of what was taken back or forgotten is left, and the index of persons tells of everybody else.

use std::collections::BTreeSet;

use super::super::life::Props;
use super::super::stage::lock;
use super::{Journals, place_of};
use crate::domain::id::{PersonId, Ward};
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::speakers::speaker;
use crate::ports::store::key::{Key, Kind};

pub(super) fn check(props: &Props, journals: &Journals, deleted: &BTreeSet<Place>) {
    let (stage, stored) = (&props.stage, props.store.all());
    let said = lock(&props.people.said);
    for number in &*lock(&props.people.gone) {
        let Some(said) = said.get(number).filter(|said| !said.is_said_anew) else { continue };
        let place = place_of(props, said.say.room);
        // What goes with its room can be said again as something new.
        if deleted.contains(&place) {
            continue;
        }
        stage.reach("taken back for good");
        let mark = format!(" m{number}m ");
        for (key, _) in stored.iter().filter(|(_, value)| String::from_utf8_lossy(value).contains(&mark)) {
            stage.violate(format!("{place}: message {number} was taken back, and {key} still holds its words"));
        }
    }
    let is_left = |key: &Key| key::unlisted_in(key).is_some() || key::swept_in(key).is_some();
    for (key, _) in stored.iter().filter(|(key, _)| is_left(key)) {
        stage.violate(format!("{key} was begun, and is never ended"));
    }
    let listed: BTreeSet<&Key> =
        stored.iter().map(|(key, _)| key).filter(|key| key.as_bytes()[1] == Kind::Person as u8).collect();
    let numbers = stored.iter().map(|(key, _)| key).filter(|key| key.as_bytes()[1] == Kind::ChannelOf as u8);
    let mut there = BTreeSet::new();
    for (ward, no) in numbers.filter_map(|key| Some((Ward(key.as_bytes()[0]), key::channel_in(key)?))) {
        let Some(place) = props.store.place_of(ward, no) else { continue };
        for recorded in journals.get(&place).into_iter().flatten() {
            there.extend(speaker(&recorded.event).map(|id| key::person(&place.guild, &PersonId::from(&**id), no, recorded.seq)));
        }
    }
    for key in listed.iter().filter(|key| !there.contains(**key)) {
        stage.violate(format!("{key} is listed, and nothing of theirs is there"));
    }
    for key in there.iter().filter(|key| !listed.contains(key)) {
        stage.violate(format!("{key} is not listed, and something of theirs is there"));
    }
}
