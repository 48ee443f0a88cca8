//! The body of a message as an application sends it: which bodies are refused, and whom the message notifies.
//!
//! <https://docs.discord.com/developers/resources/message#create-message>, <https://docs.discord.com/developers/resources/message#allowed-mentions-object>

use serde_json::{Value, json};

use super::interactions::{check_components, check_embeds};
use super::messages::named;
use super::permissions::in_guild;
use super::{Guild, Id, Mentions, Permissions, Refusal, World, iso8601, now_ms};

/// The maximum length of a text, in characters.
const CONTENT: usize = 2_000;
/// Fields that the client never sends. The test double does not support them.
const UNSUPPORTED: [&str; 6] = ["tts", "sticker_ids", "attachments", "shared_client_theme", "message_reference", "thread_name"];

/// A validated body of a message.
#[derive(Clone, Debug)]
pub struct Draft {
    pub content: String,
    pub embeds: Vec<Value>,
    pub components: Vec<Value>,
    pub poll: Option<Value>,
    pub flags: u64,
    allowed: Option<Allowed>,
}

/// Whom the sender allows to be notified: `allowed_mentions`.
#[derive(Clone, Debug, Default)]
struct Allowed {
    parse: Vec<String>,
    users: Vec<Id>,
    roles: Vec<Id>,
}

/// Who sends the message. It decides the default of `allowed_mentions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Bot,
    /// A webhook, or an answer to an interaction.
    Webhook,
}

/// A poll as its message shows it: with ids of the answers, and with its end instead of its duration.
///
/// <https://docs.discord.com/developers/resources/poll#poll-create-request-object>, <https://docs.discord.com/developers/resources/poll#poll-object>
fn created_poll(poll: &Value) -> Result<Value, Refusal> {
    let has_text = |text: &Value, most| text.as_str().is_some_and(|text| (1..=most).contains(&text.chars().count()));
    let answers = poll["answers"].as_array().map_or(&[][..], Vec::as_slice);
    let is_right = has_text(&poll["question"]["text"], 300)
        && (1..=10).contains(&answers.len())
        && answers.iter().all(|answer| has_text(&answer["poll_media"]["text"], 55))
        && poll["duration"].as_u64().is_none_or(|hours| (1..=768).contains(&hours));
    if !is_right {
        return Err(Refusal::field(&["poll"], "BASE_TYPE_BAD_LENGTH", "The poll is not valid."));
    }
    let numbered = (1..).zip(answers).map(|(id, answer)| json!({ "answer_id": id, "poll_media": answer["poll_media"] }));
    Ok(json!({
        "question": poll["question"],
        "answers": numbered.collect::<Vec<_>>(),
        "expiry": iso8601(now_ms() + poll["duration"].as_u64().unwrap_or(24) * 3_600_000),
        "allow_multiselect": poll["allow_multiselect"].as_bool().unwrap_or_default(),
        "layout_type": poll["layout_type"].as_u64().unwrap_or(1),
    }))
}

impl Draft {
    /// Validates a message. Only these flags can be set.
    ///
    /// # Errors
    ///
    /// An empty message, a text that is too long, a field of another type, or a contradiction in `allowed_mentions`.
    pub fn read(body: &Value, flags: u64) -> Result<Self, Refusal> {
        if let Some(field) = UNSUPPORTED.into_iter().find(|field| !matches!(body[field], Value::Null | Value::Bool(false))) {
            return Err(Refusal::new(501, 0, &format!("the counterpart supports no {field}")));
        }
        let content = match &body["content"] {
            Value::Null => "",
            Value::String(text) => text.trim(),
            _ => return Err(Refusal::field(&["content"], "BASE_TYPE_STRING", "Could not interpret value as string.")),
        };
        if content.chars().count() > CONTENT {
            let message = format!("Must be {CONTENT} or fewer in length.");
            return Err(Refusal::field(&["content"], "BASE_TYPE_MAX_LENGTH", &message));
        }
        let allowed = Allowed::read(&body["allowed_mentions"])?;
        let (embeds, components) = (check_embeds(body)?, body["components"].as_array().cloned().unwrap_or_default());
        check_components(body)?;
        let poll = body.get("poll").filter(|poll| !poll.is_null()).map(created_poll).transpose()?;
        if content.is_empty() && embeds.is_empty() && components.is_empty() && poll.is_none() {
            return Err(Refusal::new(400, 50006, "Cannot send an empty message"));
        }
        let flags = body["flags"].as_u64().unwrap_or_default() & flags;
        Ok(Self { content: content.to_owned(), embeds, components, poll, flags, allowed })
    }

