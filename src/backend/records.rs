//! Answers from the record: history, decisions and their explanations, usage, and exports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::json;

use super::ActorBackend;
use super::errors::invalid;
use super::export::{document, events, said_line};
use super::reading::{Wanted, decisions_in, find, history_message};
use super::receptions::MAX_IN_ALL as MAX_EVIDENCE;
use super::suggestions::check_guild;
use super::usage::end_of_millisecond;
use super::why::Scene;
use crate::domain::budget::DAY;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{CompanionId, GuildId, PersonId, Seq, Ward};
use crate::domain::message::{Author, Role};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::ports::backend::decisions::{DecisionQuery, Decisions, Why, WhyQuery};
use crate::ports::backend::keeping::{ExportForm, ExportQuery, Lines, Person};
use crate::ports::backend::messages::{Found, History, HistoryQuery, PromptText, RunBy, SearchQuery};
use crate::ports::backend::record_service::RecordService;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::backend::usage::{
    GuildUsage, ReceptionQuery, Receptions, Safety, SafetyFigures, SafetyMonth, Usage, UsageQuery, Used,
};
use crate::ports::backend::{Detail, Refused};
use crate::ports::inbound_events::StoredFile;
use crate::story::transcript::{Markup, Transcript};
use crate::story::{chat, script};

/// Limits of the newest events that are read when all rooms are searched: at most `MAX_PER_ROOM` in each room, about `MAX_IN_ALL` in total, and at
/// least `MIN_PER_ROOM` in each room.
const MAX_PER_ROOM: usize = 4_096;
const MAX_IN_ALL: usize = 400_000;
const MIN_PER_ROOM: usize = 64;
/// The largest number of events of a replay script or a group chat. It is limited because each is one document.
const MAX_SCRIPTED: usize = 200_000;
/// The largest number of months of the figures that laws require. Each month is one read for each guild.
const MAX_MONTHS: i32 = 120;

