//! Events as they happen, of one room or of all rooms. The view of each room begins with its current state, `hello`; then come the missed events,
//! then new ones.
//!
//! A view of all rooms begins with the rooms of the cursor. The other rooms follow in the order of their ids; a room with a new event is begun
//! before that event. Queued events are sent before the next `hello`, so that a server with many rooms is watched without a gap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};

use super::ActorBackend;
use super::event_view::EventView;
use crate::actors::runtime::hub::{self, Missed, Watcher};
use crate::actors::writer::requests::fence;
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, Seq};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::ports::backend::Refused;
use crate::ports::backend::live::{Cursor, Lagged, LiveStream, Watched};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::room_service::RoomService;
use crate::ports::backend::stamp::rfc3339;
use crate::telemetry::instruments::NONE;

/// The number of missed events per read.
const PAGE: usize = 128;

/// Why a view ends.
enum Ended {
    /// The view cannot continue without a gap.
    Lagged,
    /// The only room of the view was deleted.
    Closed,
}

pub(super) struct Subscription {
    backend: ActorBackend,
    watcher: Watcher,
    /// Whether only one room is watched.
    is_of_one: bool,
    /// Rooms of the client's cursor whose view has not begun.
    resumed: BTreeMap<RoomId, Seq>,
    next: Next,
    /// Rooms whose view has begun.
    rooms: HashMap<ChannelKey, Place>,
    /// The room whose missed events are being sent, and the number of its last missed event.
    missed: Option<(ChannelKey, Seq)>,
    /// The number of times that events were sent.
    events: u64,
    ready: VecDeque<Arc<str>>,
}

/// The next room to send a `hello` for.
enum Next {
    /// The first room after this one.
    After(Option<ChannelId>),
    /// No room: each had one.
    Done,
}

/// The client's position in a room.
struct Place {
    room: RoomId,
    /// When the room was created. A room that was deleted and created again is another room.
    created_at: Moment,
    /// The number at which the `hello` began: the client's number, or the number of the newest event.
    begun_at: Seq,
    /// The number of the last event that was sent after the `hello`, or that the client has. Zero if there is none.
    sent: Seq,
    /// How often events of any room had been sent by then.
    events: u64,
    /// Kept only in a view of one room. In a view of all rooms there may be very many, so texts are read from the record.
    view: Option<EventView>,
}

impl Subscription {
    pub(super) async fn new(backend: &ActorBackend, watched: Watched) -> Result<Self, Refused> {
        let hub = &backend.context.hub;
        // Watch before reading the record, so that no event is missed between the two.
        let (watcher, resumed, next, only) = match watched {
            Watched::Room(room, after) => {
                let watcher = hub.watch(Some(&backend.room_of(&room)?.0));
                (watcher, BTreeMap::new(), Next::Done, Some((room, after)))
            }
            Watched::All(cursor) => (hub.watch(None), cursor.into_rooms(), Next::After(None), None),
        };
        let backend = ActorBackend::new(backend.context.clone(), backend.maintenance.clone());
        let (rooms, missed, events, ready) = (HashMap::new(), None, 0, VecDeque::new());
        let mut subscription = Self { backend, watcher, is_of_one: only.is_some(), resumed, next, rooms, missed, events, ready };
        if let Some((room, after)) = only {
            subscription.open(&room, after).await?;
        }
        Ok(subscription)
    }

    pub(super) fn into_stream(self) -> LiveStream {
        let items = stream::unfold(Some(self), |subscription| async move {
            let mut subscription = subscription?;
            match subscription.next().await {
                Ok(live) => Some((Ok(live), Some(subscription))),
                Err(Ended::Lagged) => Some((Err(Lagged { after: subscription.after() }), None)),
                Err(Ended::Closed) => None,
            }
        });
        items.boxed()
    }

    async fn next(&mut self) -> Result<Arc<str>, Ended> {
        loop {
            if let Some(live) = self.ready.pop_front() {
                return Ok(live);
            }
            if let Some((channel_key, last)) = self.missed.take() {
                self.catch_up(channel_key, last).await?;
            } else if let Some(item) = self.watcher.next().now_or_never() {
                self.handle_item(item).await?;
            } else if let Some((room, after)) = self.resumed.pop_first() {
                self.begin(room, Some(after)).await?;
            } else if let Next::After(channel) = &self.next {
                let Some(channel) = self.backend.context.memberships.next_channel(channel.as_ref()) else {
                    self.next = Next::Done;
                    let at = self.now();
                    self.push(&json!({ "event": "complete", "at": at }));
                    continue;
                };
                self.next = Next::After(Some(channel.clone()));
                if let Some(room) = RoomId::of(&channel).filter(|_| !self.has_begun(&channel)) {
                    self.begin(room, None).await?;
                }
            } else {
                let item = self.watcher.next().await;
                self.handle_item(item).await?;
            }
        }
    }

