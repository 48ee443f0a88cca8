//! Explains the outcome of a message for every companion that was present.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::quarantine::retry_id;
use super::super::state::CurrentState;
use super::Scene;
use super::finding::{MAX_SEARCHED, Search};
use super::story::{in_order, question};
use crate::domain::decision::{Decision, Reason};
use crate::domain::event::{Event, Recorded};
use crate::domain::filter::FILTERED;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::Role;
use crate::journal::reader::ReadError;
use crate::journal::redaction::is_redacted;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{Brief, Outcome, StoryLine, Why, WhyAt};
use crate::story::Subject;
use crate::story::fates::{Fate, Fates};
use crate::story::words::{Told, fate as words, loop_guard, lore, question_line, voice_note};

/// A message, and its outcomes in the record.
struct Found {
    message: Recorded,
    fates: Fates,
    /// Whether the record was read to its end.
    is_read: bool,
    /// The error, if the message is a dead letter.
    dead_letter: Option<Arc<str>>,
    /// The number of its copy, if the message is a dead letter that was retried.
    retried_as: Option<Seq>,
    /// The models whose filters refuse it.
    refused_by: BTreeSet<Arc<str>>,
}

impl Scene<'_> {
    /// The outcome of the message with this number or id: for one companion with the whole explanation of its decision, or for all companions in
    /// short form.
    pub(super) async fn message(&self, id: &str, companion: Option<CompanionId>) -> Result<Why, Refused> {
        let message = self.message_of(id).await?;
        let seq = message.seq;
        let companions = companion.as_ref().map_or_else(|| self.membership.companions.clone(), |id| BTreeSet::from([id.clone()]));
        let mut found = self.follow(message, companions, companion.is_some()).await?;
        let current = self.backend.current_state(&self.channel_key).await?;
        let filtered = current.inspection.conversation.filtered().found().filter(|(_, _, refused)| *refused == seq);
        found.refused_by = filtered.map(|(_, model, _)| model.clone()).collect();
        let mut briefs = Vec::new();
        for id in found.fates.companions() {
            briefs.push(self.brief_fate(&self.who(id), &found, &current).await?);
        }
        let [brief] = &briefs[..] else {
            let mut story = self.around(&found).await?;
            story.extend(self.refusals(&found));
            return Ok(Why { message: Some(seq), story, companions: briefs, ..Why::default() });
        };
        let id = brief.companion.clone();
        if brief.outcome == Some(Outcome::Absent) && !self.membership.companions.contains(&id) {
            let earliest = self.decision(&id, Some(&WhyAt::Event(Seq::NONE))).await?;
            earliest.ok_or_else(|| self.not_here(&id))?;
        }
        let who = self.who(&id);
        let mut why = match brief.seq {
            Some(decision) => match self.reader().event(&self.channel_key, decision).await? {
                Some(decided) => self.story(&who, &decided).await?,
                None => Why::default(),
            },
            None => {
                let mut story = self.around(&found).await?;
                if brief.outcome == Some(Outcome::Waiting) {
                    story.extend(self.since(seq, &who).await?);
                }
                Why { story, waiting_for: brief.waiting_for.clone(), ..Why::default() }
            }
        };
        // A message that arrived between a YES and the statement was not part of the decision.
        if !why.story.iter().any(|line| line.seq == Some(seq)) {
            why.story.splice(..0, self.around(&found).await?);
        }
        why.story.extend(self.refusals(&found));
        in_order(&mut why.story);
        (why.message, why.name, why.companion, why.companions) = (Some(seq), Some(who.name), Some(id), briefs);
        Ok(why)
    }

    pub(super) async fn message_of(&self, id: &str) -> Result<Recorded, Refused> {
        let reader = self.reader();
        let at = |seq| reader.event(&self.channel_key, seq);
        let is_message = |recorded: &Recorded| matches!(recorded.event, Event::Said { .. });
        if let Some(seq) = id.parse().ok().map(Seq)
            && let Some(recorded) = at(seq).await?.filter(is_message)
        {
            return Ok(recorded);
        }
        if let Some(seq) = reader.message(&self.channel_key, id).await?
            && let Some(recorded) = at(seq).await?.filter(is_message)
        {
            return Ok(recorded);
        }
        let head = reader.head(&self.channel_key).await?;
        let what = match id.parse().ok().map(Seq) {
            Some(seq) if seq >= head.swept_below && seq <= head.last && seq > Seq::NONE => {
                "is the number of an event that is not a message"
            }
            _ => "is not the number or id of a message",
        };
        let room = &self.room;
        Err(Refused::not_found(format!(
            "in room {}, whose last event is {}, {id:?} {what}; GET /api/rooms/{room}/history lists its messages",
            self.room_name(),
            head.last
        )))
    }

    async fn follow(&self, message: Recorded, companions: BTreeSet<CompanionId>, is_one: bool) -> Result<Found, ReadError> {
        let mut fates = Fates::new(&message, companions, is_one);
        let mut search = Search::after(message.seq);
        while !fates.is_over()
            && let Some(events) = search.next(self).await?
        {
            fates.read(events, search.is_over());
        }
        let dead_letter = self.reader().dead_letter(&self.channel_key, message.seq).await?.map(|record| record.error);
        let retried_as = match (&dead_letter, self.reader().channel_no(&self.channel_key).await?) {
            (Some(_), Some(no)) => {
                self.reader().message(&self.channel_key, &retry_id(self.channel_key.ward(), no, message.seq)).await?
            }
            _ => None,
        };
        Ok(Found { message, fates, is_read: search.is_read, dead_letter, retried_as, refused_by: BTreeSet::new() })
    }

    /// The message itself, and its outcome.
    async fn around(&self, found: &Found) -> Result<Vec<StoryLine>, ReadError> {
        let mut story: Vec<_> = self.quoted(&found.message).into_iter().collect();
        for recorded in found.fates.changes() {
            story.extend(words::changed(recorded, found.retried_as, self.language));
        }
        if let Some(error) = &found.dead_letter {
            let told = Told::new(self.language, "why.message.dead_letter", &[("error", error)]);
            story.push(StoryLine { seq: None, ..told.line(&found.message, "dead_letter") });
        }
        if let Event::Said { message, .. } = &found.message.event {
            story.extend(voice_note(message, self.language).map(|told| told.line(&found.message, "voice_note")));
            story.extend(self.recalled(&message.recalled).await?);
            story.extend(lore(&found.message, self.language));
        }
        Ok(story)
    }

    /// A line for each model whose filter refuses the message, and the endpoint's words if the message was not answered because of a filter.
    fn refusals<'a>(&'a self, found: &'a Found) -> impl Iterator<Item = StoryLine> + 'a {
        let told = |model: &Arc<str>| Told::new(self.language, "why.message.filtered", &[("model", model)]);
        let lines =
            found.refused_by.iter().map(move |model| StoryLine { seq: None, ..told(model).line(&found.message, "filter") });
        lines.chain(if found.is_filtered() { self.last_refusal("why.models.last_refused") } else { None })
    }

    async fn brief_fate(&self, who: &Subject, found: &Found, current: &CurrentState) -> Result<Brief, ReadError> {
        let (companion, name) = (who.id.clone(), who.name.clone());
        let brief = |outcome, text| Brief {
            companion: companion.clone(),
            name: name.clone(),
            outcome: Some(outcome),
            text,
            seq: None,
            at: None,
            waiting_for: None,
        };
        let at = |recorded: &Recorded| Some(recorded.at.into());
        let asked = found.fates.asked(&who.id);
        let yes_to_it = asked.flatten();
        Ok(match found.fates.fate(&who.id) {
            Fate::Own => Brief { at: at(&found.message), ..brief(Outcome::Own, who.say("why.fate.own", &[])) },
            Fate::Silent(recorded) => {
                let text = self.silent(who, recorded, found).await?;
                Brief { seq: Some(recorded.seq), at: at(recorded), ..brief(Outcome::Silent, text) }
            }
            Fate::Owed { owed, yes, ending, .. } => {
                let (mut outcome, mut text) = words::owed(who, ending.as_deref(), found.is_read);
                if let Some(Recorded { event: Event::Said { message, .. }, seq, .. }) = ending.as_deref()
                    && is_redacted(message)
                    && let Some(standing) = self.standing(*seq).await?
                {
                    (outcome, text) = (Outcome::Answered, words::replaced(who, &standing));
                }
                let seq = match yes {
                    Some(yes) => Some(*yes),
                    None => self.yes_before(who, owed).await?,
                };
                let because = match seq {
                    Some(yes) if outcome == Outcome::Answered => self.because(who, yes).await?,
                    _ => None,
                };
                let text = because.into_iter().chain([text]).collect::<Vec<_>>().join(" ");
                Brief { seq, at: at(ending.as_deref().unwrap_or(owed)), ..brief(outcome, text) }
            }
            Fate::Lost(recorded) => {
                let (outcome, text) = words::lost(who, &recorded.event, asked.is_some(), found.retried_as);
                let seq = yes_to_it.filter(|_| outcome != Outcome::Absent);
                Brief { seq, at: at(recorded), ..brief(outcome, text) }
            }
            Fate::Open => self.open(who, found, current, brief).await,
        })
    }

    /// The text that stands in the place of a statement, if it was replaced.
    async fn standing(&self, statement: Seq) -> Result<Option<Arc<str>>, ReadError> {
        let (mut place, mut replacing, mut text) = (statement, BTreeSet::new(), None);
        let mut search = Search::after(statement);
        while let Some(events) = search.next(self).await? {
            for recorded in events {
                match recorded.event {
                    Event::ReplyOwed { ticket, again: Some(again), .. } if again == place => drop(replacing.insert(ticket)),
                    Event::Said { message, reply: Some(reply), .. } if replacing.contains(&reply) => {
                        (place, text) = (recorded.seq, Some(message.text.clone()).filter(|_| !is_redacted(&message)));
                    }
                    _ => {}
                }
            }
        }
        Ok(text)
    }

    /// The sentence about a decision. Of several companions by the loop guard, it is the same for all.
    async fn silent(&self, who: &Subject, recorded: &Recorded, found: &Found) -> Result<String, ReadError> {
        let Event::Decided(decided) = &recorded.event else { return Ok(String::new()) };
        let told = if decided.reason == Reason::LoopGuard {
            let is_guarded = |event: &Event| matches!(event, Event::Decided(decided) if decided.reason == Reason::LoopGuard);
            let is_of_all = |id: &&CompanionId| matches!(found.fates.fate(id), Fate::Silent(of) if of.at == recorded.at && is_guarded(&of.event));
            let names: Vec<_> = found.fates.companions().filter(is_of_all).map(|id| self.name(id)).collect();
            loop_guard(&names, &self.before(recorded.seq).await?, self.language)
        } else {
            self.decided(who, recorded, decided).await?
        };
        let rule = self.rule(who, recorded, decided).map(|line| line.text);
        Ok([told.text].into_iter().chain(rule).collect::<Vec<_>>().join(" "))
    }

    /// No event on record settles the message.
    async fn open(
        &self,
        who: &Subject,
        found: &Found,
        current: &CurrentState,
        brief: impl Fn(Outcome, String) -> Brief,
    ) -> Brief {
        let seq = found.message.seq;
        if found.dead_letter.is_some() {
            return brief(Outcome::DeadLetter, who.say("why.fate.dead_letter", &[]));
        }
        let conversation = &current.inspection.conversation;
        if let Some(gate) = conversation.gate(&who.id).filter(|_| conversation.buffer(&who.id).any(|entry| entry.seq == seq)) {
            let waiting_for = self.waiting_for(who, current).await;
            let turns = conversation.turns();
            let speaks = turns.owed_replies().any(|floor| floor.companion == who.id)
                || turns.selected().is_some_and(|turn| turn.candidate.companion == who.id);
            let has_begun = speaks || gate.evaluation.is_some() || gate.wish.is_some() || gate.retry_at().is_some();
            let text = match &waiting_for {
                Some(waiting) if has_begun => waiting.text.clone(),
                Some(waiting) => who.say("why.fate.waiting", &[("waiting", &waiting.text)]),
                None => who.say("why.fate.unconfigured", &[]),
            };
            // The companion may have wanted to speak without getting the floor yet.
            return Brief { seq: found.fates.newest_yes(&who.id), waiting_for, ..brief(Outcome::Waiting, text) };
        }
        if conversation.handled() < seq {
            let key = match (self.is_served(), &current.out_of_service) {
                (false, _) => "why.fate.unread_stopped",
                (true, None) => "why.fate.unread",
                (true, Some(_)) => "why.fate.unread_suspended",
            };
            return brief(Outcome::Waiting, who.say(key, &[]));
        }
        if !found.is_read {
            return brief(Outcome::Unknown, who.say("why.fate.not_mentioned", &[("count", &MAX_SEARCHED)]));
        }
        if found.is_redacted() {
            return brief(Outcome::Deleted, who.say("why.fate.deleted", &[]));
        }
        brief(Outcome::Absent, who.say("why.fate.absent", &[]))
    }

    /// Why the companion wanted to answer.
    async fn because(&self, who: &Subject, yes: Seq) -> Result<Option<String>, ReadError> {
        let Some(recorded) = self.reader().event(&self.channel_key, yes).await? else { return Ok(None) };
        let Event::Decided(decided) = &recorded.event else { return Ok(None) };
        let before = self.before(yes).await?;
        let asked = question(&before, decided).map(|(asked, evaluated)| question_line(who, asked, evaluated, &before).text);
        // The model's own reason says more than that the companion wanted to speak.
        let has_reason = decided.why.is_some() || asked.is_none();
        let decided = if has_reason { Some(self.decided(who, &recorded, decided).await?.text) } else { None };
        Ok(Some(asked.into_iter().chain(decided).collect::<Vec<_>>().join(" ")))
    }

    async fn yes_before(&self, who: &Subject, owed: &Recorded) -> Result<Option<Seq>, ReadError> {
        let before = self.before(owed.seq).await?;
        let is_yes = |earlier: &&Recorded| matches!(&earlier.event, Event::Decided(decided) if decided.decision == Decision::Yes && decided.companions.contains(&who.id));
        Ok(before.iter().rev().find(is_yes).map(|yes| yes.seq))
    }
}

impl Found {
    /// Whether a filter refuses the message, or refused a question about it.
    fn is_filtered(&self) -> bool {
        let is_refusal = |recorded: &Recorded| match &recorded.event {
            Event::Decided(decided) => decided.reason == Reason::Filtered,
            Event::ReplyFailed { error, .. } => **error == *FILTERED,
            _ => false,
        };
        let mut fates = self.fates.companions().map(|id| self.fates.fate(id));
        !self.refused_by.is_empty()
            || fates.any(|fate| match fate {
                Fate::Silent(recorded) | Fate::Owed { ending: Some(recorded), .. } => is_refusal(recorded),
                Fate::Open | Fate::Own | Fate::Owed { ending: None, .. } | Fate::Lost(_) => false,
            })
    }

    fn is_redacted(&self) -> bool {
        matches!(&self.message.event, Event::Said { message, .. } if message.from.role != Role::Companion && message.text.is_empty())
    }
}
