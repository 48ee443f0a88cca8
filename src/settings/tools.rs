//! Section `tools`: what companions may do besides speaking, and whose right that is.

pub mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reqwest::Url;
use serde::Deserialize;

use self::server::ToolServer;
use super::models::parsed_endpoint;
use super::{Problem, seconds, within};
use crate::domain::budget::DailyCalls;
use crate::domain::id::GuildId;
use crate::domain::tools::built_in::BuiltIn;
use crate::domain::tools::{Allow, CAUSE, Confirm, RightSetting};

const MOST_OF_DAY: u32 = 1_000_000;
/// The maximum number of ids in a list.
const MOST_IDS: usize = 100;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// The maximum number of calls in a reply (0 to 10). 0: no tools are offered.
    pub calls_per_reply: usize,
    /// How long a call may take, in seconds (0.1 to 60).
    pub timeout_secs: f64,
    /// The most calls of search and of servers' tools within a day (0 to 1,000,000), in a guild and by one person in it.
    pub guild_calls_per_day: u32,
    pub person_calls_per_day: u32,
    /// What a call costs, in `models.currency` (0 to 1,000), by tool.
    #[serde(default)]
    pub prices: BTreeMap<Arc<str>, f64>,
    /// The people on Discord who count as operators, by id. On the console, the signed-in operator does.
    pub operators: BTreeSet<Arc<str>>,
    /// The rights to tools, by name. Absent keys have the defaults of the tool.
    #[serde(default)]
    pub rights: BTreeMap<Arc<str>, RightSetting>,
    /// The URL of a SearXNG whose search companions may use. `None`: they have no search.
    pub search_url: Option<String>,
    /// The servers of tools by name, at most 16.
    #[serde(default)]
    pub servers: BTreeMap<Arc<str>, ToolServer>,
}

seconds! {
    Tools {
        timeout = timeout_secs,
    }
}

impl Tools {
    pub(super) fn check(&self) -> Result<(), Problem> {
        within("calls_per_reply", self.calls_per_reply, 0..=10)?;
        within("timeout_secs", self.timeout_secs, 0.1..=60.0)?;
        within("guild_calls_per_day", self.guild_calls_per_day, 0..=MOST_OF_DAY)?;
        within("person_calls_per_day", self.person_calls_per_day, 0..=MOST_OF_DAY)?;
        self.prices.iter().try_for_each(|(name, price)| within(&format!("prices.{name}"), *price, 0.0..=1_000.0))?;
        check_ids("operators", self.operators.iter(), &[])?;
        for (name, right) in &self.rights {
            if **name == *BuiltIn::Poll.as_str() && right.confirm == Some(Confirm::Always) {
                let message = "is \"always\", but a poll stands in the statement that adds it, which waits for nobody; remove it";
                return Err(Problem::new(format!("rights.{name}.confirm"), message));
            }
            check_ids(&format!("rights.{name}.roles"), right.roles.iter(), &[])?;
            check_ids(&format!("rights.{name}.approvers"), right.approvers.iter().flatten(), &[CAUSE])?;
            if let Some(guild) = right.guilds.iter().flatten().find(|guild| !is_guild(guild)) {
                let message = format!(
                    "{:?} is not the id of a guild, such as \"discord:81384788765712384\", or \"home\" for rooms of the page",
                    guild.as_str()
                );
                return Err(Problem::new(format!("rights.{name}.guilds"), message));
            }
            if (right.allow == Some(Allow::Roles)) == right.roles.is_empty() {
                let message = "is needed with allow = \"roles\", and only then: list the ids of the roles, or remove both";
                return Err(Problem::new(format!("rights.{name}.roles"), message));
            }
        }
        self.search_url()?;
        server::check(&self.servers)
    }

    pub const fn most_of_day(&self) -> DailyCalls {
        DailyCalls { guild: self.guild_calls_per_day as u64, person: self.person_calls_per_day as u64 }
    }

    /// The URL of the SearXNG.
    ///
    /// # Errors
    /// Returns an error if it cannot be used.
    pub fn search_url(&self) -> Result<Option<Url>, Problem> {
        self.search_url.as_deref().map(|url| parsed_endpoint("search_url", url, "http://127.0.0.1:8888")).transpose()
    }
}

/// Whether an id can be that of a guild. One of digits alone lacks its platform; a group of rooms of the page can have any other name.
fn is_guild(guild: &GuildId) -> bool {
    let is_number = |id: &str| id.bytes().all(|byte| byte.is_ascii_digit());
    match guild.as_str().strip_prefix("discord:") {
        Some(id) => !id.is_empty() && is_number(id),
        None => !is_number(guild.as_str()),
    }
}

/// Checks a list of Discord's ids, which are numbers, and of these words.
fn check_ids<'a>(key: &str, ids: impl Iterator<Item = &'a Arc<str>>, words: &[&str]) -> Result<(), Problem> {
    let ids: Vec<&Arc<str>> = ids.collect();
    if ids.len() > MOST_IDS {
        return Err(Problem::new(key, format!("has {} entries, at most {MOST_IDS} are allowed", ids.len())));
    }
    let is_id = |id: &str| (1..=20).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit());
    match ids.iter().position(|id| !is_id(id) && !words.contains(&&***id)) {
        Some(index) => {
            let also = words.iter().map(|word| format!(", or {word:?}")).collect::<String>();
            let message = format!("= {:?} is not an id of Discord, a number such as \"81384788765712384\"{also}", ids[index]);
            Err(Problem::new(format!("{key}[{index}]"), message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Settings;

    #[test]
    fn what_is_wrong_with_rights_is_said_with_its_place() {
        let cases = [
            (json!({ "calls_per_reply": 11 }), "tools.calls_per_reply"),
            (json!({ "timeout_secs": 0 }), "tools.timeout_secs"),
            (json!({ "person_calls_per_day": 1_000_001 }), "tools.person_calls_per_day"),
            (json!({ "prices": { "search": -1 } }), "tools.prices.search"),
            (json!({ "operators": ["ana"] }), "tools.operators[0]"),
            (json!({ "rights": { "roll": { "allow": "roles" } } }), "tools.rights.roll.roles"),
            (json!({ "rights": { "roll": { "roles": ["7"] } } }), "tools.rights.roll.roles"),
            (json!({ "rights": { "roll": { "approvers": ["cause", "ben"] } } }), "tools.rights.roll.approvers[1]"),
            (
                json!({ "rights": { "roll": { "guilds": ["home", "discord:9", "81384788765712384"] } } }),
                "tools.rights.roll.guilds",
            ),
            (json!({ "rights": { "roll": { "guilds": ["discord:home"] } } }), "tools.rights.roll.guilds"),
            (json!({ "rights": { "roll": { "allow": "all" } } }), "tools.rights.roll.allow"),
            (json!({ "rights": { "roll": { "allows": "nobody" } } }), "tools.rights.roll.allows"),
        ];
        for (tools, place) in cases {
            let wrong = Settings::overlay(json!({ "tools": tools })).unwrap_err();

            assert!(format!("{wrong:?}").contains(place), "{wrong:?} is about {place}");
        }
        let right = json!({ "guilds": ["home", "discord:81384788765712384"], "allow": "roles", "roles": ["7"], "approvers": ["cause", "9"], "confirm": "always" });
        assert!(
            Settings::overlay(json!({ "tools": { "operators": ["81384788765712384"], "rights": { "a__b": right } } })).is_ok()
        );
    }
}
