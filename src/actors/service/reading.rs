//! History and decisions, read from the record a page at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::ActorBackend;
use super::desk::unread;
use crate::domain::decision::Decision;
use crate::domain::event::{Decided, Event, Recorded, RoundClosed};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Message, Role};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{DecisionQuery, DecisionRecord, Decisions};
use crate::ports::backend::messages::{History, HistoryMessage, HistoryQuery};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::Stamp;

/// Events read at once.
const PAGE: usize = 512;
/// Events that are read at most where all rooms are looked through: in each of them, and about as many in all, but always some.
const NEWEST_OF_EACH: usize = 4_096;
const NEWEST_OF_ALL: usize = 400_000;
const NEWEST_AT_LEAST: usize = 64;
/// Texts that are kept at hand.
const TEXTS: usize = 1_024;

impl ActorBackend {
    pub(super) async fn read_history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let wanted = Wanted { after: query.after, before: query.before, limit: query.limit, most: usize::MAX };
        let messages = found(&self.reader(), &channel_key, wanted, |recorded| told_message(recorded).into_iter().collect()).await;
        Ok(History { messages: messages.map_err(unread)? })
    }

    pub(super) async fn read_decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused> {
        let mut channel_keys = Vec::new();
        match &query.room {
            Some(room) => channel_keys.push((room.clone(), self.room_of(room)?.0)),
            None => {
                let rooms = self.context.memberships.all().into_iter();
                channel_keys.extend(rooms.filter_map(|(channel, membership)| {
                    Some((RoomId::of(&channel)?, ChannelKey::new(&membership.guild, &channel)))
                }));
            }
        }
        let share = (NEWEST_OF_ALL / channel_keys.len().max(1)).clamp(NEWEST_AT_LEAST, NEWEST_OF_EACH);
        let most = if query.room.is_some() { usize::MAX } else { share };
        let (mut all, mut unreadable) = (Vec::new(), BTreeSet::new());
        // What cannot be read of one room keeps nobody from what was decided in the others.
        let is_passed_over = |error: &ReadError| query.room.is_none() && error.is_damage();
        for (at, (_, channel_key)) in channel_keys.iter().enumerate() {
            let wanted = Wanted { after: query.after, before: None, limit: query.limit, most };
            let found =
                found(&self.reader(), channel_key, wanted, |recorded| decisions_in(recorded, query.companion.as_ref())).await;
            match found {
                Err(error) if is_passed_over(&error) => drop(unreadable.insert(at)),
                found => all.extend(found.map_err(unread)?.into_iter().map(|found| (at, found))),
            }
        }
        // Stable: those of one event stay in their order, and rooms are in the order of ids.
        all.sort_by_key(|(at, (recorded, _))| (recorded.at, *at, recorded.seq));
        if query.after.is_none() {
            all.drain(..all.len().saturating_sub(query.limit));
        } else {
            all.truncate(query.limit);
        }
        let mut by_room = BTreeMap::<_, Vec<_>>::new();
        for (order, (at, found)) in all.into_iter().enumerate() {
            by_room.entry(at).or_default().push((order, found));
        }
        let mut told = BTreeMap::new();
        for (at, of_room) in by_room {
            let (room, channel_key) = &channel_keys[at];
            match self.told_decisions(room, channel_key, of_room).await {
                Err(error) if is_passed_over(&error) => drop(unreadable.insert(at)),
                decisions => told.extend(decisions.map_err(unread)?),
            }
        }
        let unreadable = unreadable.into_iter().map(|at| channel_keys[at].0.clone()).collect();
        Ok(Decisions { decisions: told.into_values().collect(), unreadable })
    }

    /// Decisions of a room as they are shown, each with its place among all.
    async fn told_decisions(
        &self,
        room: &RoomId,
        channel_key: &ChannelKey,
        all: Vec<(usize, (Recorded, CompanionId))>,
    ) -> Result<Vec<(usize, DecisionRecord)>, ReadError> {
        let ballots = all.iter().filter_map(|(_, (recorded, _))| ballot_in(recorded));
        let elections = Elections::read(&self.reader(), channel_key, ballots).await?;
        let (mut texts, mut decisions) = (Texts::default(), Vec::new());
        for (order, (recorded, companion)) in all {
            let Event::Decided(decided) = &recorded.event else { continue };
            let settled = texts.of(&self.reader(), channel_key, &decided.messages).await?;
            let mut decision = record(&recorded, decided, &companion, room, settled);
            let floor = ballot_in(&recorded).and_then(|seq| elections.floor(seq, &companion));
            decision.more.extend(floor.map(|floor| ("floor".to_owned(), floor.into())));
            decisions.push((order, decision));
        }
        Ok(decisions)
    }

    /// When something was last said, as far as the newest page tells; with a page full of other things, when the last of them happened.
    pub(super) async fn last_said(&self, channel_key: &ChannelKey) -> Result<Option<Stamp>, ReadError> {
        let reading = match self.context.hub.last_said().get(channel_key) {
            Ok(at) => return Ok(at),
            Err(reading) => reading,
        };
        let at = match self.read_last_said(channel_key).await {
            // What cannot be read of one room keeps nobody from the list of all.
            Err(error) if error.is_damage() => None,
            read => read?,
        };
        self.context.hub.last_said().read(channel_key, reading, at);
        Ok(at)
    }

    async fn read_last_said(&self, channel_key: &ChannelKey) -> Result<Option<Stamp>, ReadError> {
        let mut newest = Vec::new();
        // Mostly it is among the first few.
        for limit in [8, 64] {
            let page =
                self.reader().legible(channel_key, Range { after: Seq::NONE, before: None, limit, newest_first: true }).await?;
            if let Some(said) = page.events.iter().find_map(told_message) {
                return Ok(Some(said.at));
            }
            if page.looked_at() < limit {
                return Ok(None);
            }
            newest = page.events;
        }
        Ok(newest.first().map(|recorded| recorded.at.into()))
    }
}

