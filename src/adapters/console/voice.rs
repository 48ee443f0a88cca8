//! `GET /api/voice` as a WebSocket: people talk on the page, and companions answer with speech (docs/api.md, "Voice").

#[cfg(any(test, feature = "samples"))]
pub mod fuzz;
mod outbox;
pub mod protocol;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket};
use axum::response::Response;
use axum::{Extension, Json};
use bytes::Bytes;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, Stream, StreamExt};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at, timeout};

use super::Shared;
use super::body::{QueryParams, RoomPath};
use super::guard::Caller;
use super::limits::{Bucket, Rate, Share, Slot};
use super::problem::Problem;
use super::validation;
use super::visitor;
use super::web_socket::{self, Requested};
use crate::domain::message::{Author, Role};
use crate::ports::backend::guest_service::{Amount, Visit};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Why};
use crate::ports::call_room::{self, Entrance, Line, PersonAction};
use outbox::{Out, Outbox};
use protocol::{
    Close, Description, MAX_FRAME_BYTES, MAX_FRAMES_PER_SECOND, MAX_MESSAGES_PER_SECOND, MicrophoneFrame, PageMessage, Refused,
    SAMPLE_RATE, STALLED_AFTER, ServerMessage, SpeechService, Trouble, VERSION,
};

/// The duration of a microphone frame.
const FRAME: Duration = Duration::from_millis(protocol::FRAME_MS as u64);
/// The speech of guests is counted in units of this length.
const COUNTED_AT_ONCE: Duration = Duration::from_secs(5);
/// The most frames that a packet counts for: the lost frames before it, and its own.
const MOST_FILLED_IN: u32 = 4;
/// The time between two pulses, which show the page that the connection works.
const PULSE_EVERY: Duration = Duration::from_secs(2);
/// A page that sends nothing for this long counts as gone.
const SILENT_FOR: Duration = Duration::from_secs(10);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VoiceParams {
    #[schemars(with = "RoomId")]
    room: String,
    /// The person's name, as `from` of a message. It must not be the name of a companion in the room.
    #[schemars(length(min = 1, max = 64))]
    from: String,
    /// The version of the protocol: 1.
    v: u32,
    /// Whether the page has no microphone.
    #[serde(default)]
    listen: bool,
}

/// `GET /api/rooms/{room}/voice`
pub(super) async fn describe(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    RoomPath(room): RoomPath,
) -> Result<Json<Description>, Problem> {
    caller.in_room(&room, &console)?;
    let description = console.backend()?.calls.describe(&room).await?;
    let service = |service: call_room::SpeechService| SpeechService {
        provider: service.provider.to_owned(),
        host: service.host.map(|host| host.to_string()),
    };
    let mut recognition = description.recognition.into_iter().map(service);
    // The list is never empty.
    let first = recognition.next().unwrap_or_else(|| SpeechService { provider: String::new(), host: None });
    Ok(Json(Description {
        recognition: first,
        fallbacks: recognition.collect(),
        recognises_words: description.recognises_words,
        synthesis: description.synthesis.into_iter().map(service).collect(),
        people: description.people.iter().map(outbox::person).collect(),
    }))
}

/// `GET /api/voice?room=&from=&v=&listen=`. An invalid request is refused before the upgrade. An unknown version is reported after it, in the close
/// frame.
pub(super) async fn voice(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    QueryParams(params): QueryParams<VoiceParams>,
    requested: Requested,
) -> Result<Response, Problem> {
    let room = validation::room("room", &params.room)?;
    let from = caller.speaker(&room, validation::name("from", &params.from)?, &console)?;
    let visit = caller.in_room(&room, &console)?.cloned();
    if let Some(visit) = &visit {
        // Joining and leaving are recorded, so they count as a message.
        for amount in [Amount::Voice(Duration::ZERO), Amount::Message] {
            console.backend()?.guests.consume_quota(visit, amount).await?;
        }
    }
    if let Some(companion) = console.backend()?.messages.namesake(&room, &from).await? {
        let values = json!({ "name": from, "companion": companion });
        return Err(Problem::invalid("from", Detail::of("refusals.no_name_to_talk", values)));
    }
    console.backend()?.calls.admits(&room, &from).await?;
    let slot = web_socket::slot(&console, caller.address, visit.as_ref())?;
    // A page cannot read why an upgrade was refused. It repeats the request without an upgrade, and gets the same errors from the checks above.
    let max_bytes = MAX_FRAME_BYTES.max(console.settings.max_text_chars.saturating_mul(6).saturating_add(64));
    let upgrade = web_socket::upgrade(requested, max_bytes)?;
    if params.v != VERSION {
        return Ok(upgrade.on_upgrade(|socket| async move {
            let (mut sink, mut inbound) = socket.split();
            let reason = "the page is of another version; load it again";
            web_socket::close(&mut sink, &mut inbound, Close::UnknownVersion.code(), reason).await;
        }));
    }
    let outbox = Arc::new(Outbox::new(visit.is_some(), console.instruments.clone()));
    // The name is also the id.
    let author = Author { id: from.clone(), name: from, role: Role::Person };
    let entrance = Entrance { author, has_microphone: !params.listen, listener: outbox.clone() };
    let line = console.backend()?.calls.enter(&room, entrance).await?;
    let changes = console.backend()?.guests.changes();
    let session =
        Session { caller, room, visit, changes, console, outbox, line, heard_at: Mutex::new(Instant::now()), _slot: slot };
    Ok(upgrade.on_upgrade(move |socket| session.run(socket)))
}

