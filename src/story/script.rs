//! Converts the record of one room to a replay script (docs/design/replay.md R-11). Inbound events become the script's events,
//! and the models' answers become its answers. A replay leads to the same decisions if companions and settings have not changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::losses::Losses;
use crate::domain::decision::Reason;
use crate::domain::event::{Decided, Event, Recorded, Segment};
use crate::domain::filter::FILTERED;
use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::{ChannelId, CompanionId, Seq, Ticket};
use crate::domain::message::{Author, Message, Modality, Role};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::domain::vote::is_usual;
use crate::journal::redaction::is_redacted;
use crate::settings::Settings;
use crate::settings::companion::Companion;

/// Replaces the name of another addressee, which is not recorded.
const SOMEBODY_ELSE: &str = "somebody else";

/// Replaces the name of a forgotten author.
const SOMEBODY: &str = "somebody";

/// Replaces the text of a deleted message.
const DELETED_TEXT: &str = "…";

/// The delay of an answer that never arrived.
const NEVER_SECS: f64 = 1e6;
/// The time from the text of a spoken reply to its first audio in a script (docs/design/replay.md R-3).
const FIRST_AUDIO: Duration = Duration::from_millis(400);

/// The script of these events, which are all events left in the journal.
///
/// `cast` has the companions with their settings in the room, and `present` the current members.
pub(crate) fn of(
    channel: &ChannelId,
    events: &[Recorded],
    cast: &BTreeMap<CompanionId, Companion>,
    present: impl IntoIterator<Item = CompanionId>,
    settings: &Settings,
) -> Value {
    let began = events.first().map_or(Moment::ZERO, |first| first.at);
    let asked_about = events.iter().filter_map(asked_about).flatten().copied().collect();
    let mut script = Script { began, channel: channel.as_str(), asked_about, ..Script::default() };
    script.policies = cast.iter().map(|(id, companion)| (id.clone(), companion.policy())).collect();
    script.names = cast.iter().map(|(id, companion)| (id.clone(), companion.name.clone())).collect();
    script.losses.is_truncated = events.first().is_some_and(|first| first.seq > Seq(1));
    events.iter().for_each(|recorded| script.add_event(recorded));
    script.end_judgement();
    if script.losses.is_truncated {
        // The events of the first joins have expired.
        script.present.extend(present);
    }

    let companions: Vec<Value> = script.present.iter().map(|id| companion(id, cast)).collect();
    let side = script.asked.iter().flat_map(|(companion, ticket, _)| {
        let given = script.answers.get(ticket);
        // An unreadable answer is requested once more.
        let first = given
            .filter(|given| given.is_unreadable)
            .map(|_| json!({ "companion": companion, "text": "unreadable", "delay": 0.0 }));
        first.into_iter().chain([answer(companion, given, "NO")])
    });
    let side: Vec<Value> = side.chain(script.judgements.iter().cloned()).collect();
    let main = script.owed.iter().map(|(companion, ticket, _)| answer(companion, script.statements.get(ticket), "ok"));
    let main: Vec<Value> = main.collect();
    let until = events.iter().map(|recorded| recorded.at).max().unwrap_or(began);
    let mut object = json!({
        "companions": companions,
        "settings": non_default(settings),
        "jitter": script.jitter,
        "models": { "side": side, "main": main },
        "events": script.events,
        "until": until.since(began).as_secs_f64(),
    });
    let notes = script.losses.in_words();
    if !notes.is_empty() {
        object["notes"] = json!(notes);
    }
    object
}

