//! What people say to companions by a command: `/tertulia say`, and *Ask a companion about this* in the menu of a message.
//!
//! Discord delivers the text of both whatever intents the bot has. The answer to the command shows everybody what was said. The message is on
//! record under that answer's id, so whoever deletes the answer takes the message back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::answering;
use super::choosing::{member, offered};
use super::interaction::{Handle, Person, Where, list_of};
use super::words::{self, name};
use super::{ANSWERED_LATER, Desk, Said, unless_it_panics};
use crate::adapters::discord::incoming::{Origin, OwnIds, RawMessage, Sender, User, is_conversation, readable_text, sender};
use crate::adapters::discord::snowflake::Snowflake;
use crate::adapters::discord::wire;
use crate::domain::message::{Author, Modality, Role};
use crate::ports::backend::room::{Room, RoomCompanion};
use crate::ports::inbound_events::{Acceptance, InboundError, InboundMessage};

/// A message that is asked about is quoted up to so many characters.
const LONGEST_QUOTE: usize = 2_000;
/// Questions that wait for somebody to choose who is asked; of more, the oldest is forgotten.
const MOST_QUESTIONS: usize = 256;
/// They wait so long: as long as Discord takes an answer.
const ASKED_WITHIN: Duration = Duration::from_secs(15 * 60);
/// What cannot be put on record at the moment is tried again for so long.
const TRIED_FOR: Duration = Duration::from_secs(15);

/// What comes of the wish to say something to a companion.
pub(super) enum Wish {
    /// It is clear who is meant.
    Words(Words),
    /// They have to choose first: the answer that lets them.
    Choice(serde_json::Value),
}

/// Something for a companion.
pub(super) struct Words {
    companion: RoomCompanion,
    /// What a model reads.
    text: String,
    /// What everybody is shown.
    shown: String,
}

/// A message about which somebody wants a companion asked.
struct Question {
    id: Snowflake,
    person: Snowflake,
    channel: Snowflake,
    /// What the companion is asked.
    text: String,
    /// Where the message is.
    link: String,
}

/// Questions that wait for somebody to choose who is asked, oldest first. They are lost with the process: whoever chooses then is told so.
#[derive(Default)]
pub(super) struct Questions(Mutex<VecDeque<Question>>);

impl Questions {
    fn keep(&self, question: Question) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(question);
        if waiting.len() > MOST_QUESTIONS {
            waiting.pop_front();
        }
    }

    /// The question of this person in this channel, once.
    fn take(&self, id: Snowflake, person: Snowflake, channel: Snowflake) -> Option<Question> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |question: &Question| question.id == id && question.person == person && question.channel == channel;
        let place = waiting.iter().position(is_it)?;
        waiting.remove(place)
    }
}

impl Desk {
    /// `/tertulia say`: what is said, and to whom.
    pub(super) async fn words_for(&self, typed: &str, text: &str, here: &Where, person: &Person) -> Result<Wish, Said> {
        let room = self.hearers(here, person).await?;
        let companion = member(&room, typed)?.clone();
        let author = User { id: person.id, username: &person.name, global_name: None, nick: None, bot: false, system: false };
        let told = RawMessage {
            id: person.id,
            kind: 0,
            flags: 0,
            origin: Origin { author, webhook: None, application: None },
            content: text,
            mentions: Vec::new(),
            attachments: Vec::new(),
            stickers: Vec::new(),
            poll: None,
            forward: None,
            answers: None,
        };
        let (read, _) = readable_text(&told, &self.discord.cache().names(here.guild)).ok_or_else(nothing_to_read)?;
        let shown = format!("{} to {}:\n{}", name(&person.name), name(&companion.name), quoted(text));
        if shown.chars().count() > words::LONGEST {
            return Err(Said::Refused(
                "That has too many lines to be shown whole, so nothing was said. Leave out line breaks, or say it in parts."
                    .to_owned(),
            ));
        }
        Ok(Wish::Words(Words { companion, text: read, shown }))
    }

    /// *Ask a companion about this*: what is asked, and who, if that is clear.
    pub(super) async fn question(
        &self,
        id: Snowflake,
        message: &wire::Message,
        here: &Where,
        person: &Person,
    ) -> Result<Wish, Said> {
        let room = self.hearers(here, person).await?;
        let told = message.raw();
        if !is_conversation(told.kind) {
            return Err(nothing_to_read());
        }
        let bot = self.discord.bot().await.map_err(|_| Said::Failed(words::NOT_SAID.to_owned()))?;
        let us = OwnIds { bot: bot.user, application: bot.application, webhooks: &std::collections::BTreeSet::new() };
        let author: Arc<str> = match sender(&told.origin, &us) {
            Sender::Ours(name) => name.map_or_else(|| "the bot".into(), Into::into),
            Sender::System => return Err(nothing_to_read()),
            Sender::Other(author) => {
                if self.ignoring.is_ignored(&here.guild_id(), &told.origin.author.id.person()) {
                    return Err(Said::Refused("Whoever wrote this does not want companions to listen to them.".to_owned()));
                }
                author.name
            }
        };
        let (read, _) = readable_text(&told, &self.discord.cache().names(here.guild)).ok_or_else(nothing_to_read)?;
        let read: String = read.chars().take(LONGEST_QUOTE).collect();
        let text = format!("What do you say to this message by {author}?\n{}", quoted(&read));
        let guild = here.guild.map_or_else(|| "@me".to_owned(), |guild| guild.to_string());
        let link = format!("https://discord.com/channels/{guild}/{}/{}", here.channel, told.id);
        let question = Question { id, person: person.id, channel: here.channel, text, link };
        if let [only] = room.companions.as_slice() {
            return Ok(Wish::Words(question.to(only.clone(), person)));
        }
        self.questions.keep(question);
        Ok(Wish::Choice(answering::list("Who shall be asked about this message?", &list_of(id), &offered(&room.companions, ""))))
    }