/// Which entries of a journal are wanted: without `after` the newest, with it the first ones after it.
pub(super) struct Wanted {
    pub(super) after: Option<Seq>,
    pub(super) before: Option<Seq>,
    pub(super) limit: usize,
    /// Events that are read at most.
    pub(super) most: usize,
}

/// What is found in the journal's events, oldest first. An event with several finds gives all of them, or none.
pub(super) async fn found<T>(
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    wanted: Wanted,
    take: impl Fn(&Recorded) -> Vec<T>,
) -> Result<Vec<T>, ReadError> {
    let newest_first = wanted.after.is_none();
    let limit = PAGE.min(wanted.most);
    let mut range = Range { after: wanted.after.unwrap_or(Seq::NONE), before: wanted.before, limit, newest_first };
    let mut found: Vec<Vec<T>> = Vec::new();
    let (mut count, mut read) = (0, 0);
    'pages: while read < wanted.most {
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

/// A message as history shows it. None for what is none, or was taken back.
pub(super) fn told_message(recorded: &Recorded) -> Option<HistoryMessage> {
    let Event::Said { message, reply_to, said_at, .. } = &recorded.event else { return None };
    (!is_redacted(message)).then(|| HistoryMessage {
        seq: recorded.seq,
        id: message.id.clone(),
        from: shown_author(message),
        role: message.from.role,
        text: message.text.clone(),
        at: said_at.unwrap_or(recorded.at).into(),
        modality: message.modality,
        reply_to: *reply_to,
    })
}

/// A person's name, a companion's id.
pub(super) fn shown_author(message: &Message) -> Arc<str> {
    if message.from.role == Role::Companion { message.from.id.clone() } else { message.from.name.clone() }
}

fn decisions_in(recorded: &Recorded, of: Option<&CompanionId>) -> Vec<(Recorded, CompanionId)> {
    let Event::Decided(decided) = &recorded.event else { return Vec::new() };
    let companions = decided.companions.iter().filter(|companion| of.is_none_or(|of| of == *companion));
    companions.map(|companion| (recorded.clone(), companion.clone())).collect()
}

/// A companion's decision as it is shown.
pub(super) fn record(
    recorded: &Recorded,
    decided: &Decided,
    companion: &CompanionId,
    room: &RoomId,
    messages: Vec<Arc<str>>,
) -> DecisionRecord {
    let mut more = Map::new();
    more.insert("message_count".into(), decided.message_count.into());
    more.insert("check_count".into(), decided.check_count.into());
    more.insert("threshold".into(), json!(decided.threshold));
    more.insert("messages".into(), json!(messages));
    if let Some(used_up) = &decided.used_up {
        more.insert("budget".into(), used_up.budget.as_str().into());
        more.extend(used_up.free_at.map(|at| ("free_at".to_owned(), json!(Stamp(at)))));
    }
    if let Some(vote) = &decided.vote {
        more.insert("vote".into(), json!(vote));
    }
    if let Some(why) = &decided.why {
        more.insert("why".into(), json!(why));
    }
    if let Some(call) = &decided.call {
        let call = json!({
            "answer": call.answer,
            "provider": call.provider,
            "model": call.model,
            "wait_ms": call.wait_ms,
            "model_ms": call.model_ms,
            "took_ms": call.wait_ms + call.model_ms,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "trace": call.trace,
        });
        if let Value::Object(call) = call {
            more.extend(call.into_iter().filter(|(_, value)| !value.is_null()));
        }
    }
    DecisionRecord {
        seq: recorded.seq,
        at: recorded.at.into(),
        room: room.as_str().into(),
        companion: companion.clone(),
        trigger: decided.trigger,
        decision: decided.decision.as_str().into(),
        reason: decided.reason.as_str().into(),
        more,
    }
}

/// The number of a decision that is a wish to speak in a round.
pub(super) fn ballot_in(recorded: &Recorded) -> Option<Seq> {
    let Event::Decided(decided) = &recorded.event else { return None };
    (decided.decision == Decision::Yes && decided.vote.is_some()).then_some(recorded.seq)
}

/// How rounds ended: by the number of the event that ended each, and whom it selected. One that was cleared has no outcome.
#[derive(Default)]
pub(super) struct Elections(BTreeMap<Seq, Option<RoundClosed>>);

impl Elections {
    /// How the rounds ended that these decisions were made in, as far as they have.
    pub(super) async fn read(
        reader: &Reader<'_>,
        channel_key: &ChannelKey,
        ballots: impl Iterator<Item = Seq>,
    ) -> Result<Self, ReadError> {
        let ballots: BTreeSet<_> = ballots.collect();
        let mut elections = Self::default();
        let mut range = Range { after: Seq::NONE, before: None, limit: PAGE, newest_first: false };
        for ballot in ballots {
            // The one before it may have been in the same round.
            while elections.0.range(ballot..).next().is_none() {
                range.after = range.after.max(ballot);
                let page = reader.events(channel_key, range).await?;
                for recorded in &page {
                    range.after = recorded.seq;
                    match &recorded.event {
                        Event::RoundClosed(closed) => drop(elections.0.insert(recorded.seq, Some(closed.clone()))),
                        Event::Cleared => drop(elections.0.insert(recorded.seq, None)),
                        Event::Said { .. }
                        | Event::Edited { .. }
                        | Event::Deleted { .. }
                        | Event::Joined { .. }
                        | Event::Left { .. }
                        | Event::Paused { .. }
                        | Event::CaughtUp { .. }
                        | Event::JitterDrawn { .. }
                        | Event::LullFired { .. }
                        | Event::BackOffEnded { .. }
                        | Event::DeadlinesExtended { .. }
                        | Event::AddressRefused { .. }
                        | Event::RoundOpened(_)
                        | Event::Evaluated(_)
                        | Event::Decided(_)
                        | Event::Unanswered { .. }
                        | Event::StageChanged { .. }
                        | Event::RepetitionAsked { .. }
                        | Event::RepetitionJudged { .. }
                        | Event::ReplyOwed { .. }
                        | Event::ReplyFailed { .. }
                        | Event::Summarised { .. } => {}
                    }
                }
                if page.len() < PAGE {
                    return Ok(elections);
                }
            }
        }
        Ok(elections)
    }

    /// Whether a companion got the floor with the wish that has this number: `won` or `lost`, once it is known.
    pub(super) fn floor(&self, ballot: Seq, companion: &CompanionId) -> Option<&'static str> {
        let (_, closed) = self.0.range(ballot..).next()?;
        let is_selected = closed.as_ref()?.selected.as_ref() == Some(companion);
        Some(if is_selected { "won" } else { "lost" })
    }
}

