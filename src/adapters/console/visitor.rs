//! Filters data for guests. From every response and event, guests get only the parts that are listed here. The lists also cover messages of calls,
//! in both directions.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::problem::Problem;
use super::voice::protocol::{PageMessage, ServerMessage};
use crate::domain::id::Seq;
use crate::domain::message::NoteWords;
use crate::ports::backend::Detail;
use crate::ports::backend::guest_service::{KnownCompanion, Visit};
use crate::ports::backend::messages::{History, HistoryMessage};
use crate::ports::backend::room::{Room, RoomId};
use crate::ports::backend::stamp::Stamp;
use crate::ports::inbound_events::{InboundMessage, ReplyTo};

/// The fields of every event.
const OF_ALL: &[&str] = &["event", "seq", "at", "channel", "rounds"];

/// The events of the live view that guests get, each with its fields in addition to those of every event. Guests get no other events.
pub(super) const EVENTS: &[(&str, &[&str])] = &[
    ("hello", &["last", "state"]),
    (
        "message",
        &[
            "id",
            "from",
            "name",
            "role",
            "ai",
            "text",
            "modality",
            "reply_to",
            "said_at",
            "kind",
            "truncated",
            "edited",
            "files",
            "voice_note",
            "calls",
        ],
    ),
    ("tool_confirmed", &["companion", "call", "confirmed"]),
    ("tool_answered", &["companion", "call", "outcome"]),
    ("statement", &["companion", "ticket"]),
    ("disclosed", &["message", "operator", "privacy"]),
    ("help", &["message", "person", "text", "tell"]),
    ("edited", &["message", "text", "captions", "edited"]),
    ("deleted", &["messages", "replaced"]),
    ("joined", &["companion", "external"]),
    ("left", &["companion"]),
    ("paused", &["companion", "paused"]),
    ("cleared", &["anew"]),
    ("voice_joined", &["from", "name"]),
    ("voice_left", &["from", "name"]),
    ("evaluate", &["companion"]),
    ("decision", &["companion", "trigger", "decision", "reason", "messages"]),
    ("error", &["companion", "retry_at"]),
    ("round_opened", &["message_id"]),
    ("round", &["message_id", "selected"]),
    ("held_selected", &["selected", "others"]),
    ("respond", &["companion", "ticket", "messages", "due_at", "modality"]),
    ("replanning", &["companion", "ticket", "message", "until"]),
    ("replanned", &["companion", "ticket", "replaces", "messages"]),
    ("extended", &["companion", "ticket", "replaces", "messages"]),
    ("sentence", &["companion", "ticket", "sentence", "text"]),
    ("sentence_played", &["companion", "ticket", "sentence", "ms", "heard", "dropped"]),
    ("interrupted", &["companion", "ticket", "verdict", "at_ms"]),
    ("floor_expired", &["companion", "ticket"]),
    ("floor_taken", &["companion", "ticket"]),
    ("failed", &["companion", "ticket", "error", "message"]),
    ("closing", &["companion", "from", "to"]),
    ("draft", &["companion", "ticket", "whole", "text"]),
    ("dropped", &["companion", "ticket"]),
    ("people", &["people"]),
    ("resume", &["after"]),
];

/// Reasons for a companion's silence that concern the owner. Guests get `unavailable` instead.
const OWNERS_REASONS: &[&str] = &["budget", "unpostable", "unreadable"];
/// The errors of a reply that people caused. Guests get no others.
const PEOPLES_ERRORS: &[&str] = &["cancelled", "interrupted"];

/// Whether guests may send this message in a call of their room.
pub(super) fn may_send(message: &PageMessage) -> bool {
    match message {
        PageMessage::Mute { .. }
        | PageMessage::Ignore { .. }
        | PageMessage::Played { .. }
        | PageMessage::Stop { .. }
        | PageMessage::Say { .. }
        | PageMessage::Leave {} => true,
    }
}

/// Whether guests get this message in a call of their room.
pub(super) fn may_get(message: &ServerMessage) -> bool {
    match message {
        ServerMessage::Hello { .. }
        | ServerMessage::Joined(_)
        | ServerMessage::Changed(_)
        | ServerMessage::Left { .. }
        | ServerMessage::Talking { .. }
        | ServerMessage::Noise { .. }
        | ServerMessage::Caption { .. }
        | ServerMessage::Thinking { .. }
        | ServerMessage::Speaking { .. }
        | ServerMessage::Sentence { .. }
        | ServerMessage::Duck { .. }
        | ServerMessage::Flush { .. }
        | ServerMessage::Resume { .. }
        | ServerMessage::Done { .. }
        | ServerMessage::Cut { .. }
        | ServerMessage::Pulse {}
        | ServerMessage::Error { .. } => true,
    }
}

