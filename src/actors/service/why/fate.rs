//! What became of a message, for everybody who was there.

mod course;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::desk::unread;
use super::super::quarantine::again_as;
use super::super::state::Stand;
use super::story::in_order;
use super::words::{cut, decided_because, failed, line, together_with};
use super::{Scene, Who};
use crate::domain::decision::Reason;
use crate::domain::event::{Decided, Event, Recorded};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::Role;
use crate::journal::reader::{Range, ReadError};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{Brief, Outcome, StoryLine, Why, WhyAt};
use course::{Course, Fate};

/// Events that are read after a message to find what became of it.
const SEARCHED: usize = 16_384;
/// Events read at once.
const PAGE: usize = 256;

/// A message, and what the record tells of it.
struct Found {
    message: Recorded,
    course: Course,
    /// The record was read to its end.
    is_read: bool,
    /// Why it was set aside, if it was.
    dead_letter: Option<Arc<str>>,
    /// As which message it was tried again, if it was.
    again: Option<Seq>,
}

impl Scene<'_> {
    /// What became of the message with this number or id: for one companion with the whole story of its decision, or for everybody in short.
    pub(super) async fn message(&self, id: &str, whose: Option<CompanionId>) -> Result<Why, Refused> {
        let message = self.message_of(id).await?;
        let seq = message.seq;
        let companions = whose.as_ref().map_or_else(|| self.membership.companions.clone(), |id| BTreeSet::from([id.clone()]));
        let found = self.follow(message, companions, whose.is_some()).await.map_err(unread)?;
        let stand = self.backend.stand(&self.channel_key).await.map_err(unread)?;
        let mut briefs = Vec::new();
        for id in found.course.companions() {
            briefs.push(self.brief_fate(&self.who(id), &found, &stand).await.map_err(unread)?);
        }
        let [brief] = &briefs[..] else {
            let story = self.around(&found);
            return Ok(Why { message: Some(seq), story, companions: briefs, ..Why::default() });
        };
        let id = brief.companion.clone();
        if brief.outcome == Some(Outcome::Absent) && !self.membership.companions.contains(&id) {
            let known = self.decision(&id, Some(&WhyAt::Event(Seq::NONE))).await.map_err(unread)?;
            known.ok_or_else(|| self.not_here(&id))?;
        }
        let who = self.who(&id);
        let mut why = match brief.seq {
            Some(decision) => match self.reader().event(&self.channel_key, decision).await.map_err(unread)? {
                Some(decided) => self.story(&who, &decided).await.map_err(unread)?,
                None => Why::default(),
            },
            None => {
                let mut story = self.around(&found);
                if brief.outcome == Some(Outcome::Waiting) {
                    story.extend(self.since(seq, &who).await.map_err(unread)?);
                }
                Why { story, waiting_for: brief.waiting_for.clone(), ..Why::default() }
            }
        };
        // A message that came between a YES and the words is not among those that were decided about.
        if !why.story.iter().any(|line| line.seq == Some(seq)) {
            why.story.splice(..0, self.around(&found));
        }
        in_order(&mut why.story);
        (why.message, why.name, why.companion, why.companions) = (Some(seq), Some(who.name), Some(id), briefs);
        Ok(why)
    }

    async fn message_of(&self, id: &str) -> Result<Recorded, Refused> {
        let reader = self.reader();
        let at = |seq| reader.event(&self.channel_key, seq);
        let is_message = |recorded: &Recorded| matches!(recorded.event, Event::Said { .. });
        if let Some(seq) = id.parse().ok().map(Seq)
            && let Some(recorded) = at(seq).await.map_err(unread)?.filter(is_message)
        {
            return Ok(recorded);
        }
        if let Some(seq) = reader.message(&self.channel_key, id).await.map_err(unread)?
            && let Some(recorded) = at(seq).await.map_err(unread)?.filter(is_message)
        {
            return Ok(recorded);
        }
        let head = reader.head(&self.channel_key).await.map_err(unread)?;
        let what = match id.parse().ok().map(Seq) {
            Some(seq) if seq >= head.swept_below && seq <= head.last && seq > Seq::NONE => "is not a message's",
            _ => "is known as no message's",
        };
        let room = &self.room;
        Err(Refused::NotFound(format!(
            "in room {room}, whose last event is {}, {id:?} {what} number or id; GET /api/rooms/{room}/history lists its messages",
            head.last
        )))
    }

    async fn follow(&self, message: Recorded, companions: BTreeSet<CompanionId>, is_one: bool) -> Result<Found, ReadError> {
        let mut course = Course::new(&message, companions, is_one);
        let mut range = Range { after: message.seq, before: None, limit: PAGE, newest_first: false };
        let (mut read, mut is_read) = (0, false);
        while read < SEARCHED && !is_read && !course.is_over() {
            let page = self.entries(range).await?;
            read += page.looked_at();
            is_read = page.looked_at() < PAGE;
            range.after = page.last.unwrap_or(range.after);
            for recorded in &page.events {
                course.follow(recorded);
            }
        }
        let dead_letter = self.reader().dead_letter(&self.channel_key, message.seq).await?.map(|record| record.error);
        let again = match (&dead_letter, self.reader().channel_no(&self.channel_key).await?) {
            (Some(_), Some(no)) => {
                self.reader().message(&self.channel_key, &again_as(self.channel_key.ward(), no, message.seq)).await?
            }
            _ => None,
        };
        Ok(Found { message, course, is_read, dead_letter, again })
    }

    /// The message itself, and what happened to it.
    fn around(&self, found: &Found) -> Vec<StoryLine> {
        let mut story: Vec<_> = self.quoted(&found.message).into_iter().collect();
        for recorded in found.course.changes() {
            let text = match (&recorded.event, found.again) {
                (Event::Edited { text, .. }, _) if text.is_empty() => continue,
                (Event::Edited { text, .. }, _) => format!("It was changed: “{}”", cut(text)),
                (_, Some(again)) => format!("It was tried again, as message {again}, which has its words now."),
                (_, None) => "It was taken back or forgotten.".to_owned(),
            };
            story.push(line(recorded, "changed", text));
        }
        if let Some(error) = &found.dead_letter {
            let text = format!("It was set aside, because whoever handled it died of it: {error}.");
            story.push(StoryLine { at: found.message.at.into(), seq: None, event: "set_aside".into(), text });
        }
        story
    }

    async fn brief_fate(&self, who: &Who, found: &Found, stand: &Stand) -> Result<Brief, ReadError> {
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
        let asked = found.course.asked(&who.id);
        let yes_to_it = asked.flatten();
        Ok(match found.course.fate(&who.id) {
            Fate::Own => Brief { at: at(&found.message), ..brief(Outcome::Own, "It said this itself.".into()) },
            Fate::Silent(recorded, decided) => {
                let text = self.silent(who, recorded, decided).await?;
                Brief { seq: Some(recorded.seq), at: at(recorded), ..brief(Outcome::Silent, text) }
            }
            Fate::Owed { owed, yes, ending } => {
                let messages = if let Event::ReplyOwed { messages, .. } = &owed.event { &messages[..] } else { &[] };
                let together = together_with(messages);
                let (outcome, text) = match ending.as_ref().map(|ending| &ending.event) {
                    Some(Event::Said { message, .. }) if is_redacted(message) => (
                        Outcome::Answered,
                        format!("It answered it{together}, with something that was taken back or forgotten since."),
                    ),
                    Some(Event::Said { message, .. }) => {
                        (Outcome::Answered, format!("It answered it{together}: “{}”", cut(&message.text)))
                    }
                    Some(Event::ReplyFailed { error, .. }) => (
                        Outcome::Failed,
                        format!("It got the floor to answer it{together}, and no statement was made ({}).", failed(error)),
                    ),
                    Some(Event::Deleted { .. }) => (
                        Outcome::Deleted,
                        format!("It was about to answer it{together}, and all of that was taken back or forgotten before."),
                    ),
                    Some(
                        Event::Edited { .. }
                        | Event::Joined { .. }
                        | Event::Left { .. }
                        | Event::Paused { .. }
                        | Event::Cleared
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
                        | Event::RoundClosed(_)
                        | Event::RepetitionAsked { .. }
                        | Event::RepetitionJudged { .. }
                        | Event::ReplyOwed { .. }
                        | Event::Summarised { .. },
                    ) => (Outcome::Cleared, format!("It was about to answer it{together}, and was stopped before.")),
                    None if found.is_read => {
                        (Outcome::Speaking, format!("It has the floor to answer it{together}, and has not spoken yet."))
                    }
                    None => {
                        (Outcome::Unknown, format!("It got the floor to answer it{together}; the record is not read further."))
                    }
                };
                let seq = match yes {
                    Some(yes) => Some(*yes),
                    None => self.yes_before(who, owed).await?,
                };
                Brief { seq, at: at(ending.as_deref().unwrap_or(owed)), ..brief(outcome, text) }
            }
            Fate::Deleted(recorded) => {
                let text = match found.again {
                    Some(again) => format!("It was set aside, and tried again as message {again}: ask what became of that."),
                    None if asked.is_some() => {
                        "It was being asked about it, or about to answer it, when it was taken back or forgotten.".to_owned()
                    }
                    None => "It was taken back or forgotten before it was considered.".to_owned(),
                };
                Brief { seq: yes_to_it, at: at(recorded), ..brief(Outcome::Deleted, text) }
            }
            Fate::Cleared(recorded) => {
                let text = match asked {
                    Some(_) => "It was being asked about it, or about to answer it, when the room was cleared.".to_owned(),
                    None => "The room was cleared before it was considered: what waited was dropped.".to_owned(),
                };
                Brief { seq: yes_to_it, at: at(recorded), ..brief(Outcome::Cleared, text) }
            }
            Fate::Left(recorded) => {
                let text = match asked {
                    Some(_) => "It was being asked about it, or about to answer it, when it left the room.".to_owned(),
                    None => "It left the room before it was considered.".to_owned(),
                };
                Brief { seq: yes_to_it, at: at(recorded), ..brief(Outcome::Left, text) }
            }
            Fate::CameLater(recorded) => {
                let text = "It came into the room only later; a companion begins at what is newest then.".to_owned();
                Brief { at: at(recorded), ..brief(Outcome::Absent, text) }
            }
            Fate::Open => self.open(who, found, stand, brief).await,
        })
    }

    async fn silent(&self, who: &Who, recorded: &Recorded, decided: &Decided) -> Result<String, ReadError> {
        let mut text =
            format!("It stayed silent on it{}. {}", together_with(&decided.messages), decided_because(&who.name, decided));
        // Only this rule looks back.
        let before = if decided.reason == Reason::Budget { self.before(recorded.seq).await? } else { Vec::new() };
        text.extend(self.rule(who, recorded, decided, &before).into_iter().flat_map(|rule| [" ".to_owned(), rule]));
        Ok(text)
    }

    /// Nothing on record settles it.
    async fn open(&self, who: &Who, found: &Found, stand: &Stand, brief: impl Fn(Outcome, String) -> Brief) -> Brief {
        let seq = found.message.seq;
        if found.dead_letter.is_some() {
            let text = "It was set aside: nobody is asked about it. GET /api/quarantine lists it; it can be tried again there.";
            return brief(Outcome::DeadLetter, text.into());
        }
        let conversation = &stand.look.conversation;
        if conversation.buffer(&who.id).any(|entry| entry.seq == seq) && conversation.gate(&who.id).is_some() {
            let waiting_for = self.waiting_for(who, stand).await;
            let text = waiting_for.as_ref().map_or_else(
                || "It is not settled yet, and nobody of this name is configured to consider it.".to_owned(),
                |waiting| Self::still_waits(waiting.unsettled, waiting),
            );
            // It may have wanted to speak, and lost the floor so far.
            return Brief { seq: found.course.newest_yes(&who.id), waiting_for, ..brief(Outcome::Waiting, text) };
        }
        if conversation.handled() < seq {
            let when = match (self.is_served(), &stand.kept_away) {
                (false, _) => "that happens once the server runs",
                (true, None) => "that happens in a moment",
                (true, Some(_)) => "that happens once something goes on in its room again (GET /api/quarantine)",
            };
            return brief(Outcome::Waiting, format!("It is stored, and was not handled yet; {when}."));
        }
        if !found.is_read {
            let text = format!("The {SEARCHED} events after it do not tell; it was most likely not in the room then.");
            return brief(Outcome::Unknown, text);
        }
        if found.message_is_bare() {
            return brief(Outcome::Deleted, "It was taken back or forgotten before it was considered.".into());
        }
        brief(Outcome::Absent, "It was not in the room then, as far as the record tells.".into())
    }

    async fn yes_before(&self, who: &Who, owed: &Recorded) -> Result<Option<Seq>, ReadError> {
        let before = self.before(owed.seq).await?;
        Ok(before.iter().rev().find(|earlier| course::is_yes(earlier, &who.id)).map(|yes| yes.seq))
    }
}

impl Found {
    fn message_is_bare(&self) -> bool {
        matches!(&self.message.event, Event::Said { message, .. } if message.from.role != Role::Companion && message.text.is_empty())
    }
}