/// The texts of messages: the newest that were asked for are kept at hand, the others are looked up.
#[derive(Default)]
pub(super) struct Texts(BTreeMap<Seq, Arc<str>>);

impl Texts {
    /// A message was said, or says something else now, or nothing.
    pub(super) fn learn(&mut self, seq: Seq, text: &Arc<str>) {
        self.0.insert(seq, text.clone());
        while self.0.len() > TEXTS {
            self.0.pop_first();
        }
    }

    /// What these messages say, without those that were taken back.
    pub(super) async fn of(
        &mut self,
        reader: &Reader<'_>,
        channel_key: &ChannelKey,
        messages: &[Seq],
    ) -> Result<Vec<Arc<str>>, ReadError> {
        let missing = || messages.iter().filter(|seq| !self.0.contains_key(seq));
        if let (Some(first), Some(last)) = (missing().min().copied(), missing().max().copied()) {
            let (mut after, before) = (Seq(first.0.saturating_sub(1)), Some(last.next()));
            loop {
                let page = reader.events(channel_key, Range { after, before, limit: PAGE, newest_first: false }).await?;
                let is_last = page.len() < PAGE;
                for recorded in page {
                    after = recorded.seq;
                    if let Event::Said { message, .. } = &recorded.event
                        && messages.contains(&recorded.seq)
                    {
                        self.0.insert(recorded.seq, message.text.clone());
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        let known = messages.iter().filter_map(|seq| self.0.get(seq)).filter(|text| !text.is_empty()).cloned().collect();
        while self.0.len() > TEXTS {
            self.0.pop_first();
        }
        Ok(known)
    }
}
