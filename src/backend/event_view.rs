//! Renders an event of the record as the JSON objects of the live view (docs/design/replay.md R-9).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::reading::{Texts, history_message, record, with};
use crate::domain::decision::Decision;
use crate::domain::event::{Disclosed, Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::Role;
use crate::domain::tools::ToolAnswered;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::ports::backend::messages::RunBy;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::rfc3339;
use crate::settings::safety::Safety;
use crate::story::rounds::RoundCourses;

/// The number of events before the first one that are read to find open rounds.
const BEFORE: usize = 256;

/// Renders the events of one room, in the order of their numbers.
pub(super) struct EventView {
    channel_key: ChannelKey,
    room: RoomId,
    safety: Safety,
    texts: Texts,
    /// The rounds, if the view includes them. The inner `None`: no event was rendered yet.
    rounds: Option<Option<RoundCourses>>,
}

impl EventView {
    pub(super) fn new(channel_key: ChannelKey, room: RoomId, safety: &Safety) -> Self {
        Self { channel_key, room, safety: safety.clone(), texts: Texts::default(), rounds: None }
    }

    /// A view that includes the progress of rounds.
    pub(super) fn with_rounds(channel_key: ChannelKey, room: RoomId, safety: &Safety) -> Self {
        Self { rounds: Some(None), ..Self::new(channel_key, room, safety) }
    }

    /// The offer of help for a message's author. `None`: the message was deleted.
    async fn help(&self, reader: &Reader<'_>, message: Seq) -> Result<Option<Value>, ReadError> {
        let author = reader.said(&self.channel_key, message).await?.map(|message| message.from.id);
        let text = self.safety.crisis_text.as_ref();
        let tell = self.safety.tell.then_some(true);
        Ok(author.map(|person| with(json!({ "message": message, "person": person }), json!({ "text": text, "tell": tell }))))
    }

    /// The objects of one event.
    pub(super) async fn render(&mut self, reader: &Reader<'_>, recorded: &Recorded) -> Result<Vec<Arc<str>>, ReadError> {
        let mut objects = self.objects(reader, recorded).await?;
        let rounds = self.changed_rounds(reader, recorded).await?;
        if let Some((_, object)) = objects.first_mut().filter(|_| !rounds.is_empty()) {
            object["rounds"] = rounds.into();
        }
        let live = |(event, fields): (&'static str, Value)| {
            let mut object = Map::new();
            object.insert("event".into(), event.into());
            object.insert("seq".into(), json!(recorded.seq));
            object.insert("at".into(), rfc3339(recorded.at).into());
            object.insert("channel".into(), json!(self.channel_key.channel));
            if let Value::Object(fields) = fields {
                object.extend(fields);
            }
            Value::Object(object).to_string().into()
        };
        Ok(objects.into_iter().map(live).collect())
    }

    /// The rounds that an event changed, in their state after it.
    async fn changed_rounds(&mut self, reader: &Reader<'_>, recorded: &Recorded) -> Result<Vec<Value>, ReadError> {
        let Some(rounds) = &mut self.rounds else { return Ok(Vec::new()) };
        if rounds.is_none() {
            // The view may begin in the middle of a round.
            let range = Range { after: Seq::NONE, before: Some(recorded.seq), limit: BEFORE, newest_first: true };
            let before = reader.legible(&self.channel_key, range).await?.events;
            let courses = rounds.insert(RoundCourses::default());
            before.iter().rev().for_each(|earlier| drop(courses.follow(earlier)));
        }
        let courses = rounds.get_or_insert_default();
        courses.follow(recorded);
        Ok(courses.changed().map(|round| json!(round)).collect())
    }

    async fn objects(&mut self, reader: &Reader<'_>, recorded: &Recorded) -> Result<Vec<(&'static str, Value)>, ReadError> {
        Ok(match &recorded.event {
            Event::Said { message, reply_to, reply, said_at } => {
                self.texts.insert(recorded.seq, &message.text);
                let Some(shown) = history_message(recorded) else { return Ok(Vec::new()) };
                let mut objects = Vec::new();
                if message.from.role == Role::Companion {
                    objects.push(("statement", json!({ "companion": message.from.id, "text": message.text, "ticket": reply })));
                }
                let speech = message.speech.as_ref().map(|speech| {
                    json!({
                        "started": rfc3339(speech.started),
                        "ended": rfc3339(speech.ended),
                        "provider": speech.provider,
                        "handed_over": speech.handed_over,
                    })
                });
                let said_at = said_at.map(rfc3339);
                let more = json!({ "at": rfc3339(recorded.at), "said_at": said_at, "speech": speech });
                let mut object = with(json!(shown), more);
                // Included even if it is null.
                object["reply_to"] = json!(reply_to);
                objects.push(("message", object));
                objects
            }
            Event::Edited { message, text, captions, version } => {
                self.texts.insert(*message, text);
                // The text is empty if the message was deleted.
                if text.is_empty() {
                    Vec::new()
                } else {
                    vec![(
                        "edited",
                        with(
                            json!({ "message": message, "text": text }),
                            json!({
                                "captions": Some(captions).filter(|captions| !captions.is_empty()),
                                "version": version.map(|version| version.index),
                                "edited": captions.is_empty().then_some(version.is_none_or(|version| version.edited)),
                            }),
                        ),
                    )]
                }
            }
            Event::Deleted { messages, unnamed, replaced, .. } => {
                messages.iter().for_each(|seq| self.texts.insert(*seq, &Arc::from("")));
                let unnamed = (!unnamed.is_empty()).then_some(unnamed);
                // The request to replace a statement deletes nothing yet.
                let is_visible = !messages.is_empty() || unnamed.is_some();
                let deleted = is_visible.then(|| {
                    with(json!({ "messages": messages }), json!({ "unnamed": unnamed, "replaced": replaced.then_some(true) }))
                });
                deleted.map(|deleted| ("deleted", deleted)).into_iter().collect()
            }
            Event::Joined { companion, external } => {
                vec![("joined", with(json!({ "companion": companion }), json!({ "external": external.then_some(true) })))]
            }
            Event::Left { companion } => vec![("left", json!({ "companion": companion }))],
            Event::Paused { companion, paused } => {
                vec![("paused", with(json!({ "paused": paused }), json!({ "companion": companion })))]
            }
            Event::Cleared { anew } => vec![("cleared", with(json!({}), json!({ "anew": anew.then_some(true) })))],
            Event::CaughtUp { read, missed } => {
                vec![("caught_up", with(json!({ "read": read }), json!({ "missed": missed })))]
            }
            Event::Disclosed(disclosed) => {
                let Disclosed { owed, ticket, .. } = &**disclosed;
                // The notice is recorded right after the statement that it was posted with.
                let statement = Seq(recorded.seq.0.saturating_sub(1));
                let object = json!({ "message": statement, "ticket": ticket, "occasion": owed.occasion, "people": owed.people });
                vec![("disclosed", with(object, json!(RunBy::from(&**disclosed))))]
            }
            Event::VoiceJoined { from } | Event::VoiceLeft { from } if from.id.is_empty() => Vec::new(),
            Event::VoiceJoined { from } => vec![("voice_joined", json!({ "from": from.id, "name": from.name }))],
            Event::VoiceLeft { from } => vec![("voice_left", json!({ "from": from.id, "name": from.name }))],
            Event::Chosen { companions, everybody, by } => {
                let object = json!({ "companions": companions, "everybody": everybody });
                vec![("chosen", with(object, json!({ "from": by })))]
            }
            Event::Reacted { by, .. } if by.as_str().is_empty() => Vec::new(),
            Event::Reacted { message, by, emoji, removed } => {
                let object = json!({ "message": message, "from": by, "emoji": emoji });
                vec![("reacted", with(object, json!({ "removed": removed.then_some(true) })))]
            }
            Event::Segment(segment) if segment.is_redacted() => Vec::new(),
            Event::Segment(segment) => {
                let object = json!({
                    "from": segment.from.name,
                    "text": segment.text,
                    "kind": segment.kind,
                    "started": rfc3339(segment.started),
                    "ended": rfc3339(segment.ended),
                    "provider": segment.provider,
                });
                let confidence = segment.confidence.map(|confidence| f64::from(confidence) / 1_000.0);
                vec![("segment", with(object, json!({ "confidence": confidence })))]
            }
            Event::VoiceQuiet { companions } => vec![("voice_quiet", json!({ "companions": companions }))],
            Event::Filtered(finding) => {
                let of = |event, seq: &Seq| {
                    let object = json!({ "message": seq, "asked": finding.asked, "model": finding.model });
                    (*seq != Seq::NONE).then_some((event, object))
                };
                let refused = finding.found.iter().filter_map(|seq| of("filtered", seq));
                let accepted = finding.accepted.iter().chain(&finding.cleared);
                refused.chain(accepted.filter_map(|seq| of("unfiltered", seq))).collect()
            }
            Event::Noted(note) if note.is_redacted() => Vec::new(),
            Event::Noted(note) => {
                let about = note.about.as_ref().map(|about| &about.name);
                let object = json!({ "said_by": note.said_by.name, "text": note.text, "sources": note.sources });
                let asked = note.asked.then_some(true);
                vec![("noted", with(object, json!({ "about": about, "asked": asked })))]
            }
            Event::ReminderSet(set) if set.is_redacted() => Vec::new(),
            Event::ReminderSet(set) => {
                let object = json!({ "reminder": set.number, "from": set.of.name, "text": set.text, "due": rfc3339(set.due) });
                vec![("reminder_set", object)]
            }
            Event::RemindersCancelled { reminders, .. } => vec![("reminders_cancelled", json!({ "reminders": reminders }))],
            Event::NotesTaken(taken) => {
                vec![("notes_taken", json!({ "messages": taken.messages, "made": taken.made, "dropped": taken.dropped }))]
            }
            Event::Evaluated(evaluated) => {
                let buffer = self.texts(reader, &evaluated.messages).await?;
                let object = json!({
                    "companion": evaluated.companion,
                    "trigger": evaluated.trigger,
                    "message_count": evaluated.message_count,
                    "check_count": evaluated.check_count,
                    "threshold": evaluated.threshold,
                    "buffer": buffer,
                });
                vec![("evaluate", object)]
            }
            Event::Decided(decided) => {
                let messages = self.texts(reader, &decided.messages).await?;
                let mut objects = Vec::new();
                for companion in &decided.companions {
                    let decision = record(recorded, decided, companion, &self.room, messages.clone());
                    objects.push(("decision", serde_json::to_value(decision).unwrap_or_default()));
                    if decided.decision == Decision::No {
                        let silence = json!({ "companion": companion, "trigger": decided.trigger, "messages": messages });
                        objects.push(("silence", silence));
                    }
                }
                if let Some(message) = decided.at_risk {
                    objects.extend(self.help(reader, message).await?.map(|help| ("help", help)));
                }
                objects
            }
            Event::RoundOpened(opened) => {
                let object = json!({
                    "message_id": opened.message,
                    "deadline": rfc3339(opened.deadline),
                    "asked": opened.asked,
                    "listening": opened.listening,
                });
                vec![("round_opened", object)]
            }
            Event::RoundClosed(closed) => {
                let object = json!({ "message_id": closed.message, "states": closed.states, "selected": closed.selected });
                let held = (!closed.held.is_empty()).then_some(&closed.held);
                vec![("round", with(object, json!({ "speak_at": closed.speak_at.map(rfc3339), "held": held })))]
            }
            Event::StageChanged { companion, from, to, cause } => {
                vec![("closing", json!({ "companion": companion, "from": from, "to": to, "cause": cause }))]
            }
            Event::RepetitionAsked { message, .. } => vec![("repetition_asked", json!({ "message": message }))],
            Event::RepetitionJudged { message, score, detections, .. } => {
                vec![("repetition", json!({ "message": message, "score": score, "detections": detections }))]
            }
            Event::Unanswered { companion, trigger, error, back_off, .. } => {
                let retry_at = rfc3339(recorded.at + *back_off);
                vec![("error", json!({ "companion": companion, "trigger": trigger, "error": error, "retry_at": retry_at }))]
            }
            Event::ReplyOwed { companion, ticket, trigger, messages, due_at, modality, again, continues, .. } => {
                let messages = self.texts(reader, messages).await?;
                let object = json!({ "companion": companion, "trigger": trigger, "ticket": ticket, "messages": messages });
                let modality = (!modality.is_text()).then_some(modality);
                // An external companion has until `due_at` to submit its statement.
                let more = json!({
                    "modality": modality,
                    "again": again,
                    "continues": continues.then_some(true),
                    "due_at": due_at.map(rfc3339),
                });
                vec![("respond", with(object, more))]
            }
            Event::Replanning { companion, ticket, message, until } => {
                let object = json!({ "companion": companion, "ticket": ticket, "message": message, "until": rfc3339(*until) });
                vec![("replanning", object)]
            }
            Event::Replanned { companion, ticket, next, trigger, messages, .. }
            | Event::ReplyExtended { companion, ticket, next, trigger, messages, .. } => {
                let messages = self.texts(reader, messages).await?;
                let object = json!({
                    "companion": companion,
                    "trigger": trigger,
                    "ticket": next,
                    "replaces": ticket,
                    "messages": messages,
                });
                vec![(if matches!(recorded.event, Event::Replanned { .. }) { "replanned" } else { "extended" }, object)]
            }
            Event::SentenceStarting { text, .. } if text.is_empty() => Vec::new(),
            Event::SentenceStarting { companion, ticket, sentence, text } => {
                let object = json!({ "companion": companion, "ticket": ticket, "sentence": sentence, "text": text });
                vec![("sentence", object)]
            }
            Event::SentencePlayed { companion, ticket, sentence, ms, heard, dropped } => {
                let object = json!({ "companion": companion, "ticket": ticket, "sentence": sentence, "ms": ms, "heard": heard });
                vec![("sentence_played", with(object, json!({ "dropped": dropped.then_some(true) })))]
            }
            Event::Interrupted { companion, ticket, interrupted } => {
                vec![("interrupted", with(json!(interrupted), json!({ "companion": companion, "ticket": ticket })))]
            }
            Event::Cancelled { companion, ticket, trigger, message } => {
                let object = json!({ "companion": companion, "trigger": trigger, "error": "cancelled" });
                vec![("failed", with(object, json!({ "message": message, "ticket": ticket })))]
            }
            Event::FloorExpired { companion, ticket } => {
                vec![("floor_expired", json!({ "companion": companion, "ticket": ticket }))]
            }
            Event::FloorTaken { companion, ticket } => vec![("floor_taken", json!({ "companion": companion, "ticket": ticket }))],
            Event::HeldSelected { selected, others } => {
                let others: Vec<_> = others.iter().map(|other| &other.companion).collect();
                vec![("held_selected", json!({ "selected": selected, "others": others }))]
            }
            Event::ToolCalled(called) => {
                let object =
                    json!({ "companion": called.companion, "ticket": called.ticket, "call": called.call, "tool": called.tool });
                let more = json!({
                    "arguments": Some(&called.arguments).filter(|arguments| !arguments.is_empty()),
                    "cause": called.cause.as_ref().map(|cause| &cause.person),
                    "until": called.until.map(rfc3339),
                    "refused": called.refused,
                });
                vec![("tool_called", with(object, more))]
            }
            Event::ToolConfirmed(confirmed) => {
                let object =
                    json!({ "companion": confirmed.companion, "call": confirmed.call, "confirmed": confirmed.is_confirmed });
                vec![("tool_confirmed", with(object, json!({ "by": confirmed.by })))]
            }
            Event::ToolAnswered(answered) => {
                let ToolAnswered { companion, ticket, call, tool, answer } = &**answered;
                let object = json!({ "companion": companion, "ticket": ticket, "call": call, "tool": tool });
                let more = json!({ "outcome": answer.outcome, "ms": answer.ms, "bytes": answer.bytes });
                vec![("tool_answered", with(object, more))]
            }
            Event::ReplyFailed { companion, ticket, trigger, error, category } => {
                let mut failed = json!({ "companion": companion, "trigger": trigger, "ticket": ticket, "error": error });
                if let Some(category) = category {
                    failed["category"] = json!(category);
                }
                vec![("failed", failed)]
            }
            _ => Vec::new(),
        })
    }

    async fn texts(&mut self, reader: &Reader<'_>, messages: &[Seq]) -> Result<Vec<Arc<str>>, ReadError> {
        self.texts.of(reader, &self.channel_key, messages).await
    }
}
