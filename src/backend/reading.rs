//! Reads history and decisions from the record, page by page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::ActorBackend;
use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Recalled, Role};
use crate::domain::moment::Moment;
use crate::domain::relevance::Estimate;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::decisions::DecisionRecord;
use crate::ports::backend::messages::{
    HistoryCall, HistoryCut, HistoryMessage, HistoryQuote, HistoryVersions, HistoryVoiceNote, MessageFile,
};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::Stamp;
use crate::story::rounds::{Phase, RoundCourse, RoundCourses};
use crate::telemetry::trace::TurnTrace;

/// The number of events per read.
const PAGE: usize = 512;
/// The number of events before a vote that are read to find the opening of its round, and the most events after it that are read once the selected
/// companion is known.
const BEFORE_VOTE: u64 = 64;
const MOST_AFTER_VOTE: u64 = 1_024;
/// The number of events per read, and of reads, to find what became of the calls that a statement proposed.
const AFTER_STATEMENT: usize = 64;
const MOST_READS: usize = 16;
/// The number of cached message texts.
const MAX_TEXTS: usize = 1_024;

impl ActorBackend {
    /// The records of a room's decisions in the form of the API, each with its position in the result.
    pub(super) async fn decision_records(
        &self,
        room: &RoomId,
        channel_key: &ChannelKey,
        all: Vec<(usize, (Recorded, CompanionId))>,
    ) -> Result<Vec<(usize, DecisionRecord)>, ReadError> {
        let vote = |(_, (recorded, companion)): &(usize, (Recorded, CompanionId))| {
            let Event::Decided(decided) = &recorded.event else { return None };
            decided.vote.as_ref().map(|_| (recorded.seq, companion.clone()))
        };
        let rounds = RoundsOfVotes::read(&self.reader(), channel_key, all.iter().filter_map(vote).collect()).await?;
        let (mut texts, mut decisions) = (Texts::default(), Vec::new());
        for (order, (recorded, companion)) in all {
            let Event::Decided(decided) = &recorded.event else { continue };
            let settled = texts.of(&self.reader(), channel_key, &decided.messages).await?;
            let mut decision = record(&recorded, decided, &companion, room, settled);
            if let Some(round) = rounds.0.get(&(recorded.seq, companion.clone())) {
                let has_won = round.has_won(&companion).filter(|_| decided.decision == Decision::Yes);
                let floor = has_won.map(|has_won| if has_won { "won" } else { "lost" });
                decision.more.extend(floor.map(|floor| ("floor".to_owned(), floor.into())));
                decision.more.insert("round".into(), json!(round));
            }
            decisions.push((order, decision));
        }
        Ok(decisions)
    }

