//! Shows a room's events to a WebSocket as they happen, and those that it missed.
//!
//! Each event is one text message, a JSON object. A watcher that falls behind is told `{"event": "resume", "after": N}` and closed with
//! 1013: it connects again with `after=N`. What it sends is ignored; that it answers pings keeps it connected.

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval_at};

use super::Shared;
use super::auth::Admission;
use super::body::Asked;
use super::guard::Caller;
use super::limits::{NoPlace, Place};
use super::problem::Problem;
use super::words;
use crate::domain::id::Seq;
use crate::ports::backend::live::LiveStream;
use crate::telemetry::instruments::NONE;
use crate::telemetry::instruments::kinds::Counted;

/// Watchers have nothing to say.
const MAX_HEARD_BYTES: usize = 4_096;

/// Size of a watcher's write buffer, in bytes. Every message and every answer to a ping is flushed before the next one is made, so the
/// buffer holds no more than the one message that is being sent.
const WRITTEN_AT_ONCE: usize = 8 << 10;

/// Pings without a sign of life, after which a watcher is given up.
const MAX_SILENT_PINGS: u32 = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedLive {
    room: Option<String>,
    after: Option<u64>,
}

/// `GET /api/live?room=&after=` as a WebSocket. What is wrong with the request is told before the upgrade.
pub(super) async fn live(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    Asked(asked): Asked<AskedLive>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let room = asked.room.ok_or_else(|| Problem::query("room", "room is missing, name the room to watch"))?;
    let room = words::room("room", &room)?;
    let upgrade = upgrade
        .map_err(|_| Problem::new(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket, connect to it with ws:// or wss://"))?;
    let place = console.places.take(caller.address).map_err(|full| no_place(full, console.settings.live_ping()))?;
    let after = asked.after.map(Seq);
    let events = console.backend.live(&room, after).await?;
    let counted = console.instruments.live_sockets.one(NONE);
    let watcher = Watcher { after, caller, closing: console.closing.subscribe(), console, _place: (place, counted) };
    let upgrade = upgrade.max_message_size(MAX_HEARD_BYTES).max_frame_size(MAX_HEARD_BYTES);
    let upgrade = upgrade.read_buffer_size(MAX_HEARD_BYTES).write_buffer_size(WRITTEN_AT_ONCE);
    Ok(upgrade.on_upgrade(move |socket| watcher.watch(socket, events)))
}

fn no_place(full: NoPlace, wait: Duration) -> Problem {
    match full {
        NoPlace::Full => Problem::unavailable("all places of live views are taken; close one, or raise server.max_live", wait),
        NoPlace::FullForAddress => Problem::too_many(
            "this address has as many live views as it may; close one, or raise server.max_live_per_address",
            wait,
        ),
    }
}

struct Watcher {
    /// The last number that was sent, or asked for.
    after: Option<Seq>,
    caller: Caller,
    closing: watch::Receiver<bool>,
    console: Shared,
    _place: (Place, Counted),
}

/// Why a watcher is let go.
#[derive(Debug)]
enum Parting {
    /// It is gone, or did not take what was sent.
    Gone,
    /// With a word.
    Close(u16, &'static str),
}

impl Watcher {
    async fn watch(mut self, socket: WebSocket, events: LiveStream) {
        let (mut sink, heard) = socket.split();
        let mut closing = self.closing.clone();
        let parting = tokio::select! {
            biased;
            // Also while something is being sent: who does not read does not hold up the shutdown.
            () = async { drop(closing.wait_for(|closing| *closing).await) } => Parting::Close(close_code::AWAY, "the server is stopping"),
            parting = self.pass_on(&mut sink, heard, events) => parting,
        };
        tracing::debug!(?parting, address = %self.caller.address, "a watcher is let go");
        if let Parting::Close(code, reason) = parting {
            let frame = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
            let farewell = async {
                sink.send(frame).await?;
                sink.close().await
            };
            let _ = tokio::time::timeout(Duration::from_secs(1), farewell).await;
        }
    }

    async fn pass_on<Heard>(
        &mut self,
        sink: &mut SplitSink<WebSocket, Message>,
        mut heard: Heard,
        mut events: LiveStream,
    ) -> Parting
    where
        Heard: futures_util::Stream<Item = Result<Message, axum::Error>> + Unpin,
    {
        let every = self.console.settings.live_ping();
        let mut ping = interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent_pings = 0;
        loop {
            let message = tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        self.after = event.seq.or(self.after);
                        Message::text(&*event.json)
                    }
                    Some(Err(_)) => {
                        let resume = json!({ "event": "resume", "after": self.after });
                        let told = sink.send(Message::text(resume.to_string())).await;
                        return told.map_or(Parting::Gone, |()| Parting::Close(close_code::AGAIN, "too slow, connect again with after="));
                    }
                    None => return Parting::Close(close_code::NORMAL, "there is nothing more to come"),
                },
                heard = heard.next() => match heard {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Parting::Gone,
                    Some(Ok(_)) => {
                        silent_pings = 0;
                        // The answer to a ping leaves before the next message is read. Otherwise the answers to a watcher that does not
                        // read them would pile up in memory.
                        if sink.flush().await.is_err() {
                            return Parting::Gone;
                        }
                        continue;
                    }
                },
                _ = ping.tick() => {
                    if !self.is_welcome() {
                        return Parting::Close(close_code::POLICY, "signed out");
                    }
                    if silent_pings == MAX_SILENT_PINGS {
                        return Parting::Gone;
                    }
                    silent_pings += 1;
                    Message::Ping(Vec::new().into())
                }
            };
            if sink.send(message).await.is_err() {
                return Parting::Gone;
            }
        }
    }

    fn is_welcome(&self) -> bool {
        match &self.caller.admission {
            Admission::Browser(session) => self.console.auth.is_signed_in(session, Instant::now()),
            Admission::Open | Admission::Program => true,
            Admission::Stranger => false,
        }
    }
}
