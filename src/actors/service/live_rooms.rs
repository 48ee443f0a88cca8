//! The events of all rooms as they happen: the views of the rooms, merged.
//!
//! Each room's view begins with its `hello`. First come the rooms of the cursor, then the others in the order of their ids, and each before its first
//! event. Events that wait to be sent go before the next `hello`, so that a server with many rooms is watched without a gap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};

use super::ActorBackend;
use super::event_view::EventView;
use super::live::{Opened, PAGE};
use crate::actors::runtime::hub::{self, Missed, TotalWatcher};
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, Seq};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::ports::backend::Refused;
use crate::ports::backend::live::{Cursor, Lagged, Live, LiveStream};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::rfc3339;
use crate::telemetry::instruments::NONE;

/// The stream cannot go on without a gap.
struct Ended;

pub(super) struct Subscription {
    backend: ActorBackend,
    watcher: TotalWatcher,
    /// Rooms of the client's cursor whose view has not begun.
    resumed: BTreeMap<RoomId, Seq>,
    next: Next,
    /// Rooms whose view has begun.
    rooms: HashMap<ChannelKey, Place>,
    /// The room whose missed events are being sent, and the last of them.
    missed: Option<(ChannelKey, Seq)>,
    /// How many events were sent.
    events: u64,
    ready: VecDeque<Live>,
}

/// Which room is looked at next for its `hello`.
enum Next {
    /// The first one after this one.
    After(Option<ChannelId>),
    /// None: each had one.
    Done,
}

/// What a client has of a room.
struct Place {
    room: RoomId,
    /// When the room was created.
    created_at: Moment,
    /// What its `hello` began with: the number in the client's cursor, or that of the newest event.
    begun_at: Seq,
    /// The number of the last event that was sent after its `hello`, or of the client's cursor. Zero if there is none.
    sent: Seq,
    /// How many events of all rooms were sent up to that one.
    events: u64,
}

impl Subscription {
    pub(super) fn new(backend: &ActorBackend, after: Cursor) -> Self {
        Self {
            watcher: backend.context.hub.watch_total(),
            backend: ActorBackend::new(backend.context.clone(), backend.maintenance.clone()),
            resumed: after.into_rooms(),
            next: Next::After(None),
            rooms: HashMap::new(),
            missed: None,
            events: 0,
            ready: VecDeque::new(),
        }
    }

    pub(super) fn into_stream(self) -> LiveStream {
        let items = stream::unfold(Some(self), |subscription| async move {
            let mut subscription = subscription?;
            match subscription.next().await {
                Ok(live) => Some((Ok(live), Some(subscription))),
                Err(Ended) => Some((Err(Lagged { cursor: Some(subscription.cursor()) }), None)),
            }
        });
        items.boxed()
    }

    async fn next(&mut self) -> Result<Live, Ended> {
        loop {
            if let Some(live) = self.ready.pop_front() {
                return Ok(live);
            }
            if let Some((channel_key, last)) = self.missed.take() {
                self.catch_up(channel_key, last).await?;
            } else if let Some(item) = self.watcher.next().now_or_never() {
                self.take(item).await?;
            } else if let Some((room, after)) = self.resumed.pop_first() {
                self.begin(room, Some(after)).await?;
            } else if let Next::After(channel) = &self.next {
                let Some(channel) = self.backend.context.memberships.next_channel(channel.as_ref()) else {
                    self.next = Next::Done;
                    let at = self.now();
                    self.push(json!({ "event": "complete", "at": at }));
                    continue;
                };
                self.next = Next::After(Some(channel.clone()));
                if let Some(room) = RoomId::of(&channel).filter(|_| !self.has_begun(&channel)) {
                    self.begin(room, None).await?;
                }
            } else {
                let item = self.watcher.next().await;
                self.take(item).await?;
            }
        }
    }

    /// Begins the view of a room. With `after`, the events after this number follow; without it, those that were published since the client
    /// connected, also if the state in `hello` contains them.
    async fn begin(&mut self, room: RoomId, after: Option<Seq>) -> Result<(), Ended> {
        match self.backend.opened(&room).await {
            Ok(Opened { channel_key, created_at, last, hello }) => {
                let begun_at = after.unwrap_or(last).min(last);
                let sent = if after.is_some() { begun_at } else { Seq::NONE };
                self.ready.push_back(hello);
                self.missed = (begun_at < last).then(|| (channel_key.clone(), last));
                self.rooms.insert(channel_key, Place { room, created_at, begun_at, sent, events: 0 });
                Ok(())
            }
            Err(Refused::NotFound(_)) => {
                if after.is_some() {
                    self.push(json!({ "event": "closed", "at": self.now(), "channel": room.channel() }));
                }
                Ok(())
            }
            Err(Refused::Damaged(detail)) => {
                self.push(json!({ "event": "unreadable", "at": self.now(), "channel": room.channel(), "error": detail }));
                Ok(())
            }
            Err(refused) => {
                // The client gets the error when it connects again, if it is still there.
                tracing::warn!(%refused, "the view of all rooms is cut off");
                self.resumed.extend(after.map(|after| (room, after)));
                Err(Ended)
            }
        }
    }

