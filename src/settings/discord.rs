//! Section `discord`: the bot and its limits on Discord. Without a token Discord is off.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::console::MOST_IN_A_ROOM;
use super::secret::{bare_secret, first_line, secret};
use super::{Problem, duration, within};
use crate::domain::id::CompanionId;

/// The longest text, in bytes, that is accepted as a token.
const LONGEST_TOKEN: usize = 256;

/// The maximum number of a bot's connections, whether it is set here or recommended by Discord.
pub const MOST_SHARDS: u32 = 16_000;

/// The maximum number of companions of its own that a guild can have. With the operator's, they should fit into one of Discord's menus.
pub const MOST_OWN_COMPANIONS: u32 = 20;
/// The maximum number of bridges. They are searched for each message of a program.
pub const MOST_BRIDGES: usize = 100;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discord {
    /// The bot's token, only from the environment (`TERTULIA__DISCORD__TOKEN`). See also `token_file`.
    pub token: Option<SecretString>,
    /// A file whose first line is the token.
    pub token_file: Option<PathBuf>,
    /// The URL of Discord's REST API, without a version. Tests and proxies use another one.
    pub api_url: String,
    /// The URL of the gateway. `None`: the one that Discord announces.
    pub gateway_url: Option<String>,
    /// Whether to request the text of all messages.
    pub message_content: MessageContent,
    /// The text below the bot's name, 1 to 128 characters. `None`: no text.
    pub presence: Option<String>,
    /// The number of connections to the gateway, 1 to 16,000. `None`: as many as Discord recommends.
    pub shards: Option<NonZeroU32>,
    /// The companions that answer in direct messages: at most [`MOST_IN_A_ROOM`], without duplicates. `None`: the first one by
    /// id. Empty: none.
    pub direct_companions: Option<Vec<CompanionId>>,
    /// The ids of the voice channels that the bot enters as soon as a person is in them. It enters other voice channels on
    /// request.
    #[serde(default)]
    pub voice_channels: Vec<String>,
    /// Whether the text chat of a voice channel shows a notice that companions listen to the call.
    pub voice_notice: bool,
    /// The number of companions of its own that the managers of each guild can make: 0 to [`MOST_OWN_COMPANIONS`].
    pub own_companions: u32,
    /// Whether the bot reacts to a message that stops a statement in progress, where it may add reactions.
    pub acknowledge_stop: bool,
    /// Whether reactions of people on companions' statements are recorded.
    pub reactions: bool,
    /// The ids of webhooks, applications and bots that relay messages of people from elsewhere, at most [`MOST_BRIDGES`]. Such a message counts
    /// as one of a person with the shown name.
    #[serde(default)]
    pub bridges: Vec<String>,
    /// Whether companions may mention people who take part in a conversation.
    pub mention_people: bool,
    /// Whether Discord shows previews of links that companions write.
    pub embed_links: bool,
    /// The maximum number of messages per channel that are read after a downtime, 0 to 5,000.
    pub backfill_messages: u32,
    /// The maximum age of these messages, in seconds: 0 to 2,592,000.
    pub backfill_secs: f64,
    /// The rate of requests for reading them, per second: 1 to 50. Discord allows 50 for all requests together.
    pub backfill_calls_per_second: u32,
    /// An absolute URL of at most 200 characters that identifies the operator of this bot to Discord. It is sent with every
    /// request.
    pub contact_url: String,
    /// Whether the server counts as not ready (`/readyz`) once the connection to Discord has ended for good.
    pub required: bool,
    /// The timeout of a request in seconds: 1 to 120. After a crash the server waits as long before it checks which messages were
    /// posted.
    pub request_timeout_secs: f64,
}

/// Whether the Message Content intent is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageContent {
    /// If the application has the intent enabled.
    Auto,
    /// Always. If the intent is not enabled, the bot does not start.
    On,
    /// Never. Only direct messages and messages that mention the bot have a text.
    Off,
}