#[derive(Default)]
pub(super) struct Script<'a> {
    began: Moment,
    channel: &'a str,
    present: BTreeSet<CompanionId>,
    policies: BTreeMap<CompanionId, InterjectionPolicy>,
    names: BTreeMap<CompanionId, Arc<str>>,
    /// Messages that companions were asked about. Without them, answers would match the wrong questions.
    asked_about: BTreeSet<Seq>,
    authors: HashMap<Seq, String>,
    /// The speech segments in the script. Their messages are left out.
    spoken: BTreeSet<Seq>,
    events: Vec<Value>,
    asked: Vec<(CompanionId, Ticket, Moment)>,
    owed: Vec<(CompanionId, Ticket, Moment)>,
    answers: HashMap<Ticket, Answer>,
    statements: HashMap<Ticket, Answer>,
    jitter: Vec<i8>,
    /// The selected companion, and the time at which it will speak.
    turn: Option<(CompanionId, Moment)>,
    judging: Option<(Ticket, Moment)>,
    /// The start of playback for each spoken reply.
    first_words: BTreeMap<Ticket, Moment>,
    /// The side model's judgements of repetition, in order.
    judgements: Vec<Value>,
    pub(super) losses: Losses,
}

struct Answer {
    outcome: Result<String, String>,
    delay: f64,
    is_unreadable: bool,
}

impl Answer {
    const fn never() -> Self {
        Self { outcome: Ok(String::new()), delay: NEVER_SECS, is_unreadable: false }
    }
}

