//! `/tertulia stop`, `next`, `again` and `clear`, and the entries *Why?*, *Forget this* and *Answer again* in the menu of a message.

use std::sync::Arc;

use super::choosing::member;
use super::interaction::{ChannelContext, Person};
use super::members::may_change;
use super::quoting::name;
use super::text::{Text, say};
use super::why::decision_line;
use super::words::{self, listed};
use super::{Answer, CommandHandler, registered};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::tools::Who;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{DecisionQuery, DecisionRecord, Outcome, Why, WhyAt, WhyQuery};
use crate::ports::backend::messages::{Approver, Choice, HistoryQuery};
use crate::ports::backend::room::Room;
use crate::ports::inbound_events::InboundError;
use crate::snowflake::Snowflake;
use crate::texts::Language;

/// The number of decisions among which the one behind a statement is searched for.
const MOST_SEARCHED: usize = 100;

impl CommandHandler {
    /// Stops the replies in progress of one companion, or of all.
    pub(super) async fn stop(&self, typed: Option<&str>, here: &ChannelContext) -> Result<Text, Answer> {
        may_write(here)?;
        let room = self.room(here).await?.ok_or_else(nobody)?;
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
            return Ok(say!("Nobody is writing anything that could still be stopped."));
        }
        Ok(say!("Stopped: {names}.", names = listed(stopped)))
    }

    /// Confirms or declines the call of a tool.
    pub(super) async fn decide_call(
        &self,
        call: u64,
        confirm: bool,
        here: &ChannelContext,
        person: &Person,
    ) -> Result<Text, Answer> {
        let room = self.room(here).await?.ok_or_else(nobody)?;
        let who = Some(Who { person: person.id.person(), sender: None });
        let roles = Some(person.roles.iter().map(|role| role.to_string().into()).collect());
        let by = Approver { who, is_operator: false, roles };
        match self.backend.messages.decide_call(&room.id, Ticket(call), by, confirm).await {
            Ok(()) if confirm => Ok(say!("Confirmed. It is being done.")),
            Ok(()) => Ok(say!("Declined. Nothing is done.")),
            Err(Refused::Conflict(detail) | Refused::NotFound(detail)) => {
                let code = detail.code.filter(|code| code.key() == "refusals.call_for_cause");
                let who = code.iter().flat_map(ErrorCode::values).find_map(|(_, who)| who.as_str());
                Err(Answer::Refused(match who {
                    Some(who) => say!("Only {who} or an operator can decide about this.", who = name(who)),
                    None => say!(
                        "Only who asked for this, people with the right to approve it, and operators can decide, once, within two minutes. Ask the companion again if it is too late."
                    ),
                }))
            }
            Err(refused) => Err(refused.into()),
        }
    }

    /// Lets a companion speak next without a vote, or all of them once.
    pub(super) async fn next(&self, typed: Option<&str>, here: &ChannelContext, person: &Person) -> Result<Text, Answer> {
        may_write(here)?;
        self.may_address(here, person).await?;
        if self.opt_outs.is_ignored(&here.guild_id(), &person.id.person()) {
            return Err(Answer::Refused(words::opted_out()));
        }
        let room = self.room(here).await?.ok_or_else(nobody)?;
        let companion = typed.map(|typed| member(&room, typed)).transpose()?.map(|companion| companion.id.clone());
        let everybody = companion.is_none();
        let choice = Choice { companion, everybody, by: Some(person.id.person().as_shared().clone()) };
        let chosen = self.backend.messages.choose(&room.id, choice).await?.companions;
        let names = room.companions.iter().filter(|companion| chosen.contains(&companion.id)).map(|companion| &companion.name);
        let names = listed(names);
        Ok(match everybody {
            true => say!("Each speaks once: {names}. Then they wait for you.", names = names),
            false => say!("{names} speaks next.", names = names),
        })
    }

    /// Requests another answer in place of the newest one, or of `message` if that is the newest. Those whom it answers may, and managers.
    pub(super) async fn again(&self, message: Option<Snowflake>, here: &ChannelContext, person: &Person) -> Result<Text, Answer> {
        may_write(here)?;
        if !here.user_may_change() {
            self.may_address(here, person).await?;
        }
        let unknown = || Answer::Refused(unknown_message());
        let (room, statement) = match message {
            Some(message) => {
                let (room, why) = self.look_up(message, here).await?.ok_or_else(unknown)?;
                (room, why.message.ok_or_else(unknown)?)
            }
            None => {
                let room = self.room(here).await?.ok_or_else(nobody)?;
                let newest = HistoryQuery { after: None, before: None, limit: 1 };
                let newest = self.backend.records.history(&room.id, newest).await?.messages.pop();
                let nothing = || Answer::Refused(say!("Nothing was said here that could be answered again."));
                (room, newest.ok_or_else(nothing)?.seq)
            }
        };
        let by = (!here.user_may_change()).then(|| person.id.person());
        self.backend.messages.answer_again(&room.id, statement, false, by.as_ref()).await?;
        Ok(say!("Another answer is on its way, in the place of the former one. If none can be written, that one stays."))
    }

    /// Clears a channel: prompts contain only messages from now on. Asks for confirmation first.
    pub(super) async fn clear(&self, sure: bool, here: &ChannelContext, person: Snowflake) -> Result<Answer, Answer> {
        may_change(here, here)?;
        let room = self.room(here).await?.ok_or_else(nobody)?;
        if !sure {
            let text = say!(
                "Companions begin anew in this channel: they do not look at anything that was said here so far. The messages stay on Discord and on record.\n\
                 **This cannot be undone.**"
            );
            return Ok(Answer::Question { text, button: say!("Begin anew"), id: registered::SURE_CLEAR });
        }
        self.backend.rooms.clear(&room.id).await?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, by = %person, "a channel was cleared on request");
        Ok(Answer::Done(say!("Companions begin anew here.")))
    }

    /// Explains what companions did about a message, or why a companion wrote it.
    pub(super) async fn why_of(&self, message: Snowflake, here: &ChannelContext) -> Result<Text, Answer> {
        let Some((room, why)) = self.look_up(message, here).await? else {
            return Ok(unknown_message());
        };
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
            let name = name(&brief.name);
            let outcome = match brief.outcome {
                Some(Outcome::Own) => say!("{name} wrote this", name = name),
                Some(Outcome::Answered) => say!("{name} answered this", name = name),
                Some(Outcome::Speaking) => say!("{name} is answering this", name = name),
                Some(Outcome::Failed) => say!("{name} wanted to answer, and no answer came of it", name = name),
                Some(Outcome::Waiting) => say!("{name} has not decided about this yet", name = name),
                Some(Outcome::Absent | Outcome::Left) => say!("{name} was not here", name = name),
                _ => say!("{name} does not answer this", name = name),
            };
            // Reasons are described as in `/tertulia why`, which discloses no more than everybody may know.
            let is_in_reason = brief.outcome == Some(Outcome::Silent) && decision.is_some();
            lines.extend((!is_in_reason).then(|| outcome.bullet()));
            lines.extend(decision.map(|decision| decision_line(&room, &decision)));
        }
        if lines.is_empty() {
            lines.push(say!("No companion was here to read this message."));
        }
        Ok(Text::lines(lines))
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
    ) -> Result<Text, Answer> {
        let id: Arc<str> = message.to_string().into();
        let recorded = match self.room(here).await? {
            Some(room) => self.backend.records.author(&room.id, &id).await?,
            None => None,
        };
        if recorded.as_ref().is_some_and(|recorded| recorded.role == Role::Companion) {
            return Err(Answer::Refused(say!(
                "This is a companion's message. Delete it on Discord (**Manage Messages**), and companions forget it, too."
            )));
        }
        // A webhook may have posted it for a person.
        let is_own = author == Some(person)
            || recorded.is_some_and(|recorded| recorded.role == Role::Person && *recorded.id == *person.person().as_str());
        if !is_own && !here.user_may_manage_messages() {
            return Err(Answer::Refused(say!(
                "You can have your own messages forgotten. For others' you need the permission **Manage Messages** here."
            )));
        }
        self.inbound_events.deleted(&here.channel_ref(), &[id]).await.map_err(|error| {
            Answer::Failed(match error {
                InboundError::Later { .. } => say!("The message could not be forgotten. Please try again in a minute."),
                InboundError::Broken(_) => words::broken(),
            })
        })?;
        tracing::info!(guild = %here.guild_id(), channel = %here.channel, "a message was forgotten on request");
        Ok(say!(
            "Forgotten: companions do not read this message any more, and notes of it are gone. On Discord it stays until somebody deletes it there."
        ))
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
    let refused = || Answer::Refused(say!("For this you need the permission to write here."));
    here.user_may_write().then_some(()).ok_or_else(refused)
}

fn unknown_message() -> Text {
    say!("Companions do not know this message: they were not here, could not read it, or it was deleted.")
}

fn nobody() -> Answer {
    Answer::Refused(say!("No companion is here. `/tertulia status` says more."))
}