impl Discord {
    /// Checks all ranges and URLs, and returns the first problem.
    pub fn check(&self) -> Result<(), Problem> {
        if self.token.is_some() && self.token_file.is_some() {
            return Err(Problem::new("token_file", "is set together with token; set only one of them"));
        }
        if let Some(token) = &self.token {
            check_token("token", token.expose_secret())?;
        }
        if self.required && !self.is_on() {
            let message = "is true, but there is no token; set token_file (or TERTULIA__DISCORD__TOKEN), or remove required";
            return Err(Problem::new("required", message));
        }
        self.api()?;
        self.gateway()?;
        self.check_contact()?;
        if let Some(presence) = &self.presence
            && (presence.trim().is_empty() || presence.chars().count() > 128 || presence.chars().any(char::is_control))
        {
            return Err(Problem::new("presence", "must have 1 to 128 characters in one line; remove it to show nothing"));
        }
        if let Some(shards) = self.shards {
            within("shards", shards.get(), 1..=MOST_SHARDS)?;
        }
        let direct = self.direct_companions.as_deref().unwrap_or_default();
        if let Some(twice) = (1..direct.len()).find(|&at| direct[..at].contains(&direct[at])) {
            return Err(Problem::new("direct_companions", format!("names {} twice, name it once", direct[twice])));
        }
        if direct.len() > MOST_IN_A_ROOM {
            let message = format!("names {} companions, at most {MOST_IN_A_ROOM} can be in a direct message", direct.len());
            return Err(Problem::new("direct_companions", message));
        }
        let is_id = |id: &String| id.parse::<u64>().is_ok_and(|number| number > 0 && !id.starts_with(['+', '0']));
        if let Some(other) = self.bridges.iter().find(|id| !is_id(id)) {
            let message =
                format!("names {other:?}, which is no id of a webhook, an application or a bot, such as \"123456789012345678\"");
            return Err(Problem::new("bridges", message));
        }
        within("bridges (their number)", self.bridges.len(), 0..=MOST_BRIDGES)?;
        if let Some(other) = self.voice_channels.iter().find(|id| !is_id(id)) {
            let message = format!("names {other:?}, which is no id of a channel: copy it in Discord with \"Copy Channel ID\"");
            return Err(Problem::new("voice_channels", message));
        }
        within("own_companions", self.own_companions, 0..=MOST_OWN_COMPANIONS)?;
        within("backfill_messages", self.backfill_messages, 0..=5_000)?;
        within("backfill_secs", self.backfill_secs, 0.0..=2_592_000.0)?;
        within("backfill_calls_per_second", self.backfill_calls_per_second, 1..=50)?;
        within("request_timeout_secs", self.request_timeout_secs, 1.0..=120.0)
    }

    /// Checks that the contact URL can be part of a `User-Agent`, within its parentheses.
    fn check_contact(&self) -> Result<(), Problem> {
        let url = &self.contact_url;
        let is_plain = url.len() <= 200 && url.bytes().all(|byte| byte.is_ascii_graphic() && !b"(),".contains(&byte));
        let is_url = Url::parse(url).is_ok_and(|url| ["https", "http"].contains(&url.scheme()) && url.has_host());
        if is_plain && is_url {
            return Ok(());
        }
        let message =
            "must be a URL of at most 200 characters that begins with https:// and has no spaces, commas or parentheses";
        Err(Problem::new("contact_url", message))
    }

    /// The `User-Agent` that Discord requires: `DiscordBot ($url, $versionNumber)` (Discord's documentation, "API Reference", "User Agent").
    pub fn user_agent(&self) -> String {
        format!("DiscordBot ({}, {})", self.contact_url, env!("CARGO_PKG_VERSION"))
    }

    /// Whether Discord is used: a token or a token file is set.
    pub const fn is_on(&self) -> bool {
        self.token.is_some() || self.token_file.is_some()
    }

    /// The token without the prefix `Bot `, from the settings or its file. `None`: Discord is off.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the text is not a bot's token. The message never contains it.
    pub fn token(&self) -> Result<Option<SecretString>, Problem> {
        let secret = secret(("token", self.token.as_ref()), ("token_file", self.token_file.as_deref()))?;
        let Some((key, token)) = secret else { return Ok(None) };
        let token = bare_secret(key, first_line(&token))?;
        check_token(key, token)?;
        Ok(Some(bare(token).into()))
    }

    /// The URL of the REST API.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, or if it would send the token unencrypted to another machine.
    pub fn api(&self) -> Result<Url, Problem> {
        parse_url("api_url", &self.api_url, ["https", "http"], "https://discord.com/api")
    }