    async fn take(&mut self, item: Result<(ChannelKey, hub::Live), Missed>) -> Result<(), Ended> {
        let (channel_key, item) = item.map_err(|Missed(items)| {
            self.backend.context.recorder.instruments().live_missed.add(items, NONE);
            Ended
        })?;
        if item == hub::Live::Closed {
            if self.rooms.remove(&channel_key).is_some() {
                self.push(json!({ "event": "closed", "at": self.now(), "channel": channel_key.channel }));
            }
            return Ok(());
        }
        let membership = self.backend.context.memberships.get(&channel_key.channel);
        let Some(created_at) = membership.map(|membership| membership.created_at) else { return Ok(()) };
        if !self.rooms.contains_key(&channel_key) {
            let Some(room) = RoomId::of(&channel_key.channel) else { return Ok(()) };
            let after = self.resumed.remove(&room);
            self.begin(room, after).await?;
        }
        // An item of a room that is being replaced comes before `Closed`.
        match (item, self.rooms.get(&channel_key).filter(|place| place.created_at == created_at)) {
            (hub::Live::Note(json), Some(_)) => self.ready.push_back(live(json)),
            // While events are missed, this one is among them.
            (hub::Live::Recorded(recorded), Some(place)) if recorded.seq > place.sent && self.missed.is_none() => {
                self.send(&channel_key, &[recorded]).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a page of the missed events of a room.
    async fn catch_up(&mut self, channel_key: ChannelKey, last: Seq) -> Result<(), Ended> {
        let Some(place) = self.rooms.get(&channel_key) else { return Ok(()) };
        let range = Range { after: place.sent, before: Some(last.next()), limit: PAGE, newest_first: false };
        let context = self.backend.context.clone();
        match Reader::new(&*context.store).events(&channel_key, range).await {
            Ok(missed) => {
                let is_last = missed.len() < PAGE;
                self.send(&channel_key, &missed.into_iter().map(Arc::new).collect::<Vec<_>>()).await?;
                if is_last {
                    self.sent(&channel_key, last);
                } else {
                    self.missed = Some((channel_key, last));
                }
            }
            Err(error) => {
                let report = self.unreadable(&channel_key, &error)?;
                self.ready.push_back(report);
                self.sent(&channel_key, last);
            }
        }
        Ok(())
    }

    /// Renders events of a room. No view is kept between them, because there may be very many rooms; texts are read from the record.
    async fn send(&mut self, channel_key: &ChannelKey, events: &[Arc<Recorded>]) -> Result<(), Ended> {
        let Some(place) = self.rooms.get(channel_key) else { return Ok(()) };
        let context = self.backend.context.clone();
        let reader = Reader::new(&*context.store);
        let mut view = EventView::new(channel_key.clone(), place.room.clone());
        let (mut objects, mut sent) = (Vec::new(), place.sent);
        for recorded in events {
            match view.render(&reader, recorded).await {
                Ok(rendered) => objects.extend(rendered),
                Err(error) => objects.push(self.unreadable(channel_key, &error)?),
            }
            sent = recorded.seq;
        }
        self.ready.extend(objects);
        self.sent(channel_key, sent);
        Ok(())
    }

    /// Reports a room of which events cannot be read. The view goes on after them, so that the other rooms can be watched.
    fn unreadable(&self, channel_key: &ChannelKey, error: &ReadError) -> Result<Live, Ended> {
        tracing::error!(%error, "events of a room cannot be read");
        if !error.is_damage() {
            return Err(Ended);
        }
        let channel = &channel_key.channel;
        let report = json!({ "event": "unreadable", "at": self.now(), "channel": channel, "error": error.to_string() });
        Ok(live(report.to_string().into()))
    }

    fn sent(&mut self, channel_key: &ChannelKey, upto: Seq) {
        self.events += 1;
        if let Some(place) = self.rooms.get_mut(channel_key) {
            (place.sent, place.events) = (upto, self.events);
        }
    }

    /// What the client has. If that is too much for a cursor, the rooms without recent events are left out.
    fn cursor(&self) -> Cursor {
        let mut places: Vec<&Place> = self.rooms.values().collect();
        places.sort_unstable_by_key(|place| Reverse(place.events));
        let waiting = self.resumed.iter().map(|(room, after)| (room.clone(), *after));
        Cursor::of(waiting.chain(places.into_iter().map(|place| (place.room.clone(), place.sent.max(place.begun_at)))))
    }

    fn has_begun(&self, channel: &ChannelId) -> bool {
        let guild = self.backend.context.memberships.guild_of(channel);
        guild.is_some_and(|guild| self.rooms.contains_key(&ChannelKey::new(&guild, channel)))
    }

    fn now(&self) -> String {
        rfc3339(self.backend.context.clock.now())
    }

    fn push(&mut self, object: Value) {
        self.ready.push_back(live(object.to_string().into()));
    }
}

/// An object without a number to resume after: the cursor says where.
fn live(json: Arc<str>) -> Live {
    Live { seq: None, json }
}
