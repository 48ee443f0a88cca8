//! The writer's queue: the requests that wait, the groups in flight to the store, and the handling of the store's answers.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::journal_cache::{Admission, JournalCache};
use super::plan::{JournalPosition, is_message_id, plan, weight};
use super::{Arguments, measures};
use crate::actors::messages::channel::{ChannelMessage, Received};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{
    Accept, Accepted, Committed, DeleteChannel, DeleteExpired, Fence, HandOver, Held, Post, Record, RedactEvents, Refused,
    RemoveFromIndex, Request, WriteError, WriteMeta,
};
use crate::actors::runtime::hub::Live;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::erased;
use crate::journal::reader::{Head, ReadError};
use crate::journal::record::decode;
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Batch, Refusal, Store, StoreError, Value};
use crate::telemetry::instruments::{Instruments, NONE};
use crate::telemetry::plain::Plain;

/// A task that waits for the store.
pub(super) enum StoreTask {
    /// Acquire a ward.
    Take(Ward),
    /// Read the position of a journal.
    Open(ChannelKey),
    /// Commit a group, by its number. Groups are handed to the store in the order of their numbers.
    Commit(u64, Vec<Batch>),
    /// Remove the remains of a deleted channel.
    Sweep { channel_key: ChannelKey, no: ChannelNo, below: Seq, reply: Reply<()> },
}

pub(super) struct WriteQueue {
    arguments: Arguments,
    /// Ordered, so that waiting requests fail in a fixed order when the store has failed.
    wards: BTreeMap<Ward, WardState>,
    journal_cache: JournalCache,
    /// The requests that can be written, in order.
    ready: VecDeque<Request>,
    /// How many requests wait for a ward or for their journal.
    waiting: usize,
    /// The groups in flight, the oldest first.
    in_flight: VecDeque<Group>,
    /// How many groups were formed.
    groups: u64,
    /// Journals that cannot be read. Each is logged once, however often opening it is retried.
    unreadable: HashSet<ChannelKey>,
    /// The failure of the store, after which nothing is written.
    broken: Option<Arc<str>>,
    /// The tasks to start next.
    pub(super) tasks: Vec<StoreTask>,
}

enum WardState {
    /// The ward is being acquired. These wait for it.
    Taking(Vec<Waiter>),
    Held(Held),
}

enum Waiter {
    /// A journal to be opened.
    Journal(ChannelKey),
    /// A request that concerns no journal.
    Request(Box<Request>),
}

/// How many groups can be in flight at a time. While the store commits the first, the next is formed.
const MAX_GROUPS_IN_FLIGHT: usize = 2;

/// A group in flight.
struct Group {
    number: u64,
    planned: Vec<Planned>,
    /// The positions of its journals once it is committed.
    positions: HashMap<ChannelKey, JournalPosition>,
    /// Journals for which the store refused a batch of the previous group after this group was formed.
    behind: HashSet<ChannelKey>,
    /// The requests of the previous group that must be retried. They go before the retries of this group.
    retry: VecDeque<Request>,
    /// The store's answer, while the previous group is not answered.
    outcome: Option<Outcome>,
}

type Outcome = Result<Vec<Result<(), Refusal>>, StoreError>;

/// A request in a group. Its batch, if it needs one, is in flight.
struct Planned {
    request: Request,
    has_batch: bool,
    /// The position of its journal once it is committed.
    position: JournalPosition,
    events: Vec<Arc<Recorded>>,
}

impl WriteQueue {
    pub(super) fn new(arguments: Arguments) -> Self {
        Self {
            wards: BTreeMap::new(),
            journal_cache: JournalCache::new(arguments.bounds.journals),
            ready: VecDeque::new(),
            waiting: 0,
            in_flight: VecDeque::new(),
            groups: 0,
            unreadable: HashSet::new(),
            broken: None,
            tasks: Vec::new(),
            arguments,
        }
    }

    fn instruments(&self) -> &Instruments {
        self.arguments.context.recorder.instruments()
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.arguments.context.store
    }

