//! The people who have a room open in a browser, and whether they are typing. Presence is not stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::domain::lookalike::look_alike;
use crate::ports::backend::room::RoomId;

/// How long a person counts as typing after the last report.
const TYPING_FOR: Duration = Duration::from_secs(6);

/// A person with an open room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct PersonHere {
    name: Arc<str>,
    /// Whether the person joined with an invitation.
    guest: bool,
    typing: bool,
}

/// The people in all rooms. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub(super) struct Presence(Arc<Mutex<HashMap<RoomId, Room>>>);

#[derive(Default)]
struct Room {
    /// One entry per connection, oldest first.
    people: Vec<Connected>,
    next: u64,
    /// The people of which the watchers were last told.
    told: Vec<PersonHere>,
    changed: watch::Sender<()>,
}

impl Room {
    /// The people here, without duplicates.
    fn people(&self) -> Vec<PersonHere> {
        let (now, mut people) = (Instant::now(), Vec::<PersonHere>::new());
        for one in &self.people {
            let is_typing = one.typing_until.is_some_and(|until| now < until);
            match people.iter_mut().find(|known| known.name == one.name) {
                Some(known) => known.typing |= is_typing,
                None => people.push(PersonHere { name: one.name.clone(), guest: one.is_guest, typing: is_typing }),
            }
        }
        people
    }

    /// Tells the watchers of a change. Another connection of the same person is none.
    fn tell(&mut self) {
        let people = self.people();
        if self.told != people {
            self.told = people;
            self.changed.send_replace(());
        }
    }
}

struct Connected {
    connection: u64,
    name: Arc<str>,
    is_guest: bool,
    typing_until: Option<Instant>,
}

/// A connection to a room. A person has left when the person's last connection is dropped.
pub(super) struct Here {
    presence: Presence,
    room: RoomId,
    connection: u64,
    changed: watch::Receiver<()>,
}

impl Presence {
    /// Enters a room. Without a person, the connection only observes the people there.
    pub(super) fn enter(&self, room: &RoomId, person: Option<(Arc<str>, bool)>) -> Here {
        let mut rooms = self.0.lock();
        let there = rooms.entry(room.clone()).or_default();
        let connection = there.next;
        there.next += 1;
        if let Some((name, is_guest)) = person {
            there.people.push(Connected { connection, name, is_guest, typing_until: None });
            there.tell();
        }
        let mut changed = there.changed.subscribe();
        // A new connection gets the list of people at once.
        if !there.people.is_empty() {
            changed.mark_changed();
        }
        Here { presence: self.clone(), room: room.clone(), connection, changed }
    }

    /// The people in a room, without duplicates.
    pub(super) fn people(&self, room: &RoomId) -> Vec<PersonHere> {
        self.0.lock().get(room).map(Room::people).unwrap_or_default()
    }

    /// Whether a guest of this name has the room open.
    pub(super) fn is_here(&self, room: &RoomId, guest: &str) -> bool {
        self.people(room).iter().any(|person| person.guest && *person.name == *guest)
    }

    /// Whether an operator has a room open under this name, or under one that looks like it.
    pub(super) fn has_host(&self, name: &str) -> bool {
        let rooms = self.0.lock();
        rooms.values().flat_map(|room| &room.people).any(|person| !person.is_guest && look_alike(&person.name, name))
    }

    /// Records whether a person in the room is typing. Others see it for six seconds.
    pub(super) fn typing(&self, room: &RoomId, name: &str, is_typing: bool) {
        let until = is_typing.then(|| Instant::now() + TYPING_FOR);
        self.update(room, |there| {
            let is_person = |one: &&mut Connected| *one.name == *name;
            there.people.iter_mut().filter(is_person).for_each(|one| one.typing_until = until);
        });
        if let Some(until) = until {
            let (presence, room) = (self.clone(), room.clone());
            tokio::spawn(async move {
                tokio::time::sleep_until(until).await;
                presence.update(&room, |_| ());
            });
        }
    }

    fn update(&self, room: &RoomId, change: impl FnOnce(&mut Room)) {
        let mut rooms = self.0.lock();
        let Some(there) = rooms.get_mut(room) else { return };
        change(there);
        there.tell();
        // Removes a room without people and watchers.
        if there.people.is_empty() && there.changed.is_closed() {
            rooms.remove(room);
        }
    }
}

impl Here {
    /// Waits for a change of the people in the room, or of their typing.
    pub(super) async fn changed(&mut self) {
        // The sender lives as long as the room has a watcher.
        let _ = self.changed.changed().await;
    }

    pub(super) fn people(&self) -> Vec<PersonHere> {
        self.presence.people(&self.room)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // The room is removed with its last watcher.
        self.changed = watch::channel(()).1;
        self.presence.update(&self.room, |there| there.people.retain(|one| one.connection != self.connection));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn names(presence: &Presence, room: &RoomId) -> Vec<String> {
        let person = |one: &PersonHere| format!("{}{}", one.name, if one.typing { " types" } else { "" });
        presence.people(room).iter().map(person).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn people_are_here_as_long_as_they_have_the_room_open() {
        let (presence, room) = (Presence::default(), RoomId::parse("lobby").unwrap());
        let host = presence.enter(&room, Some(("Ana".into(), false)));
        let mut watcher = presence.enter(&room, None);
        let guest = [0; 2].map(|_| presence.enter(&room, Some(("Ben".into(), true))));

        assert_eq!(names(&presence, &room), ["Ana", "Ben"], "each once");
        assert!(presence.is_here(&room, "Ben") && !presence.is_here(&room, "Ana"));
        watcher.changed().await;
        presence.typing(&room, "Ben", true);
        watcher.changed().await;
        assert_eq!(names(&presence, &room), ["Ana", "Ben types"]);
        // It lapses by itself.
        watcher.changed().await;
        assert_eq!(names(&presence, &room), ["Ana", "Ben"]);
        // Long polling reconnects over and over.
        drop(presence.enter(&room, Some(("Ben".into(), true))));
        assert_eq!(watcher.changed().now_or_never(), None);
        drop(guest);
        watcher.changed().await;
        assert_eq!(names(&presence, &room), ["Ana"]);
        drop((host, watcher));
        assert!(presence.0.lock().is_empty());
    }
}
