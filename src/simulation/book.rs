//! What came to the store besides events, and how long it was on its way: what is counted of it, and who can have died meanwhile.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::doing::PLANNED;
use super::stage::{Stage, lock};
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::{DeadLetterRecord, OutboxRecord, PartRecord, decode};
use crate::ports::store::Write;
use crate::ports::store::key::{Key, Kind};

/// What a writer looks up before it can hand the first of a journal to the store takes no longer.
const OPENING: Duration = Duration::from_millis(300);

/// The book.
#[derive(Default)]
pub(super) struct Book {
    pub(super) kept: Mutex<Vec<Kept>>,
    /// By life.
    groups: Mutex<BTreeMap<u64, Groups>>,
    batches: AtomicU64,
    /// When the newest group came, and when the newest was answered.
    newest: Mutex<(Duration, Duration)>,
    /// How far the parts of each statement that is owed have come.
    parts: Mutex<BTreeMap<Key, Vec<PartRecord>>>,
}

/// Since when what is in a group can have been on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    /// Nobody handed it to the writer sooner.
    since: Duration,
    /// When the writer handed it to the store.
    asked: Duration,
}

/// Since when something that was stored was on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnItsWay {
    /// Nobody handed it to the writer sooner.
    pub(super) since: Duration,
    /// When the writer handed it to the store.
    pub(super) asked: Duration,
    /// Which batch it was in, of all.
    pub(super) batch: u64,
}

/// Something stored that is no event, and is counted.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) at: Duration,
    pub(super) life: u64,
    pub(super) channel_key: ChannelKey,
    pub(super) what: KeptWhat,
    pub(super) is_answered: bool,
    pub(super) on_its_way: OnItsWay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptWhat {
    /// A part of a statement was posted.
    Sent,
    /// Nobody can know whether one was.
    Unconfirmed,
    /// A message that killed its handler was set aside.
    DeadLetter,
}

/// What came to the store in one life of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups {
    pub(super) groups: u64,
    pub(super) batches: u64,
    /// How many of the groups failed, or nobody knows.
    pub(super) failed: u64,
}

impl Book {
    /// A group comes. While one is on its way the next waits for it, so what is in it was handed over after that came.
    pub(super) fn comes(&self, stage: &Stage, batches: usize) -> Came {
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
        Came { since, asked }
    }

    /// The newest group is answered.
    pub(super) fn answers(&self, stage: &Stage) {
        lock(&self.newest).1 = stage.now();
    }

    /// The newest group failed.
    pub(super) fn fails(&self, stage: &Stage) {
        lock(&self.groups).entry(stage.life()).or_default().failed += 1;
    }

    /// Another process begins.
    pub(super) fn begins_anew(&self) {
        *lock(&self.newest) = (Duration::ZERO, Duration::ZERO);
    }

    /// The next batch of a group.
    pub(super) fn on_its_way(&self, Came { since, asked }: Came) -> OnItsWay {
        OnItsWay { since, asked, batch: self.batches.fetch_add(1, Ordering::Relaxed) }
    }

    pub(super) fn groups(&self, life: u64) -> Groups {
        lock(&self.groups).get(&life).copied().unwrap_or_default()
    }

    /// Keeps in mind what is no event and is counted.
    pub(super) fn keep(
        &self,
        stage: &Stage,
        write: &Write,
        channel_key: impl Fn(&Key) -> Option<ChannelKey>,
        on_its_way: OnItsWay,
        is_answered: bool,
    ) {
        let (Write::Put(key, _) | Write::Remove(key)) = write;
        let whats: Vec<_> = match write {
            Write::Put(key, value) if key.is(Kind::Outbox) => {
                let parts = decode::<OutboxRecord>(key, value).map(|record| record.parts).unwrap_or_default();
                let before = lock(&self.parts).insert(key.clone(), parts.clone()).unwrap_or_default();
                if let Some(channel_key) = channel_key(key).filter(|_| !parts.is_empty()) {
                    let channel = &channel_key.channel;
                    stage.tell(format!("{channel} has the parts of a statement as {parts:?}, before as {before:?}"));
                }
                parts.iter().enumerate().filter_map(|(index, part)| what_came_of(before.get(index), part)).collect()
            }
            Write::Remove(key) if key.is(Kind::Outbox) => {
                lock(&self.parts).remove(key);
                return;
            }
            Write::Put(key, value) if key.is(Kind::DeadLetter) => match decode::<DeadLetterRecord>(key, value) {
                Ok(record) if !record.is_closed && &*record.error != PLANNED => vec![KeptWhat::DeadLetter],
                _ => return,
            },
            _ => return,
        };
        let (at, life, Some(channel_key)) = (stage.now(), stage.life(), channel_key(key)) else { return };
        let kept = |what| Kept { at, life, channel_key: channel_key.clone(), what, is_answered, on_its_way };
        lock(&self.kept).extend(whats.into_iter().map(kept));
    }
}

fn what_came_of(before: Option<&PartRecord>, part: &PartRecord) -> Option<KeptWhat> {
    match (part, before) {
        (PartRecord::Sent { .. }, Some(PartRecord::Sent { .. })) | (PartRecord::Unconfirmed, Some(PartRecord::Unconfirmed)) => {
            None
        }
        (PartRecord::Sent { .. }, _) => Some(KeptWhat::Sent),
        (PartRecord::Unconfirmed, _) => Some(KeptWhat::Unconfirmed),
        (PartRecord::Owed | PartRecord::Sending { .. }, _) => None,
    }
}