    /// Accepts a request. It becomes ready once its ward is held and its journal is open.
    pub(super) fn enqueue(&mut self, request: Request) {
        if let Some(reason) = &self.broken {
            return request.fail(WriteError::Unavailable(reason.clone()));
        }
        let mut request = match request {
            Request::Accept(Accept { reply, .. }) if self.load() >= self.arguments.bounds.waiting => {
                return reply.send(Err(Refused::Busy { retry_after: self.arguments.bounds.retry_after }));
            }
            request => request,
        };
        if let Request::Accept(Accept { at, .. }) | Request::Post(Post { at, .. }) | Request::HandOver(HandOver { at, .. }) =
            &mut request
        {
            at.get_or_insert_with(|| self.arguments.context.clock.now());
        }
        let Some(channel_key) = request.channel_key().cloned() else {
            return self.enqueue_administrative(request);
        };
        match self.journal_cache.enqueue(request, channel_key, &mut self.ready) {
            Admission::Ready => {}
            Admission::Waits => self.waiting += 1,
            Admission::First(channel_key) => {
                self.waiting += 1;
                match self.waiters(channel_key.ward()) {
                    Some(waiters) => waiters.push(Waiter::Journal(channel_key)),
                    None => self.tasks.push(StoreTask::Open(channel_key)),
                }
            }
        }
    }

    fn enqueue_administrative(&mut self, request: Request) {
        match self.waiters(request.ward()) {
            Some(waiters) => {
                waiters.push(Waiter::Request(Box::new(request)));
                self.waiting += 1;
            }
            None => self.ready.push_back(request),
        }
    }

    /// The list of waiters for a ward. The first call starts to acquire the ward. `None`: the ward is held.
    fn waiters(&mut self, ward: Ward) -> Option<&mut Vec<Waiter>> {
        let tasks = &mut self.tasks;
        let state = self.wards.entry(ward).or_insert_with(|| {
            tasks.push(StoreTask::Take(ward));
            WardState::Taking(Vec::new())
        });
        match state {
            WardState::Taking(waiters) => Some(waiters),
            WardState::Held(_) => None,
        }
    }

    /// Handles the result of acquiring a ward.
    pub(super) fn ward_taken(&mut self, ward: Ward, held: Result<Held, ReadError>) {
        let held = match held {
            Ok(held) => held,
            Err(error) => return self.fail_store(&format!("ward {} cannot be taken: {error}", ward.0)),
        };
        let Some(WardState::Taking(waiters)) = self.wards.insert(ward, WardState::Held(held)) else { return };
        for waiter in waiters {
            match waiter {
                Waiter::Journal(channel_key) => self.tasks.push(StoreTask::Open(channel_key)),
                Waiter::Request(request) => {
                    self.waiting -= 1;
                    self.ready.push_back(*request);
                }
            }
        }
    }

    /// Handles the result of opening a journal. A journal that cannot be read fails its own requests only.
    pub(super) fn journal_opened(&mut self, channel_key: ChannelKey, head: Result<Head, ReadError>) {
        match head {
            Ok(head) => {
                self.unreadable.remove(&channel_key);
                if let (Some(no), below @ Seq(1..)) = (head.no, head.swept_below) {
                    self.tasks.push(StoreTask::Sweep { channel_key: channel_key.clone(), no, below, reply: Reply::ignored() });
                }
                let requests = self.journal_cache.open(channel_key, head.into());
                self.waiting = self.waiting.saturating_sub(requests.len());
                self.ready.extend(requests);
            }
            Err(error) => {
                if self.unreadable.insert(channel_key.clone()) {
                    tracing::error!(
                        guild = %Plain(channel_key.guild.as_str()),
                        channel = %Plain(channel_key.channel.as_str()),
                        %error,
                        "a journal cannot be opened"
                    );
                }
                let requests = self.journal_cache.give_up(&channel_key);
                self.waiting = self.waiting.saturating_sub(requests.len());
                let error = WriteError::from(error);
                requests.into_iter().for_each(|request| request.fail(error.clone()));
            }
        }
    }

