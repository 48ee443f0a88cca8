//! Relays messages from users to companions: `/tertulia say`, and *Ask a companion about this* in the menu of a message.
//!
//! Both work without the Message Content intent. The answer to the command shows the message to the whole channel. The message is journaled under
//! that answer's id, so deleting the answer deletes the message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use super::answering::{self, Choice};
use super::choosing::{member, offered};
use super::interaction::{ChannelContext, Handle, Person, list_of};
use super::members::no_companion;
use super::quoting::name;
use super::text::{Text, say};
use super::words;
use super::{ANSWERED_LATER, Answer, CommandHandler, Pending, catch_panic};
use crate::domain::message::{Author, Role};
use crate::incoming::{Sender, is_conversation, readable_text, readable_words, sender};
use crate::ports::backend::room::{Room, RoomCompanion};
use crate::ports::inbound_events::{Acceptance, InboundError, InboundMessage};
use crate::snowflake::Snowflake;
use crate::wire;

/// The limit of characters quoted in a question about a message.
const LONGEST_QUOTE: usize = 2_000;
/// The limit of questions that wait for a choice. Beyond it, the oldest question is dropped.
const MOST_QUESTIONS: usize = 256;
/// The time limit for choosing. It equals the time in which Discord accepts an answer.
const ASKED_WITHIN: Duration = Duration::from_secs(15 * 60);
/// How long journaling a message is retried.
const TRIED_FOR: Duration = Duration::from_secs(15);

/// The next step of relaying a message.
pub(super) enum SayStep {
    /// The companion is known: relay the message.
    Message(Box<PreparedMessage>),
    /// The user must choose a companion first, from a list with this `custom_id`.
    Choice { id: String, choices: Vec<Choice> },
}

pub(super) struct PreparedMessage {
    companion: RoomCompanion,
    /// The text for the model.
    text: String,
    /// The text that all people in the channel see.
    shown: Text,
}

/// A message that a user wants to ask a companion about.
struct Question {
    id: Snowflake,
    person: Snowflake,
    channel: Snowflake,
    /// The text for the model.
    text: String,
    link: String,
}

/// Questions that wait for a choice, oldest first. They are lost at a restart; a later choice is refused with an explanation.
#[derive(Default)]
pub(super) struct Questions(Mutex<VecDeque<Question>>);

impl Questions {
    fn add(&self, question: Question) {
        let mut waiting = self.0.lock();
        waiting.push_back(question);
        if waiting.len() > MOST_QUESTIONS {
            waiting.pop_front();
        }
    }

    /// Removes and returns the question of this person in this channel.
    fn remove(&self, id: Snowflake, person: Snowflake, channel: Snowflake) -> Option<Question> {
        let mut waiting = self.0.lock();
        let matches = |question: &Question| question.id == id && question.person == person && question.channel == channel;
        let index = waiting.iter().position(matches)?;
        waiting.remove(index)
    }
}

impl CommandHandler {
    /// Prepares `/tertulia say`.
    pub(super) async fn prepare_message(
        &self,
        typed: &str,
        text: &str,
        here: &ChannelContext,
        person: &Person,
        language: &str,
    ) -> Result<SayStep, Answer> {
        let room = self.room_for_speaker(here, person).await?;
        let companion = member(&room, typed)?.clone();
        let text_for_model = readable_words(text, &self.discord.cache().names(here.guild)).ok_or_else(nothing_to_read)?;
        let heading = say!("{person} to {companion}:", person = name(&person.name), companion = name(&companion.name));
        let shown = Text::lines([heading, Text::Plain(quoted(text))]);
        if shown.in_language(language).chars().count() > words::LONGEST {
            return Err(Answer::Refused(say!(
                "That has too many lines to be shown completely, so nothing was said. Leave out line breaks, or say it in parts."
            )));
        }
        Ok(SayStep::Message(Box::new(PreparedMessage { companion, text: text_for_model, shown })))
    }

