//! A room's events as they happen: first how it stands, then what was missed, then what comes.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::json;

use super::ActorBackend;
use super::telling::Teller;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::hub::{self, Missed, Watcher};
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::journal::reader::{Range, Reader};
use crate::ports::backend::Refused;
use crate::ports::backend::live::{Lagged, Live, LiveStream};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::rfc3339;
use crate::telemetry::instruments::NONE;

/// Events that are read at once of what was missed.
const PAGE: usize = 128;

impl ActorBackend {
    pub(super) async fn watch(&self, room: &RoomId, after: Option<Seq>) -> Result<LiveStream, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        // Watched before the record is read, so that nothing falls between the two.
        let watcher = self.context.hub.watch(&channel_key);
        let last = self.fence(&channel_key).await?;
        // The state is asked for after the fence: it contains everything up to `last`.
        let state = self.look_into(room).await?;
        let hello = json!({
            "event": "hello",
            "at": rfc3339(self.context.clock.now()),
            "channel": channel_key.channel,
            "last": last,
            "state": state,
        });
        let subscription = Subscription {
            context: self.context.clone(),
            watcher,
            teller: Teller::new(channel_key, room.clone()),
            born: membership.created_at,
            told: after.unwrap_or(last).min(last),
            last,
            ready: VecDeque::from([Live { seq: None, json: Arc::from(hello.to_string()) }]),
        };
        let items = stream::unfold(Some(subscription), |subscription| async move {
            let mut subscription = subscription?;
            match subscription.next().await {
                Ok(Some(live)) => Some((Ok(live), Some(subscription))),
                Ok(None) => None,
                Err(lagged) => Some((Err(lagged), None)),
            }
        });
        Ok(items.boxed())
    }
}

struct Subscription {
    context: ActorContext,
    watcher: Watcher,
    teller: Teller,
    /// Since when the room is there: one that was made anew is another.
    born: Moment,
    /// The number of the last event that was told.
    told: Seq,
    /// Up to here the record is read; what follows comes from the hub.
    last: Seq,
    ready: VecDeque<Live>,
}

impl Subscription {
    /// The next object; none when the room is gone.
    async fn next(&mut self) -> Result<Option<Live>, Lagged> {
        loop {
            if let Some(live) = self.ready.pop_front() {
                return Ok(Some(live));
            }
            if self.told < self.last {
                self.catch_up().await?;
                continue;
            }
            let item = self.watcher.next().await.map_err(|Missed(items)| {
                self.context.recorder.instruments().live_missed.add(items, NONE);
                Lagged
            })?;
            let membership = self.context.memberships.get(&self.teller.channel_key.channel);
            if membership.is_none_or(|membership| membership.created_at != self.born) {
                return Ok(None);
            }
            match item {
                hub::Live::Note(json) => return Ok(Some(Live { seq: None, json })),
                hub::Live::Recorded(recorded) if recorded.seq > self.told => {
                    self.told = recorded.seq;
                    let context = self.context.clone();
                    self.ready.extend(self.teller.tell(&Reader::new(&*context.store), &recorded).await.map_err(unreadable)?);
                }
                hub::Live::Recorded(_) => {}
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), Lagged> {
        let context = self.context.clone();
        let reader = Reader::new(&*context.store);
        let range = Range { after: self.told, before: Some(self.last.next()), limit: PAGE, newest_first: false };
        let missed = reader.events(&self.teller.channel_key, range).await.map_err(unreadable)?;
        self.told = if missed.len() < PAGE { self.last } else { missed.last().map_or(self.last, |recorded| recorded.seq) };
        for recorded in &missed {
            self.ready.extend(self.teller.tell(&reader, recorded).await.map_err(unreadable)?);
        }
        Ok(())
    }
}

/// Whoever watches connects again, and is told then what is wrong.
fn unreadable(error: crate::journal::reader::ReadError) -> Lagged {
    tracing::error!(%error, "what happened in a room cannot be read");
    Lagged
}