/// The fields of a round that guests get: its message, its speaker and its progress.
const ROUND: &[&str] =
    &["seq", "at", "message_id", "phase", "asked", "answers", "selected", "speaker", "speak_at", "late", "outcome", "closed_at"];

/// The fields of a room's state that guests get in `hello`.
const STATE: &[&str] = &["companions", "floor", "late", "kept_away", "at"];
const COMPANION: &[&str] = &["id", "name", "doing", "since", "retry_at", "paused", "closing", "external"];
const FLOOR: &[&str] = &["companion", "ticket", "due_at"];
const KEPT_AWAY: &[&str] = &["until"];
const VOICE_NOTE: &[&str] = &["secs", "words"];
const VOICE_NOTE_WORDS: &[&str] = &["state", "note", "why"];

/// The most messages of a history that a guest gets in one response.
pub(super) const MOST_MESSAGES: usize = 200;

/// The prefix of the recorded ids of a guest's messages, so that no two guests share an id. A `/` in the name is escaped.
fn prefix(visit: &Visit) -> String {
    format!("guest/{}/{}/", visit.invitation, visit.name.replace('%', "%25").replace('/', "%2F"))
}

/// Turns a message into a guest's: adds the guest's prefix to its id. A reply to a message from before the invitation is refused.
pub(super) fn own(message: &mut InboundMessage, visit: &Visit) -> Result<(), Problem> {
    message.id = message.id.as_ref().map(|id| format!("{}{id}", prefix(visit)).into());
    match message.reply_to.as_ref().and_then(ReplyTo::recorded) {
        Some(seq) if seq <= visit.from => {
            Err(Problem::invalid("reply_to", Detail::of("refusals.no_such_reply", json!({ "number": seq }))))
        }
        _ => Ok(()),
    }
}

/// The id as the guest sent it. `None` if the message is not this guest's.
fn own_id(id: &str, visit: &Visit) -> Option<Arc<str>> {
    id.strip_prefix(&prefix(visit)).map(Arc::from)
}

/// An event as a guest gets it. `None` if the guest does not get it.
pub(super) fn event(text: &str, visit: &Visit) -> Option<String> {
    let Value::Object(mut event) = serde_json::from_str(text).ok()? else { return None };
    let kind = event.get("event")?.as_str()?;
    let (_, fields) = EVENTS.iter().find(|(known, _)| *known == kind)?;
    let is_before = |value: &Value| value.as_u64().is_none_or(|seq| seq <= visit.from.0);
    // An edit does not reveal the text of a message from before the invitation either.
    if kind == "edited" && event.get("message").is_none_or(is_before) {
        return None;
    }
    if kind == "message" && event.get("seq").is_none_or(is_before) {
        return None;
    }
    keep(&mut event, &[OF_ALL, fields].concat());
    // Help texts for a person at risk are shown only to that person.
    if event.get("event").is_some_and(|kind| kind == "help") && event.remove("person").is_none_or(|person| person != *visit.name)
    {
        event.remove("text");
        event.get("tell")?;
        event.insert("event".to_owned(), "help_told".into());
    }
    if event.get("reason").is_some_and(|reason| reason == "risk") {
        // Other guests' pages say only that the companion stayed silent.
        event.insert("reason".to_owned(), "other_addressed".into());
    }
    match event.get("id").and_then(Value::as_str).map(|id| own_id(id, visit)) {
        Some(Some(own)) => drop(event.insert("id".to_owned(), (&*own).into())),
        Some(None) => drop(event.remove("id")),
        None => {}
    }
    for list in ["messages", "message"] {
        match event.get_mut(list) {
            Some(Value::Array(seqs)) => seqs.retain(|seq| !is_before(seq)),
            Some(seq) if is_before(seq) => drop(event.remove(list)),
            _ => {}
        }
    }
    if let Some(Value::Object(state)) = event.get_mut("state") {
        state_of(state);
    }
    keep_each(event.get_mut("rounds"), ROUND);
    if let Some(Value::Object(voice_note)) = event.get_mut("voice_note") {
        keep(voice_note, VOICE_NOTE);
        keep_each(voice_note.get_mut("words"), VOICE_NOTE_WORDS);
    }
    if event.get("reason").and_then(Value::as_str).is_some_and(|reason| OWNERS_REASONS.contains(&reason)) {
        event.insert("reason".to_owned(), "unavailable".into());
    }
    if event.get("error").and_then(Value::as_str).is_some_and(|error| !PEOPLES_ERRORS.contains(&error)) {
        event.remove("error");
    }
    Some(Value::Object(event).to_string())
}