    /// Somebody chose who is asked.
    pub(super) async fn chosen(&self, id: Snowflake, companion: &str, here: &Where, person: &Person) -> Result<Wish, Said> {
        let room = self.hearers(here, person).await?;
        let companion = member(&room, companion)?.clone();
        let question = self.questions.take(id, person.id, here.channel);
        let question = question.filter(|question| self.discord.now().since(question.id.time()) < ASKED_WITHIN);
        let question = question.ok_or_else(|| {
            Said::Refused("That was asked already, or too long ago. Choose it in the menu of the message once more.".to_owned())
        })?;
        Ok(Wish::Words(question.to(companion, person)))
    }

    /// Who lives here, for somebody who may say something to them.
    async fn hearers(&self, here: &Where, person: &Person) -> Result<Room, Said> {
        if !here.is_theirs_to_write_in() {
            return Err(Said::Refused("You may not write messages here, so nothing was said.".to_owned()));
        }
        if self.ignoring.is_ignored(&here.guild_id(), &person.id.person()) {
            return Err(Said::Refused(
                "You asked companions not to listen to you. `/tertulia ignore me switch:off` takes it back.".to_owned(),
            ));
        }
        let room = self.living(here).await?.filter(|room| !room.companions.is_empty());
        room.ok_or_else(|| Said::Refused("Nobody lives here yet. `/tertulia join` lets somebody in.".to_owned()))
    }

    /// Passes on what somebody says, for everybody to see. Returns the outcome.
    pub(super) async fn pass_on(
        &self,
        handle: &Handle,
        since: Instant,
        label: &'static str,
        here: &Where,
        person: &Person,
        wish: impl Future<Output = Result<Wish, Said>>,
    ) -> &'static str {
        // Until it is clear who is meant, only they see what is wrong.
        let wish = timeout_at(since + ANSWERED_LATER, unless_it_panics(wish)).await;
        let (body, outcome, words) = match wish.unwrap_or_else(|_| Err(Said::Failed(words::NOT_SAID.to_owned()))) {
            Ok(Wish::Words(words)) => (answering::to_come_for_all(), "done", Some(words)),
            Ok(Wish::Choice(body)) => (body, "done", None),
            Err(said) => (answering::message(said.text()), said.outcome(), None),
        };
        if let Err(missed) = self.reach(handle, &body, since, label).await {
            return missed;
        }
        let Some(words) = words else { return outcome };
        let message = self.message_of(handle).await;
        let said = match message {
            Some(message) => unless_it_panics(self.put_on_record(message, handle, here, person, words)).await,
            None => Err(Said::Failed(words::NOT_SAID.to_owned())),
        };
        let said = said.map_or_else(|said| said, Said::Done);
        if self.answer_at_last(handle, said.text()).await {
            return said.outcome();
        }
        // Somebody deleted the answer before it showed the words, or it never will: what nobody sees was not said.
        if let Some(message) = message {
            let taken_back = self.inbound_events.deleted(&here.channel_ref(), &[message.to_string().into()]).await;
            taken_back.unwrap_or_else(|error| {
                tracing::warn!(interaction = %handle.id, %error, "what was said by a command is on record, and nobody sees it");
            });
        }
        "unanswered"
    }

    /// Puts on record what somebody says, under the id of the message that shows it. Returns what everybody is shown.
    async fn put_on_record(
        &self,
        message: Snowflake,
        handle: &Handle,
        here: &Where,
        person: &Person,
        words: Words,
    ) -> Result<String, Said> {
        let Words { companion, text, shown } = words;
        let inbound_message = InboundMessage {
            id: message.to_string().into(),
            from: Author { id: person.id.person().as_str().into(), name: person.name.clone(), role: Role::Person },
            text: text.into(),
            // It is for the companion that they chose, whomever the words name.
            own_words: "".into(),
            modality: Modality::Text,
            lull_endpoint: false,
            at: self.discord.clocks().said_at(handle.id),
            mentions: vec![companion.id.as_str().into()],
            to_all: false,
            answers: None,
        };
        let began = Instant::now();
        let taken = loop {
            match self.inbound_events.said(&here.channel_ref(), inbound_message.clone()).await {
                Err(InboundError::Later { after, .. }) if began.elapsed() + after < TRIED_FOR => sleep(after).await,
                taken => break taken,
            }
        };
        match taken {
            Ok(Acceptance::New(_) | Acceptance::Known(_)) => {
                self.discord.cache().person_spoke(here.guild, here.channel, person.id, &person.name);
                Ok(shown)
            }
            Ok(Acceptance::Not) => Err(Said::Refused("Nobody lives here who could hear that.".to_owned())),
            Err(InboundError::Later { detail, .. }) => {
                tracing::warn!(interaction = %handle.id, detail, "what was said by a command could not be put on record");
                Err(Said::Failed("What was said could not be passed on. Please try again in a minute.".to_owned()))
            }
            Err(InboundError::Broken(_)) => Err(Said::Failed(words::BROKEN.to_owned())),
        }
    }
}

impl Question {
    fn to(self, companion: RoomCompanion, person: &Person) -> Words {
        let shown = format!("{} asks {} about {}", name(&person.name), name(&companion.name), self.link);
        Words { companion, text: self.text, shown }
    }
}

/// Each line of a text as a quote: it can end nowhere else, and is nobody else's.
fn quoted(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

fn nothing_to_read() -> Said {
    Said::Refused("There is nothing to read in that.".to_owned())
}