    /// Whether another group can be sent. A second one is sent only if enough requests wait.
    fn can_send_group(&self) -> bool {
        match self.in_flight.back() {
            None => true,
            // Its requests that must be retried come before all waiting requests.
            Some(last) if !last.behind.is_empty() => false,
            Some(last) => {
                self.in_flight.len() < MAX_GROUPS_IN_FLIGHT
                    && self.ready.len() >= self.arguments.bounds.ahead.max(last.planned.len() / 2)
            }
        }
    }

    /// The position of a journal once all groups in flight are committed.
    fn position(&self, channel_key: &ChannelKey) -> Option<&JournalPosition> {
        let in_flight = self.in_flight.iter().rev().find_map(|group| group.positions.get(channel_key));
        in_flight.or_else(|| self.journal_cache.position(channel_key))
    }

    /// Forms the next group, if it can be sent now and something can be written. Returns it with its number.
    pub(super) fn form_group(&mut self) -> Option<(u64, Vec<Batch>)> {
        if self.broken.is_some() || !self.can_send_group() {
            return None;
        }
        let mut positions: HashMap<ChannelKey, JournalPosition> = HashMap::new();
        let (mut planned, mut batches, mut bytes) = (Vec::new(), Vec::new(), 0);
        while batches.len() < self.arguments.bounds.group_batches
            && bytes < self.arguments.bounds.group_bytes
            && let Some(request) = self.ready.pop_front()
        {
            // The ward of a ready request is held. If it is not, the request is dropped, which answers its caller.
            let channel_key = request.channel_key();
            let known = channel_key.and_then(|channel_key| positions.get(channel_key).or_else(|| self.position(channel_key)));
            let mut position = known.cloned().unwrap_or_default();
            let Some(WardState::Held(ward)) = self.wards.get_mut(&request.ward()) else { continue };
            match plan(&request, ward, &mut position) {
                Ok(mut plan) => {
                    if let Some(batch) = plan.batch.as_mut().filter(|_| request.erases()) {
                        batch.writes.extend(erased::erasure_writes(
                            batch.ward,
                            self.arguments.context.clock.now(),
                            request.is_erasure_requested(),
                        ));
                    }
                    if let Some(channel_key) = channel_key {
                        positions.insert(channel_key.clone(), position.clone());
                    }
                    let has_batch = plan.batch.is_some();
                    bytes += plan.batch.as_ref().map_or(0, weight);
                    batches.extend(plan.batch);
                    planned.push(Planned { request, has_batch, position, events: plan.events });
                }
                Err(error) => self.fail(request, error),
            }
        }
        if batches.is_empty() {
            if self.in_flight.is_empty() {
                planned.into_iter().for_each(|planned| self.finish(planned));
            } else {
                // Requests without a batch wait until the groups in flight are answered.
                planned.into_iter().rev().for_each(|planned| self.ready.push_front(planned.request));
            }
            return None;
        }
        self.instruments().group_size.record(batches.len() as f64, NONE);
        self.groups += 1;
        let number = self.groups;
        self.in_flight.push_back(Group {
            number,
            planned,
            positions,
            behind: HashSet::new(),
            retry: VecDeque::new(),
            outcome: None,
        });
        Some((number, batches))
    }

    /// Handles the store's answer for a group. Groups are concluded in the order of their numbers.
    pub(super) fn conclude(&mut self, number: u64, outcome: Outcome) {
        if let Some(group) = self.in_flight.iter_mut().find(|group| group.number == number) {
            group.outcome = Some(outcome);
        }
        while self.in_flight.front().is_some_and(|group| group.outcome.is_some())
            && let Some(Group { planned, behind, retry, outcome: Some(outcome), .. }) = self.in_flight.pop_front()
        {
            match outcome {
                Ok(results) => self.conclude_each(planned, behind, retry, results),
                Err(error) => {
                    self.ready.extend(retry);
                    let reason: Arc<str> = error.to_string().into();
                    let error = match error {
                        StoreError::Failed(_) => WriteError::Unavailable(reason.clone()),
                        StoreError::Unknown(_) | StoreError::Damaged(_) => WriteError::Unknown,
                    };
                    planned.into_iter().for_each(|planned| planned.request.fail(error.clone()));
                    self.fail_store(&reason);
                }
            }
        }
    }