    /// Adds what became of proposed calls after their statements.
    pub(super) async fn add_ends(&self, channel_key: &ChannelKey, messages: &mut [HistoryMessage]) -> Result<(), ReadError> {
        for message in messages {
            let mut range = Range { after: message.seq, before: None, limit: AFTER_STATEMENT, newest_first: false };
            let mut now = Moment::default();
            for _ in 0..MOST_READS {
                // Nobody decides after the two minutes.
                let may_go_on = |call: &HistoryCall| match call.confirmed {
                    None => call.until.is_some_and(|until| now <= until.0),
                    Some(is_confirmed) => is_confirmed,
                };
                if !message.calls.iter().any(|call| call.outcome.is_none() && may_go_on(call)) {
                    break;
                }
                let page = self.reader().legible(channel_key, range).await?;
                for recorded in &page.events {
                    now = recorded.at;
                    message.calls.iter_mut().for_each(|call| add_end(call, &recorded.event));
                }
                match page.last {
                    Some(last) if page.looked_at() == AFTER_STATEMENT => range.after = last,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// The number of readable messages in a channel. Unreadable entries are not counted.
    pub(super) async fn count_messages(&self, channel_key: &ChannelKey) -> Result<u64, ReadError> {
        let (mut count, mut after) = (0, Seq::NONE);
        loop {
            let range = Range { after, before: None, limit: PAGE, newest_first: false };
            let page = self.reader().legible(channel_key, range).await?;
            count += page.events.iter().filter(|recorded| is_shown(recorded)).count() as u64;
            match page.last {
                Some(last) if page.looked_at() == PAGE => after = last,
                _ => return Ok(count),
            }
        }
    }

    /// The time of the last message, if it is among the newest 64 events; otherwise the time of the last event. `None` if there is no message, or the
    /// room cannot be read.
    pub(super) async fn last_message_at(&self, channel_key: &ChannelKey) -> Result<Option<Stamp>, ReadError> {
        let reading = match self.context.hub.last_message_times().get(channel_key) {
            Ok(at) => return Ok(at),
            Err(reading) => reading,
        };
        let at = match self.read_last_message_time(channel_key).await {
            // An unreadable room must not break the list of all rooms.
            Err(error) if error.is_damage() => None,
            read => read?,
        };
        self.context.hub.last_message_times().loaded(channel_key, reading, at);
        Ok(at)
    }

    async fn read_last_message_time(&self, channel_key: &ChannelKey) -> Result<Option<Stamp>, ReadError> {
        let mut newest = Vec::new();
        // The last message is usually among the newest few events.
        for limit in [8, 64] {
            let page =
                self.reader().legible(channel_key, Range { after: Seq::NONE, before: None, limit, newest_first: true }).await?;
            if let Some(message) = page.events.iter().find_map(history_message) {
                return Ok(Some(message.at));
            }
            if page.looked_at() < limit {
                return Ok(None);
            }
            newest = page.events;
        }
        Ok(newest.first().map(|recorded| recorded.at.into()))
    }
}

/// The range of wanted entries: with `after` the first ones after it, without it the newest ones.
pub(super) struct Wanted {
    pub(super) after: Option<Seq>,
    pub(super) before: Option<Seq>,
    pub(super) limit: usize,
    /// The largest number of events to read.
    pub(super) max_read: usize,
}

/// Collects the results of `take` for the journal's events, oldest first. The results of one event are returned together or not at all.
pub(super) async fn find<T>(
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    wanted: Wanted,
    mut take: impl FnMut(&Recorded) -> Vec<T>,
) -> Result<Vec<T>, ReadError> {
    let newest_first = wanted.after.is_none();
    let limit = PAGE.min(wanted.max_read);
    let mut range = Range { after: wanted.after.unwrap_or(Seq::NONE), before: wanted.before, limit, newest_first };
    let mut found: Vec<Vec<T>> = Vec::new();
    let (mut count, mut read) = (0, 0);
    'pages: while read < wanted.max_read {
        let page = reader.events(channel_key, range).await?;
        read += page.len();
        let is_last = page.len() < limit;
        for recorded in &page {
            if newest_first {
                range.before = Some(recorded.seq);
            } else {
                range.after = recorded.seq;
            }
            let taken = take(recorded);
            if taken.is_empty() {
                continue;
            }
            if count > 0 && count + taken.len() > wanted.limit {
                break 'pages;
            }
            count += taken.len();
            found.push(taken);
        }
        if is_last || count >= wanted.limit {
            break;
        }
    }
    if newest_first {
        found.reverse();
    }
    Ok(found.into_iter().flatten().collect())
}

/// Whether an event is a message that was not deleted.
pub(super) fn is_shown(recorded: &Recorded) -> bool {
    matches!(&recorded.event, Event::Said { message, .. } if !is_redacted(message))
}

/// A message in the form of the history. `None` if the event is no message, or the message was deleted.
pub(super) fn history_message(recorded: &Recorded) -> Option<HistoryMessage> {
    let Event::Said { message, reply_to, reply, said_at } = &recorded.event else { return None };
    let is_companion = message.from.role == Role::Companion;
    (!is_redacted(message)).then(|| HistoryMessage {
        seq: recorded.seq,
        id: message.id.clone(),
        from: if is_companion { message.from.id.clone() } else { message.from.name.clone() },
        name: is_companion.then(|| message.from.name.clone()),
        role: message.from.role,
        ai: is_companion,
        kind: message.kind.clone(),
        text: message.text.clone(),
        at: said_at.unwrap_or(recorded.at).into(),
        modality: message.modality,
        reply_to: *reply_to,
        quoted: message.quoted.as_deref().map(HistoryQuote::from),
        cut: message.cut.as_deref().map(HistoryCut::from),
        truncated: message.truncated,
        edited: message.edited,
        reply: *reply,
        versions: message
            .versions
            .as_deref()
            .map(|versions| HistoryVersions { texts: versions.texts.clone(), standing: versions.standing }),
        voice_note: message.voice_note.as_deref().map(HistoryVoiceNote::from),
        recalled: message.recalled.iter().filter_map(Recalled::here).collect(),
        lore: message.lore.clone(),
        calls: message.calls.iter().map(HistoryCall::from).collect(),
        notice: None,
        files: message.attachments.iter().filter_map(MessageFile::of).collect(),
    })
}

fn add_end(call: &mut HistoryCall, event: &Event) {
    match event {
        Event::ToolConfirmed(confirmed) if confirmed.call == call.call => call.confirmed = Some(confirmed.is_confirmed),
        Event::ToolAnswered(answered) if answered.call == call.call => {
            call.outcome = Some(answered.answer.outcome.as_str().into());
        }
        _ => {}
    }
}

pub(super) fn decisions_in(recorded: &Recorded, companion: Option<&CompanionId>) -> Vec<(Recorded, CompanionId)> {
    let Event::Decided(decided) = &recorded.event else { return Vec::new() };
    let companions = decided.companions.iter().filter(|id| companion.is_none_or(|wanted| wanted == *id));
    companions.map(|id| (recorded.clone(), id.clone())).collect()
}

/// A companion's decision in the form of the API.
pub(super) fn record(
    recorded: &Recorded,
    decided: &Decided,
    companion: &CompanionId,
    room: &RoomId,
    messages: Vec<Arc<str>>,
) -> DecisionRecord {
    let always = json!({
        "message_count": decided.message_count,
        "check_count": decided.check_count,
        "threshold": decided.threshold,
        "messages": messages,
    });
    // Keeps the number of digits of the estimates, which are shorter than those of JSON.
    let as_written = |estimate: &Estimate| -> Option<Value> { serde_json::from_str(&serde_json::to_string(estimate).ok()?).ok() };
    let more = json!({
        "budget": decided.used_up.map(|used_up| used_up.budget.as_str()),
        "free_at": decided.used_up.and_then(|used_up| used_up.free_at).map(Stamp),
        "relevance": decided.relevance.as_deref().map(as_written),
        "vote": decided.vote,
        "why": decided.why,
        "by_role": decided.by_role.then_some(true),
        "trace": trace_of(recorded, decided),
    });
    let call = decided.call.as_ref().map(|call| {
        json!({
            "answer": call.answer,
            "provider": call.provider,
            "model": call.model,
            "wait_ms": call.wait_ms,
            "model_ms": call.model_ms,
            "took_ms": call.wait_ms + call.model_ms,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "asked_together": call.asked_together,
        })
    });
    let more = with(with(always, more), json!(call));
    DecisionRecord {
        seq: recorded.seq,
        at: recorded.at.into(),
        room: room.as_str().into(),
        companion: companion.clone(),
        trigger: decided.trigger,
        decision: decided.decision.as_str().into(),
        reason: decided.reason.as_str().into(),
        more: more.as_object().cloned().unwrap_or_default(),
    }
}

/// Adds fields to an object, except for null values.
pub(super) fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    object
}

/// The trace with the span of a decision.
fn trace_of(recorded: &Recorded, decided: &Decided) -> Option<Arc<str>> {
    let named = decided.call.as_ref().and_then(|call| call.trace.clone()).or_else(|| decided.trace.clone());
    named.or_else(|| recorded.turn.map(|turn| TurnTrace::of_turn(turn).to_string().into()))
}

/// The rounds of votes, by the event of the vote and its companion.
#[derive(Default)]
struct RoundsOfVotes(BTreeMap<(Seq, CompanionId), RoundCourse>);

impl RoundsOfVotes {
    /// Reads the progress of the rounds of these votes.
    async fn read(reader: &Reader<'_>, channel_key: &ChannelKey, votes: BTreeSet<(Seq, CompanionId)>) -> Result<Self, ReadError> {
        let (mut rounds, mut courses) = (Self::default(), RoundCourses::default());
        let mut range = Range { after: Seq::NONE, before: None, limit: PAGE, newest_first: false };
        for vote in &votes {
            let begin = Seq(vote.0.0.saturating_sub(BEFORE_VOTE));
            if range.after < begin {
                (range.after, courses) = (begin, RoundCourses::default());
            }
            while !rounds.is_known(vote, range.after) {
                let page = reader.legible(channel_key, range).await?;
                for recorded in &page.events {
                    courses.follow(recorded);
                    for round in courses.changed() {
                        let answers = round.answers.iter().map(|(companion, seq)| (*seq, companion.clone()));
                        rounds.0.extend(answers.filter(|answer| votes.contains(answer)).map(|answer| (answer, round.clone())));
                    }
                }
                match page.last {
                    Some(last) if page.looked_at() == PAGE => range.after = last,
                    _ => return Ok(rounds),
                }
            }
        }
        Ok(rounds)
    }

    /// Whether the round of this vote is over, or enough events were read. For some statements, the record never shows that their round is over.
    fn is_known(&self, vote: &(Seq, CompanionId), read: Seq) -> bool {
        let is_read_enough = read.0 > vote.0.0 + MOST_AFTER_VOTE;
        self.0
            .get(vote)
            .map_or(is_read_enough, |round| round.phase == Phase::Over || is_read_enough && round.has_won(&vote.1).is_some())
    }
}

/// A cache of message texts. Missing texts are read from the record.
#[derive(Default)]
pub(super) struct Texts(BTreeMap<Seq, Arc<str>>);

impl Texts {
    /// Stores the text of a message that was posted, edited or deleted.
    pub(super) fn insert(&mut self, seq: Seq, text: &Arc<str>) {
        self.0.insert(seq, text.clone());
        while self.0.len() > MAX_TEXTS {
            self.0.pop_first();
        }
    }

    /// The texts of these messages, without deleted ones.
    pub(super) async fn of(
        &mut self,
        reader: &Reader<'_>,
        channel_key: &ChannelKey,
        messages: &[Seq],
    ) -> Result<Vec<Arc<str>>, ReadError> {
        let missing = || messages.iter().filter(|seq| !self.0.contains_key(seq));
        if let (Some(first), Some(last)) = (missing().min().copied(), missing().max().copied()) {
            let (after, before) = (Some(Seq(first.0.saturating_sub(1))), Some(last.next()));
            let wanted = Wanted { after, before, limit: usize::MAX, max_read: usize::MAX };
            let text = |recorded: &Recorded| match &recorded.event {
                Event::Said { message, .. } if messages.contains(&recorded.seq) => vec![(recorded.seq, message.text.clone())],
                _ => Vec::new(),
            };
            self.0.extend(find(reader, channel_key, wanted, text).await?);
        }
        let texts = messages.iter().filter_map(|seq| self.0.get(seq)).filter(|text| !text.is_empty()).cloned().collect();
        while self.0.len() > MAX_TEXTS {
            self.0.pop_first();
        }
        Ok(texts)
    }
}
