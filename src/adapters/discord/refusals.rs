//! Explains Discord's refusals to users: what does not work, and how to fix it.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::permissions::Need;

/// The limit of characters shown of Discord's own message.
const MAX_MESSAGE_CHARS: usize = 300;

/// Discord's error codes that the adapter handles (Discord's documentation, "Opcodes and Status Codes", "JSON Error Codes").
pub mod code {
    pub const UNKNOWN_GUILD: u32 = 10_004;
    /// The bot is not in the guild, or cannot see the channel.
    pub const MISSING_ACCESS: u32 = 50_001;
    pub const UNKNOWN_CHANNEL: u32 = 10_003;
    pub const UNKNOWN_MESSAGE: u32 = 10_008;
    pub const UNKNOWN_WEBHOOK: u32 = 10_015;
    /// The server demands two-factor authentication, which the application's owner does not have.
    pub const TWO_FACTORS: u32 = 60_003;
    /// A field of the request is invalid.
    pub const INVALID_BODY: u32 = 50_035;
    /// The webhook's token is no longer valid.
    pub const INVALID_WEBHOOK_TOKEN: u32 = 50_027;
}

/// The limit of invalid fields that are named.
const MAX_FIELDS: usize = 3;

/// The invalid fields with Discord's message for each, to append to its main message: `: username: Must be … ; embeds.0.title: …`. Empty if Discord
/// names none ("Opcodes and Status Codes", "JSON", "Error Messages" in "API Reference").
pub fn wrong_fields(errors: &Value) -> String {
    let mut found = Vec::new();
    collect(errors, &mut Vec::new(), &mut found);
    if found.is_empty() { String::new() } else { format!(": {}", found.join("; ")) }
}

fn collect<'a>(errors: &'a Value, path: &mut Vec<&'a str>, found: &mut Vec<String>) {
    let Value::Object(fields) = errors else { return };
    for (name, inner) in fields {
        if found.len() >= MAX_FIELDS {
            return;
        }
        if name != "_errors" {
            path.push(name);
            collect(inner, path, found);
            path.pop();
        } else if let Some(message) = inner.get(0).and_then(|first| first["message"].as_str()) {
            let field = if path.is_empty() { "the request" } else { &path.join(".") };
            found.push(format!("{field}: {message}"));
        }
    }
}

/// The problem and its fix, for a channel without room for the bot's webhook.
pub const NO_ROOM_FOR_WEBHOOK: (&str, &str) = (
    "The channel has 15 webhooks, as many as Discord allows, and none is the bot's.",
    "Edit Channel > Integrations > Webhooks > delete one that nobody needs.",
);

/// A permanent refusal of a request by Discord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status, 300 to 499.
    pub status: u16,
    /// Discord's error code; 0 if it gave none.
    pub code: u32,
    /// Discord's own message.
    message: String,
}

impl Refusal {
    /// `message` is Discord's own message; it is shortened for display.
    pub fn new(status: u16, code: u32, message: &str) -> Self {
        let plain = message.chars().map(|c| if c.is_control() { ' ' } else { c });
        Self { status, code, message: plain.take(MAX_MESSAGE_CHARS).collect() }
    }

    /// Whether the bot is not a member of the requested guild.
    pub const fn means_not_a_member(&self) -> bool {
        matches!(self.code, code::UNKNOWN_GUILD | code::MISSING_ACCESS)
    }

