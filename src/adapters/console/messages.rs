//! What people say in a room, what they take back, and what was said.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::body::{Asked, InRoom, Json, OfMessage};
use super::problem::Problem;
use super::words;
use crate::domain::id::Seq;
use crate::ports::backend::messages::{Edit, History, HistoryQuery, NewMessage};

const MAX_MENTIONS: usize = 64;
pub(super) const MAX_ID_CHARS: usize = 128;

/// The number of a message that was accepted.
#[derive(Serialize)]
pub(super) struct Accepted {
    pub(super) seq: Seq,
}

type Reply = Result<(StatusCode, Answer<Accepted>), Problem>;

/// `POST /api/rooms/{room}/messages`
pub(super) async fn say(State(console): State<Shared>, InRoom(room): InRoom, Json(mut message): Json<NewMessage>) -> Reply {
    message.from = words::name("from", &message.from)?;
    message.text = words::text("text", &message.text, console.settings.max_text_chars)?;
    if let Some(id) = &message.id {
        words::opaque_id("id", id, MAX_ID_CHARS)?;
    }
    if message.mentions.len() > MAX_MENTIONS {
        return Err(Problem::invalid(
            "mentions",
            format!("names {}, at most {MAX_MENTIONS} can be mentioned at once", message.mentions.len()),
        ));
    }
    for (place, mention) in message.mentions.iter_mut().enumerate() {
        *mention = words::name(&format!("mentions[{place}]"), mention)?;
    }
    accepted(console.backend.say(&room, message).await?)
}

/// `PATCH /api/rooms/{room}/messages/{seq}`
pub(super) async fn edit(State(console): State<Shared>, OfMessage(room, seq): OfMessage, Json(mut edit): Json<Edit>) -> Reply {
    edit.text = words::text("text", &edit.text, console.settings.max_text_chars)?;
    accepted(console.backend.edit(&room, seq, edit).await?)
}

/// `DELETE /api/rooms/{room}/messages/{seq}`
pub(super) async fn delete_message(State(console): State<Shared>, OfMessage(room, seq): OfMessage) -> Reply {
    accepted(console.backend.delete_message(&room, seq).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskedHistory {
    after: Option<u64>,
    before: Option<u64>,
    limit: Option<usize>,
}

/// `GET /api/rooms/{room}/history?after=&before=&limit=`
pub(super) async fn history(
    State(console): State<Shared>,
    InRoom(room): InRoom,
    Asked(asked): Asked<AskedHistory>,
) -> Result<Answer<History>, Problem> {
    let query = HistoryQuery { after: asked.after.map(Seq), before: asked.before.map(Seq), limit: limit(asked.limit)? };
    Ok(Answer(console.backend.history(&room, query).await?))
}

/// How many entries of a list are given: 100 unless asked for from 1 to 1,000.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked {
        None => Ok(100),
        Some(limit @ 1..=1_000) => Ok(limit),
        Some(limit) => Err(Problem::query("limit", format!("limit is {limit}, must be from 1 to 1000"))),
    }
}

fn accepted(seq: Seq) -> Reply {
    Ok((StatusCode::ACCEPTED, Answer(Accepted { seq })))
}