fn state_of(state: &mut Map<String, Value>) {
    keep(state, STATE);
    keep_each(state.get_mut("companions"), COMPANION);
    keep_each(state.get_mut("floor"), FLOOR);
    keep_each(state.get_mut("late"), FLOOR);
    keep_each(state.get_mut("kept_away"), KEPT_AWAY);
}

/// Keeps only these fields of an object, or of each object in a list.
fn keep_each(value: Option<&mut Value>, fields: &[&str]) {
    match value {
        Some(Value::Array(all)) => all.iter_mut().filter_map(Value::as_object_mut).for_each(|one| keep(one, fields)),
        Some(Value::Object(one)) => keep(one, fields),
        _ => {}
    }
}

fn keep(object: &mut Map<String, Value>, fields: &[&str]) {
    object.retain(|key, _| fields.contains(&key.as_str()));
}

/// A page of a room's history as a guest gets it.
pub(super) fn history(history: History, visit: &Visit) -> History {
    let messages = history.messages.into_iter().filter(|message| message.seq > visit.from);
    let as_seen = |mut message: HistoryMessage| {
        if let Some(NoteWords::Heard { provider, confidence, .. }) =
            message.voice_note.as_mut().and_then(|note| note.words.as_mut())
        {
            (*provider, *confidence) = (Arc::default(), None);
        }
        let id = message.id.as_ref().and_then(|id| own_id(id, visit));
        HistoryMessage {
            id,
            quoted: None,
            cut: None,
            recalled: Vec::new(),
            lore: Vec::new(),
            versions: None,
            reply: None,
            ..message
        }
    };
    let messages = messages.map(as_seen).collect();
    History { messages, deleted: history.deleted.into_iter().filter(|seq| *seq > visit.from).collect() }
}

/// The rooms of a guest.
#[derive(Serialize, JsonSchema)]
pub(super) struct Visits {
    pub(super) rooms: Vec<VisitedRoom>,
    /// Whether no AI is connected, so that companions say ready-made sentences.
    pub(super) demo: bool,
    /// Whether companions get pictures that people post, and not only their descriptions.
    pub(super) sees_pictures: bool,
}

/// A room as a guest gets it.
#[derive(Serialize, JsonSchema)]
pub(super) struct VisitedRoom {
    id: RoomId,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Arc<str>>,
    /// The guest's name in this room.
    name: Arc<str>,
    companions: Vec<KnownCompanion>,
    /// The guest gets only events after this one.
    after: Seq,
    joined_at: Stamp,
    /// When the invitation ends; null if it has no end.
    ends_at: Option<Stamp>,
}

