//! Exports a room's messages as group chat for `tertulia-lab evaluate` (docs/evaluate.md).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::{Author, Role};
use crate::journal::redaction::is_redacted;

/// The messages in these events of one room, as one excerpt. Deleted messages and platform events are left out. `present` are the
/// companions in the room, including those without a message.
///
/// Rooms have few reply links, so the excerpt uses the label `turn_60s`.
pub(crate) fn of(room: &str, title: &str, present: &[Author], events: &[Recorded]) -> Value {
    let (mut names, mut places) = (Names::default(), BTreeMap::<Seq, usize>::new());
    let mut companions: BTreeSet<_> = present.iter().map(|companion| names.of(companion)).collect();
    let mut messages = Vec::new();
    let mut began = None;
    let mut newest = 0.0;
    for recorded in events {
        let Event::Said { message, reply_to, said_at, .. } = &recorded.event else { continue };
        if is_redacted(message) || message.is_event() {
            continue;
        }
        let at = said_at.unwrap_or(recorded.at);
        // A late message has the time of the messages around it.
        newest = at.since(*began.get_or_insert(at)).as_secs_f64().max(newest);
        let from = names.of(&message.from);
        if message.from.role == Role::Companion {
            companions.insert(from.clone());
        }
        let n = messages.len();
        let replies_to: Vec<usize> = reply_to.iter().filter_map(|seq| places.get(seq).copied()).collect();
        places.insert(recorded.seq, n);
        messages.push(json!({
            "n": n, "t": newest, "from": from, "text": message.text, "replies_to": replies_to, "annotated": true,
        }));
    }
    json!({
        "id": room, "source": "tertulia", "channel": title, "clock": "exact", "label": "turn_60s", "companions": companions, "messages": messages,
    })
}

/// Unique names of authors.
#[derive(Default)]
struct Names {
    of_authors: BTreeMap<(bool, Arc<str>), Arc<str>>,
    taken: BTreeSet<Arc<str>>,
}

impl Names {
    fn of(&mut self, author: &Author) -> Arc<str> {
        let key = (author.role == Role::Companion, author.id.clone());
        if let Some(known) = self.of_authors.get(&key) {
            return known.clone();
        }
        let numbered = (2..).map(|number| format!("{} {number}", author.name).into());
        let mut free = [author.name.clone()].into_iter().chain(numbered).filter(|name| !self.taken.contains(name));
        let name = free.next().unwrap_or_else(|| author.name.clone());
        self.taken.insert(name.clone());
        self.of_authors.insert(key, name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::Message;
    use crate::domain::moment::Moment;
    use crate::samples::{message, person};

    #[test]
    fn messages_are_numbered_with_their_links_and_companions_are_named() {
        let [aria, bruno] = ["aria", "bruno"].map(|id| Author { role: Role::Companion, ..person(id) });
        let other_ana = Author { id: "17".into(), ..person("ana") };
        let events = [
            said(4, 10, message(person("ana"), "Hello"), None),
            said(5, 12, message(person("ana"), ""), None),
            said(7, 15, message(aria, "Hi"), Some(4)),
            said(9, 14, message(other_ana, "Me too"), Some(5)),
        ];

        let chat = of("lobby", "The lobby", &[bruno], &events);

        assert_eq!((&chat["companions"], &chat["label"]), (&json!(["aria", "bruno"]), &json!("turn_60s")));
        let shown = |message: &Value| {
            (message["n"].clone(), message["t"].clone(), message["from"].clone(), message["replies_to"].clone())
        };
        let messages: Vec<_> = chat["messages"].as_array().unwrap().iter().map(shown).collect();
        let expected = [
            (json!(0), json!(0.0), json!("ana"), json!([])),
            (json!(1), json!(5.0), json!("aria"), json!([0])),
            (json!(2), json!(5.0), json!("ana 2"), json!([])),
        ];
        assert_eq!(messages, expected);
    }

    fn said(seq: u64, secs: u64, message: Message, reply_to: Option<u64>) -> Recorded {
        let at = Moment::from_micros(secs * 1_000_000);
        let event = Event::Said { message, reply_to: reply_to.map(Seq), reply: None, said_at: None };
        Recorded { seq: Seq(seq), at, handled: Seq(seq), turn: None, event }
    }
}
