//! Sends the events of a room, or of all rooms, over a WebSocket as they happen, and the events that the client missed.
//!
//! Each event is one text message, a JSON object. A client that falls behind gets `{"event": "resume", "after": N}`, and the connection is closed
//! with code 1013; the client should connect again with `after=N`. In a view of all rooms, N is a [`Cursor`]. Messages from the client are ignored,
//! but it must answer pings to stay connected.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, close_code};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Shared;
use super::body::QueryParams;
use super::guard::Caller;
use super::limits::{Share, Slot};
use super::presence::{Here, PersonHere};
use super::problem::Problem;
use super::web_socket::{self, Requested};
use super::{validation, visitor};
use crate::domain::id::Seq;
use crate::ports::backend::guest_service::Visit;
use crate::ports::backend::live::{Cursor, Lagged, LiveStream, Watched};
use crate::ports::backend::room::RoomId;
use crate::telemetry::instruments::NONE;
use crate::telemetry::instruments::kinds::Counted;

/// The longest message from a client, in bytes. Clients have no reason to send any.
const MAX_RECEIVED_BYTES: usize = 4_096;

/// The number of unanswered pings after which the connection is closed.
const MAX_UNANSWERED_PINGS: u32 = 3;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveParams {
    /// If it is absent, all rooms are watched.
    #[schemars(with = "Option<RoomId>")]
    pub(super) room: Option<String>,
    /// Also sends the events after this number. In a view of all rooms it has a number for each room, such as `lobby.12,attic.7`.
    pub(super) after: Option<String>,
    /// The name of the person who watches one room, as `from` of a message. Others see that the person is here. Guests are always shown under their
    /// own name.
    #[serde(rename = "as")]
    #[schemars(length(min = 1, max = 64))]
    pub(super) watcher: Option<String>,
}

impl LiveParams {
    fn watched(self) -> Result<Watched, Problem> {
        let Some(room) = self.room else {
            let cursor = self.after.map_or(Ok(Cursor::default()), |after| Cursor::parse(&after));
            return cursor.map(Watched::All).map_err(|error| Problem::query("after", format!("after: {error}")));
        };
        let number =
            |after: String| after.parse().map(Seq).map_err(|_| Problem::query("after", "after is not a whole number from 0 up"));
        Ok(Watched::Room(validation::room("room", &room)?, self.after.map(number).transpose()?))
    }
}

/// The room that a caller may watch, and the caller's identity.
pub(super) struct Opening {
    pub(super) watched: Watched,
    /// The name of the watching person, and whether the person is a guest.
    pub(super) person: Option<(Arc<str>, bool)>,
    pub(super) visit: Option<Visit>,
}

impl Opening {
    pub(super) fn of(params: LiveParams, caller: &Caller, console: &Shared) -> Result<Self, Problem> {
        let person = params.watcher.as_deref().map(|name| validation::name("as", name)).transpose()?;
        match params.watched()? {
            Watched::Room(room, after) => {
                let visit = caller.in_room(&room, console)?.cloned();
                // A guest gets only events after the invitation.
                let after = visit.as_ref().map_or(after, |visit| after.map(|after| after.max(visit.from)));
                let person =
                    visit.as_ref().map_or_else(|| person.map(|name| (name, false)), |visit| Some((visit.name.clone(), true)));
                Ok(Self { watched: Watched::Room(room, after), person, visit })
            }
            Watched::All(_) if !caller.is_operator() => {
                Err(Problem::new(StatusCode::FORBIDDEN, "guests watch one room at a time; give room="))
            }
            Watched::All(cursor) => Ok(Self { watched: Watched::All(cursor), person: None, visit: None }),
        }
    }
}

/// `GET /api/live?room=&after=` as a WebSocket. An invalid request is refused before the upgrade.
pub(super) async fn live(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    QueryParams(params): QueryParams<LiveParams>,
    requested: Requested,
) -> Result<Response, Problem> {
    let Opening { watched, person, visit } = Opening::of(params, &caller, &console)?;
    let room = if let Watched::Room(room, _) = &watched { Some(room.clone()) } else { None };
    let upgrade = web_socket::upgrade(requested, MAX_RECEIVED_BYTES)?;
    let slot = web_socket::slot(&console, caller.address, visit.as_ref())?;
    let events = console.backend()?.rooms.live(watched).await?;
    let counted = console.instruments.live_sockets.one(NONE);
    let (closing, changes) = (caller.door.closing.subscribe(), console.backend()?.guests.changes());
    let watcher = Watcher { caller, room, person, visit, closing, changes, console, _slot: (slot, counted) };
    Ok(upgrade.on_upgrade(move |socket| watcher.watch(socket, events)))
}

