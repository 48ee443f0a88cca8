//! Checks the record of a room against the rules of rounds. A companion that is alone in its room holds no rounds.

mod floor;
mod questions;
mod stopping;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tertulia::ports::backend::stamp::from_rfc3339;

use super::ledger::Faults;
use crate::harness::Server;
use floor::{Reply, Turn};
use questions::{Question, Round};
use stopping::Cancel;

/// The state of a room, reconstructed from its record.
pub struct Record<'a> {
    companions: &'a [&'a str],
    streak_limit: u64,
    /// All messages, by their numbers.
    messages: BTreeMap<u64, Message>,
    present: BTreeSet<String>,
    seats: BTreeMap<String, Seat>,
    /// The open rounds, by their messages.
    rounds_open: BTreeMap<u64, Round>,
    /// The companions whose votes are held until the floor is free.
    held: BTreeSet<String>,
    /// Who speaks next, if nobody has the floor.
    turn: Turn,
    /// The reply that has the floor, and those that are written without it.
    floor: Option<Reply>,
    late: Vec<Reply>,
    is_being_judged: bool,
    /// Every number of a question, a judgement or an attempt.
    tickets: BTreeSet<u64>,
    /// What stop phrases cancelled, by the phrase.
    cancels: BTreeMap<u64, Vec<Cancel>>,
    decisions: usize,
    newest_of_person: u64,
    /// The number of statements that were selected after the newest message of a person, without late ones.
    streak: u64,
    /// The result of the reply that each message settled with: the number of the statement, or the error code.
    answers: BTreeMap<u64, Result<u64, String>>,
    pub faults: Faults,
    pub counts: Counts,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub rounds: usize,
    pub turn_rounds: usize,
    /// Rounds about an address while others were asked or spoke.
    pub rounds_beside: usize,
    pub owed: usize,
    pub statements: usize,
    pub failed: usize,
    /// Late replies that were dropped because their companion had ended the conversation.
    pub closed: usize,
    pub begun_again: usize,
    /// Cancelled replies, and cancelled companions that had not begun.
    pub cancelled: usize,
    pub cancelled_turns: usize,
    /// Questions and votes that were taken back.
    pub retracted: usize,
    pub held: usize,
    pub late: usize,
    pub stages_changed: usize,
    pub guarded: usize,
    pub unanswered: usize,
}

/// A message by a person or a companion.
struct Message {
    from: String,
    text: String,
    is_statement: bool,
    asks_to_stop: bool,
    /// The companions that it addresses, and whether it addresses somebody else.
    addressed: BTreeSet<String>,
    others: bool,
}

/// One companion of the room.
#[derive(Default)]
struct Seat {
    stage: String,
    unsettled: BTreeSet<u64>,
    /// The newest event that settled.
    cursor: u64,
    /// The open question.
    asked: Option<Question>,
    /// The question that it answered with YES, until it is selected or loses.
    wish: Option<Question>,
    /// What a person cancelled: addresses that are no reason to ask.
    cancelled: BTreeSet<u64>,
    /// What its author took back while it was asked: it settles alone, the phrase before it is handled.
    declined: BTreeSet<u64>,
}

impl Message {
    fn of(event: &Value) -> Self {
        let message = &event["message"];
        Self {
            from: text(&message["from"], "id").to_owned(),
            text: text(message, "text").to_owned(),
            is_statement: text(&message["from"], "role") == "companion",
            asks_to_stop: message["asks_to_stop"] == true,
            addressed: ids(&message["address"], "companions").map(str::to_owned).collect(),
            others: message["address"]["others"] == true,
        }
    }

    /// Whether a person addresses this companion.
    fn calls(&self, companion: &str) -> bool {
        !self.is_statement && self.addressed.contains(companion)
    }
}