impl Script<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others follow from these, or make no difference")]
    pub(super) fn add_event(&mut self, recorded: &Recorded) {
        let at = recorded.at.since(self.began).as_secs_f64();
        match &recorded.event {
            Event::Said { message, reply_to, reply, said_at } => {
                if is_redacted(message) {
                    self.losses.wordless.insert(recorded.seq);
                } else if said_at.is_some() && message.replaced_note().is_none() && !message.background {
                    self.losses.late += 1;
                }
                self.authors.insert(recorded.seq, message.from.id.to_string());
                if let Some(ticket) = reply {
                    let text = self.statement_text(message);
                    // The text of a spoken reply was complete before its playback began.
                    let written = self.first_words.remove(ticket).map_or(recorded.at, |heard| heard - FIRST_AUDIO);
                    self.add_statement(*ticket, written, Ok(text));
                } else if message
                    .speech
                    .as_ref()
                    .is_some_and(|speech| speech.segments.iter().any(|seq| self.spoken.contains(seq)))
                {
                    // The script contains the message as speech.
                } else if message.awaits_words() || message.background {
                    // The message with the words takes its place. Nobody is asked about a background message.
                } else if message.from.role != Role::Companion
                    && (!is_redacted(message) || self.asked_about.contains(&recorded.seq))
                {
                    let event = self.message_event(at, message, *reply_to);
                    self.events.push(event);
                }
            }
            Event::Joined { companion, external } => {
                if *external {
                    self.losses.external.entry(companion.clone()).or_default();
                }
                self.present.insert(companion.clone());
                self.events.push(json!({ "at": at, "channel": self.channel, "join": companion }));
            }
            Event::Left { companion } => {
                self.present.insert(companion.clone());
                self.events.push(json!({ "at": at, "channel": self.channel, "leave": companion }));
            }
            Event::VoiceJoined { from } => self.call_event(at, from, json!({ "voice": "join" })),
            Event::VoiceLeft { from } => self.call_event(at, from, json!({ "voice": "leave" })),
            Event::Segment(segment) => self.segment(recorded, segment),
            Event::Edited { message, captions, .. } if captions.is_empty() => drop(self.losses.edited.insert(*message)),
            Event::Deleted { messages, .. } => self.losses.deleted.extend(messages),
            Event::Paused { paused, .. } => self.losses.pauses += usize::from(*paused),
            Event::CaughtUp { missed, .. } => self.losses.gaps += usize::from(missed.is_some()),
            Event::Chosen { companions, everybody, .. } => {
                let mut event = json!({ "at": at, "channel": self.channel });
                match (companions.as_slice(), everybody) {
                    ([companion], false) => event["next"] = json!(companion),
                    _ => event["everybody"] = json!(true),
                }
                self.events.push(event);
            }
            Event::Cleared { .. } => self.events.push(json!({ "at": at, "channel": self.channel, "clear": true })),
            Event::JitterDrawn { companion, next_interjection_at } => self.add_jitter(companion, 0, *next_interjection_at),
            Event::Evaluated(evaluated) => {
                self.asked.push((evaluated.companion.clone(), evaluated.ticket, recorded.at));
            }
            Event::Decided(decided) => {
                if let Some(ticket) = decided.ticket.filter(|_| decided.reason == Reason::Cancelled) {
                    // The question consumes an answer of the script, which never arrives.
                    self.answers.insert(ticket, Answer::never());
                } else if let Some(ticket) = decided.ticket.filter(|_| decided.reason == Reason::Filtered) {
                    self.add_answer(ticket, recorded.at, Err(FILTERED.to_owned()), false);
                } else if let Some(ticket) = decided.ticket {
                    self.add_answer(ticket, recorded.at, Ok(answer_text(decided)), decided.reason == Reason::Unreadable);
                }
                if decided.reason == Reason::Event {
                    self.turn = decided.companions.first().cloned().zip(decided.speak_at);
                }
                for companion in &decided.companions {
                    if decided.reason == Reason::External {
                        *self.losses.external.entry(companion.clone()).or_default() += 1;
                    }
                    match (decided.trigger, decided.next_interjection_at, decided.threshold) {
                        (Trigger::DirectAddress, Some(next), _) => self.add_jitter(companion, 0, next),
                        (Trigger::Interjection, Some(next), Some(threshold)) => {
                            let from = if next > threshold { threshold } else { decided.message_count };
                            self.add_jitter(companion, decided.check_count + 1, next.saturating_sub(from));
                        }
                        _ => {}
                    }
                }
            }
            Event::RepetitionAsked { ticket, .. } => {
                self.end_judgement();
                self.judging = Some((*ticket, recorded.at));
            }
            Event::RoundClosed(closed) => self.turn = closed.selected.clone().zip(closed.speak_at),
            Event::RepetitionJudged { score, .. } => {
                if let Some((_, asked)) = self.judging.take() {
                    let delay = recorded.at.since(asked).as_secs_f64();
                    self.judgements.push(json!({ "text": score.to_string(), "delay": delay }));
                }
            }
            Event::Unanswered { ticket, error, .. } => self.add_answer(*ticket, recorded.at, Err(error.to_string()), false),
            Event::ReplyOwed { companion, ticket, next_interjection_at, again, .. } => {
                if let Some(statement) = again {
                    self.losses.replaced.insert(*statement);
                    self.events.push(json!({ "at": at, "channel": self.channel, "again": companion }));
                }
                self.add_jitter(companion, 0, *next_interjection_at);
                // A timer may fire late, but the script's clock never does.
                let due = self.turn.take_if(|(selected, _)| selected == companion).map(|(_, speak_at)| speak_at);
                self.owed.push((companion.clone(), *ticket, due.map_or(recorded.at, |due| due.min(recorded.at))));
            }
            // The stopped attempt consumes an answer of the script, which never arrives.
            Event::Replanned { companion, ticket, next, .. } | Event::ReplyExtended { companion, ticket, next, .. } => {
                self.statements.insert(*ticket, Answer::never());
                self.owed.push((companion.clone(), *next, recorded.at));
            }
            Event::Cancelled { companion, ticket: Some(ticket), message, .. } => {
                if message.is_none() {
                    self.events.push(json!({ "at": at, "channel": self.channel, "stop": companion }));
                }
                self.statements.insert(*ticket, Answer::never());
            }
            Event::ReplyFailed { ticket, error, .. } => self.add_statement(*ticket, recorded.at, Err(error.to_string())),
            Event::SentenceStarting { ticket, sentence, .. } => {
                self.losses.aloud.insert(*ticket);
                if *sentence == 0 {
                    self.first_words.insert(*ticket, recorded.at);
                }
            }
            _ => {}
        }
    }

    fn call_event(&mut self, at: f64, from: &Author, mut event: Value) {
        if !from.name.is_empty() {
            event["at"] = json!(at);
            event["channel"] = json!(self.channel);
            event["from"] = json!(from.name);
            self.events.push(event);
        }
    }

    /// Adds a person's speech: onset, offset and final result. Speech without words has an empty result.
    fn segment(&mut self, recorded: &Recorded, segment: &Segment) {
        self.losses.spoken += 1;
        if segment.is_redacted() {
            return;
        }
        let secs = |at: Moment| at.min(recorded.at).since(self.began).as_secs_f64();
        let (started, ended, at) = (secs(segment.started), secs(segment.ended), secs(recorded.at));
        self.call_event(started, &segment.from, json!({ "speech": "start" }));
        self.call_event(ended, &segment.from, json!({ "speech": "end" }));
        let result = if segment.kind.is_message() {
            self.spoken.insert(recorded.seq);
            json!({ "final": segment.text, "started": started, "ended": ended })
        } else {
            json!({ "final": "" })
        };
        self.call_event(at, &segment.from, result);
    }

    /// The text of a statement. For a deleted one, a text that addresses the same companions.
    fn statement_text(&self, message: &Message) -> String {
        if !is_redacted(message) {
            return message.cut.as_ref().map_or(&message.text, |cut| &cut.full).to_string();
        }
        let addressed = message.address.companions.iter().filter_map(|id| self.names.get(id)).map(|name| &**name);
        [DELETED_TEXT].into_iter().chain(addressed).collect::<Vec<_>>().join(" ")
    }

    fn message_event(&self, at: f64, message: &Message, reply_to: Option<Seq>) -> Value {
        let mut mentions: Vec<&str> = message.address.companions.iter().map(CompanionId::as_str).collect();
        if message.address.others {
            mentions.push(SOMEBODY_ELSE);
        }
        let mut event = json!({
            "at": at,
            "channel": self.channel,
            "from": if message.from.name.is_empty() { SOMEBODY } else { &message.from.name },
            "text": if is_redacted(message) { DELETED_TEXT } else { &message.text },
            "mentions": mentions,
            "reply_to": reply_to.and_then(|seq| self.authors.get(&seq)).filter(|author| !author.is_empty()),
            "modality": (message.modality == Modality::Voice).then_some(message.modality),
            "lull_endpoint": message.lull_endpoint.then_some(true),
            "kind": message.kind,
            "bot": (message.from.role == Role::Bot).then_some(true),
        });
        if let Value::Object(fields) = &mut event {
            fields.retain(|_, value| !value.is_null());
        }
        event
    }

    fn add_answer(&mut self, ticket: Ticket, at: Moment, outcome: Result<String, String>, is_unreadable: bool) {
        let asked = self.asked.iter().rev().find(|(_, other, _)| *other == ticket).map_or(at, |(.., asked)| *asked);
        self.answers.insert(ticket, Answer { outcome, delay: at.since(asked).as_secs_f64(), is_unreadable });
    }

    fn add_statement(&mut self, ticket: Ticket, at: Moment, outcome: Result<String, String>) {
        let owed = self.owed.iter().rev().find(|(_, other, _)| *other == ticket).map_or(at, |(.., owed)| *owed);
        self.statements.insert(ticket, Answer { outcome, delay: at.since(owed).as_secs_f64(), is_unreadable: false });
    }

    /// A judgement that never arrived gets an answer with endless delay.
    fn end_judgement(&mut self) {
        if self.judging.take().is_some() {
            self.judgements.push(json!({ "text": "0", "delay": NEVER_SECS }));
        }
    }

    /// The jitter that leads to this interval. Zero if none does, because the companion's policy was different then.
    fn add_jitter(&mut self, companion: &CompanionId, check_count: u64, interval: u64) {
        let policy = self.policies.get(companion);
        let fits = |jitter: &i8| policy.is_some_and(|policy| policy.interval(check_count, *jitter) == interval);
        self.jitter.push([0, -1, 1, -2, 2].into_iter().find(fits).unwrap_or(0));
    }
}