impl VisitedRoom {
    pub(super) fn new(room: Room, visit: &Visit) -> Self {
        Self {
            id: room.id,
            title: room.title,
            name: visit.name.clone(),
            companions: room.companions.into_iter().map(KnownCompanion::from).collect(),
            after: visit.from,
            joined_at: visit.joined_at.into(),
            ends_at: visit.ends_at.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::moment::Moment;

    fn visit() -> Visit {
        Visit {
            invitation: "one".into(),
            cookie: "b".into(),
            guild: "home".into(),
            channel: "console:lobby".into(),
            name: "Ben".into(),
            from: Seq(7),
            joined_at: Moment::from_micros(0),
            ends_at: None,
        }
    }

    fn seen(value: &Value) -> Option<Value> {
        event(&value.to_string(), &visit()).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_decision_is_told_without_its_reasons_in_words_and_without_votes() {
        let decision = json!({
            "event": "decision", "seq": 9, "at": "t", "channel": "console:lobby", "companion": "aria", "trigger": "lull", "decision": "NO",
            "reason": "not_now", "messages": [6, 8], "why": "secret", "raw": "secret", "model": "m", "input_tokens": 5, "importance": 3,
            "round": { "states": {} },
            "rounds": [{ "seq": 8, "states": { "aria": {} }, "candidates": ["aria"], "reason": "important", "speaker": "aria" }],
        });

        assert_eq!(
            seen(&decision),
            Some(json!({
                "event": "decision", "seq": 9, "at": "t", "channel": "console:lobby", "companion": "aria", "trigger": "lull",
                "decision": "NO", "reason": "not_now", "messages": [8], "rounds": [{ "seq": 8, "speaker": "aria" }],
            }))
        );
    }

    #[test]
    fn who_recognised_a_voice_note_and_how_well_is_not_told() {
        let words = json!({ "state": "heard", "note": 8, "provider": "deepgram", "confidence": 900 });
        let message = json!({ "event": "message", "seq": 9, "voice_note": { "secs": 12, "words": words } });

        let seen = seen(&message).unwrap();

        assert_eq!(seen["voice_note"], json!({ "secs": 12, "words": { "state": "heard", "note": 8 } }));
    }

    #[test]
    fn what_the_owner_pays_and_what_fails_is_not_told() {
        let reason = |reason: &str| seen(&json!({ "event": "decision", "seq": 9, "reason": reason })).unwrap()["reason"].clone();
        let error =
            |event: &str, error: &str| seen(&json!({ "event": event, "seq": 9, "error": error })).unwrap()["error"].clone();

        for owners in OWNERS_REASONS {
            assert_eq!(reason(owners), "unavailable");
        }
        assert_eq!(reason("model_no"), "model_no");
        assert_eq!((error("error", "no_credit"), error("failed", "no_credit")), (Value::Null, Value::Null));
        assert_eq!(error("failed", "cancelled"), "cancelled");
    }

    #[test]
    fn no_guests_id_is_that_of_another_guest() {
        let cy = Visit { name: "Cy".into(), ..visit() };
        for name in ["Cy/x", "Cy%2Fx", "Cy%252Fx"] {
            let other = Visit { name: name.into(), ..visit() };
            assert_eq!(own_id(&format!("{}1", prefix(&other)), &cy), None);
            assert_ne!(format!("{}x/1", prefix(&cy)), format!("{}1", prefix(&other)), "{name}");
        }
        assert_ne!(prefix(&Visit { name: "Cy/x".into(), ..visit() }), prefix(&Visit { name: "Cy%2Fx".into(), ..visit() }));
    }

    #[test]
    fn of_other_events_nothing_is_told() {
        for kind in ["state", "counters", "tempered", "lull_armed", "repetition", "segment", "silence", "new_kind"] {
            assert_eq!(seen(&json!({ "event": kind, "seq": 9, "text": "secret" })), None, "{kind}");
        }
    }

    #[test]
    fn nothing_is_told_of_messages_from_before_the_invitation() {
        assert_eq!(seen(&json!({ "event": "edited", "seq": 9, "message": 7, "text": "secret" })), None);
        assert_eq!(seen(&json!({ "event": "message", "seq": 7, "text": "secret" })), None);
        assert!(seen(&json!({ "event": "edited", "seq": 9, "message": 8, "text": "new" })).is_some());
        assert_eq!(seen(&json!({ "event": "deleted", "seq": 9, "messages": [3, 8] })).unwrap()["messages"], json!([8]));
        assert_eq!(
            seen(&json!({ "event": "failed", "seq": 9, "message": 3, "text": "secret" })),
            Some(json!({ "event": "failed", "seq": 9 }))
        );
    }

    #[test]
    fn the_state_of_a_room_has_who_is_there_and_who_speaks() {
        let hello = json!({ "event": "hello", "last": 9, "state": {
            "companions": [{ "id": "aria", "name": "Aria", "doing": "asked", "buffer": ["secret"], "model": {}, "message_count": 3 }],
            "floor": { "companion": "aria", "ticket": 1 }, "kept_away": { "id": "x", "until": "t", "detail": "secret" },
            "rounds": [{ "states": ["secret"] }], "streak": 3,
        }});

        assert_eq!(
            seen(&hello).unwrap()["state"],
            json!({
                "companions": [{ "id": "aria", "name": "Aria", "doing": "asked" }],
                "floor": { "companion": "aria", "ticket": 1 }, "kept_away": { "until": "t" },
            })
        );
    }
}