    /// Answers the requests of a group that the store answered. `refused` are the journals for which the store refused a batch
    /// of the previous group, `retry` the requests of that group that must be retried.
    fn conclude_each(
        &mut self,
        group: Vec<Planned>,
        mut refused: HashSet<ChannelKey>,
        mut retry: VecDeque<Request>,
        results: Vec<Result<(), Refusal>>,
    ) {
        let mut results = results.into_iter();
        let mut broken = None;
        for planned in group {
            let channel_key = planned.request.channel_key();
            let is_behind_refused = channel_key.is_some_and(|channel_key| refused.contains(channel_key));
            let result = if planned.has_batch { results.next().unwrap_or(Ok(())) } else { Ok(()) };
            match result {
                Ok(()) if is_behind_refused && !planned.has_batch => retry.push_back(planned.request),
                Ok(()) => self.finish(planned),
                Err(Refusal::Gap { .. }) if is_behind_refused => retry.push_back(planned.request),
                Err(Refusal::Exists { key, value }) => {
                    if let Some(channel_key) = channel_key {
                        refused.insert(channel_key.clone());
                    }
                    if let Err(reason) = self.answer_existing_key(planned, &key, &value) {
                        broken.get_or_insert(reason);
                    }
                }
                Err(refusal @ (Refusal::Gap { .. } | Refusal::OldTerm { .. })) => {
                    // Another writer uses this ward.
                    let reason = refusal.to_string();
                    self.fail(planned.request, WriteError::Unavailable(reason.as_str().into()));
                    broken.get_or_insert(reason);
                }
            }
        }
        // The retries stay before all waiting requests, and get new numbers.
        if let Some(next) = self.in_flight.front_mut().filter(|_| !refused.is_empty()) {
            (next.behind, next.retry) = (refused, retry);
        } else {
            retry.extend(std::mem::take(&mut self.ready));
            self.ready = retry;
        }
        match broken {
            Some(reason) => self.fail_store(&reason),
            None => self.fail_ready_if_broken(),
        }
    }

    /// A group may be answered after the group before it has failed. Then its retries fail, too.
    fn fail_ready_if_broken(&mut self) {
        if let Some(reason) = self.broken.clone() {
            self.ready.drain(..).for_each(|request| request.fail(WriteError::Unavailable(reason.clone())));
        }
    }

    /// Answers a request whose key exists already. If the key is the message's id, the message is a duplicate. Any other key
    /// means that another writer uses this store.
    fn answer_existing_key(&mut self, planned: Planned, key: &Key, value: &Value) -> Result<(), String> {
        let Planned { request, position, .. } = planned;
        if let (Some(channel_key), Some(id), Some(no)) = (request.channel_key(), request.message_id(), position.no)
            && is_message_id(key, channel_key.ward(), no, id)
        {
            let channel_key = channel_key.clone();
            let first = decode(key, value).map(|seq| Accepted { seq, is_new: false });
            let unreadable = |error: String| WriteError::Unreadable(error.into());
            match request {
                Request::Accept(Accept { reply, .. }) => reply.send(first.map_err(|error| unreadable(error.to_string()).into())),
                Request::Post(Post { reply, .. }) => reply.send(first.map_err(|error| unreadable(error.to_string()))),
                _ => {}
            }
            self.journal_cache.release(&channel_key);
            return Ok(());
        }
        let reason = format!("the key {key} exists already: another writer uses this store");
        self.fail(request, WriteError::Unavailable(reason.as_str().into()));
        Err(reason)
    }

