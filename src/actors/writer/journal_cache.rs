//! The cache of journal positions, so that the writer need not read them from the store for each request.

use std::collections::{BTreeMap, VecDeque};

use super::plan::JournalPosition;
use crate::actors::messages::writer::Request;
use crate::journal::channel_key::ChannelKey;

/// The cached journals. Over the capacity, idle journals are evicted, the longest unused first.
pub(super) struct JournalCache {
    /// Ordered, so that waiting requests fail in a fixed order.
    journals: BTreeMap<ChannelKey, Journal>,
    /// Journals without requests in progress, by their last use.
    idle: BTreeMap<u64, ChannelKey>,
    uses: u64,
    capacity: usize,
}

enum Journal {
    /// The position is being read from the store. These requests wait for it, in order.
    Opening(VecDeque<Request>),
    Open {
        position: JournalPosition,
        /// The number of requests that wait or are in flight.
        busy: usize,
        /// The journal's key in `idle`.
        idle_since: Option<u64>,
    },
}

/// The result of enqueueing a request.
#[derive(Debug)]
pub(super) enum Admission {
    /// Its journal is open: the request was added to the ready ones.
    Ready,
    /// The request waits for its journal.
    Waits,
    /// The request waits for its journal, whose position must be read.
    First(ChannelKey),
}

impl JournalCache {
    pub(super) fn new(capacity: usize) -> Self {
        Self { journals: BTreeMap::new(), idle: BTreeMap::new(), uses: 0, capacity }
    }

    /// Adds a request to the ready ones if its journal is open. Otherwise the request waits for its journal.
    pub(super) fn enqueue(&mut self, request: Request, channel_key: ChannelKey, ready: &mut VecDeque<Request>) -> Admission {
        match self.journals.get_mut(&channel_key) {
            Some(Journal::Open { busy, idle_since, .. }) => {
                *busy += 1;
                if let Some(since) = idle_since.take() {
                    self.idle.remove(&since);
                }
                ready.push_back(request);
                Admission::Ready
            }
            Some(Journal::Opening(waiting)) => {
                waiting.push_back(request);
                Admission::Waits
            }
            None => {
                self.journals.insert(channel_key.clone(), Journal::Opening([request].into()));
                Admission::First(channel_key)
            }
        }
    }

    /// Notes a journal's position. Returns the requests that waited for it, which can be written now.
    pub(super) fn open(&mut self, channel_key: ChannelKey, position: JournalPosition) -> VecDeque<Request> {
        let waiting = self.give_up(&channel_key);
        let busy = waiting.len();
        self.journals.insert(channel_key, Journal::Open { position, busy, idle_since: None });
        waiting
    }

    /// Removes a journal whose position cannot be read. Returns the requests that waited for it.
    pub(super) fn give_up(&mut self, channel_key: &ChannelKey) -> VecDeque<Request> {
        match self.journals.remove(channel_key) {
            Some(Journal::Opening(waiting)) => waiting,
            Some(Journal::Open { .. }) | None => VecDeque::new(),
        }
    }

    /// Removes all journals that are being opened. Returns the requests that waited for them.
    pub(super) fn give_up_all(&mut self) -> Vec<Request> {
        let channel_keys: Vec<_> = self
            .journals
            .iter()
            .filter(|(_, journal)| matches!(journal, Journal::Opening(_)))
            .map(|(channel_key, _)| channel_key.clone())
            .collect();
        channel_keys.iter().flat_map(|channel_key| self.give_up(channel_key)).collect()
    }

    /// The position of an open journal.
    pub(super) fn position(&self, channel_key: &ChannelKey) -> Option<&JournalPosition> {
        match self.journals.get(channel_key)? {
            Journal::Open { position, .. } => Some(position),
            Journal::Opening(_) => None,
        }
    }

    /// Moves a journal to a new position.
    pub(super) fn advance(&mut self, channel_key: &ChannelKey, to: JournalPosition) {
        if let Some(Journal::Open { position, .. }) = self.journals.get_mut(channel_key) {
            *position = to;
        }
    }

    /// Notes that a request for a journal was answered, and evicts idle journals over the capacity.
    pub(super) fn release(&mut self, channel_key: &ChannelKey) {
        if let Some(Journal::Open { busy, idle_since, .. }) = self.journals.get_mut(channel_key) {
            *busy = busy.saturating_sub(1);
            if *busy == 0 {
                self.uses += 1;
                *idle_since = Some(self.uses);
                self.idle.insert(self.uses, channel_key.clone());
            }
        }
        while self.journals.len() > self.capacity
            && let Some((_, channel_key)) = self.idle.pop_first()
        {
            self.journals.remove(&channel_key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.journals.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::messages::reply::Reply;
    use crate::actors::messages::writer::Fence;
    use crate::samples::channel_key;

    #[test]
    fn the_longest_unused_journal_is_evicted_first() {
        let mut journal_cache = JournalCache::new(2);

        for name in ["one", "two", "one", "three"] {
            request(&mut journal_cache, name);
            journal_cache.release(&channel_key(name));
        }

        assert_eq!(journal_cache.len(), 2);
        assert!(journal_cache.position(&channel_key("two")).is_none());
    }

    #[test]
    fn a_journal_with_requests_in_progress_is_never_evicted() {
        let mut journal_cache = JournalCache::new(1);

        for name in ["one", "two", "three"] {
            request(&mut journal_cache, name);
        }
        journal_cache.release(&channel_key("three"));

        assert_eq!(journal_cache.len(), 2);
        assert!(journal_cache.position(&channel_key("three")).is_none());
    }

    fn request(journal_cache: &mut JournalCache, name: &str) {
        let fence = Request::Fence(Fence { channel_key: channel_key(name), reply: Reply::ignored() });
        if let Admission::First(channel_key) = journal_cache.enqueue(fence, channel_key(name), &mut VecDeque::new()) {
            journal_cache.open(channel_key, JournalPosition::default());
        }
    }
}