    /// The URL of the gateway, if it is set.
    ///
    /// # Errors
    /// The same as for [`api`](Self::api).
    pub fn gateway(&self) -> Result<Option<Url>, Problem> {
        let url = self.gateway_url.as_deref();
        url.map(Self::gateway_at).transpose()
    }

    /// Parses the URL of a gateway, which may come from Discord.
    ///
    /// # Errors
    /// The same as for [`api`](Self::api).
    pub fn gateway_at(url: &str) -> Result<Url, Problem> {
        parse_url("gateway_url", url, ["wss", "ws"], "wss://gateway.discord.gg")
    }

    /// `backfill_secs` as a duration.
    pub fn backfill_age(&self) -> Duration {
        duration(self.backfill_secs)
    }

    /// `request_timeout_secs` as a duration.
    pub fn request_timeout(&self) -> Duration {
        duration(self.request_timeout_secs)
    }
}

/// Strips white space and the prefix `Bot `, which precedes the token in a request.
fn bare(token: &str) -> &str {
    let token = token.trim();
    token.strip_prefix("Bot ").map_or(token, str::trim_start)
}

/// Checks a bot's token: three parts of letters, digits, `-` and `_`, separated by dots. Frequent mistakes, such as pasting
/// another secret, get an error message of their own.
fn check_token(key: &str, token: &str) -> Result<(), Problem> {
    let remedy = "copy the token from the Bot page of the developer portal (Reset Token)";
    let token = bare(token);
    let problem = if token.is_empty() {
        format!("is empty; {remedy}, or remove the key to run without Discord")
    } else if token.len() > LONGEST_TOKEN {
        format!(
            "has {} characters, more than any token ({LONGEST_TOKEN} at most); {remedy} and nothing else",
            token.chars().count()
        )
    } else if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        format!("contains characters that no token has; {remedy} and nothing else, without quotes")
    } else if token.split('.').count() != 3 || token.split('.').any(str::is_empty) {
        format!(
            "is not a bot's token, which has three parts with dots between them (a client secret or a public key has no dots); {remedy}"
        )
    } else {
        return Ok(());
    };
    Err(Problem::new(key, problem))
}