    /// Finishes a committed request: publishes and dispatches its events, and answers it.
    fn finish(&mut self, planned: Planned) {
        let Planned { request, has_batch, position, events } = planned;
        measures::committed(&request, &events, &self.arguments.context.platforms, self.instruments());
        let Some(channel_key) = request.channel_key().cloned() else {
            if let Request::WriteMeta(WriteMeta { reply, .. }) = request {
                reply.send(Ok(()));
            }
            return;
        };
        self.journal_cache.advance(&channel_key, position.clone());
        let mut handed_over = Vec::new();
        // The deletion of a replaced statement precedes the new one.
        let said = events.iter().find(|recorded| matches!(recorded.event, Event::Said { .. }));
        let first = said.or(events.first()).map(|recorded| recorded.seq);
        for recorded in events {
            if let Event::Disclosed(disclosed) = &recorded.event {
                self.arguments.context.told.insert(&channel_key.guild, &disclosed.owed.people, recorded.at);
            }
            self.arguments.context.hub.publish(&channel_key, Live::Recorded(recorded.clone()));
            if recorded.event.is_inbound() {
                // This is usually the only reference, unless the channel has a watcher. So this rarely copies.
                let recorded = Arc::unwrap_or_clone(recorded);
                if matches!(request, Request::HandOver(_)) {
                    handed_over.push(recorded);
                } else {
                    self.deliver(
                        &channel_key,
                        ChannelMessage::Received(Received::Inbound(Box::new(recorded), self.arguments.context.clock.now())),
                    );
                }
            }
        }
        if !handed_over.is_empty() {
            self.deliver(
                &channel_key,
                ChannelMessage::Received(Received::HandedOver(handed_over, self.arguments.context.clock.now())),
            );
        }
        let last = position.last;
        let accepted = Accepted { seq: first.unwrap_or(last), is_new: true };
        let committed = |events: usize| Committed { first: Seq(last.next().0 - events as u64), last };
        match request {
            Request::Accept(Accept { reply, .. }) => reply.send(Ok(accepted)),
            Request::Post(Post { reply, .. }) => reply.send(Ok(accepted)),
            Request::Record(Record { reply, made, .. }) => reply.send(Ok(committed(made.len()))),
            Request::HandOver(HandOver { reply, messages, .. }) => reply.send(Ok(committed(messages.len()))),
            Request::DeleteChannel(DeleteChannel { channel_key, reply }) => match position.no.filter(|_| has_batch) {
                Some(no) => self.tasks.push(StoreTask::Sweep { channel_key, no, below: last.next(), reply }),
                None => reply.send(Ok(())),
            },
            Request::RedactEvents(RedactEvents { reply, .. })
            | Request::DeleteExpired(DeleteExpired { reply, .. })
            | Request::Swept { reply, .. } => reply.send(Ok(())),
            Request::RemoveFromIndex(RemoveFromIndex { reply, .. }) => reply.send(Ok(has_batch)),
            Request::Fence(Fence { reply, .. }) => reply.send(Ok(last)),
            Request::WriteMeta(_) => {}
        }
        self.journal_cache.release(&channel_key);
    }

    fn deliver(&self, channel_key: &ChannelKey, message: ChannelMessage) {
        (self.arguments.deliver)(&channel_key.guild, &channel_key.channel, message);
    }

    fn fail(&mut self, request: Request, error: WriteError) {
        if let Some(channel_key) = request.channel_key().cloned() {
            self.journal_cache.release(&channel_key);
        }
        request.fail(error);
    }

    /// Stops writing for good: fails all waiting requests and reports the failure of the store.
    fn fail_store(&mut self, reason: &str) {
        if self.broken.is_some() {
            return self.fail_ready_if_broken();
        }
        let reason: Arc<str> = reason.into();
        self.broken = Some(reason.clone());
        self.waiting = 0;
        let administrative = std::mem::take(&mut self.wards).into_values().filter_map(|state| match state {
            WardState::Taking(waiters) => Some(waiters),
            WardState::Held(_) => None,
        });
        let administrative = administrative.flatten().filter_map(|waiter| match waiter {
            Waiter::Request(request) => Some(*request),
            Waiter::Journal(_) => None,
        });
        let waiting: Vec<_> = administrative.chain(self.ready.drain(..)).chain(self.journal_cache.give_up_all()).collect();
        for request in waiting {
            request.fail(WriteError::Unavailable(reason.clone()));
        }
        self.instruments().store_failures.add(1, NONE);
        (self.arguments.context.store_failed)(reason.to_string());
    }

    /// The number of unanswered requests, without those in `Group::retry`.
    fn load(&self) -> usize {
        self.ready.len() + self.waiting + self.in_flight.iter().map(|group| group.planned.len()).sum::<usize>()
    }
}
