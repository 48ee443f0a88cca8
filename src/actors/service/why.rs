//! The story of a decision, in plain words, as the record tells it; what became of a message; and what a companion waits for now.
//!
//! * `finding`: which decision is meant, by its number, its time, or as the newest; every search is bounded.
//! * `story`: what led to a decision, and what became of it.
//! * `rows`: which row of the gate's table applied (docs/design/gate.md G-4).
//! * `rules`: the rules that decide without asking, and the ways out.
//! * `round`: a round, its votes and who was selected.
//! * `fate`: what became of a message for everybody.
//! * `waiting`: what a companion waits for now.
//! * `words`: one sentence for each thing that happened.

mod fate;
mod finding;
mod round;
mod rows;
mod rules;
mod story;
mod waiting;
mod sentences;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::ActorBackend;
use super::actor_calls::{invalid, read_error};
use crate::domain::decision::Decision;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::reader::{Legible, Range, ReadError, Reader};
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{Brief, StoryLine, Why, WhyAt, WhyQuery};
use crate::ports::backend::room::RoomId;
use crate::settings::companion::Companion;
use story::in_order;
use sentences::decided_because;

/// The room that a story is about.
struct Scene<'a> {
    backend: &'a ActorBackend,
    room: RoomId,
    channel_key: ChannelKey,
    membership: Membership,
    /// What cannot be read of the record, as far as it was looked through.
    illegible: Mutex<BTreeSet<Seq>>,
}

/// The companion whose story is told.
struct Who {
    id: CompanionId,
    name: Arc<str>,
    /// As it is in this room now, if it is known.
    settings: Option<Companion>,
    is_external: bool,
}

impl ActorBackend {
    pub(super) async fn explain(&self, query: WhyQuery) -> Result<Why, Refused> {
        let (channel_key, membership) = self.room_to_read(&query.room)?;
        let scene = Scene { backend: self, room: query.room, channel_key, membership, illegible: Mutex::default() };
        let mut why = scene.tell(query.companion.as_deref(), query.at).await?;
        why.story.extend(scene.not_told());
        Ok(why)
    }
}