    /// Prepares *Ask a companion about this*: creates the question, and chooses the companion if there is only one.
    pub(super) async fn prepare_question(
        &self,
        id: Snowflake,
        message: &wire::Message,
        here: &ChannelContext,
        person: &Person,
        language: &str,
    ) -> Result<SayStep, Answer> {
        let room = self.room_for_speaker(here, person).await?;
        if !is_conversation(message.kind) {
            return Err(nothing_to_read());
        }
        let bot = self.discord.bot().await.map_err(|_| Answer::Failed(words::not_said()))?;
        let author: Arc<str> = match sender(&message.origin(), bot) {
            Sender::Ours(name) => name.map_or_else(|| "the bot".into(), Into::into),
            Sender::System => return Err(nothing_to_read()),
            Sender::Other(author) => {
                if self.opt_outs.is_ignored(&here.guild_id(), &message.author.id.person()) {
                    return Err(Answer::Refused(say!("The author of this message does not want companions to listen to them.")));
                }
                author.name
            }
        };
        let mut message = message.clone();
        if message.has_forward() {
            self.discord.withhold_opted_out(&mut message, &self.inbound_events.opted_out(&here.channel_ref())).await;
        }
        let (text_for_model, _) = readable_text(&message, &self.discord.cache().names(here.guild)).ok_or_else(nothing_to_read)?;
        let quote: String = text_for_model.chars().take(LONGEST_QUOTE).collect();
        let text = say!("What do you say to this message by {author}?", author = author.to_string());
        // The companion answers all people in the channel, so it is asked in their language.
        let text = format!("{}\n{}", text.in_language(language), quoted(&quote));
        let guild = here.guild.map_or_else(|| "@me".to_owned(), |guild| guild.to_string());
        let link = format!("https://discord.com/channels/{guild}/{}/{}", here.channel, message.id);
        let question = Question { id, person: person.id, channel: here.channel, text, link };
        if let [only] = room.companions.as_slice() {
            return Ok(SayStep::Message(Box::new(question.for_companion(only.clone(), person))));
        }
        self.questions.add(question);
        Ok(SayStep::Choice { id: list_of(id), choices: offered(&room.companions, "") })
    }

    /// Prepares a question after its companion was chosen.
    pub(super) async fn prepare_chosen_question(
        &self,
        id: Snowflake,
        companion: &str,
        here: &ChannelContext,
        person: &Person,
    ) -> Result<SayStep, Answer> {
        let room = self.room_for_speaker(here, person).await?;
        let companion = member(&room, companion)?.clone();
        let question = self.questions.remove(id, person.id, here.channel);
        let question = question.filter(|question| self.discord.now().since(question.id.time()) < ASKED_WITHIN);
        let question = question.ok_or_else(|| {
            Answer::Refused(say!("That was asked already, or too long ago. Choose it in the menu of the message again."))
        })?;
        Ok(SayStep::Message(Box::new(question.for_companion(companion, person))))
    }

    /// The room of a channel with companions, if the user may speak to them.
    async fn room_for_speaker(&self, here: &ChannelContext, person: &Person) -> Result<Room, Answer> {
        if !here.user_may_write() {
            return Err(Answer::Refused(say!("You may not write messages here, so nothing was said.")));
        }
        if self.opt_outs.is_ignored(&here.guild_id(), &person.id.person()) {
            return Err(Answer::Refused(words::opted_out()));
        }
        self.may_address(here, person).await?;
        let room = self.room_or_future_room(here).await?.filter(|room| !room.companions.is_empty());
        room.ok_or_else(|| Answer::Refused(no_companion(here, here)))
    }

