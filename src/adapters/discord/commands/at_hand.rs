//! `/tertulia stop`, `again` and `clear`, and the entries *Why?*, *Forget this* and *Answer again* in the menu of a message.

use std::sync::Arc;

use super::choosing::member;
use super::interaction::ChannelContext;
use super::members::may_change;
use super::why::decision_line;
use super::words::{self, listed, name};
use super::{Answer, CommandHandler, registered};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::Role;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{DecisionQuery, DecisionRecord, Outcome, Why, WhyAt, WhyQuery};
use crate::ports::backend::messages::HistoryQuery;
use crate::ports::backend::room::Room;
use crate::ports::inbound_events::InboundError;
use crate::snowflake::Snowflake;
use crate::texts::Language;

/// The number of decisions among which the one behind a statement is searched for.
const MOST_SEARCHED: usize = 100;
const NOBODY: &str = "No companion is here. `/tertulia status` says more.";
const UNKNOWN_MESSAGE: &str = "Companions do not know this message: they were not here, could not read it, or it was deleted.";

impl CommandHandler {
    /// Stops the replies in progress of one companion, or of all.
    pub(super) async fn stop(&self, typed: Option<&str>, here: &ChannelContext) -> Result<String, Answer> {
        may_write(here)?;
        let room = self.room(here).await?.ok_or_else(|| Answer::Refused(NOBODY.to_owned()))?;
        let chosen = match typed {
            Some(typed) => vec![member(&room, typed)?],
            None => room.companions.iter().collect(),
        };
        let mut stopped = Vec::new();
        for companion in chosen {
            match self.backend.messages.stop_reply(&room.id, &companion.id).await {
                Ok(()) => stopped.push(&companion.name),
                Err(Refused::Conflict(_)) => {}
                Err(refused) => return Err(refused.into()),
            }
        }
        if stopped.is_empty() {
            return Ok("Nobody is writing anything that could still be stopped.".to_owned());
        }
        Ok(format!("Stopped: {}.", listed(stopped.into_iter())))
    }

    /// Requests another answer in place of the newest one, or of `message` if that is the newest. Those whom it answers may, and managers.
    pub(super) async fn again(
        &self,
        message: Option<Snowflake>,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<String, Answer> {
        may_write(here)?;
        let unknown = || Answer::Refused(UNKNOWN_MESSAGE.to_owned());
        let (room, statement) = match message {
            Some(message) => {
                let (room, why) = self.look_up(message, here).await?.ok_or_else(unknown)?;
                (room, why.message.ok_or_else(unknown)?)
            }
            None => {
                let room = self.room(here).await?.ok_or_else(|| Answer::Refused(NOBODY.to_owned()))?;
                let newest = HistoryQuery { after: None, before: None, limit: 1 };
                let newest = self.backend.records.history(&room.id, newest).await?.messages.pop();
                let nothing = || Answer::Refused("Nothing was said here that could be answered again.".to_owned());
                (room, newest.ok_or_else(nothing)?.seq)
            }
        };
        let by = (!here.user_may_change()).then(|| person.person());
        self.backend.messages.try_again(&room.id, statement, by.as_ref()).await?;
        Ok("Another answer is on its way. The former one is deleted once it is written; if none can be written, it stays."
            .to_owned())
    }

    /// Clears a channel: prompts contain only messages from now on. Asks for confirmation first.
    pub(super) async fn clear(&self, sure: bool, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        may_change(here, here)?;
        let room = self.room(here).await?.ok_or_else(|| Answer::Refused(NOBODY.to_owned()))?;
        if !sure {
            let text = "Companions begin anew in this channel: they do not look at anything that was said here so far. The messages stay on Discord and on record.\n\
                        **This cannot be undone.**";
            return Ok(Answer::Question { text: text.to_owned(), button: "Begin anew", id: registered::SURE_CLEAR });
        }
        self.backend.rooms.clear(&room.id).await?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, "a channel was cleared on request");
        Ok(Answer::Done("Companions begin anew here.".to_owned()))
    }