impl Scene<'_> {
    async fn tell(&self, companion: Option<&str>, at: Option<WhyAt>) -> Result<Why, Refused> {
        if let Some(WhyAt::Message(id)) = &at {
            let whose = companion.map(|asked| self.called(asked));
            return self.message(id, whose).await;
        }
        let whose = self.whose(companion)?;
        match (at, whose) {
            (at, Some(id)) => self.one(id, at.as_ref()).await,
            (Some(WhyAt::Event(seq)), None) => match self.first_after(seq, None).await.map_err(read_error)? {
                Some(decided) if companions_of(&decided).len() == 1 => {
                    self.one(companions_of(&decided)[0].clone(), Some(&WhyAt::Event(seq))).await
                }
                Some(decided) => self.each_of(&decided).await,
                None => Err(self.nothing_decided(seq)),
            },
            (at, None) => self.everybody(at.as_ref()).await,
        }
    }

    /// What is on record here, as far as it can be read. What cannot be is told at the end.
    async fn entries(&self, range: Range) -> Result<Legible, ReadError> {
        let page = self.reader().legible(&self.channel_key, range).await?;
        self.illegible.lock().unwrap_or_else(PoisonError::into_inner).extend(&page.illegible);
        Ok(page)
    }

    /// That the story may lack something, if it may.
    fn not_told(&self) -> Option<StoryLine> {
        let illegible = self.illegible.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *illegible.first()?;
        let more = match illegible.len() - 1 {
            0 => String::new(),
            1 => " and 1 more".to_owned(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "Event {first}{more} of the record cannot be read and is left out here. `tertulia history verify` says what is wrong with it; put a \
             backup from before back, or delete the room."
        );
        Some(StoryLine { at: self.backend.context.clock.now().into(), seq: Some(first), event: "illegible".into(), text })
    }

    fn reader(&self) -> Reader<'_> {
        self.backend.reader()
    }

    fn who(&self, id: &CompanionId) -> Who {
        let settings = self.backend.context.memberships.companion(&self.channel_key.channel, id);
        let name = settings.as_ref().map_or_else(|| Arc::from(id.as_str()), |settings| settings.name.clone());
        Who { id: id.clone(), name, is_external: self.membership.is_external(id), settings }
    }

    /// What a companion is called here.
    fn name(&self, id: &CompanionId) -> String {
        self.who(id).name.to_string()
    }

    /// Whose story is asked for; none: everybody's.
    fn whose(&self, asked: Option<&str>) -> Result<Option<CompanionId>, Refused> {
        let Some(asked) = asked else {
            return match self.membership.companions.len() {
                0 => Err(invalid("companion", format!("nobody lives in room {}; name a companion that did", self.room))),
                1 => Ok(self.membership.companions.first().cloned()),
                _ => Ok(None),
            };
        };
        Ok(Some(self.called(asked)))
    }

    /// The companion that goes by this id, name or alias.
    fn called(&self, asked: &str) -> CompanionId {
        let is_called = |companion: &Companion| companion.names().any(|name| name.to_lowercase() == asked.to_lowercase());
        let is_it = |id: &&CompanionId| id.as_str() == asked;
        let here = self.membership.companions.iter();
        let named = |id: &&CompanionId| self.who(id).settings.as_ref().is_some_and(is_called);
        let found = here.clone().find(is_it).or_else(|| here.clone().find(named)).cloned();
        // One that has left has a past here, too.
        let gone = || {
            self.backend
                .context
                .memberships
                .companions()
                .values()
                .find(|companion| is_called(companion))
                .map(|one| one.id.clone())
        };
        found.or_else(gone).unwrap_or_else(|| asked.into())
    }

    /// The newest decision of one companion, or the one that is named, and what it waits for now.
    async fn one(&self, id: CompanionId, at: Option<&WhyAt>) -> Result<Why, Refused> {
        let who = self.who(&id);
        let asked = self.decision(&id, at).await.map_err(read_error)?;
        if asked.is_none() && !self.membership.companions.contains(&id) {
            return Err(self.not_here(&id));
        }
        let mut why = match &asked {
            Some(recorded) => self.story(&who, recorded).await.map_err(read_error)?,
            None => Why::default(),
        };
        if at.is_none() {
            let since = asked.as_ref().map_or(Seq::NONE, |recorded| recorded.seq);
            let told: BTreeSet<_> = why.story.iter().filter_map(|line| line.seq).collect();
            let later = self.since(since, &who).await.map_err(read_error)?;
            why.story.extend(later.into_iter().filter(|line| line.seq.is_none_or(|seq| !told.contains(&seq))));
            let stand = self.backend.stand(&self.channel_key).await.map_err(read_error)?;
            why.story.extend(asked.as_ref().and_then(|decided| self.over_since(decided, &stand.look)));
            in_order(&mut why.story);
            let waiting = self.waiting_for(&who, &stand).await;
            why.waiting_for = self.once_allowed(asked.as_ref(), waiting).await.map_err(read_error)?;
        }
        why.name = Some(who.name);
        why.companion = Some(id);
        Ok(why)
    }

    /// In short: the newest decision of everybody who is present, up to a moment or now.
    async fn everybody(&self, at: Option<&WhyAt>) -> Result<Why, Refused> {
        let newest = self.newest(&self.membership.companions, at).await.map_err(read_error)?;
        let stand = if at.is_none() { Some(self.backend.stand(&self.channel_key).await.map_err(read_error)?) } else { None };
        let mut companions = Vec::new();
        for id in &self.membership.companions {
            let who = self.who(id);
            let mut brief = self.brief(&who, newest.get(id)).await.map_err(read_error)?;
            if let Some(stand) = &stand {
                let waiting = self.waiting_for(&who, stand).await;
                brief.waiting_for = self.once_allowed(newest.get(id), waiting).await.map_err(read_error)?;
            }
            companions.push(brief);
        }
        Ok(Why { companions, ..Why::default() })
    }

    /// In short: one record that decides for several.
    async fn each_of(&self, decided: &Recorded) -> Result<Why, Refused> {
        let mut companions = Vec::new();
        for id in companions_of(decided) {
            companions.push(self.brief(&self.who(id), Some(decided)).await.map_err(read_error)?);
        }
        Ok(Why { companions, ..Why::default() })
    }

    async fn brief(&self, who: &Who, recorded: Option<&Recorded>) -> Result<Brief, ReadError> {
        let (companion, name) = (who.id.clone(), who.name.clone());
        let brief = Brief { companion, name, outcome: None, text: String::new(), seq: None, at: None, waiting_for: None };
        let Some((recorded, Event::Decided(decided))) = recorded.map(|recorded| (recorded, &recorded.event)) else {
            return Ok(Brief { text: "Nothing was decided yet.".into(), ..brief });
        };
        let mut text = decided_because(&who.name, decided);
        if decided.decision == Decision::Yes {
            let came_to = self.came_to(recorded, decided, who).await?;
            // What is quoted may have ended its own sentence.
            let is_open = text.strip_suffix('”').is_some_and(|quoted| !quoted.ends_with(['.', '!', '?', '…']));
            let stop = if is_open { ". " } else { " " };
            text.extend(came_to.iter().flat_map(|line| [stop, &*line.text]).map(str::to_owned));
        }
        Ok(Brief { text, seq: Some(recorded.seq), at: Some(recorded.at.into()), ..brief })
    }

    fn not_here(&self, id: &CompanionId) -> Refused {
        let present: Vec<_> = self.membership.companions.iter().map(CompanionId::as_str).collect();
        let present = if present.is_empty() { "nobody".to_owned() } else { present.join(", ") };
        Refused::NotFound(format!("{id} is not in room {}, and nothing is on record of it there; present: {present}", self.room))
    }

    fn nothing_decided(&self, seq: Seq) -> Refused {
        Refused::NotFound(format!(
            "nothing was decided in room {} from event {seq} on; GET /api/decisions?room={} lists what was",
            self.room, self.room
        ))
    }
}

fn companions_of(recorded: &Recorded) -> &[CompanionId] {
    let Event::Decided(decided) = &recorded.event else { return &[] };
    &decided.companions
}

/// The newest decision of each.
type Newest = BTreeMap<CompanionId, Recorded>;