#[async_trait]
impl RecordService for ActorBackend {
    async fn history(&self, room: &RoomId, query: HistoryQuery) -> Result<History, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let wanted = Wanted { after: query.after, before: query.before, limit: query.limit, max_read: usize::MAX };
        let (mut deleted, mut replaced, mut told) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let mut messages = find(&self.reader(), &channel_key, wanted, |recorded| {
            let message = history_message(recorded);
            if message.is_none() && matches!(recorded.event, Event::Said { .. }) {
                deleted.insert(recorded.seq);
            }
            if let Event::Disclosed(disclosed) = &recorded.event {
                told.insert(recorded.seq, RunBy::from(&**disclosed));
            }
            if let Event::Deleted { messages, replaced: true, .. } = &recorded.event {
                replaced.extend(messages.iter().copied());
            }
            message.into_iter().collect()
        })
        .await?;
        self.add_ends(&channel_key, &mut messages).await?;
        // The notice is recorded right after the statement that it was posted with.
        messages.iter_mut().for_each(|message| message.notice = told.remove(&message.seq.next()));
        // If the page is full, more may have been read.
        if let (Some(first), Some(last)) = (messages.first(), messages.last()) {
            deleted.retain(|seq| if query.after.is_none() { *seq > first.seq } else { *seq < last.seq });
        }
        Ok(History { messages, deleted: deleted.difference(&replaced).copied().collect() })
    }

    async fn file(&self, room: &RoomId, message: Seq, file: u64) -> Result<StoredFile, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let stored = self.reader().file(&channel_key, message, file).await?;
        stored.ok_or_else(|| Refused::not_found(format!("message {message} has no file {file}")))
    }

    async fn search(&self, room: &RoomId, query: SearchQuery) -> Result<Found, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.search_in(&channel_key, &query).await
    }

    async fn decisions(&self, query: DecisionQuery) -> Result<Decisions, Refused> {
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
        let share = (MAX_IN_ALL / channel_keys.len().max(1)).clamp(MIN_PER_ROOM, MAX_PER_ROOM);
        let max_read = if query.room.is_some() { usize::MAX } else { share };
        let (mut all, mut unreadable) = (Vec::new(), BTreeSet::new());
        // An unreadable room must not hide the decisions of the others.
        let is_skipped = |error: &ReadError| query.room.is_none() && error.is_damage();
        for (at, (_, channel_key)) in channel_keys.iter().enumerate() {
            let wanted = Wanted { after: query.after, before: None, limit: query.limit, max_read };
            let found =
                find(&self.reader(), channel_key, wanted, |recorded| decisions_in(recorded, query.companion.as_ref())).await;
            match found {
                Err(error) if is_skipped(&error) => drop(unreadable.insert(at)),
                found => all.extend(found?.into_iter().map(|found| (at, found))),
            }
        }
        // The sort is stable: decisions of one event keep their order, and rooms are in the order of their ids.
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
        let mut shown = BTreeMap::new();
        for (at, decided) in by_room {
            let (room, channel_key) = &channel_keys[at];
            match self.decision_records(room, channel_key, decided).await {
                Err(error) if is_skipped(&error) => drop(unreadable.insert(at)),
                decisions => shown.extend(decisions?),
            }
        }
        let unreadable = unreadable.into_iter().map(|at| channel_keys[at].0.clone()).collect();
        Ok(Decisions { decisions: shown.into_values().collect(), unreadable })
    }

    async fn why(&self, query: WhyQuery) -> Result<Why, Refused> {
        let name = self.name_of(&query.room);
        let scene = Scene::of(self, query.room, query.language)?;
        let mut why = scene.explain(query.companion.as_deref(), query.at).await?;
        why.room = name;
        why.story.extend(scene.unreadable_line());
        Ok(why)
    }

    async fn prompt(&self, room: &RoomId, statement: Seq) -> Result<PromptText, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let ticket = match self.reader().event(&channel_key, statement).await?.map(|recorded| recorded.event) {
            Some(Event::Said { reply, .. }) => reply,
            _ => None,
        };
        let now = self.context.clock.now();
        let kept = ticket.and_then(|ticket| self.context.sent_prompts.get(&channel_key, ticket, now));
        kept.ok_or_else(|| Refused::not_found(Detail::key("refusals.no_prompt")))
    }

    async fn author(&self, room: &RoomId, id: &str) -> Result<Option<Author>, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        let Some(seq) = self.reader().message(&channel_key, id).await? else { return Ok(None) };
        let recorded = self.reader().event(&channel_key, seq).await?;
        Ok(recorded.and_then(|Recorded { event, .. }| match event {
            Event::Said { message, .. } => Some(message.from),
            _ => None,
        }))
    }

    async fn usage(&self, query: UsageQuery) -> Result<Usage, Refused> {
        let now = self.context.clock.now();
        let to = query.to.unwrap_or_else(|| end_of_millisecond(now));
        let from = query.from.unwrap_or(to - DAY);
        if from >= to {
            return Err(invalid("from", "must be earlier than to (without to: earlier than now)"));
        }
        // One count at a time, because each reads many records.
        let _lock = self.counting.lock().await;
        let is_of_all = query.guild.is_none();
        let mut reported = Vec::new();
        let mut total = Used::default();
        for guild in self.guilds_to_count(query.guild).await? {
            let account = self.account(&guild, from, to).await?;
            let guests = self.used_by_guests(&guild, now).await?;
            if is_of_all && account.used == Used::default() && guests.is_empty() {
                continue;
            }
            let caps = self.caps(&guild, now).await?;
            total += account.used.clone();
            let (by, speech_by, tools_by) = (account.calls_by(), account.speech_by(), account.tools_by());
            reported.push(GuildUsage { guild, used: account.used, by, speech_by, tools_by, guests, caps });
        }
        let currency = self.context.settings.models.currency.as_str().into();
        Ok(Usage { from: from.into(), to: to.into(), currency, guilds: reported, total })
    }

    async fn receptions(&self, query: ReceptionQuery) -> Result<Receptions, Refused> {
        let now = self.context.clock.now();
        let _lock = self.counting.lock().await;
        let (from, is_of_all, mut left) = (query.from(now), query.guild.is_none(), MAX_EVIDENCE);
        let mut receptions = Receptions { from: from.into(), to: now.into(), guilds: Vec::new() };
        for guild in self.guilds_to_count(query.guild).await? {
            let counted = self.receptions_in(&guild, from, now, &mut left).await?;
            if !is_of_all || counted.incomplete || !counted.by.is_empty() {
                receptions.guilds.push(counted);
            }
        }
        Ok(receptions)
    }

    async fn safety_figures(&self, query: UsageQuery) -> Result<SafetyFigures, Refused> {
        let end = query.to.unwrap_or_else(|| end_of_millisecond(self.context.clock.now()));
        let last = (end - Duration::from_micros(1)).month(0);
        let first = query.from.map_or(last.month(-11), |from| from.month(0));
        if query.from.is_some_and(|from| from >= end) {
            return Err(invalid("from", "must be earlier than to (without to: earlier than now)"));
        }
        let months: Vec<_> = (0..=MAX_MONTHS).map(|later| first.month(later)).take_while(|month| *month <= last).collect();
        if months.len() > MAX_MONTHS as usize {
            return Err(invalid("from", "must be at most ten years before to (without to: before now)"));
        }
        let _lock = self.counting.lock().await;
        let mut figures = SafetyFigures { from: named(first), to: named(last), months: Vec::new(), total: Safety::default() };
        for guild in self.guilds_to_count(query.guild).await? {
            for month in &months {
                let sums = self.safety_of(&guild, *month).await?;
                if sums != Safety::default() {
                    figures.total += sums.clone();
                    figures.months.push(SafetyMonth { guild: guild.clone(), month: named(*month), sums });
                }
            }
        }
        Ok(figures)
    }

    async fn export(&self, query: ExportQuery) -> Result<Lines, Refused> {
        let channel_keys: VecDeque<ChannelKey> = match &query.room {
            Some(room) => [self.room_to_read(room)?.0].into(),
            None => self
                .context
                .memberships
                .all()
                .iter()
                .map(|(channel, membership)| ChannelKey::new(&membership.guild, channel))
                .collect(),
        };
        match (query.form, channel_keys.front()) {
            (ExportForm::Json, _) => Ok(events(self.context.store.clone(), channel_keys)),
            (ExportForm::Chat, Some(channel_key)) => {
                let title = query.room.as_ref().map(|room| self.name_of(room)).unwrap_or_default();
                let room = query.room.as_ref().map_or("", RoomId::as_str);
                let (memberships, channel) = (&self.context.memberships, &channel_key.channel);
                let author = |id: CompanionId| {
                    let name = memberships.companion(channel, &id)?.name;
                    Some(Author { id: id.to_string().into(), name, role: Role::Companion })
                };
                let present: Vec<_> = memberships.present(channel).into_keys().filter_map(author).collect();
                let chat = chat::of(room, &title, &present, &self.all_events(channel_key).await?);
                Ok(stream::iter([Ok(chat.to_string())]).boxed())
            }
            (ExportForm::Replay, Some(channel_key)) => {
                let events = self.all_events(channel_key).await?;
                let (memberships, channel) = (&self.context.memberships, &channel_key.channel);
                let present: Vec<_> = memberships.present(channel).into_keys().collect();
                let ids = memberships.companions().keys().cloned().chain(present.clone()).collect::<BTreeSet<_>>();
                let cast = ids.into_iter().filter_map(|id| Some((id.clone(), memberships.companion(channel, &id)?))).collect();
                let script = script::of(channel, &events, &cast, present, &self.context.in_force());
                Ok(stream::iter([Ok(script.to_string())]).boxed())
            }
            (ExportForm::Markdown | ExportForm::Html, Some(channel_key)) => {
                let markup = if query.form == ExportForm::Html { Markup::Html } else { Markup::Markdown };
                let zone = self.context.in_force().prompt.zone_of(&channel_key.guild).clone();
                let transcript = Transcript::new(markup, zone, query.language);
                let name = query.room.as_ref().map(|room| self.name_of(room)).unwrap_or_default();
                let head = transcript.head(&name, self.context.clock.now());
                Ok(document(self.context.store.clone(), channel_key.clone(), transcript, head).await?)
            }
            (_, None) => Err(Refused::not_found("there is no room to export")),
        }
    }

    async fn export_person(&self, person: Person) -> Result<Lines, Refused> {
        let id = PersonId::from(&*person.id);
        let (store, ward) = (self.context.store.clone(), Ward::of(&person.guild));
        let listed = self.reader().listed(&person.guild, &id).await?;
        let told_at = self.context.told.get(&person.guild, &id).map(rfc3339);
        let opted_out = self.context.opt_outs.holds(&person.guild, &id);
        let described: BTreeMap<_, _> = self.descriptions_of(&person.guild, &id).into_iter().collect();
        let is_more_known = told_at.is_some() || opted_out || !described.is_empty();
        if listed.is_empty() && !is_more_known {
            return Err(self.nobody(&person.guild, &id).await);
        }
        let now = rfc3339(self.context.clock.now());
        let mut known = json!({ "guild": person.guild, "person": id, "at": now, "told_at": told_at, "opted_out": opted_out });
        if !described.is_empty() {
            known["described"] = json!(described);
        }
        let (mut messages, mut illegible, mut nameless) = (Vec::new(), 0, 0);
        let mut unreadable = None;
        for (no, stretches) in &listed {
            let Some(channel_key) = self.named(ward, *no).await? else {
                nameless += 1;
                continue;
            };
            match self.reader().messages_by(ward, *no, stretches.keys(), &id).await {
                Ok(found) => {
                    messages.extend(found.messages.into_iter().map(|seq| (channel_key.clone(), seq)));
                    illegible += found.illegible.len();
                }
                Err(error) if error.is_damage() => drop(unreadable.get_or_insert_with(|| error.of(&channel_key))),
                Err(error) => return Err(error.into()),
            }
        }
        let counted =
            |count: usize, one: &str, many: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {many}") };
        let cannot_be_read = |which: String| {
            format!("{which} where {} said something cannot be read, and may contain messages of this person", person.id)
        };
        let missing = if let Some(error) = unreadable {
            Some(format!("{} said something where {error}", person.id))
        } else if nameless > 0 {
            Some(cannot_be_read(format!("{} without a readable name", counted(nameless, "channel", "channels"))))
        } else {
            (illegible > 0).then(|| cannot_be_read(counted(illegible, "entry", "entries")))
        };
        let missing = missing.map(|missing| Err(Refused::damaged(format!("{missing}; the rest is exported"))));
        let lines = stream::iter(messages).filter_map(move |(channel_key, seq)| {
            let store = store.clone();
            async move {
                let line = said_line(&Reader::new(&*store), &channel_key, seq).await;
                line.map_err(Refused::from).transpose()
            }
        });
        let known = is_more_known.then(|| Ok(known.to_string()));
        Ok(stream::iter(known).chain(lines).chain(stream::iter(missing)).boxed())
    }
}

/// A month in the form of the API, such as `2026-11`.
fn named(month: Moment) -> Arc<str> {
    rfc3339(month).chars().take(7).collect::<String>().into()
}

impl ActorBackend {
    /// The given guild, which must exist, or all guilds with usage records.
    async fn guilds_to_count(&self, guild: Option<GuildId>) -> Result<Vec<GuildId>, Refused> {
        match guild {
            Some(guild) => check_guild(&self.context, &guild).await.map(|()| vec![guild]),
            None => Ok(self.reader().guilds_with_usage().await?),
        }
    }

    /// The events of a room, for an export as one document.
    async fn all_events(&self, channel_key: &ChannelKey) -> Result<Vec<Recorded>, Refused> {
        let range = Range { after: Seq::NONE, before: None, limit: MAX_SCRIPTED + 1, newest_first: false };
        let events = self.reader().events(channel_key, range).await?;
        if events.len() > MAX_SCRIPTED {
            let detail =
                format!("the room has more than {MAX_SCRIPTED} events, which is too much for one script; export it as JSON");
            return Err(Refused::TooLarge(detail.into()));
        }
        Ok(events)
    }
}
