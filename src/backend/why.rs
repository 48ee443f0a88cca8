//! Explains a decision from the record, in plain sentences. Also explains the outcome of a message, and what a companion is waiting for.
//!
//! * `finding`: finds the decision, by its number, its time, or as the newest one. Every search is bounded.
//! * `story`: the events that led to a decision, and its consequences.
//! * `rules`: the rules that decide without asking a model, and what the user can do about them.
//! * `fate`: the outcome of a message for every companion.
//! * `speech`: the message that contains a segment of speech, or why no message does.
//! * `waiting`: what a companion is waiting for.

mod fate;
mod finding;
mod rules;
mod speech;
mod story;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::ActorBackend;
use super::errors::invalid;
use crate::actors::runtime::context::ActorContext;
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Decided, Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::model_role::ModelRole;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::reader::{Legible, Range, ReadError, Reader};
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{Brief, StoryLine, Why, WhyAt};
use crate::ports::backend::room::RoomId;
use crate::settings::companion::{Companion, capitalised};
use crate::story::Subject;
use crate::story::words::{self, Told};
use crate::texts::Language;
use story::in_order;

/// The room of an explanation.
pub(super) struct Scene<'a> {
    backend: &'a ActorBackend,
    room: RoomId,
    channel_key: ChannelKey,
    membership: Membership,
    language: Language,
    /// The unreadable events that the search has found.
    illegible: Mutex<BTreeSet<Seq>>,
}

impl<'a> Scene<'a> {
    pub(super) fn of(backend: &'a ActorBackend, room: RoomId, language: Language) -> Result<Self, Refused> {
        let (channel_key, membership) = backend.room_to_read(&room)?;
        Ok(Self { backend, room, channel_key, membership, language, illegible: Mutex::default() })
    }

    pub(super) async fn explain(&self, companion: Option<&str>, at: Option<WhyAt>) -> Result<Why, Refused> {
        if let Some(WhyAt::Message(id)) = &at {
            let companion = companion.map(|name| self.find_companion(name));
            return self.said(id, companion).await;
        }
        let companion = self.requested_companion(companion)?;
        match (at, companion) {
            (at, Some(id)) => self.one(id, at.as_ref()).await,
            (Some(WhyAt::Event(seq)), None) => match self.first_after(seq, None).await? {
                Some(decided) if companions_of(&decided).len() == 1 => {
                    self.one(companions_of(&decided)[0].clone(), Some(&WhyAt::Event(seq))).await
                }
                Some(decided) => self.each_of(&decided).await,
                None => Err(self.nothing_decided(seq)),
            },
            (at, None) => self.everybody(at.as_ref()).await,
        }
    }

    /// The readable events of a range. Unreadable ones are collected, and mentioned at the end of the explanation.
    async fn entries(&self, range: Range) -> Result<Legible, ReadError> {
        let page = self.reader().legible(&self.channel_key, range).await?;
        self.illegible.lock().extend(&page.illegible);
        Ok(page)
    }

    /// A line saying that the explanation may be incomplete, if events could not be read.
    pub(super) fn unreadable_line(&self) -> Option<StoryLine> {
        let illegible = self.illegible.lock();
        let first = *illegible.first()?;
        let text = self.language.say("why.unreadable", &[("first", &first), ("count", &illegible.len())]);
        let at = self.backend.context.clock.now().into();
        Some(StoryLine { at, seq: Some(first), event: "illegible".into(), text, setting: None })
    }

    /// The current limits of the companion's models: a message that a filter refused in this room, or a smaller context than the settings allow.
    fn about_models(&self, who: &Subject) -> Vec<StoryLine> {
        let ActorContext { pool, settings, .. } = &self.backend.context;
        let prompt = &settings.prompt;
        let name = who.settings.as_ref().map(|settings| &settings.model.main);
        let room = name.and_then(|name| pool.prompt_room(ModelRole::Main, name, prompt.max_main_answer_tokens));
        let small = room.filter(|room| *room < prompt.statement_tokens).map(|room| {
            let text = who.say("why.models.small", &[("tokens", &room)]);
            StoryLine { setting: Some("prompt.statement_tokens".into()), ..self.current_line("context", text) }
        });
        self.last_refusal("why.models.refused").into_iter().chain(small).collect()
    }

