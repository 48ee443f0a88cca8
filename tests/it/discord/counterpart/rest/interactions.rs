//! Answers to interactions over REST.
//!
//! <https://docs.discord.com/developers/interactions/receiving-and-responding#interaction-response-object>

use serde_json::{Value, json};

use super::super::interactions::{
    APPLICATION_COMMAND, AUTOCOMPLETE, MESSAGE_COMPONENT, MODAL_SUBMIT, check_choices, check_modal, guild_install,
};
use super::super::journal::Answer;
use super::super::messages::{CHAT_INPUT_COMMAND, EPHEMERAL, LOADING};
use super::super::{Answered, Author, Content, Draft, Id, Interaction, Message, Refusal, Sender, State, Unknown};
use super::messages::find_message;
use super::{Call, Reply, done, ok};

const PONG: u64 = 1;
const MESSAGE: u64 = 4;
const DEFERRED_MESSAGE: u64 = 5;
const DEFERRED_UPDATE: u64 = 6;
const UPDATE: u64 = 7;
const CHOICES: u64 = 8;
const MODAL: u64 = 9;
/// The default limit of a file: the smaller one of those that Discord has had, 10 and 20 MiB.
const LARGEST_FILE: u64 = 10 << 20;
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
            (APPLICATION_COMMAND | MESSAGE_COMPONENT | MODAL_SUBMIT, MESSAGE) => Some(self.answer_with(&interaction, data)?),
            (APPLICATION_COMMAND | MESSAGE_COMPONENT | MODAL_SUBMIT, DEFERRED_MESSAGE) => {
                let flags = data["flags"].as_u64().unwrap_or_default() & EPHEMERAL | LOADING;
                Some(self.say(Message { flags, ..self.answering(&interaction, "") }))
            }
            (AUTOCOMPLETE, CHOICES) => {
                check_choices(data)?;
                None
            }
            (MESSAGE_COMPONENT | MODAL_SUBMIT, DEFERRED_UPDATE | UPDATE) if interaction.component_of.is_some() => {
                if kind == UPDATE {
                    self.update(&interaction, data)?;
                }
                interaction.component_of
            }
            (APPLICATION_COMMAND | MESSAGE_COMPONENT, MODAL) => {
                check_modal(data)?;
                None
            }
            (_, PONG..=12) => {
                let message = "This interaction cannot be answered with this type.";
                return Err(Refusal::field(&["type"], "INTERACTION_CALLBACK_INVALID_TYPE", message));
            }
            _ => return Err(Refusal::field(&["type"], "BASE_TYPE_CHOICES", "Value is not a type of callback.")),
        };
        let ephemeral = message.and_then(|id| self.world.message(interaction.channel, id)).is_some_and(Message::is_ephemeral);
        self.journal.answers.push(Answer { interaction: id, kind, data: data.clone(), ephemeral });
        let answered = if matches!(kind, DEFERRED_MESSAGE | DEFERRED_UPDATE) { Answered::Deferred } else { Answered::Fully };
        self.world.interactions.insert(id, Interaction { answered, original: message, ..interaction.clone() });
        done()
    }

    /// The message that answers this interaction, with its author, type and metadata.
    ///
    /// <https://docs.discord.com/developers/resources/message#message-interaction-metadata-object>
    fn answering(&self, interaction: &Interaction, content: &str) -> Message {
        let author = Author::Webhook {
            webhook: self.world.application.id,
            username: self.world.application.name.clone(),
            avatar_url: None,
            application: Some(self.world.application.id),
        };
        let guild = self.world.guild_of(interaction.channel);
        let metadata = json!({
            "id": interaction.id,
            "type": interaction.kind,
            "user": self.world.users[&interaction.user].json(),
            "authorizing_integration_owners": guild_install(guild),
        });
        let new = Message::new(interaction.channel, author, content);
        Message { kind: CHAT_INPUT_COMMAND, interaction: Some(metadata), ..new }
    }

    fn answer_with(&mut self, interaction: &Interaction, data: &Value) -> Result<Id, Refusal> {
        let draft = Draft::read(data, FLAGS)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(interaction.channel), Sender::Webhook);
        let Draft { content, embeds, components, flags, .. } = draft;
        Ok(self.say(Message { mentions, embeds, components, flags, ..self.answering(interaction, &content) }))
    }

    /// Replaces the message with the component that was used.
    fn update(&mut self, interaction: &Interaction, data: &Value) -> Result<(), Refusal> {
        let draft = Draft::read(data, FLAGS)?;
        let message = interaction.component_of.ok_or_else(|| Refusal::unknown(Unknown::Message))?;
        self.edit(interaction.channel, message, |edited| {
            (edited.content, edited.embeds, edited.components) = (draft.content, draft.embeds, draft.components);
        });
        Ok(())
    }

    fn by_interaction(&self, call: &Call) -> Result<&Interaction, Refusal> {
        let (_, token) = call.token();
        let mut interactions = self.world.interactions.values();
        let interaction = interactions.find(|interaction| interaction.token == token);
        let interaction = interaction.ok_or_else(|| Refusal::new(401, 50027, "Invalid Webhook Token"))?;
        interaction.continues(&self.rules)?;
        Ok(interaction)
    }

    /// The channel and id of the first answer to an interaction.
    fn original(&self, call: &Call) -> Result<(Id, Id), Refusal> {
        let interaction = self.by_interaction(call)?;
        let message = interaction.original.ok_or_else(|| Refusal::unknown(Unknown::Message))?;
        find_message(&self.world, interaction.channel, message)?;
        Ok((interaction.channel, message))
    }

    pub fn original_answer(&mut self, call: &Call) -> Reply {
        let (channel, message) = self.original(call)?;
        ok(find_message(&self.world, channel, message)?.json(&self.world, Content::All))
    }

    /// Edits the first answer. This completes a deferred answer.
    pub fn edit_answer(&mut self, call: &Call) -> Reply {
        let (channel, message) = self.original(call)?;
        let mut body = call.body.clone();
        let attachments = attached(&mut body)?;
        let draft = Draft::read(&body, FLAGS)?;
        let mentions = draft.mentions(&self.world, self.world.guild_of(channel), Sender::Webhook);
        // A field that is missing stays as it is.
        let has_components = body.get("components").is_some();
        self.edit(channel, message, |edited| {
            (edited.content, edited.embeds) = (draft.content, draft.embeds);
            if has_components {
                edited.components = draft.components;
            }
            edited.mentions = mentions;
            edited.attachments = attachments;
        });
        if let Some(answer) = self.world.message_mut(channel, message) {
            answer.flags &= !LOADING;
        }
        let id = self.by_interaction(call)?.id;
        if let Some(interaction) = self.world.interactions.get_mut(&id) {
            interaction.answered = Answered::Fully;
        }
        self.original_answer(call)
    }
}

/// Takes the files out of a body. Only those are kept that `attachments` lists by their number, with their content.
///
/// <https://docs.discord.com/developers/reference#editing-message-attachments>
fn attached(body: &mut Value) -> Result<Vec<Value>, Refusal> {
    let (file, listed) = (body["file"].take(), body["attachments"].take());
    match (file, listed) {
        (Value::Null, Value::Null) => Ok(Vec::new()),
        (file, Value::Array(listed))
            if listed.len() == 1 && listed[0]["id"] == 0 && listed[0]["filename"] == file["filename"] =>
        {
            // <https://docs.discord.com/developers/topics/opcodes-and-status-codes#json-json-error-codes>
            if file["size"].as_u64() > Some(LARGEST_FILE) {
                return Err(Refusal::new(413, 40_005, "Request entity too large"));
            }
            Ok(vec![file])
        }
        _ => Err(Refusal::new(501, 0, "the counterpart supports one listed file")),
    }
}
