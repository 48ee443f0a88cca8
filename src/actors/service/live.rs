//! A room's events as they happen: first its current state, then the missed events, then new ones.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::json;

use super::ActorBackend;
use super::event_view::EventView;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::hub::{self, Missed, Watcher};
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, Reader};
use crate::ports::backend::Refused;
use crate::ports::backend::live::{Lagged, Live, LiveStream};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::room_service::RoomService;
use crate::ports::backend::stamp::rfc3339;
use crate::telemetry::instruments::NONE;

/// Missed events that are read at once.
pub(super) const PAGE: usize = 128;

/// A room whose view begins.
pub(super) struct Opened {
    pub(super) channel_key: ChannelKey,
    /// When the room was created. A room that was deleted and created again is another room.
    pub(super) created_at: Moment,
    /// The number of its newest event.
    pub(super) last: Seq,
    /// The first object of its view.
    pub(super) hello: Live,
}

impl ActorBackend {
    /// Begins the view of a room that is watched already.
    pub(super) async fn opened(&self, room: &RoomId) -> Result<Opened, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        let last = self.fence(&channel_key).await?;
        // The state is read after the fence, so it contains everything up to `last`.
        let state = RoomService::state(self, room).await?;
        let hello = json!({
            "event": "hello",
            "at": rfc3339(self.context.clock.now()),
            "channel": channel_key.channel,
            "last": last,
            "state": state,
        });
        let hello = Live { seq: None, json: Arc::from(hello.to_string()) };
        Ok(Opened { channel_key, created_at: membership.created_at, last, hello })
    }
}

pub(super) struct Subscription {
    context: ActorContext,
    watcher: Watcher,
    view: EventView,
    /// When the room was created. A room that was deleted and created again is another room.
    created_at: Moment,
    /// The number of the last event that was sent.
    sent: Seq,
    /// Events up to this number are read from the record. Later ones come from the hub.
    last: Seq,
    ready: VecDeque<Live>,
}

impl Subscription {
    pub(super) async fn new(backend: &ActorBackend, room: &RoomId, after: Option<Seq>) -> Result<Self, Refused> {
        let (channel_key, _) = backend.room_of(room)?;
        // Watch before reading the record, so that no event is missed between the two.
        let watcher = backend.context.hub.watch(&channel_key);
        let Opened { channel_key, created_at, last, hello } = backend.opened(room).await?;
        Ok(Self {
            context: backend.context.clone(),
            watcher,
            view: EventView::with_rounds(channel_key, room.clone()),
            created_at,
            sent: after.unwrap_or(last).min(last),
            last,
            ready: VecDeque::from([hello]),
        })
    }

    pub(super) fn into_stream(self) -> LiveStream {
        let items = stream::unfold(Some(self), |subscription| async move {
            let mut subscription = subscription?;
            match subscription.next().await {
                Ok(Some(live)) => Some((Ok(live), Some(subscription))),
                Ok(None) => None,
                Err(lagged) => Some((Err(lagged), None)),
            }
        });
        items.boxed()
    }

    /// The next object. None when the room was deleted.
    async fn next(&mut self) -> Result<Option<Live>, Lagged> {
        loop {
            if let Some(live) = self.ready.pop_front() {
                return Ok(Some(live));
            }
            if self.sent < self.last {
                self.catch_up().await?;
                continue;
            }
            let item = self.watcher.next().await.map_err(|Missed(items)| {
                self.context.recorder.instruments().live_missed.add(items, NONE);
                Lagged { cursor: None }
            })?;
            let membership = self.context.memberships.get(&self.view.channel_key.channel);
            if membership.is_none_or(|membership| membership.created_at != self.created_at) {
                return Ok(None);
            }
            match item {
                hub::Live::Note(json) => return Ok(Some(Live { seq: None, json })),
                hub::Live::Recorded(recorded) if recorded.seq > self.sent => {
                    self.sent = recorded.seq;
                    let context = self.context.clone();
                    self.ready.extend(self.view.render(&Reader::new(&*context.store), &recorded).await.map_err(unreadable)?);
                }
                hub::Live::Recorded(_) => {}
                hub::Live::Closed => return Ok(None),
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), Lagged> {
        let context = self.context.clone();
        let reader = Reader::new(&*context.store);
        let range = Range { after: self.sent, before: Some(self.last.next()), limit: PAGE, newest_first: false };
        let missed = reader.events(&self.view.channel_key, range).await.map_err(unreadable)?;
        self.sent = if missed.len() < PAGE { self.last } else { missed.last().map_or(self.last, |recorded| recorded.seq) };
        for recorded in &missed {
            self.ready.extend(self.view.render(&reader, recorded).await.map_err(unreadable)?);
        }
        Ok(())
    }
}

/// Ends the stream. The watcher reconnects, and gets the error then.
fn unreadable(error: crate::journal::reader::ReadError) -> Lagged {
    tracing::error!(%error, "events of a room cannot be read");
    Lagged { cursor: None }
}
