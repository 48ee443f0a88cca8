//! Records the writes to the store that metrics count although they are no events, and how long groups were in flight. The checks of metrics use it
//! to know which actors may have died in between.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::doing::PLANNED;
use super::stage::{Stage, lock};
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::{DeadLetterRecord, OutboxRecord, PartRecord, decode};
use crate::ports::store::Write;
use crate::ports::store::key::{Key, Kind};

/// The longest time that a writer needs for lookups before it can pass the first event of a journal to the store.
const OPENING: Duration = Duration::from_millis(300);

#[derive(Default)]
pub(super) struct Book {
    pub(super) counted: Mutex<Vec<CountedWrite>>,
    /// By life.
    groups: Mutex<BTreeMap<u64, Groups>>,
    batches: AtomicU64,
    /// When the newest group arrived, and when the newest was answered.
    newest: Mutex<(Duration, Duration)>,
    /// The state of each part of each owed statement.
    parts: Mutex<BTreeMap<Key, Vec<PartRecord>>>,
}

/// The earliest time at which the contents of a group can have been in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// No actor sent it to the writer earlier.
    since: Duration,
    /// When the writer passed it to the store.
    asked: Duration,
}

/// The time in flight of something that was stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    /// No actor sent it to the writer earlier.
    pub(super) since: Duration,
    /// When the writer passed it to the store.
    pub(super) asked: Duration,
    /// The number of its batch, counted over all.
    pub(super) batch: u64,
}

/// A stored record that is no event, and is counted.
#[derive(Clone, Debug)]
pub(super) struct CountedWrite {
    pub(super) at: Duration,
    pub(super) life: u64,
    pub(super) channel_key: ChannelKey,
    pub(super) kind: CountedKind,
    pub(super) is_answered: bool,
    pub(super) in_flight: InFlight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedKind {
    /// A part of a statement was posted.
    Sent,
    /// It is unknown whether a part was posted.
    Unconfirmed,
    /// A message that killed its handler became a dead letter.
    DeadLetter,
}

/// The groups that reached the store in one life of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups {
    pub(super) groups: u64,
    pub(super) batches: u64,
    /// The groups that failed, or whose outcome is unknown.
    pub(super) failed: u64,
}

impl Book {
    /// Records that a group arrives. Its requests may have waited while the previous group was in flight, but not since before that one arrived.
    pub(super) fn group_arrived(&self, stage: &Stage, batches: usize) -> Arrival {
        let asked = stage.now();
        let (before, answered) = {
            let mut newest = lock(&self.newest);
            let before = *newest;
            newest.0 = asked;
            before
        };
        let has_waited = answered < before || answered + OPENING >= asked;
        let since = if has_waited { before } else { asked }.saturating_sub(OPENING);
        let mut groups = lock(&self.groups);
        let groups = groups.entry(stage.life()).or_default();
        groups.groups += 1;
        groups.batches += batches as u64;
        Arrival { since, asked }
    }

    pub(super) fn group_answered(&self, stage: &Stage) {
        lock(&self.newest).1 = stage.now();
    }

    pub(super) fn group_failed(&self, stage: &Stage) {
        lock(&self.groups).entry(stage.life()).or_default().failed += 1;
    }

    pub(super) fn restart(&self) {
        *lock(&self.newest) = (Duration::ZERO, Duration::ZERO);
    }

    /// Numbers the next batch of a group.
    pub(super) fn in_flight(&self, Arrival { since, asked }: Arrival) -> InFlight {
        InFlight { since, asked, batch: self.batches.fetch_add(1, Ordering::Relaxed) }
    }

    pub(super) fn groups(&self, life: u64) -> Groups {
        lock(&self.groups).get(&life).copied().unwrap_or_default()
    }

    /// Records the write if metrics count it although it is no event.
    pub(super) fn note(
        &self,
        stage: &Stage,
        write: &Write,
        channel_key: impl Fn(&Key) -> Option<ChannelKey>,
        in_flight: InFlight,
        is_answered: bool,
    ) {
        let (Write::Put(key, _) | Write::Remove(key)) = write;
        let kinds: Vec<_> = match write {
            Write::Put(key, value) if key.is(Kind::Outbox) => {
                let parts = decode::<OutboxRecord>(key, value).map(|record| record.parts).unwrap_or_default();
                let before = lock(&self.parts).insert(key.clone(), parts.clone()).unwrap_or_default();
                if let Some(channel_key) = channel_key(key).filter(|_| !parts.is_empty()) {
                    let channel = &channel_key.channel;
                    stage.log(format!("{channel}: the parts of a statement are {parts:?}, before {before:?}"));
                }
                parts.iter().enumerate().filter_map(|(index, part)| outcome_of(before.get(index), part)).collect()
            }
            Write::Remove(key) if key.is(Kind::Outbox) => {
                lock(&self.parts).remove(key);
                return;
            }
            Write::Put(key, value) if key.is(Kind::DeadLetter) => match decode::<DeadLetterRecord>(key, value) {
                Ok(record) if !record.is_closed && &*record.error != PLANNED => vec![CountedKind::DeadLetter],
                _ => return,
            },
            _ => return,
        };
        let (at, life, Some(channel_key)) = (stage.now(), stage.life(), channel_key(key)) else { return };
        let kept = |kind| CountedWrite { at, life, channel_key: channel_key.clone(), kind, is_answered, in_flight };
        lock(&self.counted).extend(kinds.into_iter().map(kept));
    }
}

fn outcome_of(before: Option<&PartRecord>, part: &PartRecord) -> Option<CountedKind> {
    match (part, before) {
        (PartRecord::Sent { .. }, Some(PartRecord::Sent { .. })) | (PartRecord::Unconfirmed, Some(PartRecord::Unconfirmed)) => {
            None
        }
        (PartRecord::Sent { .. }, _) => Some(CountedKind::Sent),
        (PartRecord::Unconfirmed, _) => Some(CountedKind::Unconfirmed),
        (PartRecord::Owed | PartRecord::Sending { .. }, _) => None,
    }
}
