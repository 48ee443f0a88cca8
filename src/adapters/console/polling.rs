//! The live view of a room for clients whose WebSockets do not get through: each request waits for events, and returns those since the one before.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use futures_util::{FutureExt as _, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::body::QueryParams;
use super::guard::Caller;
use super::live::{LiveParams, Opening};
use super::presence::Here;
use super::problem::Problem;
use super::{visitor, web_socket};
use crate::ports::backend::Detail;
use crate::ports::backend::guest_service::Visit;
use crate::ports::backend::live::Watched;
use crate::ports::backend::room::RoomId;

/// Events that follow each other this closely are returned together.
const TOGETHER: Duration = Duration::from_millis(250);

/// The number of events after which a response is complete. One recorded event has far fewer parts.
const MOST_EVENTS: usize = 500;

/// How long a person stays in the room after a request. The next one usually comes at once.
const PRESENT_FOR: Duration = Duration::from_secs(10);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PollParams {
    #[schemars(with = "RoomId")]
    room: String,
    /// The `after` of the response before. Absent: only new events.
    #[schemars(range(min = 0))]
    after: Option<u64>,
    /// The `people` of the response before. If the people have changed since, the response comes at once. Absent: it always does.
    people: Option<u32>,
    /// The name of the person who watches, as in the live view.
    #[serde(rename = "as")]
    #[schemars(length(min = 1, max = 64))]
    watcher: Option<String>,
}

/// The events since the request before.
#[derive(Serialize, JsonSchema)]
pub(super) struct Polled {
    /// The same as the live view sends: `hello` first, and `people` last.
    #[schemars(with = "Vec<Map<String, Value>>")]
    events: Vec<Box<RawValue>>,
    /// The number of the last event, for the next request.
    after: u64,
    /// A mark of the people who are here, for the next request.
    people: u32,
}

/// The fields of an event that concern the position in the room.
#[derive(Deserialize)]
struct Position {
    event: String,
    seq: Option<u64>,
    last: Option<u64>,
}

struct Gathered {
    visit: Option<Visit>,
    events: Vec<Box<RawValue>>,
    after: Option<u64>,
    /// When the response is due, once it has news.
    due_at: Option<Instant>,
}

impl Gathered {
    fn add(&mut self, event: &str) {
        let Ok(position) = serde_json::from_str::<Position>(event) else { return };
        let shown = match &self.visit {
            Some(visit) => visitor::event(event, visit),
            None => Some(event.to_owned()),
        };
        if position.event == "hello" {
            // The events up to the client's number are known to it, unless the room is another one meanwhile.
            let last = position.last.unwrap_or_default();
            self.after = Some(self.after.unwrap_or(last).min(last));
        } else if shown.is_some() {
            self.due_at.get_or_insert_with(|| Instant::now() + TOGETHER);
        }
        self.events.extend(shown.and_then(|shown| RawValue::from_string(shown).ok()));
        self.after = position.seq.or(self.after);
    }
}

/// `GET /api/live/poll?room=&after=`. Waits at most `server.live_ping_secs` for events.
pub(super) async fn poll(
    State(console): State<Shared>,
    Extension(caller): Extension<Caller>,
    QueryParams(PollParams { room, after, people: known, watcher }): QueryParams<PollParams>,
) -> Result<Answer<Polled>, Problem> {
    let params = LiveParams { room: Some(room), after: after.map(|after| after.to_string()), watcher };
    let Opening { watched, person, visit } = Opening::of(params, &caller, &console)?;
    let Watched::Room(room, after) = watched.clone() else { return Err(Problem::query("room", "room is missing")) };
    let _slot = web_socket::slot(&console, caller.address, visit.as_ref())?;
    let mut closing = caller.door.closing.subscribe();
    let mut changes = console.backend()?.guests.changes();
    let mut events = console.backend()?.rooms.live(watched).await?;
    let mut here = console.presence.enter(&room, person);
    // The first list is no change.
    let _ = here.changed().now_or_never();
    let until = Instant::now() + console.settings.live_ping();
    let due_at = (known != Some(mark(&here))).then(|| Instant::now() + TOGETHER);
    let mut gathered = Gathered { visit, events: Vec::new(), after: after.map(|after| after.0), due_at };
    while gathered.events.len() < MOST_EVENTS {
        tokio::select! {
            biased;
            () = async { drop(closing.wait_for(|closing| *closing).await) } => break,
            Ok(()) = changes.changed() => if !caller.is_still_admitted(Some(&room), &console) {
                return Err(Problem::new(StatusCode::UNAUTHORIZED, Detail::key("refusals.visit_ended")));
            },
            event = events.next() => match event {
                Some(Ok(event)) => gathered.add(&event),
                // The next request continues, or says why it cannot.
                Some(Err(_)) | None => break,
            },
            () = here.changed() => {
                gathered.due_at.get_or_insert_with(|| Instant::now() + TOGETHER);
            }
            () = sleep_until(gathered.due_at.unwrap_or(until).min(until)) => break,
        }
    }
    let (people, all) = (mark(&here), here.people());
    gathered.add(&json!({ "event": "people", "channel": room.channel(), "people": all }).to_string());
    tokio::spawn(async move {
        tokio::time::sleep(PRESENT_FOR).await;
        drop(here);
    });
    Ok(Answer(Polled { events: gathered.events, after: gathered.after.unwrap_or_default(), people }))
}

/// A mark that differs for other people, or if one of them types.
fn mark(here: &Here) -> u32 {
    let mut hasher = DefaultHasher::new();
    json!(here.people()).to_string().hash(&mut hasher);
    hasher.finish() as u32
}