    /// Explains what companions did about a message, or why a companion wrote it.
    pub(super) async fn why_of(&self, message: Snowflake, here: &ChannelContext) -> Result<String, Answer> {
        let Some((room, why)) = self.look_up(message, here).await? else { return Ok(UNKNOWN_MESSAGE.to_owned()) };
        let mut lines = Vec::new();
        for brief in &why.companions {
            let query = |seq| WhyQuery {
                room: room.id.clone(),
                companion: Some(brief.companion.as_str().into()),
                at: Some(WhyAt::Event(seq)),
                language: Language::English,
            };
            let decision = match (brief.seq, brief.outcome) {
                (Some(seq), _) => self.backend.records.why(query(seq)).await.ok().and_then(|why| why.decision),
                (None, Some(Outcome::Own)) => self.wish_before(why.message, &brief.companion, &room).await?,
                (None, _) => None,
            };
            let outcome = match brief.outcome {
                Some(Outcome::Own) => "wrote this",
                Some(Outcome::Answered) => "answered this",
                Some(Outcome::Speaking) => "is answering this",
                Some(Outcome::Failed) => "wanted to answer, and no answer came of it",
                Some(Outcome::Waiting) => "has not decided about this yet",
                Some(Outcome::Absent | Outcome::Left) => "was not here",
                // Reasons are described as in `/tertulia why`, which discloses no more than everybody may know.
                Some(Outcome::Silent) if decision.is_some() => "",
                _ => "does not answer this",
            };
            lines.extend((!outcome.is_empty()).then(|| format!("• {} {outcome}", name(&brief.name))));
            lines.extend(decision.map(|decision| decision_line(&room, &decision)));
        }
        if lines.is_empty() {
            lines.push("No companion was here to read this message.".to_owned());
        }
        Ok(lines.join("\n"))
    }

    /// The newest decision of a companion to speak before a message.
    async fn wish_before(
        &self,
        message: Option<Seq>,
        companion: &CompanionId,
        room: &Room,
    ) -> Result<Option<DecisionRecord>, Answer> {
        let (room, companion) = (Some(room.id.clone()), Some(companion.clone()));
        let query = DecisionQuery { room, companion, after: None, limit: MOST_SEARCHED };
        let decisions = self.backend.records.decisions(query).await?.decisions;
        let is_wish = |decision: &DecisionRecord| Some(decision.seq) < message && &*decision.decision == "YES";
        Ok(decisions.into_iter().filter(is_wish).max_by_key(|decision| decision.seq))
    }

    /// Removes a person's message from the companions' memory, with quotes of it. It stays on Discord.
    pub(super) async fn forget_message(
        &self,
        message: Snowflake,
        author: Option<Snowflake>,
        here: &ChannelContext,
        person: Snowflake,
    ) -> Result<String, Answer> {
        let id: Arc<str> = message.to_string().into();
        let recorded = match self.room(here).await? {
            Some(room) => self.backend.records.author(&room.id, &id).await?,
            None => None,
        };
        if recorded.as_ref().is_some_and(|recorded| recorded.role == Role::Companion) {
            return Err(Answer::Refused(
                "This is a companion's message. Delete it on Discord (**Manage Messages**), and companions forget it, too."
                    .to_owned(),
            ));
        }
        // A webhook may have posted it for a person.
        let is_own = author == Some(person)
            || recorded.is_some_and(|recorded| recorded.role == Role::Person && *recorded.id == *person.person().as_str());
        if !is_own && !here.user_may_manage_messages() {
            return Err(Answer::Refused(
                "Your own messages can be forgotten at your wish. For others' you need the permission **Manage Messages** here."
                    .to_owned(),
            ));
        }
        self.inbound_events.deleted(&here.channel_ref(), &[id]).await.map_err(|error| {
            Answer::Failed(match error {
                InboundError::Later { .. } => "The message could not be forgotten. Please try again in a minute.".to_owned(),
                InboundError::Broken(_) => words::BROKEN.to_owned(),
            })
        })?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, "a message was forgotten on request");
        Ok("Forgotten: companions do not read this message any more, and notes of it are gone. On Discord it stays until somebody deletes it there.".to_owned())
    }

    /// Looks a message up in the record. `None` if it is not there.
    async fn look_up(&self, message: Snowflake, here: &ChannelContext) -> Result<Option<(Room, Why)>, Answer> {
        let Some(room) = self.room(here).await? else { return Ok(None) };
        let at = Some(WhyAt::Message(message.to_string().into()));
        let query = WhyQuery { room: room.id.clone(), companion: None, at, language: Language::English };
        match self.backend.records.why(query).await {
            Ok(why) => Ok(Some((room, why))),
            Err(Refused::NotFound(_)) => Ok(None),
            Err(refused) => Err(refused.into()),
        }
    }
}

fn may_write(here: &ChannelContext) -> Result<(), Answer> {
    let refused = || Answer::Refused("For this you need the permission to write here.".to_owned());
    here.user_may_write().then_some(()).ok_or_else(refused)
}