impl<'a> Record<'a> {
    /// Reads the record of a room at rest with these companions, which may make `streak_limit` statements in a row, and compares it with what the
    /// API shows.
    pub async fn of(
        server: &Server,
        room: &str,
        state: &Value,
        companions: &'a [&'a str],
        streak_limit: u64,
        counts: Counts,
    ) -> Self {
        let export = server.get(&format!("/api/export?room={room}")).await;
        let lines = export.as_str().expect("lines of JSON").lines().map(|line| serde_json::from_str(line).expect("JSON"));
        // The last line says where the export ends.
        let events: Vec<Value> = lines.filter(|event: &Value| event["event"].is_string()).collect();
        let mut record = Self::new(companions, streak_limit, counts);
        record.read(&events);
        record.compare_state(state);
        record.compare_decisions(&decisions(server, room).await);
        record
    }

    fn new(companions: &'a [&'a str], streak_limit: u64, counts: Counts) -> Self {
        let seat = || Seat { stage: "none".to_owned(), ..Seat::default() };
        Self {
            companions,
            streak_limit,
            messages: BTreeMap::new(),
            present: BTreeSet::new(),
            seats: companions.iter().map(|companion| ((*companion).to_owned(), seat())).collect(),
            rounds_open: BTreeMap::new(),
            held: BTreeSet::new(),
            turn: Turn::Nobody,
            floor: None,
            late: Vec::new(),
            is_being_judged: false,
            tickets: BTreeSet::new(),
            cancels: BTreeMap::new(),
            decisions: 0,
            newest_of_person: 0,
            streak: 0,
            answers: BTreeMap::new(),
            faults: Faults::default(),
            counts,
        }
    }

    /// Reads a room's events, in the order in which they were handled.
    fn read(&mut self, events: &[Value]) {
        for (event, expected) in events.iter().zip(1..) {
            if number(event, "seq") != expected {
                self.faults.lost.push(format!("event {expected} is missing, {} follows", event["seq"]));
                return;
            }
        }
        let said = events.iter().filter(|event| event["event"] == "said");
        self.messages = said.map(|event| (number(event, "seq"), Message::of(event))).collect();
        let is_trigger = |event: &Value| number(event, "handled") == number(event, "seq");
        let mut events: Vec<_> = events.iter().collect();
        events.sort_by_key(|event| (number(event, "handled"), !is_trigger(event), number(event, "seq")));
        events.into_iter().for_each(|event| self.apply(event));
        self.end();
    }

    /// Whether there is nobody to compete with.
    fn is_alone(&self) -> bool {
        self.companions.len() == 1
    }

    /// At rest nothing is open, owed or promised.
    fn end(&mut self) {
        for reply in self.floor.iter().chain(&self.late) {
            self.faults.broken.push(format!("{} still owes {}", reply.companion, reply.ticket));
        }
        if let Turn::Of { companion, .. } = &self.turn {
            self.faults.broken.push(format!("{companion} was selected and never spoke"));
        }
        self.faults.broken.extend(self.rounds_open.keys().map(|message| format!("the round about {message} is still open")));
        for (companion, seat) in &self.seats {
            if seat.asked.is_some() || seat.wish.is_some() {
                self.faults
                    .broken
                    .push(format!("{companion} is still asked {:?}, or wants to speak: {:?}", seat.asked, seat.wish));
            }
        }
    }

    fn apply(&mut self, event: &Value) {
        match text(event, "event") {
            "joined" => drop(self.present.insert(text(event, "companion").to_owned())),
            "said" => self.message(number(event, "seq"), event),
            "round_opened" => self.open_round(event),
            "evaluated" => self.evaluated(event),
            "decided" => self.decide(event),
            "unanswered" => {
                self.counts.unanswered += 1;
                self.answered(text(event, "companion"), number(event, "ticket"), event);
            }
            "stage_changed" => self.change_stage(event),
            "round_closed" => self.close_round(event),
            "repetition_asked" => {
                self.new_ticket(number(event, "ticket"), event);
                self.is_being_judged = true;
            }
            "repetition_judged" => self.is_being_judged = false,
            "held_selected" => self.held_selected(event),
            "reply_owed" => self.reply_owed(event),
            "floor_expired" => self.floor_expired(event),
            "floor_taken" => self.floor_taken(event),
            "replanning" => self.replanning(event),
            "replanned" => self.replanned(event),
            "cancelled" => self.cancelled(event),
            "reply_failed" => self.reply_failed(event),
            _ => {}
        }
        self.drop_settled_votes();
    }

    fn message(&mut self, seq: u64, event: &Value) {
        let Some(message) = self.messages.get(&seq) else { return };
        let from = message.from.clone();
        for (_, seat) in self.seats.iter_mut().filter(|(companion, _)| **companion != from) {
            if seq > seat.cursor && !seat.declined.contains(&seq) {
                seat.unsettled.insert(seq);
            }
        }
        if message.is_statement {
            self.statement(&from, event);
        } else {
            self.streak = 0;
            self.newest_of_person = seq;
        }
    }

    fn change_stage(&mut self, event: &Value) {
        self.counts.stages_changed += 1;
        let (companion, to) = (text(event, "companion"), text(event, "to"));
        let Some(seat) = self.seats.get_mut(companion) else { return };
        let before = std::mem::replace(&mut seat.stage, to.to_owned());
        if before != text(event, "from") {
            self.faults.broken.push(format!("a stage was lost: it was {before} before {event}"));
        }
        if to == "terminal" {
            self.withdraw(companion);
        }
    }

    /// The companion settles these messages, all or the oldest that it has not settled.
    fn settle(&mut self, companion: &str, event: &Value) {
        let Some(seat) = self.seats.get_mut(companion) else { return };
        let (handled, upto) = (number(event, "handled"), number(event, "upto"));
        for seq in numbers(event, "messages") {
            if seq > handled && event["reason"] == "cancelled" {
                if upto == 0 {
                    seat.declined.insert(seq);
                }
            } else if !seat.unsettled.remove(&seq) {
                self.faults.duplicated.push(format!("{seq} settled twice for {companion}: {event}"));
            }
        }
        seat.cursor = seat.cursor.max(upto);
        if let Some(left) = seat.unsettled.first().filter(|left| **left <= seat.cursor) {
            self.faults.lost.push(format!("{left} is passed over by {companion}: {event}"));
        }
    }

    fn new_ticket(&mut self, ticket: u64, event: &Value) {
        if !self.tickets.insert(ticket) {
            self.faults.duplicated.push(format!("the number {ticket} is given twice: {event}"));
        }
    }

    fn break_rule(&mut self, rule: &str, event: &Value) {
        self.faults.broken.push(format!("{rule}: {event}"));
    }

    /// Checks that each accepted message is on record once, unchanged, and settled for every companion but its sender.
    pub fn compare_accepted(&mut self, accepted: &BTreeMap<u64, &str>) {
        for (seq, text) in accepted {
            let recorded = self.messages.get(seq).map(|message| &*message.text);
            if recorded != Some(*text) {
                self.faults.lost.push(format!("{text:?} was accepted as {seq}, on record is {recorded:?}"));
            }
        }
        let mut texts = BTreeSet::new();
        for (seq, Message { text, .. }) in self.messages.iter().filter(|(_, message)| !message.is_statement) {
            if !accepted.contains_key(seq) || !texts.insert(text) {
                self.faults.duplicated.push(format!("{seq}, {text:?}, was not accepted as this message"));
            }
        }
        for companion in self.companions.iter().filter(|companion| !self.present.contains(**companion)) {
            self.faults.lost.push(format!("{companion} has not joined"));
        }
        for (companion, seat) in &self.seats {
            let unsettled = seat.unsettled.iter().map(|seq| (seq, &self.messages[seq].text));
            self.faults.lost.extend(unsettled.map(|(seq, text)| format!("{seq} never settled for {companion}: {text:?}")));
        }
    }

    /// The result of the reply that a message settled with: the number of the statement, or the error code. Several messages may settle with one
    /// reply.
    pub fn answer(&self, seq: u64) -> Result<u64, &str> {
        self.answers[&seq].as_ref().copied().map_err(String::as_str)
    }

    /// The numbers of all statements.
    pub fn statements(&self) -> Vec<u64> {
        self.messages.iter().filter(|(_, message)| message.is_statement).map(|(seq, _)| *seq).collect()
    }

    /// Checks that the state in the API agrees with the record.
    fn compare_state(&mut self, state: &Value) {
        if number(state, "streak") != self.streak {
            self.faults.broken.push(format!("the streak is {}, on record {}", state["streak"], self.streak));
        }
        for companion in list(state, "companions") {
            let stage = self.seats.get(text(companion, "id")).map(|seat| &*seat.stage);
            if stage != Some(text(companion, "closing")) {
                self.faults.broken.push(format!("the stage is {stage:?} on record, not {companion}"));
            }
        }
    }

    /// Checks that the API lists the decisions on record.
    fn compare_decisions(&mut self, decisions: &[Value]) {
        let listed: BTreeSet<_> = decisions.iter().map(|listed| (number(listed, "seq"), text(listed, "companion"))).collect();
        if listed.len() != decisions.len() || listed.len() != self.decisions {
            self.faults.broken.push(format!("{} decisions are listed, {} are on record", decisions.len(), self.decisions));
        }
    }
}

/// All decisions that the API lists for a room.
async fn decisions(server: &Server, room: &str) -> Vec<Value> {
    let mut decisions: Vec<Value> = Vec::new();
    loop {
        let after = decisions.last().map_or(0, |decision| number(decision, "seq"));
        let page = server.get(&format!("/api/decisions?room={room}&after={after}&limit=1000")).await;
        let page = page["decisions"].as_array().expect("decisions").clone();
        if page.is_empty() {
            return decisions;
        }
        decisions.extend(page);
    }
}

/// The latest time of an event, in microseconds: the export truncates it to milliseconds.
fn at(event: &Value) -> u64 {
    from_rfc3339(text(event, "at")).expect("a time").as_micros() + 999
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

fn ids<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    list(value, field).map(|id| id.as_str().expect("an id"))
}

fn numbers(value: &Value, field: &str) -> BTreeSet<u64> {
    list(value, field).map(|number| number.as_u64().expect("a number")).collect()
}
