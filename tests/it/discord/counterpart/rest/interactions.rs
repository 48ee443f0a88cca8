//! Answers to interactions over REST.
//!
//! <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-response-object>

use serde_json::{Value, json};

use super::super::interactions::{APPLICATION_COMMAND, AUTOCOMPLETE, MESSAGE_COMPONENT, check_choices, check_select_menus};
use super::super::journal::Answer;
use super::super::messages::{CHAT_INPUT_COMMAND, EPHEMERAL, LOADING};
use super::super::{Answered, Author, Draft, Id, Interaction, Message, Refusal, Sender, State, Unknown};
use super::messages::find_message;
use super::{Call, Reply, done, ok};

const PONG: u64 = 1;
const MESSAGE: u64 = 4;
const DEFERRED_MESSAGE: u64 = 5;
const CHOICES: u64 = 8;
const MODAL: u64 = 9;
/// Flags that an answer can set: suppress embeds, ephemeral, suppress notifications.
const FLAGS: u64 = 1 << 2 | EPHEMERAL | 1 << 12;

impl State {
    pub fn interaction_callback(&mut self, call: &Call) -> Reply {
        let (id, token) = call.token();
        let found = self.world.interactions.get(&id).filter(|interaction| interaction.token == token);
        let interaction = found.cloned().ok_or_else(|| Refusal::unknown(Unknown::Interaction))?;
        interaction.accepts(&self.rules)?;
        let kind = call.body["type"].as_u64().ok_or_else(|| Refusal::missing(&["type"]))?;
        let data = &call.body["data"];
        let message = match (interaction.kind, kind) {
            (APPLICATION_COMMAND | MESSAGE_COMPONENT, MESSAGE) => {
                check_select_menus(data)?;
                Some(self.answer_with(&interaction, data)?)
            }
            (APPLICATION_COMMAND | MESSAGE_COMPONENT, DEFERRED_MESSAGE) => {
                let flags = data["flags"].as_u64().unwrap_or_default() & EPHEMERAL | LOADING;
                Some(self.put_answer(&interaction, Message { flags, ..self.answering(&interaction, "") }))
            }
            (AUTOCOMPLETE, CHOICES) => {
                check_choices(data)?;
                None
            }
            (MESSAGE_COMPONENT, 6 | 7) => return Err(Refusal::new(501, 0, "the counterpart changes no messages by components")),
            (APPLICATION_COMMAND | MESSAGE_COMPONENT, MODAL) => {
                return Err(Refusal::new(501, 0, "the counterpart shows no modals"));
            }
            (_, PONG..=12) => {
                let message = "This interaction cannot be answered with this type.";
                return Err(Refusal::field(&["type"], "INTERACTION_CALLBACK_INVALID_TYPE", message));
            }
            _ => return Err(Refusal::field(&["type"], "BASE_TYPE_CHOICES", "Value is not a type of callback.")),
        };
        let ephemeral = message.and_then(|id| self.world.message(interaction.channel, id)).is_some_and(Message::is_ephemeral);
        let took = interaction.asked_at.elapsed();
        self.journal.answers.push(Answer { interaction: id, user: interaction.user, kind, data: data.clone(), took, ephemeral });
        let answered = if kind == DEFERRED_MESSAGE { Answered::Deferred } else { Answered::Fully };
        self.world.interactions.insert(id, Interaction { answered, original: message, ..interaction.clone() });
        if !call.flag("with_response") {
            return done();
        }
        let mut response = json!({ "interaction": { "id": id, "type": interaction.kind }, "resource": { "type": kind } });
        if let Some(message) = message {
            response["interaction"]["response_message_id"] = json!(message);
            response["interaction"]["response_message_loading"] = json!(kind == DEFERRED_MESSAGE);
            response["interaction"]["response_message_ephemeral"] = json!(ephemeral);
            if kind == MESSAGE {
                response["resource"]["message"] =
                    find_message(&self.world, interaction.channel, message)?.json(&self.world, self.world.rest_content());
            }
        }
        ok(response)
    }

    /// The message that answers this interaction, with its author and type.
    fn answering(&self, interaction: &Interaction, content: &str) -> Message {
        let author = Author::Webhook {
            webhook: self.world.application.id,
            username: self.world.application.name.clone(),
            avatar_url: None,
            application: Some(self.world.application.id),
        };
        Message { kind: CHAT_INPUT_COMMAND, ..Message::new(interaction.channel, author, content) }
    }

    fn answer_with(&mut self, interaction: &Interaction, data: &Value) -> Result<Id, Refusal> {
        let draft = Draft::read(data, FLAGS)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(interaction.channel), Sender::Webhook, None);
        let new = self.answering(interaction, &draft.content);
        Ok(self.put_answer(interaction, Message { mentions, embeds: draft.embeds, flags: draft.flags, tts: draft.tts, ..new }))
    }

    fn put_answer(&mut self, interaction: &Interaction, new: Message) -> Id {
        let message = self.say(new);
        if let Some(interaction) = self.world.interactions.get_mut(&interaction.id) {
            interaction.followups.push(message);
        }
        message
    }

    fn by_interaction(&self, call: &Call) -> Result<&Interaction, Refusal> {
        let (_, token) = call.token();
        let mut interactions = self.world.interactions.values();
        let interaction = interactions.find(|interaction| interaction.token == token);
        let interaction = interaction.ok_or_else(|| Refusal::new(401, 50027, "Invalid Webhook Token"))?;
        interaction.continues(&self.rules)?;
        Ok(interaction)
    }

    /// A further message with an interaction's token. The first one after a deferred answer completes that answer.
    pub(super) fn follow_up(&mut self, call: &Call) -> Reply {
        let interaction = self.by_interaction(call)?.clone();
        if let (Answered::Deferred, Some(original)) = (interaction.answered, interaction.original) {
            return self.edit_answer(interaction.channel, original, call);
        }
        let message = self.answer_with(&interaction, &call.body)?;
        ok(find_message(&self.world, interaction.channel, message)?.json(&self.world, self.world.rest_content()))
    }

    /// A message that was sent with an interaction's token.
    pub(super) fn sent_by_interaction(&self, call: &Call) -> Result<(Id, Id), Refusal> {
        let interaction = self.by_interaction(call)?;
        let message = match call.found.id("message") {
            None => interaction.original,
            Some(message) => interaction.followups.contains(&message).then_some(message),
        };
        let message = message.ok_or_else(|| Refusal::unknown(Unknown::Message))?;
        find_message(&self.world, interaction.channel, message)?;
        Ok((interaction.channel, message))
    }

    /// Edits an answer. This completes a deferred answer.
    pub(super) fn edit_answer(&mut self, channel: Id, message: Id, call: &Call) -> Reply {
        let reply = self.rewrite(channel, message, call, Sender::Webhook)?;
        if let Some(answer) = self.world.message_mut(channel, message) {
            answer.flags &= !LOADING;
        }
        let id = self.by_interaction(call)?.id;
        if let Some(interaction) =
            self.world.interactions.get_mut(&id).filter(|interaction| interaction.original == Some(message))
        {
            interaction.answered = Answered::Fully;
        }
        Ok(reply)
    }
}