    /// The last refusal by a filter in this room, in the endpoint's words, unless the room was answered since.
    /// `usual` is the text for a refusal of single messages.
    fn last_refusal(&self, usual: &'static str) -> Option<StoryLine> {
        let refusal = self.backend.context.pool.refusal(&self.channel_key)?;
        let text = if refusal.refuses_all { "why.models.refuses_all" } else { usual };
        Some(self.current_line("filter", self.language.say(text, &[("detail", &refusal.detail)])))
    }

    /// A line about the present.
    fn current_line(&self, event: &str, text: String) -> StoryLine {
        let at = self.backend.context.clock.now().into();
        StoryLine { at, seq: None, event: event.into(), text, setting: None }
    }

    fn reader(&self) -> Reader<'_> {
        self.backend.reader()
    }

    fn who(&self, id: &CompanionId) -> Subject {
        let settings = self.backend.context.memberships.companion(&self.channel_key.channel, id);
        let name = settings.as_ref().map_or_else(|| capitalised(id.as_str()).into(), |settings| settings.name.clone());
        Subject { id: id.clone(), name, is_external: self.membership.is_external(id), settings, language: self.language }
    }

    fn room_name(&self) -> Arc<str> {
        self.backend.name_of(&self.room)
    }

    /// A companion's name in this room.
    fn name(&self, id: &CompanionId) -> String {
        self.who(id).name.to_string()
    }

    /// Quotes a message with its author and addressees. `None` if the event is no message.
    fn quoted(&self, recorded: &Recorded) -> Option<StoryLine> {
        words::quoted(recorded, &|id| self.name(id), self.language)
    }

    /// The companion in the query. `None`: all companions.
    fn requested_companion(&self, name: Option<&str>) -> Result<Option<CompanionId>, Refused> {
        let Some(name) = name else {
            return match self.membership.companions.len() {
                0 => Err(invalid(
                    "companion",
                    format!("room {} has no companions; name one that was there before", self.room_name()),
                )),
                1 => Ok(self.membership.companions.first().cloned()),
                _ => Ok(None),
            };
        };
        Ok(Some(self.find_companion(name)))
    }

    /// The companion with this id, name or alias.
    fn find_companion(&self, text: &str) -> CompanionId {
        let has_name = |companion: &Companion| companion.names().any(|name| name.to_lowercase() == text.to_lowercase());
        let has_id = |id: &&CompanionId| id.as_str() == text;
        let members = self.membership.companions.iter();
        let is_named = |id: &&CompanionId| self.who(id).settings.as_ref().is_some_and(has_name);
        let found = members.clone().find(has_id).or_else(|| members.clone().find(is_named)).cloned();
        // A companion that has left has a history here, too.
        let former = || {
            self.backend
                .context
                .memberships
                .companions()
                .values()
                .find(|companion| has_name(companion))
                .map(|companion| companion.id.clone())
        };
        found.or_else(former).unwrap_or_else(|| text.into())
    }

    /// The explanation of one companion's newest decision, or of the decision in the query, and what the companion is waiting for.
    async fn one(&self, id: CompanionId, at: Option<&WhyAt>) -> Result<Why, Refused> {
        let who = self.who(&id);
        let decision = self.decision(&id, at).await?;
        if decision.is_none() && !self.membership.companions.contains(&id) {
            return Err(self.not_here(&id));
        }
        let mut why = match &decision {
            Some(recorded) => self.story(&who, recorded).await?,
            None => Why::default(),
        };
        if at.is_none() {
            let since = decision.as_ref().map_or(Seq::NONE, |recorded| recorded.seq);
            let in_story: BTreeSet<_> = why.story.iter().filter_map(|line| line.seq).collect();
            let later = self.since(since, &who).await?;
            why.story.extend(later.into_iter().filter(|line| line.seq.is_none_or(|seq| !in_story.contains(&seq))));
            let current = self.backend.current_state(&self.channel_key).await?;
            why.story.extend(decision.as_ref().and_then(|decided| self.over_since(decided, &current.inspection)));
            why.story.extend(self.about_models(&who));
            in_order(&mut why.story);
            let waiting = self.waiting_for(&who, &current).await;
            why.waiting_for = self.once_allowed(decision.as_ref(), waiting).await?;
        }
        why.name = Some(who.name);
        why.companion = Some(id);
        Ok(why)
    }

    /// The newest decision of every companion that is present, in short form, up to a moment or now.
    async fn everybody(&self, at: Option<&WhyAt>) -> Result<Why, Refused> {
        let newest = self.newest(&self.membership.companions, at).await?;
        let current = if at.is_none() { Some(self.backend.current_state(&self.channel_key).await?) } else { None };
        let mut companions = Vec::new();
        for id in &self.membership.companions {
            let who = self.who(id);
            let mut brief = self.brief(&who, newest.get(id)).await?;
            if let Some(current) = &current {
                let waiting = self.waiting_for(&who, current).await;
                brief.waiting_for = self.once_allowed(newest.get(id), waiting).await?;
            }
            companions.push(brief);
        }
        Ok(Why { companions, ..Why::default() })
    }

    /// An event that decides for several companions, in short form.
    async fn each_of(&self, decided: &Recorded) -> Result<Why, Refused> {
        let mut companions = Vec::new();
        for id in companions_of(decided) {
            companions.push(self.brief(&self.who(id), Some(decided)).await?);
        }
        Ok(Why { companions, ..Why::default() })
    }

    async fn brief(&self, who: &Subject, recorded: Option<&Recorded>) -> Result<Brief, ReadError> {
        let (companion, name) = (who.id.clone(), who.name.clone());
        let brief = Brief { companion, name, outcome: None, text: String::new(), seq: None, at: None, waiting_for: None };
        let Some((recorded, Event::Decided(decided))) = recorded.map(|recorded| (recorded, &recorded.event)) else {
            return Ok(Brief { text: who.say("why.nothing_decided", &[]), ..brief });
        };
        let mut text = self.decided(who, recorded, decided).await?.text;
        if decided.decision == Decision::Yes
            && let Some(outcome) = self.outcome_line(recorded, who).await?
        {
            text = format!("{text} {}", outcome.text);
        }
        Ok(Brief { text, seq: Some(recorded.seq), at: Some(recorded.at.into()), ..brief })
    }

    /// The decision and its reason.
    async fn decided(&self, who: &Subject, recorded: &Recorded, decided: &Decided) -> Result<Told, ReadError> {
        // Only the sentences for these reasons refer to earlier messages.
        let before = match decided.reason {
            Reason::LoopGuard | Reason::OtherAddressed => self.before(recorded.seq).await?,
            _ => Vec::new(),
        };
        Ok(words::decision(who, decided, &before, &|id| self.name(id)))
    }

    fn not_here(&self, id: &CompanionId) -> Refused {
        let present: Vec<_> = self.membership.companions.iter().map(CompanionId::as_str).collect();
        let present = if present.is_empty() { "nobody".to_owned() } else { present.join(", ") };
        Refused::not_found(format!("{id} is not in room {}, and has no history there; present: {present}", self.room_name()))
    }

    fn nothing_decided(&self, seq: Seq) -> Refused {
        Refused::not_found(format!(
            "nothing was decided in room {} from event {seq} on; GET /api/decisions?room={} lists what was",
            self.room_name(),
            self.room
        ))
    }
}

fn companions_of(recorded: &Recorded) -> &[CompanionId] {
    let Event::Decided(decided) = &recorded.event else { return &[] };
    &decided.companions
}

/// The newest decision of each companion.
type Newest = BTreeMap<CompanionId, Recorded>;
