//! Journaled events for tests, with defaults for the fields that a test does not set.

use serde_json::{Value, json};

use super::Recorded;

/// An event whose `handled` is its own number.
pub fn recorded(seq: u64, event: Value) -> Recorded {
    let turn = "00000000000000000000000000000001";
    serde_json::from_value(with(json!({ "seq": seq, "at": 0, "handled": seq, "turn": turn }), event)).expect("an event")
}

pub fn with(mut event: Value, more: Value) -> Value {
    if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
        event.extend(more);
    }
    event
}

pub fn said(by: &str, role: &str, reply: Option<u64>) -> Value {
    let message = json!({ "from": { "id": by, "name": by, "role": role }, "text": "words" });
    json!({ "event": "said", "message": message, "reply": reply })
}

pub fn evaluated(companion: &str, ticket: u64, messages: &[u64]) -> Value {
    let message = messages.last();
    let question =
        json!({ "event": "evaluated", "companion": companion, "ticket": ticket, "trigger": "lull", "messages": messages });
    with(question, json!({ "message": message, "upto": message, "message_count": 1, "check_count": 0, "threshold": null }))
}

pub fn decided(companions: &[&str], decision: &str, messages: &[u64], more: Value) -> Value {
    let decided = json!({ "event": "decided", "companions": companions, "decision": decision, "messages": messages });
    let more = with(json!({ "trigger": "lull", "reason": "model_no", "upto": 0, "message_count": 1, "check_count": 0 }), more);
    with(decided, more)
}

pub fn reply_owed(companion: &str, ticket: u64, messages: &[u64]) -> Value {
    let owed = json!({ "event": "reply_owed", "companion": companion, "ticket": ticket, "messages": messages });
    with(owed, json!({ "trigger": "lull", "upto": messages.last(), "next_interjection_at": 9 }))
}
