//! The routes that the client uses: their paths, their names, and what handles them. Any other one is refused as unknown.

use std::collections::BTreeMap;

use super::rest::{Call, Reply};
use super::{Id, Refusal, State};

/// A route of the API.
#[derive(Debug)]
pub struct Route {
    method: &'static str,
    /// The path below `/api/v10`. Each part in braces is a parameter: `{token}` and `{emoji}` are texts, every other one is an id.
    path: &'static str,
    /// Its name in rules, faults and the journal. Routes with the same name share a bucket.
    pub name: &'static str,
    pub handle: fn(&mut State, &Call) -> Reply,
}

const ROUTES: &[Route] = &[
    route("GET", "gateway/bot", "gateway", State::gateway_bot),
    route("GET", "users/@me", "user", State::current_user),
    route("GET", "users/@me/guilds", "guilds", State::current_user_guilds),
    route("GET", "applications/@me", "application", State::current_application),
    route("PATCH", "applications/@me", "edit_application", State::edit_application),
    route("GET", "guilds/{guild}", "guild", State::guild),
    route("GET", "guilds/{guild}/channels", "guild_channels", State::guild_channels),
    route("GET", "guilds/{guild}/members/{user}", "guild_member", State::guild_member),
    route("PATCH", "guilds/{guild}/voice-states/@me", "ask_to_speak", State::ask_to_speak),
    route("GET", "guilds/{guild}/voice-states/{user}", "voice_state", State::user_voice_state),
    route("GET", "guilds/{guild}/webhooks", "webhooks", State::guild_webhooks),
    route("GET", "channels/{channel}", "channel", State::channel),
    route("GET", "channels/{channel}/messages", "messages", State::messages),
    route("POST", "channels/{channel}/messages", "create_message", State::create_message),
    route("GET", "channels/{channel}/messages/{message}", "message", State::message),
    route("PATCH", "channels/{channel}/messages/{message}", "edit_message", State::edit_message),
    route("DELETE", "channels/{channel}/messages/{message}", "delete_message", State::delete_message),
    route("PUT", "channels/{channel}/messages/{message}/reactions/{emoji}/@me", "react", State::react),
    route("POST", "channels/{channel}/typing", "typing", State::typing),
    route("GET", "channels/{channel}/webhooks", "webhooks", State::channel_webhooks),
    route("POST", "channels/{channel}/webhooks", "create_webhook", State::create_webhook),
    route("POST", "webhooks/{webhook}/{token}", "execute_webhook", State::execute_webhook),
    route("GET", "webhooks/{webhook}/{token}/messages/@original", "webhook_message", State::original_answer),
    route("GET", "webhooks/{webhook}/{token}/messages/{message}", "webhook_message", State::webhook_message),
    route("PATCH", "webhooks/{webhook}/{token}/messages/@original", "edit_webhook_message", State::edit_answer),
    route("PATCH", "webhooks/{webhook}/{token}/messages/{message}", "edit_webhook_message", State::edit_webhook_message),
    route("DELETE", "webhooks/{webhook}/{token}/messages/{message}", "delete_webhook_message", State::delete_webhook_message),
    route("POST", "interactions/{interaction}/{token}/callback", "interaction_callback", State::interaction_callback),
    route("GET", "applications/{application}/commands", "commands", State::commands),
    route("POST", "applications/{application}/commands", "create_command", State::create_command),
    route("GET", "applications/{application}/guilds/{guild}/commands", "commands", State::commands),
];

/// A percent-encoded text. None if it is not encoded well.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let digits = if byte == b'%' {
            [rest.next()?, rest.next()?]
        } else {
            bytes.push(byte);
            continue;
        };
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

const fn route(method: &'static str, path: &'static str, name: &'static str, handle: fn(&mut State, &Call) -> Reply) -> Route {
    Route { method, path, name, handle }
}

/// A request's route with the parameters of its path.
#[derive(Clone, Debug)]
pub struct Found {
    pub route: &'static Route,
    ids: BTreeMap<&'static str, Id>,
    token: Option<String>,
    /// The emoji in its path, decoded.
    pub emoji: Option<String>,
}

impl Found {
    /// Finds the route of a request.
    ///
    /// # Errors
    ///
    /// 404 for an unknown path, 405 for a path that has other methods, 400 for another version of the API.
    pub fn find(method: &str, path: &str) -> Result<Self, Refusal> {
        let path = path.strip_prefix("/api/").ok_or_else(Refusal::no_such_route)?;
        let (version, path) = path.split_once('/').ok_or_else(Refusal::no_such_route)?;
        if version != "v10" {
            return Err(Refusal::new(400, 50041, "Invalid API version provided"));
        }
        let matching: Vec<Self> = ROUTES.iter().filter_map(|route| Self::matching(route, path)).collect();
        let is_known = !matching.is_empty();
        let found = matching.into_iter().find(|found| found.route.method == method);
        found.ok_or_else(|| if is_known { Refusal::method_not_allowed() } else { Refusal::no_such_route() })
    }

    fn matching(route: &'static Route, path: &str) -> Option<Self> {
        let mut found = Self { route, ids: BTreeMap::new(), token: None, emoji: None };
        if route.path.split('/').count() != path.split('/').count() {
            return None;
        }
        for (expected, given) in route.path.split('/').zip(path.split('/')) {
            match expected.strip_prefix('{').and_then(|parameter| parameter.strip_suffix('}')) {
                Some("token") => found.token = Some(given.to_owned()),
                Some("emoji") => found.emoji = Some(decoded(given)?),
                Some(parameter) => drop(found.ids.insert(parameter, Id::parse(given)?)),
                None if expected == given => {}
                None => return None,
            }
        }
        Some(found)
    }

    pub fn id(&self, parameter: &str) -> Option<Id> {
        self.ids.get(parameter).copied()
    }

    /// The channel in its path.
    pub fn channel(&self) -> Option<Id> {
        self.id("channel")
    }

    /// The guild in its path, if that is a top-level resource.
    pub fn guild(&self) -> Option<Id> {
        self.id("guild").filter(|_| self.route.path.starts_with("guilds/"))
    }

    /// The webhook, application or interaction in its path, with its token.
    pub fn by_token(&self) -> Option<(Id, &str)> {
        self.id("webhook").or(self.id("interaction")).zip(self.token.as_deref())
    }

    /// Whether it works without the bot's token.
    pub fn is_open(&self) -> bool {
        self.token.is_some()
    }
}
