//! Error responses of the REST API.
//!
//! <https://docs.discord.com/developers/topics/opcodes-and-status-codes#json>, <https://docs.discord.com/developers/reference#error-messages>

use serde_json::{Value, json};

/// A refused request: the status, Discord's own code and a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: u16,
    pub code: u32,
    pub message: String,
    /// Which fields are wrong, for 50035.
    pub errors: Option<Value>,
}

impl Refusal {
    pub fn new(status: u16, code: u32, message: &str) -> Self {
        Self { status, code, message: message.to_owned(), errors: None }
    }

    /// An invalid field. The path leads to it through objects and arrays.
    pub fn field(path: &[&str], code: &str, message: &str) -> Self {
        let wrong = json!({ "_errors": [{ "code": code, "message": message }] });
        let errors = path.iter().rev().fold(wrong, |inner, key| json!({ *key: inner }));
        Self { errors: Some(errors), ..Self::new(400, 50035, "Invalid Form Body") }
    }

    /// A required field that is missing.
    pub fn missing(path: &[&str]) -> Self {
        Self::field(path, "BASE_TYPE_REQUIRED", "This field is required")
    }

    /// A text that is too long or too short.
    pub fn length(path: &[&str], from: usize, to: usize) -> Self {
        Self::field(path, "BASE_TYPE_BAD_LENGTH", &format!("Must be between {from} and {to} in length."))
    }

    pub fn unauthorized() -> Self {
        Self::new(401, 0, "401: Unauthorized")
    }

    pub fn no_such_route() -> Self {
        Self::new(404, 0, "404: Not Found")
    }

    pub fn method_not_allowed() -> Self {
        Self::new(405, 0, "405: Method Not Allowed")
    }

    pub fn unknown(what: Unknown) -> Self {
        let (code, name) = match what {
            Unknown::Channel => (10003, "Channel"),
            Unknown::Guild => (10004, "Guild"),
            Unknown::Member => (10007, "Member"),
            Unknown::Message => (10008, "Message"),
            Unknown::User => (10013, "User"),
            Unknown::Webhook => (10015, "Webhook"),
            Unknown::Interaction => (10062, "interaction"),
            Unknown::VoiceState => (10065, "Voice State"),
        };
        Self::new(404, code, &format!("Unknown {name}"))
    }

    pub fn missing_access() -> Self {
        Self::new(403, 50001, "Missing Access")
    }

    pub fn missing_permissions() -> Self {
        Self::new(403, 50013, "Missing Permissions")
    }

    pub fn body(&self) -> Value {
        let mut body = json!({ "message": self.message, "code": self.code });
        if let Some(errors) = &self.errors {
            body["errors"] = errors.clone();
        }
        body
    }
}

/// The kind of object that does not exist.
#[derive(Clone, Copy, Debug)]
pub enum Unknown {
    Channel,
    Guild,
    Member,
    Message,
    User,
    Webhook,
    Interaction,
    VoiceState,
}
