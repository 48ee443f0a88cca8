//! Checks the record of a room against the rules of rounds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The state of a room, reconstructed from its record.
pub struct Record<'a> {
    companions: &'a [&'a str],
    streak_limit: u64,
    /// The sender and text of each message, by its number.
    messages: BTreeMap<u64, (String, String)>,
    present: BTreeSet<String>,
    settled: BTreeSet<(String, u64)>,
    stages: BTreeMap<String, String>,
    /// The message that the open round is about, and the voters.
    round: Option<(u64, BTreeSet<String>)>,
    /// The companions that may take the floor next.
    candidates: Vec<String>,
    /// The companion with the floor, and the ticket of its reply.
    floor: Option<(String, u64)>,
    replies: BTreeSet<u64>,
    decided: BTreeSet<u64>,
    decisions: usize,
    /// Whether the current speaker was selected after the newest message of a person.
    is_selected_since_person: bool,
    streak: u64,
    pub lost: Vec<String>,
    pub duplicated: Vec<String>,
    pub broken: Vec<String>,
    pub rounds: usize,
    pub turn_rounds: usize,
    pub owed: usize,
    pub statements: usize,
    pub failed: usize,
    pub stages_changed: usize,
    pub guarded: usize,
    pub unanswered: usize,
}

impl<'a> Record<'a> {
    /// An empty record of a room with these companions, which may make `streak_limit` statements in a row.
    pub fn new(companions: &'a [&'a str], streak_limit: u64) -> Self {
        Self {
            companions,
            streak_limit,
            messages: BTreeMap::new(),
            present: BTreeSet::new(),
            settled: BTreeSet::new(),
            stages: companions.iter().map(|companion| ((*companion).to_owned(), "none".to_owned())).collect(),
            round: None,
            candidates: Vec::new(),
            floor: None,
            replies: BTreeSet::new(),
            decided: BTreeSet::new(),
            decisions: 0,
            is_selected_since_person: false,
            streak: 0,
            lost: Vec::new(),
            duplicated: Vec::new(),
            broken: Vec::new(),
            rounds: 0,
            turn_rounds: 0,
            owed: 0,
            statements: 0,
            failed: 0,
            stages_changed: 0,
            guarded: 0,
            unanswered: 0,
        }
    }

    /// Reads a room's events, in the order in which they were handled.
    pub fn read(&mut self, events: &[Value]) {
        for (event, expected) in events.iter().zip(1..) {
            if number(event, "seq") != expected {
                self.lost.push(format!("event {expected} is missing, {} follows", event["seq"]));
                return;
            }
        }
        let is_trigger = |event: &Value| number(event, "handled") == number(event, "seq");
        let mut events: Vec<_> = events.iter().collect();
        events.sort_by_key(|event| (number(event, "handled"), !is_trigger(event), number(event, "seq")));
        events.into_iter().for_each(|event| self.apply(event));
        if let Some((companion, ticket)) = &self.floor {
            self.broken.push(format!("{companion} still owes {ticket}"));
        }
        if self.round.is_some() {
            self.broken.push("a round is still open".to_owned());
        }
    }

    fn apply(&mut self, event: &Value) {
        match text(event, "event") {
            "joined" => drop(self.present.insert(text(event, "companion").to_owned())),
            "said" => self.message(event),
            "round_opened" => self.open_round(event),
            "decided" => self.decide(event),
            "unanswered" => self.unanswered += 1,
            "stage_changed" => {
                self.stages_changed += 1;
                let before = self.stages.insert(text(event, "companion").to_owned(), text(event, "to").to_owned());
                if before.as_deref() != Some(text(event, "from")) {
                    self.broken.push(format!("a stage was lost: it was {before:?} before {event}"));
                }
            }
            "round_closed" => self.close_round(event),
            "reply_owed" => self.reply_owed(event),
            "reply_failed" => {
                self.failed += 1;
                self.end_floor(event, text(event, "companion"), number(event, "ticket"));
                self.is_selected_since_person = true;
            }
            _ => {}
        }
    }

    fn message(&mut self, event: &Value) {
        let message = &event["message"];
        let (from, seq) = (text(&message["from"], "id").to_owned(), number(event, "seq"));
        let is_companion = text(&message["from"], "role") == "companion";
        self.messages.insert(seq, (from.clone(), text(message, "text").to_owned()));
        if !is_companion {
            self.streak = 0;
            self.is_selected_since_person = false;
            return;
        }
        self.statements += 1;
        self.end_floor(event, &from, number(event, "reply"));
        self.candidates.clear();
        if self.is_selected_since_person {
            self.streak += 1;
        }
        if self.streak > self.streak_limit {
            self.broken.push(format!("{} statements in a row: {event}", self.streak));
        }
    }

    fn open_round(&mut self, event: &Value) {
        self.rounds += 1;
        let newest = number(event, "message");
        let is_statement = self.messages.get(&newest).is_some_and(|(from, _)| self.companions.contains(&from.as_str()));
        self.turn_rounds += usize::from(is_statement);
        if self.round.is_some() || self.floor.is_some() {
            self.broken
                .push(format!("a round is opened during the round {:?} or the floor {:?}: {event}", self.round, self.floor));
        }
        let mut voters: BTreeSet<_> = list(event, "asked").map(|id| id.as_str().expect("an id").to_owned()).collect();
        for state in list(event, "listening") {
            voters.insert(text(state, "from").to_owned());
            if self.stages.get(text(state, "from")).map(String::as_str) != Some(text(state, "closing")) {
                self.broken.push(format!("a stage was lost: on record are {:?}, {event}", self.stages));
            }
        }
        self.round = Some((newest, voters));
        self.candidates.clear();
    }

    fn decide(&mut self, event: &Value) {
        if let Some(ticket) = event["ticket"].as_u64()
            && !self.decided.insert(ticket)
        {
            self.duplicated.push(format!("the question {ticket} was decided twice"));
        }
        self.guarded += usize::from(event["reason"] == "loop_guard");
        for companion in list(event, "companions").map(|id| id.as_str().expect("an id")) {
            self.decisions += 1;
            self.settle(companion, event);
        }
    }

    fn close_round(&mut self, event: &Value) {
        let Some((message, voters)) = self.round.take() else {
            self.broken.push(format!("no round was open: {event}"));
            return;
        };
        let states: Vec<_> = list(event, "states").collect();
        let voted: BTreeSet<_> = states.iter().map(|state| text(state, "from").to_owned()).collect();
        if message != number(event, "message") || voted != voters || voted.len() != states.len() {
            self.broken.push(format!("not each of {voters:?} voted once about {message}: {event}"));
        }
        self.is_selected_since_person = true;
        let others = list(event, "others").map(|other| text(other, "companion"));
        self.candidates = event["selected"].as_str().into_iter().chain(others).map(str::to_owned).collect();
        for candidate in &self.candidates {
            if !states.iter().any(|state| text(state, "from") == candidate && state["state"] == "speak") {
                self.broken.push(format!("{candidate} did not vote to speak: {event}"));
            }
        }
    }

    fn reply_owed(&mut self, event: &Value) {
        let (companion, ticket) = (text(event, "companion").to_owned(), number(event, "ticket"));
        match self.candidates.iter().position(|candidate| *candidate == companion) {
            Some(rank) => drop(self.candidates.drain(..=rank)),
            None => self.duplicated.push(format!("nobody selected {companion}, or it has spoken already: {event}")),
        }
        if self.floor.is_some() || self.round.is_some() {
            self.broken.push(format!("the floor is not free: {:?}, {:?}, {event}", self.floor, self.round));
        }
        if !self.replies.insert(ticket) {
            self.duplicated.push(format!("the reply {ticket} is owed twice"));
        }
        self.owed += 1;
        self.settle(&companion, event);
        self.floor = Some((companion, ticket));
    }

    fn end_floor(&mut self, event: &Value, companion: &str, ticket: u64) {
        let floor = self.floor.take();
        if floor.as_ref().is_none_or(|(holder, reply)| holder != companion || *reply != ticket) {
            self.duplicated.push(format!("{floor:?} had the floor: {event}"));
        }
    }

    fn settle(&mut self, companion: &str, event: &Value) {
        for seq in list(event, "messages").filter_map(Value::as_u64) {
            if !self.settled.insert((companion.to_owned(), seq)) {
                self.duplicated.push(format!("{seq} settled twice for {companion}: {event}"));
            }
        }
    }

    /// Checks that each accepted message is on record once, unchanged, and settled for every companion but its sender.
    pub fn compare_accepted(&mut self, accepted: &BTreeMap<u64, &str>) {
        for (seq, text) in accepted {
            if self.messages.get(seq).is_none_or(|(_, recorded)| recorded != text) {
                self.lost.push(format!("{text:?} was accepted as {seq}, on record is {:?}", self.messages.get(seq)));
            }
        }
        let mut texts = BTreeSet::new();
        for (seq, (from, text)) in &self.messages {
            if self.companions.contains(&from.as_str()) {
                continue;
            }
            if !accepted.contains_key(seq) || !texts.insert(text) {
                self.duplicated.push(format!("{seq}, {text:?}, was not accepted as this message"));
            }
        }
        for companion in self.companions {
            if !self.present.contains(*companion) {
                self.lost.push(format!("{companion} has not joined"));
            }
            let is_open = |seq: &u64, from: &str| from != *companion && !self.settled.contains(&((*companion).to_owned(), *seq));
            let open = self.messages.iter().filter(|(seq, (from, _))| is_open(seq, from));
            self.lost.extend(open.map(|(seq, message)| format!("{seq} never settled for {companion}: {message:?}")));
        }
    }

    /// Checks that the state in the API agrees with the record.
    pub fn compare_state(&mut self, state: &Value) {
        if number(state, "streak") != self.streak {
            self.broken.push(format!("the streak is {}, on record {}", state["streak"], self.streak));
        }
        for companion in list(state, "companions") {
            if self.stages.get(text(companion, "id")).map(String::as_str) != Some(text(companion, "closing")) {
                self.broken.push(format!("the stages are {:?} on record, not {companion}", self.stages));
            }
        }
    }

    /// Checks that the API lists the decisions on record.
    pub fn compare_decisions(&mut self, decisions: &[Value]) {
        let listed: BTreeSet<_> = decisions.iter().map(|listed| (number(listed, "seq"), text(listed, "companion"))).collect();
        if listed.len() != decisions.len() || listed.len() != self.decisions {
            self.broken.push(format!("{} decisions are listed, {} are on record", decisions.len(), self.decisions));
        }
    }
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} is no number: {value}"))
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} is no text: {value}"))
}

/// The entries of a list, or none if the field is not a list.
fn list<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default().iter()
}