    /// Who is notified. Everyone, and roles that are not mentionable, need a permission. Webhooks have it.
    pub fn mentions(&self, world: &World, guild: Option<&Guild>, sender: Sender) -> Mentions {
        let names = named(&self.content);
        let usual = Allowed {
            parse: if sender == Sender::Bot { &["users", "roles", "everyone"][..] } else { &["users"] }
                .iter()
                .map(|kind| (*kind).to_owned())
                .collect(),
            ..Allowed::default()
        };
        let allowed = self.allowed.as_ref().unwrap_or(&usual);
        let parses = |kind: &str| allowed.parse.iter().any(|parsed| parsed == kind);
        let all = sender == Sender::Webhook
            || guild.is_some_and(|guild| in_guild(guild, world.bot()).contains(Permissions::MENTION_EVERYONE));
        let role = |id: &Id| guild.and_then(|guild| guild.roles.get(id)).is_some_and(|role| role.mentionable || all);
        let mut users: Vec<Id> = names.users.into_iter().filter(|id| parses("users") || allowed.users.contains(id)).collect();
        users.retain(|id| world.users.contains_key(id));
        let roles = names.roles.into_iter().filter(|id| (parses("roles") || allowed.roles.contains(id)) && role(id));
        Mentions { users, roles: roles.collect(), everyone: names.everyone && parses("everyone") && all && guild.is_some() }
    }
}

impl Allowed {
    fn read(value: &Value) -> Result<Option<Self>, Refusal> {
        if value.is_null() {
            return Ok(None);
        }
        let wrong = |path: &[&str], code: &str, message: &str| {
            let path: Vec<&str> = ["allowed_mentions"].iter().chain(path).copied().collect();
            Refusal::field(&path, code, message)
        };
        let object = value.as_object().ok_or_else(|| wrong(&[], "MODEL_TYPE_CONVERT", "Only dictionaries may be used."))?;
        let list = |field: &str| -> Result<Vec<Value>, Refusal> {
            match object.get(field) {
                None | Some(Value::Null) => Ok(Vec::new()),
                Some(Value::Array(list)) => Ok(list.clone()),
                Some(_) => Err(wrong(&[field], "LIST_TYPE_CONVERT", "Only iterables may be used.")),
            }
        };
        let parse: Vec<String> = list("parse")?.iter().map(|kind| kind.as_str().unwrap_or_default().to_owned()).collect();
        if parse.iter().any(|kind| !["users", "roles", "everyone"].contains(&kind.as_str())) {
            let message = "Value must be one of ('users', 'roles', 'everyone').";
            return Err(wrong(&["parse", "0"], "BASE_TYPE_CHOICES", message));
        }
        let mut ids = [Vec::new(), Vec::new()];
        for (ids, kind) in ids.iter_mut().zip(["users", "roles"]) {
            let listed = list(kind)?;
            if listed.len() > 100 {
                return Err(wrong(&[kind], "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length."));
            }
            if !listed.is_empty() && parse.iter().any(|parsed| parsed == kind) {
                let message = format!("parse:[\"{kind}\"] and {kind}: [ids...] are mutually exclusive.");
                return Err(wrong(&[], "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", &message));
            }
            let read =
                |id: &Value| Id::read(id).ok_or_else(|| wrong(&[kind, "0"], "NUMBER_TYPE_COERCE", "Value is not snowflake."));
            *ids = listed.iter().map(read).collect::<Result<_, _>>()?;
        }
        let [users, roles] = ids;
        Ok(Some(Self { parse, users, roles }))
    }
}