fn asked_about(recorded: &Recorded) -> Option<&Vec<Seq>> {
    let Event::Evaluated(evaluated) = &recorded.event else { return None };
    Some(&evaluated.messages)
}

/// An answer that parses to this decision.
fn answer_text(decided: &Decided) -> String {
    let why = decided.why.as_deref().unwrap_or_default();
    if decided.reason == Reason::Unreadable {
        return "unreadable".to_owned();
    }
    let decision = decided.decision.as_str();
    match &decided.vote {
        None if is_usual(&decided.mood) => format!("{why}\n{decision}"),
        None => json!({ "reason": why, "decision": decision, "mood": decided.mood }).to_string(),
        Some(vote) => {
            let mut vote = json!({
                "reason": why,
                "decision": decision,
                "importance": vote.importance,
                "selected": vote.selected,
                "closing": vote.closing,
            });
            if !is_usual(&decided.mood) {
                vote["mood"] = json!(decided.mood);
            }
            // An external companion votes even where it is alone, while others are not asked for a vote there. So the answer has
            // both forms.
            if decided.reason == Reason::External { format!("{vote}\n{decision}") } else { vote.to_string() }
        }
    }
}

/// The settings that affect conversations and differ from the built-in ones.
fn non_default(settings: &Settings) -> Value {
    let tree = |settings: &Settings| {
        json!({
            "gate": settings.gate,
            "turn_taking": settings.turn_taking,
            "closing": settings.closing,
            "repetition": settings.repetition,
        })
    };
    // The built-in settings are valid, because the tests check them.
    let Ok(defaults) = Settings::overlay(json!({})) else { return json!({}) };
    let (mut changed, defaults) = (tree(settings), tree(&defaults));
    if let Value::Object(sections) = &mut changed {
        for (section, values) in sections.iter_mut() {
            if let Value::Object(values) = values {
                values.retain(|key, value| defaults[section.as_str()][key.as_str()] != *value);
            }
        }
        sections.retain(|_, values| values.as_object().is_some_and(|values| !values.is_empty()));
    }
    changed
}