/// The connection of one page to a call. Dropping it without ending the line first counts as a lost connection.
struct Session {
    caller: Caller,
    room: RoomId,
    /// The visit, if the person is a guest.
    visit: Option<Visit>,
    /// Changes when a visit may have ended.
    changes: watch::Receiver<u64>,
    console: Shared,
    outbox: Arc<Outbox>,
    line: Arc<dyn Line>,
    /// When the page last sent something.
    heard_at: Mutex<Instant>,
    _slot: (Slot, Option<Share>),
}

/// Why a session ends.
enum Ending {
    /// The page is gone.
    Gone,
    /// The server closes the connection.
    Close(Close, String),
}

impl Session {
    async fn run(self, socket: WebSocket) {
        let (mut sink, mut inbound) = socket.split();
        let mut closing = self.caller.door.closing.subscribe();
        let ending = tokio::select! {
            biased;
            () = async { drop(closing.wait_for(|closing| *closing).await) } => Ending::Close(Close::Stopping, "the server is stopping".into()),
            ending = self.send(&mut sink) => ending,
            ending = self.receive(&mut inbound) => ending,
        };
        if let Ending::Close(how, reason) = ending {
            tracing::debug!(how = how.name(), address = %self.caller.address, "a voice connection is closed");
            web_socket::close(&mut sink, &mut inbound, how.code(), &reason).await;
        }
    }

    /// Sends queued messages and frames, and regular pulses.
    async fn send(&self, sink: &mut SplitSink<WebSocket, Message>) -> Ending {
        let mut pulse = interval_at(Instant::now() + PULSE_EVERY, PULSE_EVERY);
        let mut changes = self.changes.clone();
        // Checks at once, because a permission may have been revoked since the request was admitted.
        changes.mark_changed();
        loop {
            let message = tokio::select! {
                out = self.outbox.next() => match out {
                    Out::Message(text) => Message::text(text),
                    Out::Frame(frame) => Message::binary(frame),
                    Out::End(how) => return Ending::Close(how, how.name().into()),
                },
                Ok(()) = changes.changed() => {
                    if !self.is_still_admitted() {
                        return Ending::Close(Close::Refused, "the visit has ended".into());
                    }
                    continue;
                }
                _ = pulse.tick() => {
                    if !self.is_still_admitted() {
                        return Ending::Close(Close::Refused, "signed out".into());
                    }
                    if self.heard_at.lock().elapsed() > SILENT_FOR {
                        return Ending::Gone;
                    }
                    // A browser answers pings by itself, so a page that only listens counts as present, too.
                    if timeout(STALLED_AFTER, sink.feed(Message::Ping(Bytes::new()))).await.is_err() {
                        return Ending::Close(Close::TooSlow, "the page does not read".into());
                    }
                    Message::text(ServerMessage::Pulse {}.write())
                }
            };
            match timeout(STALLED_AFTER, sink.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ending::Gone,
                Err(_) => return Ending::Close(Close::TooSlow, "the page does not read".into()),
            }
        }
    }