    /// Opens the view of a room that is already being watched. With `after`, the events after this number follow. Without it, a view of all rooms
    /// gets the events that were published since the client connected, even if the state in `hello` contains them.
    async fn open(&mut self, room: &RoomId, after: Option<Seq>) -> Result<(), Refused> {
        let (channel_key, membership) = self.backend.room_of(room)?;
        let last = fence(&self.backend.context, &channel_key).await?;
        // The state is read after the fence, so it contains everything up to `last`.
        let state = RoomService::state(&self.backend, room).await?;
        let at = self.now();
        self.push(&json!({ "event": "hello", "at": at, "channel": channel_key.channel, "last": last, "state": state }));
        let begun_at = after.unwrap_or(last).min(last);
        let sent = if after.is_some() || self.is_of_one { begun_at } else { Seq::NONE };
        self.missed = (begun_at < last).then(|| (channel_key.clone(), last));
        let view = self
            .is_of_one
            .then(|| EventView::with_rounds(channel_key.clone(), room.clone(), &self.backend.context.in_force().safety));
        let place = Place { room: room.clone(), created_at: membership.created_at, begun_at, sent, events: 0, view };
        self.rooms.insert(channel_key, place);
        Ok(())
    }

    /// Opens the view of one of all rooms, if that is possible.
    async fn begin(&mut self, room: RoomId, after: Option<Seq>) -> Result<(), Ended> {
        match self.open(&room, after).await {
            Ok(()) => {}
            Err(Refused::NotFound(_)) if after.is_none() => {}
            Err(Refused::NotFound(_)) => {
                self.push(&json!({ "event": "closed", "at": self.now(), "channel": room.channel() }));
            }
            Err(Refused::Damaged(detail)) => {
                self.push(&json!({ "event": "unreadable", "at": self.now(), "channel": room.channel(), "error": &*detail }));
            }
            Err(refused) => {
                // The client gets the error when it connects again, if the error persists.
                tracing::warn!(%refused, "the view of all rooms is cut off");
                self.resumed.extend(after.map(|after| (room, after)));
                return Err(Ended::Lagged);
            }
        }
        Ok(())
    }

    async fn handle_item(&mut self, item: Result<(ChannelKey, hub::Live), Missed>) -> Result<(), Ended> {
        let (channel_key, item) = item.map_err(|Missed(items)| {
            self.backend.context.recorder.instruments().live_missed.add(items, NONE);
            Ended::Lagged
        })?;
        if item == hub::Live::Closed {
            if self.rooms.remove(&channel_key).is_some() {
                if self.is_of_one {
                    return Err(Ended::Closed);
                }
                self.push(&json!({ "event": "closed", "at": self.now(), "channel": channel_key.channel }));
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
            (hub::Live::Note(json), Some(_)) => self.ready.push_back(json),
            // While missed events are being sent, this event is one of them.
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

    /// Renders events of a room.
    async fn send(&mut self, channel_key: &ChannelKey, events: &[Arc<Recorded>]) -> Result<(), Ended> {
        let Some(place) = self.rooms.get_mut(channel_key) else { return Ok(()) };
        let context = self.backend.context.clone();
        let reader = Reader::new(&*context.store);
        let mut view = place
            .view
            .take()
            .unwrap_or_else(|| EventView::new(channel_key.clone(), place.room.clone(), &context.in_force().safety));
        let (mut objects, mut sent) = (Vec::new(), place.sent);
        for recorded in events {
            match view.render(&reader, recorded).await {
                Ok(rendered) => objects.extend(rendered),
                Err(error) => objects.push(self.unreadable(channel_key, &error)?),
            }
            sent = recorded.seq;
        }
        self.ready.extend(objects);
        if self.is_of_one {
            self.rooms.entry(channel_key.clone()).and_modify(|place| place.view = Some(view));
        }
        self.sent(channel_key, sent);
        Ok(())
    }

    /// Reports a room with unreadable events. A view of all rooms continues after them, so that the other rooms can be watched.
    fn unreadable(&self, channel_key: &ChannelKey, error: &ReadError) -> Result<Arc<str>, Ended> {
        tracing::error!(%error, "events of a room cannot be read");
        if self.is_of_one || !error.is_damage() {
            return Err(Ended::Lagged);
        }
        let channel = &channel_key.channel;
        let report = json!({ "event": "unreadable", "at": self.now(), "channel": channel, "error": error.to_string() });
        Ok(report.to_string().into())
    }

    fn sent(&mut self, channel_key: &ChannelKey, upto: Seq) {
        self.events += 1;
        if let Some(place) = self.rooms.get_mut(channel_key) {
            (place.sent, place.events) = (upto, self.events);
        }
    }

    /// The client's position: a number in a view of one room, otherwise a cursor. If the cursor would be too long, it omits the rooms without
    /// recent events.
    fn after(&self) -> Value {
        let mut places: Vec<&Place> = self.rooms.values().collect();
        places.sort_unstable_by_key(|place| Reverse(place.events));
        let has = |place: &Place| place.sent.max(place.begun_at);
        if let (true, Some(only)) = (self.is_of_one, places.first()) {
            return json!(has(only));
        }
        let waiting = self.resumed.iter().map(|(room, after)| (room.clone(), *after));
        Cursor::of(waiting.chain(places.into_iter().map(|place| (place.room.clone(), has(place))))).to_string().into()
    }

    fn has_begun(&self, channel: &ChannelId) -> bool {
        let guild = self.backend.context.memberships.guild_of(channel);
        guild.is_some_and(|guild| self.rooms.contains_key(&ChannelKey::new(&guild, channel)))
    }

    fn now(&self) -> String {
        rfc3339(self.backend.context.clock.now())
    }

    fn push(&mut self, object: &Value) {
        self.ready.push_back(object.to_string().into());
    }
}
