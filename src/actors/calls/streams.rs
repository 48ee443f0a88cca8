//! Which people in a call have a recognition stream: those who began to speak most recently.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::domain::id::PersonId;
use crate::telemetry::instruments::kinds::Counted;

/// The open streams of a call.
#[derive(Default)]
pub struct Streams {
    open: Mutex<BTreeMap<PersonId, (AbortHandle, Counted)>>,
}

/// How much somebody needs a stream. The larger one gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// Whether the person talks, or the words are awaited.
    pub is_active: bool,
    /// When the person began to speak.
    pub since: Option<Instant>,
}

/// A stream that was opened.
pub struct Opened {
    pub task: AbortHandle,
    /// The person who had it before.
    pub displaced: Option<PersonId>,
}

impl Streams {
    /// Opens a stream for a person who talks. If there are `most`, the one that is needed least ends for it.
    /// None: all are needed more.
    pub fn open(
        &self,
        user: &PersonId,
        most: usize,
        need: impl Fn(&PersonId) -> Need,
        begin: impl FnOnce() -> (AbortHandle, Counted),
    ) -> Option<Opened> {
        let mut open = self.open.lock();
        let mut displaced = None;
        if open.len() >= most && !open.contains_key(user) {
            let needed_least = open.keys().map(|other| (need(other), other)).min()?;
            let own = Need { is_active: true, ..need(user) };
            if needed_least.0 >= own {
                return None;
            }
            let other = needed_least.1.clone();
            if let Some((task, _)) = open.remove(&other) {
                task.abort();
            }
            displaced = Some(other);
        }
        let (task, counted) = begin();
        open.insert(user.clone(), (task.clone(), counted));
        Some(Opened { task, displaced })
    }

    /// Whether a stream was not displaced.
    pub fn has(&self, user: &PersonId, task: &AbortHandle) -> bool {
        self.open.lock().get(user).is_some_and(|(other, _)| other.id() == task.id())
    }

    /// Ends a stream. One that was displaced has ended already.
    pub fn close(&self, user: &PersonId, task: &AbortHandle) {
        task.abort();
        let mut open = self.open.lock();
        if open.get(user).is_some_and(|(other, _)| other.id() == task.id()) {
            open.remove(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::telemetry::instruments::NONE;
    use crate::telemetry::memory::SpanMemory;

    fn user(name: &str) -> PersonId {
        PersonId::from(name)
    }

    /// Opens a stream for somebody. `needs` says of everybody whether the person is active, and at which second the person began.
    fn open(streams: &Streams, name: &str, needs: &[(&str, bool, u64)], begun: Instant) -> Option<Option<PersonId>> {
        let need = |user: &PersonId| {
            let (_, is_active, since) = needs.iter().find(|(name, ..)| user.as_str() == *name).copied().unwrap();
            Need { is_active, since: Some(begun + Duration::from_secs(since)) }
        };
        let counted = SpanMemory::new().recorder(false).instruments().voice_streams.one(NONE);
        let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
        streams.open(&user(name), 2, need, || (task, counted)).map(|opened| opened.displaced)
    }

    #[tokio::test]
    async fn who_began_last_takes_the_stream_of_who_began_first() {
        let (streams, now) = (Streams::default(), Instant::now());
        let needs = [("ana", true, 1), ("ben", true, 2), ("cleo", true, 3)];

        assert_eq!(open(&streams, "ana", &needs, now), Some(None));
        assert_eq!(open(&streams, "ben", &needs, now), Some(None));
        assert_eq!(open(&streams, "cleo", &needs, now), Some(Some(user("ana"))));
        assert_eq!(open(&streams, "ana", &needs, now), None, "the others began later");
    }

    #[tokio::test]
    async fn a_stream_that_nobody_needs_is_taken_first() {
        let (streams, now) = (Streams::default(), Instant::now());
        let needs = [("ana", true, 1), ("ben", false, 3), ("cleo", true, 0)];
        open(&streams, "ana", &needs, now);
        open(&streams, "ben", &needs, now);

        assert_eq!(open(&streams, "cleo", &needs, now), Some(Some(user("ben"))));
    }
}