    async fn receive<Inbound>(&self, inbound: &mut Inbound) -> Ending
    where
        Inbound: Stream<Item = Result<Message, axum::Error>> + Unpin,
    {
        // The burst is ten seconds of frames or messages, because everything that a stall has delayed arrives at once.
        let allowance = |per_second: u32| {
            let per_second = f64::from(per_second);
            Bucket::new(Rate { per_second, burst: per_second * 10.0 }, Instant::now())
        };
        // The first unit is counted at its beginning, so that short calls count, too.
        let (mut spoken, mut last) = (COUNTED_AT_ONCE, None);
        let (mut frames, mut messages) = (allowance(MAX_FRAMES_PER_SECOND), allowance(MAX_MESSAGES_PER_SECOND));
        loop {
            let received = inbound.next().await;
            let now = Instant::now();
            *self.heard_at.lock() = now;
            let taken = match received {
                Some(Ok(Message::Binary(_))) if frames.take_token(now).is_err() => {
                    Err(too_often("binary frames", MAX_FRAMES_PER_SECOND))
                }
                Some(Ok(Message::Binary(frame))) => {
                    // The decoder fills in frames that are missing between two packets, so they count, too.
                    let read = MicrophoneFrame::read(&frame);
                    let number = read.as_ref().ok().map(|frame| frame.number);
                    let passed = number.zip(last).map_or(1, |(number, last)| number.wrapping_sub(last).clamp(1, MOST_FILLED_IN));
                    (spoken, last) = (spoken + FRAME * passed, number.or(last));
                    if spoken >= COUNTED_AT_ONCE
                        && let Err(problem) = self.count(Amount::Voice(std::mem::take(&mut spoken))).await
                    {
                        return Ending::Close(Close::Refused, problem.detail().to_string());
                    }
                    read.map(|MicrophoneFrame { number, packet }| self.line.push_packet(number, packet))
                        .map_err(|refused| refused.reason())
                }
                Some(Ok(Message::Text(_))) if messages.take_token(now).is_err() => {
                    Err(too_often("messages", MAX_MESSAGES_PER_SECOND))
                }
                Some(Ok(Message::Text(text))) => match PageMessage::read(&text, self.console.settings.max_text_chars) {
                    Ok(message) if self.visit.is_some() && !visitor::may_send(&message) => {
                        Err("guests may not send this".to_owned())
                    }
                    Ok(message) => {
                        let counted = match &message {
                            PageMessage::Say { .. } => self.count(Amount::Message).await,
                            _ => Ok(()),
                        };
                        match counted {
                            Ok(()) => self.handle_message(message),
                            Err(problem) => self.refuse(format!("{}.", problem.detail()), problem.detail().why()),
                        }
                        Ok(())
                    }
                    Err(Refused::Text { chars, max, .. }) => {
                        let text = format!("has {chars} characters, from 1 to {max} are accepted; split it");
                        self.refuse_words(&Detail::from(text).coded("refusals.length", json!({ "chars": chars, "most": max })));
                        Ok(())
                    }
                    Err(refused) => Err(refused.reason()),
                },
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ending::Gone,
            };
            if let Err(reason) = taken {
                return Ending::Close(Close::Refused, reason);
            }
        }
    }

    fn is_still_admitted(&self) -> bool {
        self.caller.is_still_admitted(Some(&self.room), &self.console)
    }

    /// Counts the usage of a guest. The error names the limit that is reached.
    async fn count(&self, amount: Amount) -> Result<(), Problem> {
        let Some(visit) = &self.visit else { return Ok(()) };
        Ok(self.console.backend()?.guests.consume_quota(visit, amount).await?)
    }

    fn handle_message(&self, message: PageMessage) {
        let told = match message {
            PageMessage::Mute { on } => PersonAction::Muted(on),
            PageMessage::Ignore { on } => PersonAction::Ignored(on),
            PageMessage::Played { reply, samples } => {
                let micros = samples.saturating_mul(1_000_000) / u64::from(SAMPLE_RATE);
                PersonAction::Played { reply, position: Duration::from_micros(micros) }
            }
            PageMessage::Stop { reply } => PersonAction::Stop { reply },
            PageMessage::Say { text } => match validation::text("text", &text, self.console.settings.max_text_chars) {
                Ok(text) => PersonAction::Say(text),
                Err(problem) => return self.refuse_words(problem.detail()),
            },
            PageMessage::Leave {} => PersonAction::Leave,
        };
        self.line.report(told);
    }

    /// Refuses the text of a `say` message. `problem` begins with a verb.
    fn refuse_words(&self, problem: &Detail) {
        self.refuse(format!("The text {problem}."), problem.why().about("text"));
    }

    fn refuse(&self, fix: String, why: Why) {
        self.outbox.push(ServerMessage::Error { code: Trouble::SayRefused, fix, why });
    }
}

fn too_often(what: &str, limit: u32) -> String {
    format!("more than {limit} {what} in a second; send fewer")
}