    /// The kind of refusal: `permission`, `gone`, `full`, `locked`, `blocked`, `closed`, `token`, `invalid` or `other`.
    pub const fn kind(&self) -> &'static str {
        match (self.code, self.status) {
            (30_001..=30_999, _) => "full",
            (20_016 | 20_028 | 50_083 | 160_005, _) => "locked",
            (200_000 | 200_001, _) => "blocked",
            (50_007 | 50_278, _) => "closed",
            (code::TWO_FACTORS, _) => "permission",
            (code::UNKNOWN_CHANNEL..=10_999 | code::INVALID_WEBHOOK_TOKEN, _) | (_, 404) => "gone",
            (_, 401) => "token",
            (_, 403) => "permission",
            (_, 400) => "invalid",
            _ => "other",
        }
    }

    /// Whether every other message in the same channel would be refused too, until a setting is changed.
    pub fn blocks_all_messages(&self) -> bool {
        // Slow mode ends without intervention.
        let is_slow_mode = matches!(self.code, 20_016 | 20_028);
        // This kind of channel has no messages.
        let is_no_text_channel = matches!(self.code, 50_008 | 50_024 | 40_058 | 220_001);
        let is_blocked = matches!(self.kind(), "permission" | "gone" | "full" | "locked" | "closed" | "token");
        is_no_text_channel || (is_blocked && !is_slow_mode)
    }

    /// Whether the webhook is no longer usable.
    pub const fn is_webhook_gone(&self) -> bool {
        matches!(self.code, code::UNKNOWN_WEBHOOK | code::INVALID_WEBHOOK_TOKEN)
    }

    /// The text of the refusal. If a permission is missing, the text names the one that `need` requires.
    pub fn explain(&self, need: Need) -> String {
        if self.code == 50_013 {
            let (what, click) = need.explanation();
            return format!("{what} {click}");
        }
        self.to_string()
    }

    /// The meaning of the refusal and its fix. `None` if only Discord's own message explains it.
    fn explanation(&self) -> Option<Cow<'static, str>> {
        let (full, make_room) = NO_ROOM_FOR_WEBHOOK;
        let (locked, unlock) = Need::Unlocked.explanation();
        match self.code {
            30_007 => return Some(format!("{full} {make_room}").into()),
            160_005 => return Some(format!("{locked} {unlock}").into()),
            _ => {}
        }
        let text = match (self.code, self.status) {
            (10_003, _) => "The channel does not exist any more.",
            (10_004, _) => "The server does not exist any more.",
            (20_016 | 20_028, _) => "The channel is in slow mode. Edit Channel > Overview > Slowmode > Off.",
            (50_001, _) => {
                "The bot cannot see this channel. Edit Channel > Permissions > add the bot > allow View Channel; if the bot was removed \
                 from the server, invite it again."
            }
            (50_007 | 50_278, _) => {
                "This person accepts no direct messages from the bot. They must share a server with it and allow them: that server's \
                 menu > Privacy Settings > Direct Messages."
            }
            (50_013, _) => {
                "The bot lacks a permission here. Edit Channel > Permissions > add the bot > allow what the invitation asks for."
            }
            (50_008 | 50_024 | 40_058 | 220_001, _) => {
                "Nobody can write in a channel of this kind; in a forum, only in its posts."
            }
            (30_058, _) => {
                "The server has 1,000 webhooks, as many as Discord allows. Server Settings > Integrations > Webhooks > delete some."
            }
            (code::TWO_FACTORS, _) => {
                "This server requires two-factor authentication of its moderators, and so of the person who owns the bot's \
                 application: that person's User Settings > My Account > Enable Authenticator App."
            }
            (200_000 | 200_001, _) => {
                "AutoMod blocked the message. Server Settings > Safety Setup > AutoMod shows the rule; except the bot's role there."
            }
            (_, 401) => {
                "Discord refuses the bot's token. Developer Portal > the application > Bot > Reset Token, and use the new one."
            }
            _ => return None,
        };
        Some(text.into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.explanation() {
            f.write_str(&text)?;
            f.write_str(" ")?;
        }
        write!(f, "(Discord said {}", self.status)?;
        if self.code != 0 {
            write!(f, ", code {}", self.code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_refusals_say_what_to_click_and_others_quote_discord() {
        let full = Refusal::new(400, 30_007, "Maximum number of webhooks reached (15)").to_string();
        let odd = Refusal::new(418, 7, "I am\na teapot").to_string();

        assert!(full.contains("Edit Channel > Integrations > Webhooks"), "{full}");
        assert_eq!(odd, "(Discord said 418, code 7: I am a teapot)");
        assert_eq!(Refusal::new(403, 0, "").to_string(), "(Discord said 403)");
    }

    #[test]
    fn a_missing_permission_is_named() {
        let lacking = Refusal::new(403, 50_013, "Missing Permissions").explain(Need::Webhooks);
        let hidden = Refusal::new(403, 50_001, "Missing Access").explain(Need::Webhooks);

        assert!(lacking.ends_with("allow Manage Webhooks."), "{lacking}");
        assert!(hidden.contains("allow View Channel"), "{hidden}");
    }

    #[test]
    fn invalid_fields_are_named() {
        let error =
            |message: &str| serde_json::json!({ "_errors": [{ "code": "X", "message": message }, { "message": "more" }] });
        let errors = serde_json::json!({ "username": error("Too long."), "embeds": { "0": { "title": error("Required.") } } });

        assert_eq!(wrong_fields(&errors), ": embeds.0.title: Required.; username: Too long.");
        assert_eq!(wrong_fields(&error("All of it.")), ": the request: All of it.");
        for none in [Value::Null, serde_json::json!([1]), serde_json::json!({ "a": { "_errors": [] }, "_errors": 7 })] {
            assert_eq!(wrong_fields(&none), "");
        }
        let many: serde_json::Map<_, _> = (0..100).map(|n| (n.to_string(), error("x"))).collect();
        assert_eq!(wrong_fields(&many.into()).matches("x").count(), MAX_FIELDS);
    }

    #[test]
    fn refusals_of_every_message_differ_from_those_of_one_message_and_from_slow_mode() {
        for (status, code, blocks) in [
            (403, 50_013, true),
            (403, 50_001, true),
            (400, 30_007, true),
            (400, 160_005, true),
            (403, 50_007, true),
            (404, 10_003, true),
            (401, 0, true),
            (400, 50_008, true),
            (400, 50_024, true),
            (400, 40_058, true),
            (400, 220_001, true),
            (400, 20_016, false),
            (400, 200_000, false),
            (400, 50_035, false),
        ] {
            assert_eq!(Refusal::new(status, code, "").blocks_all_messages(), blocks, "{status} {code}");
        }
    }
}