fn answer(companion: &CompanionId, answer: Option<&Answer>, default: &str) -> Value {
    match answer {
        Some(Answer { outcome: Ok(text), delay, .. }) => json!({ "companion": companion, "text": text, "delay": delay }),
        Some(Answer { outcome: Err(error), delay, .. }) => json!({ "companion": companion, "error": error, "delay": delay }),
        // The question was dropped, or is still open. The entry is needed so that the next answer matches the next question.
        None => json!({ "companion": companion, "text": default, "delay": NEVER_SECS }),
    }
}

fn companion(id: &CompanionId, cast: &BTreeMap<CompanionId, Companion>) -> Value {
    let Some(companion) = cast.get(id) else { return json!({ "id": id }) };
    json!({
        "id": id,
        "name": companion.name,
        "aliases": companion.aliases,
        "interjection": companion.interjection,
        "text_lull_timeout": companion.text_lull_timeout,
        "voice_lull_timeout": companion.voice_lull_timeout,
        "quiet_hours": companion.quiet_hours,
        "starts_after": companion.starts_after.unwrap_or_default(),
        "max_turns": companion.max_turns,
        "repetition": companion.repetition,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_from_the_built_in_ones_are_exported() {
        let changed = json!({
            "gate": { "max_buffer": 7, "foreign_bots": "all" },
            "turn_taking": { "max_turns": 30, "turn_delay_secs": 2.0 },
            "closing": { "reopen_after": 3 },
            "repetition": { "judge": "both" },
        });

        let exported = non_default(&Settings::overlay(changed).unwrap());

        let expected = json!({
            "gate": { "max_buffer": 7, "foreign_bots": "all" },
            "turn_taking": { "max_turns": 30 },
            "closing": { "reopen_after": 3 },
            "repetition": { "judge": "both" },
        });
        assert_eq!(exported, expected);
        assert!(Settings::overlay(exported).is_ok());
        assert_eq!(non_default(&Settings::overlay(json!({})).unwrap()), json!({}));
    }
}