struct Watcher {
    caller: Caller,
    /// The room, in a view of one room.
    room: Option<RoomId>,
    /// The name of the watching person, and whether the person is a guest.
    person: Option<(Arc<str>, bool)>,
    visit: Option<Visit>,
    /// Changes when a visit may have ended.
    changes: watch::Receiver<u64>,
    closing: watch::Receiver<bool>,
    console: Shared,
    _slot: ((Slot, Option<Share>), Counted),
}

/// Why a live view ends.
#[derive(Debug)]
enum Ending {
    /// The client is gone, or did not read the sent messages in time.
    Gone,
    /// The server closes the connection with this code and reason.
    Close(u16, &'static str),
}

impl Watcher {
    async fn watch(self, socket: WebSocket, events: LiveStream) {
        let (mut sink, mut inbound) = socket.split();
        let mut closing = self.closing.clone();
        let ending = tokio::select! {
            biased;
            // Stops even while a message is being sent, so that a client that does not read does not delay the shutdown.
            () = async { drop(closing.wait_for(|closing| *closing).await) } => Ending::Close(close_code::AWAY, "the server is stopping"),
            ending = self.forward(&mut sink, &mut inbound, events) => ending,
        };
        tracing::debug!(parting = ?ending, address = %self.caller.address, "a live view ended");
        if let Ending::Close(code, reason) = ending {
            web_socket::close(&mut sink, &mut inbound, code, reason).await;
        }
    }

    async fn forward(
        &self,
        sink: &mut SplitSink<WebSocket, Message>,
        inbound: &mut SplitStream<WebSocket>,
        mut events: LiveStream,
    ) -> Ending {
        let interval = self.console.settings.live_ping();
        let mut ping = interval_at(Instant::now() + interval, interval);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unanswered_pings = 0;
        let mut changes = self.changes.clone();
        // Checks at once, because a permission may have been revoked since the request was admitted.
        changes.mark_changed();
        // After `hello`, the client receives the list of people in the room.
        let mut here: Option<Here> = None;
        loop {
            let message = tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        let shown = match &self.visit {
                            Some(visit) => visitor::event(&event, visit),
                            None => Some(event.to_string()),
                        };
                        if here.is_none() && let Some(room) = &self.room {
                            here = Some(self.console.presence.enter(room, self.person.clone()));
                        }
                        match shown {
                            Some(shown) => Message::text(shown),
                            None => continue,
                        }
                    }
                    Some(Err(Lagged { after })) => {
                        let resume = json!({ "event": "resume", "after": after });
                        let sent = sink.send(Message::text(resume.to_string())).await;
                        return sent.map_or(Ending::Gone, |()| Ending::Close(close_code::AGAIN, "too slow, connect again with after="));
                    }
                    None => return Ending::Close(close_code::NORMAL, "there is nothing more to come"),
                },
                message = inbound.next() => match message {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Ending::Gone,
                    Some(Ok(_)) => {
                        unanswered_pings = 0;
                        // Sends the pong before reading the next message. Otherwise pongs to a client that does not read would pile up in memory.
                        if sink.flush().await.is_err() {
                            return Ending::Gone;
                        }
                        continue;
                    }
                },
                people = next_people(&mut here) => {
                    let channel = self.room.as_ref().map(RoomId::channel);
                    Message::text(json!({ "event": "people", "channel": channel, "people": people }).to_string())
                }
                Ok(()) = changes.changed() => {
                    if !self.is_still_admitted() {
                        return Ending::Close(close_code::POLICY, "the visit has ended");
                    }
                    continue;
                }
                _ = ping.tick() => {
                    if !self.is_still_admitted() {
                        return Ending::Close(close_code::POLICY, "signed out");
                    }
                    if unanswered_pings == MAX_UNANSWERED_PINGS {
                        return Ending::Gone;
                    }
                    unanswered_pings += 1;
                    Message::Ping(Vec::new().into())
                }
            };
            if sink.send(message).await.is_err() {
                return Ending::Gone;
            }
        }
    }

    fn is_still_admitted(&self) -> bool {
        self.caller.is_still_admitted(self.room.as_ref(), &self.console)
    }
}

/// Waits for a change of the people in the room, and returns them.
async fn next_people(here: &mut Option<Here>) -> Vec<PersonHere> {
    match here {
        Some(here) => {
            here.changed().await;
            here.people()
        }
        None => std::future::pending().await,
    }
}
