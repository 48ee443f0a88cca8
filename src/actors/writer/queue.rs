//! What the writer has before it: what waits, what is on its way to the store, and what follows from the store's answer.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::journal_cache::{Admission, JournalCache};
use super::plan::{JournalPosition, is_message_id, plan, weight};
use super::request::Request;
use super::{Arguments, Fate, measures};
use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{
    Accept, Accepted, Committed, DeleteChannel, DeleteExpired, Fence, Held, MetaWriteError, Post, Record, RedactEvents, Refused,
    RemoveFromIndex, WriteError, WriteMeta,
};
use crate::actors::runtime::hub::Live;
use crate::domain::event::Recorded;
use crate::domain::id::{Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::erased;
use crate::journal::reader::{Head, ReadError};
use crate::journal::record::decode;
use crate::ports::store::key::{ChannelNo, Key};
use crate::ports::store::{Batch, Refusal, Store, StoreError, Value};
use crate::telemetry::instruments::NONE;
use crate::telemetry::plain::Plain;

/// Something that has to wait for the store.
pub(super) enum StoreTask {
    /// Take a ward.
    Take(Ward),
    /// Look up where a journal stands.
    Open(ChannelKey),
    /// Commit a group, by its number. Groups are handed to the store in the order of numbers.
    Commit(u64, Vec<Batch>),
    /// Take away what remains of a deleted channel.
    Sweep { channel_key: ChannelKey, no: ChannelNo, below: Seq, reply: Reply<()> },
}

/// The writer's desk.
pub(super) struct WriteQueue {
    with: Arguments,
    /// Ordered, so that those who wait are told in order when all is over.
    wards: BTreeMap<Ward, Hold>,
    journal_cache: JournalCache,
    /// What can be written, in order.
    ready: VecDeque<Request>,
    /// How many requests wait for a ward or for their journal.
    waiting: usize,
    /// The groups on their way, the oldest first.
    in_flight: VecDeque<Group>,
    /// How many groups were formed.
    groups: u64,
    /// Journals that cannot be read: each is told of once, however often it is tried.
    unreadable: HashSet<ChannelKey>,
    /// Why nothing is written any more.
    broken: Option<Arc<str>>,
    /// What is to be done next.
    pub(super) tasks: Vec<StoreTask>,
}

enum Hold {
    /// It is being taken; these wait for that.
    Taking(Vec<Waiter>),
    Held(Held),
}

enum Waiter {
    /// A journal to be looked up.
    Journal(ChannelKey),
    /// A request that concerns no journal.
    Request(Box<Request>),
}

/// So many groups are on their way at a time: while the store has the one, the next is made and answered.
const MAX_GROUPS_IN_FLIGHT: usize = 2;

/// A group on its way.
struct Group {
    number: u64,
    planned: Vec<Planned>,
    /// Where journals stand once it is committed.
    positions: HashMap<ChannelKey, JournalPosition>,
    /// Journals for which something was refused in a group before it, which this one did not know.
    behind: HashSet<ChannelKey>,
    /// What is to be done again of that group: before what is to be done again of this one.
    retry: VecDeque<Request>,
    /// What came of it, while one before it is not answered.
    outcome: Option<Outcome>,
}

type Outcome = Result<Vec<Result<(), Refusal>>, StoreError>;

/// A request whose batch, if it needs one, is on its way.
struct Planned {
    request: Request,
    has_batch: bool,
    /// Where its journal stands once it is committed.
    position: JournalPosition,
    events: Vec<Arc<Recorded>>,
}

impl WriteQueue {
    pub(super) fn new(with: Arguments) -> Self {
        Self {
            wards: BTreeMap::new(),
            journal_cache: JournalCache::new(with.bounds.journals),
            ready: VecDeque::new(),
            waiting: 0,
            in_flight: VecDeque::new(),
            groups: 0,
            unreadable: HashSet::new(),
            broken: None,
            tasks: Vec::new(),
            with,
        }
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.with.store
    }

    pub(super) fn accept(&mut self, mut accept: Accept) {
        if self.broken.is_none() && self.load() >= self.with.bounds.waiting {
            let retry_after = self.with.bounds.retry_after;
            return accept.reply.send(Err(Refused::Busy { retry_after }));
        }
        accept.at.get_or_insert_with(|| self.with.clock.now());
        self.take_in(Request::Accept(accept));
    }

    pub(super) fn post(&mut self, mut post: Post) {
        post.at.get_or_insert_with(|| self.with.clock.now());
        self.take_in(Request::Post(post));
    }

    /// Takes in a request: to be written now, or once its ward is held and its journal is at hand.
    pub(super) fn take_in(&mut self, request: Request) {
        if let Some(why) = &self.broken {
            return request.fail(WriteError::Unavailable(why.clone()));
        }
        let Some(channel_key) = request.channel_key().cloned() else {
            return self.take_in_administrative(request);
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

    fn take_in_administrative(&mut self, request: Request) {
        match self.waiters(request.ward()) {
            Some(waiters) => {
                waiters.push(Waiter::Request(Box::new(request)));
                self.waiting += 1;
            }
            None => self.ready.push_back(request),
        }
    }

    /// Those who wait for a ward, which is asked for with the first; none: it is held.
    fn waiters(&mut self, ward: Ward) -> Option<&mut Vec<Waiter>> {
        let tasks = &mut self.tasks;
        let hold = self.wards.entry(ward).or_insert_with(|| {
            tasks.push(StoreTask::Take(ward));
            Hold::Taking(Vec::new())
        });
        match hold {
            Hold::Taking(waiters) => Some(waiters),
            Hold::Held(_) => None,
        }
    }

    /// A ward was taken, or could not be.
    pub(super) fn hold(&mut self, ward: Ward, held: Result<Held, ReadError>) {
        let held = match held {
            Ok(held) => held,
            Err(error) => return self.break_off(&format!("ward {} cannot be taken: {error}", ward.0)),
        };
        let Some(Hold::Taking(waiters)) = self.wards.insert(ward, Hold::Held(held)) else { return };
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

    /// It was looked up where a journal stands. One that cannot be read is no harm to the others.
    pub(super) fn open(&mut self, channel_key: ChannelKey, head: Result<Head, ReadError>) {
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
                    tracing::error!(guild = %Plain(channel_key.guild.as_str()), channel = %Plain(channel_key.channel.as_str()), %error, "a journal cannot be opened");
                }
                let requests = self.journal_cache.give_up(&channel_key);
                self.waiting = self.waiting.saturating_sub(requests.len());
                let lost = WriteError::from(error);
                requests.into_iter().for_each(|request| request.fail(lost.clone()));
            }
        }
    }

    /// Whether a group can follow those that are on their way. One more than one has to be worth it.
    fn is_free(&self) -> bool {
        match self.in_flight.back() {
            None => true,
            // What it is about to hand back comes before whatever waits.
            Some(last) if !last.behind.is_empty() => false,
            Some(last) => {
                self.in_flight.len() < MAX_GROUPS_IN_FLIGHT
                    && self.ready.len() >= self.with.bounds.ahead.max(last.planned.len() / 2)
            }
        }
    }

    /// Where a journal stands once all is committed that is on its way.
    fn position(&self, channel_key: &ChannelKey) -> Option<&JournalPosition> {
        let on_its_way = self.in_flight.iter().rev().find_map(|group| group.positions.get(channel_key));
        on_its_way.or_else(|| self.journal_cache.position(channel_key))
    }

    /// The next group and its number, if there is way for it and something can be written.
    pub(super) fn form_group(&mut self) -> Option<(u64, Vec<Batch>)> {
        if self.broken.is_some() || !self.is_free() {
            return None;
        }
        let mut positions: HashMap<ChannelKey, JournalPosition> = HashMap::new();
        let (mut planned, mut batches, mut bytes) = (Vec::new(), Vec::new(), 0);
        while batches.len() < self.with.bounds.group_batches
            && bytes < self.with.bounds.group_bytes
            && let Some(request) = self.ready.pop_front()
        {
            // Only what lies in a ward that is held becomes ready; a reply that is dropped answers all the same.
            let channel_key = request.channel_key();
            let known = channel_key.and_then(|channel_key| positions.get(channel_key).or_else(|| self.position(channel_key)));
            let mut position = known.cloned().unwrap_or_default();
            let Some(Hold::Held(ward)) = self.wards.get_mut(&request.ward()) else { continue };
            match plan(&request, ward, &mut position) {
                Ok(mut plan) => {
                    if let Some(batch) = plan.batch.as_mut().filter(|_| request.erases()) {
                        batch.writes.push(erased::mark(batch.ward, self.with.clock.now()));
                    }
                    if let Some(channel_key) = channel_key {
                        positions.insert(channel_key.clone(), position.clone());
                    }
                    let has_batch = plan.batch.is_some();
                    bytes += plan.batch.as_ref().map_or(0, weight);
                    batches.extend(plan.batch);
                    planned.push(Planned { request, has_batch, position, events: plan.events });
                }
                Err(lost) => self.fail(request, lost),
            }
        }
        if batches.is_empty() {
            if self.in_flight.is_empty() {
                planned.into_iter().for_each(|planned| self.finish(planned));
            } else {
                // They wait for what was asked before them.
                planned.into_iter().rev().for_each(|planned| self.ready.push_front(planned.request));
            }
            return None;
        }
        self.with.instruments.group_size.record(batches.len() as f64, NONE);
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

    /// The store has answered what came of a group. Groups are concluded in the order of their numbers.
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
                    let why: Arc<str> = error.to_string().into();
                    let lost = match error {
                        StoreError::Failed(_) => WriteError::Unavailable(why.clone()),
                        StoreError::Unknown(_) | StoreError::Damaged(_) => WriteError::Unknown,
                    };
                    planned.into_iter().for_each(|planned| planned.request.fail(lost.clone()));
                    self.break_off(&why);
                }
            }
        }
    }

    /// `refused` are the journals for which something was refused before, `retry` is what is to be done again of that.
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
                    if let Err(why) = self.answer_existing(planned, &key, value) {
                        broken.get_or_insert(why);
                    }
                }
                Err(refusal @ (Refusal::Gap { .. } | Refusal::OldTerm { .. })) => {
                    // Somebody else writes here.
                    let why = refusal.to_string();
                    self.fail(planned.request, WriteError::Unavailable(why.as_str().into()));
                    broken.get_or_insert(why);
                }
            }
        }
        // They were before everything that waits, and stay so; their numbers are given anew.
        if let Some(next) = self.in_flight.front_mut().filter(|_| !refused.is_empty()) {
            (next.behind, next.retry) = (refused, retry);
        } else {
            retry.extend(std::mem::take(&mut self.ready));
            self.ready = retry;
        }
        match broken {
            Some(why) => self.break_off(&why),
            None => self.give_up_if_broken(),
        }
    }

    /// A group may be answered after one before it has failed: what would be done again is not done any more.
    fn give_up_if_broken(&mut self) {
        if let Some(why) = self.broken.clone() {
            self.ready.drain(..).for_each(|request| request.fail(WriteError::Unavailable(why.clone())));
        }
    }

    /// A key that had to be new is there: a duplicate, if it is the message's id; a contest, if whoever asked expects one.
    fn answer_existing(&mut self, planned: Planned, key: &Key, value: Value) -> Result<(), String> {
        let Planned { request, position, .. } = planned;
        if let (Some(channel_key), Some(id), Some(no)) = (request.channel_key(), request.message_id(), position.no)
            && is_message_id(key, channel_key.ward(), no, id)
        {
            let channel_key = channel_key.clone();
            let first = decode(key, &value).map(|seq| Accepted { seq, is_new: false });
            let unreadable = |error: String| WriteError::Unreadable(error.into());
            match request {
                Request::Accept(Accept { reply, .. }) => reply.send(first.map_err(|error| unreadable(error.to_string()).into())),
                Request::Post(Post { reply, .. }) => reply.send(first.map_err(|error| unreadable(error.to_string()))),
                _ => {}
            }
            self.journal_cache.release(&channel_key);
            return Ok(());
        }
        match request {
            Request::WriteMeta(WriteMeta { reply, .. }) => {
                reply.send(Err(MetaWriteError::Exists { key: key.clone(), value }));
                Ok(())
            }
            request => {
                let why = format!("the key {key} exists already: somebody else writes to this store");
                self.fail(request, WriteError::Unavailable(why.as_str().into()));
                Err(why)
            }
        }
    }

    /// What was asked is done: it is published, handed on, and answered.
    fn finish(&mut self, planned: Planned) {
        let Planned { request, has_batch, position, events } = planned;
        measures::committed(&request, &events, &self.with.platforms, &self.with.instruments);
        let Some(channel_key) = request.channel_key().cloned() else {
            if let Request::WriteMeta(WriteMeta { reply, .. }) = request {
                reply.send(Ok(()));
            }
            return;
        };
        self.journal_cache.advance(&channel_key, position.clone());
        for recorded in events {
            self.with.hub.publish(&channel_key, Live::Recorded(recorded.clone()));
            if recorded.event.is_heard() {
                let committed = self.with.clock.now();
                // Where nobody watches, nobody else has it.
                (self.with.deliver)(&channel_key.guild, &channel_key.channel, Arc::unwrap_or_clone(recorded), committed);
            }
        }
        let last = position.last;
        let accepted = Accepted { seq: last, is_new: true };
        match request {
            Request::Accept(Accept { reply, .. }) => reply.send(Ok(accepted)),
            Request::Post(Post { reply, .. }) => reply.send(Ok(accepted)),
            Request::Record(Record { reply, made, .. }) => {
                reply.send(Ok(Committed { first: Seq(last.next().0 - made.len() as u64), last }));
            }
            Request::Delete(DeleteChannel { channel_key, reply }) => match position.no.filter(|_| has_batch) {
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

    fn fail(&mut self, request: Request, lost: WriteError) {
        if let Some(channel_key) = request.channel_key().cloned() {
            self.journal_cache.release(&channel_key);
        }
        request.fail(lost);
    }

    /// Writes nothing any more, tells everybody who waits, and says why.
    fn break_off(&mut self, why: &str) {
        if self.broken.is_some() {
            return self.give_up_if_broken();
        }
        let why: Arc<str> = why.into();
        self.broken = Some(why.clone());
        self.waiting = 0;
        let administrative = std::mem::take(&mut self.wards).into_values().filter_map(|hold| match hold {
            Hold::Taking(waiters) => Some(waiters),
            Hold::Held(_) => None,
        });
        let administrative = administrative.flatten().filter_map(|waiter| match waiter {
            Waiter::Request(request) => Some(*request),
            Waiter::Journal(_) => None,
        });
        let unwritten: Vec<_> = administrative.chain(self.ready.drain(..)).chain(self.journal_cache.give_up_all()).collect();
        for request in unwritten {
            request.fail(WriteError::Unavailable(why.clone()));
        }
        self.with.instruments.store_failures.add(1, NONE);
        (self.with.report)(Fate::StoreFailed(why.to_string()));
    }

    /// How many requests were taken in and not answered.
    fn load(&self) -> usize {
        self.ready.len() + self.waiting + self.in_flight.iter().map(|group| group.planned.len()).sum::<usize>()
    }
}