    /// Relays a message, visible to the whole channel. Returns the outcome.
    pub(super) async fn relay(
        &self,
        pending: Pending<'_>,
        here: &ChannelContext,
        person: &Person,
        step: impl Future<Output = Result<SayStep, Answer>>,
    ) -> &'static str {
        // Errors in finding the companion are visible only to the user.
        let handle = pending.handle;
        let step = timeout_at(pending.since + ANSWERED_LATER, catch_panic(step)).await;
        let (body, outcome, prepared) = match step.unwrap_or_else(|_| Err(Answer::Failed(words::not_said()))) {
            Ok(SayStep::Message(prepared)) => (answering::deferred_for_all(), "done", Some(*prepared)),
            Ok(SayStep::Choice { id, choices }) => {
                let text = say!("Which companion should be asked about this message?");
                (answering::list(&text, &handle.language, &id, &choices), "done", None)
            }
            Err(answer) => (answering::message(answer.text(), &handle.language), answer.outcome(), None),
        };
        if let Err(outcome) = self.send_first_answer(pending, &body).await {
            return outcome;
        }
        let Some(prepared) = prepared else { return outcome };
        let message = self.message_of(handle).await;
        let answer = match message {
            Some(message) => catch_panic(self.journal_message(message, handle, here, person, prepared)).await,
            None => Err(Answer::Failed(words::not_said())),
        };
        let answer = answer.map_or_else(|answer| answer, Answer::Done);
        if self.edit_answer(handle, &answer, &handle.channel_language, false).await {
            return answer.outcome();
        }
        // The answer was deleted, or cannot show the text. The journaled message must be deleted, because no person can see it.
        if let Some(message) = message {
            let deletion = self.inbound_events.deleted(&here.channel_ref(), &[message.to_string().into()]).await;
            deletion.unwrap_or_else(|error| {
                tracing::warn!(interaction = %handle.id, %error, "a message that was said by a command is on record, and nobody sees it");
            });
        }
        "unanswered"
    }

    /// Journals a message under the id of the answer that shows it. Returns the text that all people see.
    async fn journal_message(
        &self,
        message: Snowflake,
        handle: &Handle,
        here: &ChannelContext,
        person: &Person,
        prepared: PreparedMessage,
    ) -> Result<Text, Answer> {
        let PreparedMessage { companion, text, shown } = prepared;
        let from = Author { id: person.id.person().as_str().into(), name: person.name.clone(), role: Role::Person };
        let inbound_message = InboundMessage {
            id: Some(message.to_string().into()),
            // The message addresses only the chosen companion, whatever names the text contains.
            own_words: Some("".into()),
            said_at: Some(self.discord.clocks().said_at(handle.id)),
            mentions: vec![companion.id.as_str().into()],
            ..InboundMessage::new(from, text.into())
        };
        let began = Instant::now();
        let result = loop {
            match self.inbound_events.said(&here.channel_ref(), inbound_message.clone()).await {
                Err(InboundError::Later { after, .. }) if began.elapsed() + after < TRIED_FOR => sleep(after).await,
                result => break result,
            }
        };
        match result {
            Ok(Acceptance::New(_) | Acceptance::Duplicate(_)) => {
                self.discord.cache().person_spoke(here.guild, here.channel, person.id, &person.name);
                Ok(shown)
            }
            Ok(Acceptance::Ignored) => Err(Answer::Refused(say!("No companion is here who could read that."))),
            Err(InboundError::Later { detail, .. }) => {
                tracing::warn!(interaction = %handle.id, detail, "a message that was said by a command could not be journaled");
                Err(Answer::Failed(say!("Your message could not be stored. Please try again in a minute.")))
            }
            Err(InboundError::Broken(_)) => Err(Answer::Failed(words::broken())),
        }
    }
}

impl Question {
    fn for_companion(self, companion: RoomCompanion, person: &Person) -> PreparedMessage {
        let shown = say!(
            "{person} asks {companion} about {link}",
            person = name(&person.name),
            companion = name(&companion.name),
            link = self.link
        );
        PreparedMessage { companion, text: self.text, shown }
    }
}

/// Makes each line of a text a quote, so that the text cannot end the quote.
fn quoted(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

fn nothing_to_read() -> Answer {
    Answer::Refused(say!("That contains no text to read."))
}