fn parse_url(key: &str, text: &str, schemes: [&str; 2], example: &str) -> Result<Url, Problem> {
    let [secure, plain] = schemes;
    let refused = |message: String| Problem::new(key, format!("{message}, for example \"{example}\""));
    let url = Url::parse(text).map_err(|error| refused(format!("is not a URL ({error}); give the whole URL")))?;
    if !schemes.contains(&url.scheme()) || !url.has_host() {
        return Err(refused(format!("must begin with {secure}:// and name a host")));
    }
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    if !is_bare {
        return Err(refused("must not contain a user, a password, a ? or a #".to_owned()));
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if url.scheme() == plain && !is_here {
        return Err(refused(format!("begins with {plain}://, which would send the token unencrypted; use {secure}://")));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "MTA5.Gx-0_a.bcdefghijk";

    #[test]
    fn without_a_token_discord_is_off() {
        assert!(!defaults().is_on());
        assert!(defaults().token().unwrap().is_none());
        assert!(defaults().check().is_ok());
    }

    #[test]
    fn required_discord_needs_a_token() {
        let problem = Discord { required: true, ..defaults() }.check().unwrap_err();

        assert_eq!(problem.key, "required");
        assert!(problem.message.contains("there is no token; set token_file"), "{problem}");
        assert!(Discord { required: true, ..with_token(TOKEN) }.check().is_ok());
    }

    #[test]
    fn a_token_comes_from_the_environment_or_the_first_line_of_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("Bot {TOKEN}\nnot this\n")).unwrap();
        let from_file = Discord { token_file: Some(file.path().into()), ..defaults() };

        for discord in [with_token(TOKEN), with_token(&format!(" Bot {TOKEN}\n")), from_file] {
            assert!(discord.is_on());
            assert!(discord.check().is_ok());
            assert_eq!(discord.token().unwrap().unwrap().expose_secret(), TOKEN);
        }
    }

    #[test]
    fn an_invalid_token_is_rejected_and_never_printed() {
        for (token, expected) in [
            ("", "is empty"),
            (" ", "is empty"),
            ("secretsecretsecretsecretsecret32", "is not a bot's token"),
            ("secret.x", "is not a bot's token"),
            ("secret..x", "is not a bot's token"),
            ("\"secret.x.y\"", "contains characters"),
            ("secret x.y.z", "contains characters"),
            (&format!("secret.{}.y", "x".repeat(250)), "has 259 characters, more than any token (256 at most)"),
        ] {
            let discord = with_token(token);

            let problem = discord.check().unwrap_err();

            assert_eq!(problem.key, "token");
            assert!(problem.message.starts_with(expected), "{token:?}: {problem}");
            assert!(!problem.to_string().contains("secretsecret") && !problem.to_string().contains("secret.x"));
            assert!(!format!("{discord:?}").contains("secret.") && !format!("{discord:?}").contains("secretsecret"));
        }
    }

    #[test]
    fn the_user_agent_contains_the_contact_url() {
        let own = Discord { contact_url: "https://bots.example/us".into(), ..defaults() };

        assert!(own.check().is_ok());
        assert!(own.user_agent().starts_with("DiscordBot (https://bots.example/us, "), "{}", own.user_agent());
        assert!(!defaults().user_agent().contains(".example"), "the default URL is a real one");
    }

    #[test]
    fn a_missing_token_file_is_named() {
        let discord = Discord { token_file: Some("/nowhere/token".into()), ..defaults() };

        assert!(discord.token().unwrap_err().to_string().starts_with("token_file: /nowhere/token cannot be read"));
        assert_eq!(Discord { token: Some(TOKEN.into()), ..discord }.check().unwrap_err().key, "token_file");
    }

    #[test]
    fn a_token_never_leaves_this_machine_unencrypted() {
        for (url, is_accepted) in [
            ("https://discord.com/api", true),
            ("http://127.0.0.1:9000/api", true),
            ("http://localhost:9000", true),
            ("http://[::1]:9000", true),
            ("http://proxy.example/api", false),
            ("http://127.0.0.1.example", false),
            ("https://me@discord.com/api", false),
            ("https://discord.com/api?v=10", false),
            ("discord.com/api", false),
            ("wss://discord.com", false),
            ("", false),
        ] {
            assert_eq!(Discord { api_url: url.to_owned(), ..defaults() }.check().is_ok(), is_accepted, "{url}");
        }
        for (url, is_accepted) in [
            ("wss://gateway.discord.gg", true),
            ("ws://127.0.0.1:1", true),
            ("ws://a.example", false),
            ("https://a.example", false),
        ] {
            assert_eq!(Discord { gateway_url: Some(url.to_owned()), ..defaults() }.check().is_ok(), is_accepted, "{url}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_named_with_its_range() {
        let many = (0..33).map(|number| format!("c{number}").into()).collect();
        for (discord, key) in [
            (Discord { presence: Some(" ".into()), ..defaults() }, "presence"),
            (Discord { presence: Some("é".repeat(129)), ..defaults() }, "presence"),
            (Discord { shards: NonZeroU32::new(16_001), ..defaults() }, "shards"),
            (Discord { direct_companions: Some(vec!["aria".into(); 2]), ..defaults() }, "direct_companions"),
            (Discord { direct_companions: Some(many), ..defaults() }, "direct_companions"),
            (Discord { backfill_messages: 5_001, ..defaults() }, "backfill_messages"),
            (Discord { backfill_secs: f64::NAN, ..defaults() }, "backfill_secs"),
            (Discord { backfill_calls_per_second: 51, ..defaults() }, "backfill_calls_per_second"),
            (Discord { request_timeout_secs: 0.0, ..defaults() }, "request_timeout_secs"),
            (Discord { contact_url: "https://a.example/(us)".into(), ..defaults() }, "contact_url"),
            (Discord { contact_url: "a.example".into(), ..defaults() }, "contact_url"),
            (Discord { contact_url: format!("https://a.example/{}", "x".repeat(200)), ..defaults() }, "contact_url"),
        ] {
            assert_eq!(discord.check().unwrap_err().key, key);
        }
    }

    fn with_token(token: &str) -> Discord {
        Discord { token: Some(token.into()), ..defaults() }
    }

    /// The section in `config/default.toml`.
    fn defaults() -> Discord {
        crate::samples::defaults().discord.clone()
    }
}
