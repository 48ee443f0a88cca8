//! Statements of companions on Discord: the real adapter posts them to the test double.

mod delivering;
mod delivery_errors;
mod failing;
mod logged;
mod measuring;
mod nonsense;
mod reading;
mod refusing;
mod speaking;

use std::sync::Arc;

use tertulia::adapters::discord::platform::Discord;
use tertulia::adapters::discord::snowflake::Snowflake;
use tertulia::adapters::system::SystemClock;
use tertulia::ports::chat_platform::{ChatPlatform as _, NotSent, Part};
use tertulia::settings::Settings;
use tertulia::settings::discord::Discord as Section;

use super::counterpart::Counterpart;
use super::counterpart::id::Id;
use super::counterpart::rules::Rules;

/// A test double whose limits no test reaches, with one guild and one channel.
async fn home() -> (Counterpart, Id, Id) {
    let discord = Counterpart::with_rules(Rules::roomy()).await;
    let guild = discord.guild("Home");
    let general = discord.channel(guild, "general");
    (discord, guild, general)
}

/// The adapter with default settings, except for the address of the API.
fn client(discord: &Counterpart) -> Arc<Discord> {
    client_with(discord, |_| {})
}

/// The adapter with changed settings.
fn client_with(discord: &Counterpart, change: impl FnOnce(&mut Section)) -> Arc<Discord> {
    client_at(&discord.token(), &discord.api_url(), change)
}

fn client_at(token: &str, api_url: &str, change: impl FnOnce(&mut Section)) -> Arc<Discord> {
    Arc::new(adapter(token, api_url, change))
}

fn adapter(token: &str, api_url: &str, change: impl FnOnce(&mut Section)) -> Discord {
    let defaults = Settings::defaults().expect("the default settings are valid");
    let mut section: Section = defaults["discord"].clone().try_into().expect("the section is valid");
    section.api_url = format!("{api_url}/api");
    change(&mut section);
    Discord::new(&section, token.into(), Arc::new(SystemClock)).expect("the settings are valid")
}

/// A statement by Mira in a channel of a guild, in one part.
fn part(channel: Id, text: &str) -> Part {
    Part {
        guild: "discord:1".into(),
        channel: snowflake(channel).channel(),
        companion: "mira".into(),
        name: "Mira".into(),
        picture: None,
        text: text.into(),
        nonce: format!("{channel}#{text}").into(),
    }
}

/// A statement by Mira in a direct message.
fn direct(channel: Id, text: &str) -> Part {
    Part { guild: snowflake(channel).direct_guild(), ..part(channel, text) }
}

fn snowflake(id: Id) -> Snowflake {
    Snowflake::new(id.0).expect("an id")
}

/// Sends a part, expects that it is posted, and returns the id of its message.
async fn say(client: &Discord, part: &Part) -> Id {
    let id = client.send(part).await.expect("the part is posted");
    Id::parse(&id).expect("an id")
}

/// Sends a part, expects that it is refused, and returns the reason.
async fn refusal(client: &Discord, part: &Part) -> String {
    match client.send(part).await {
        Err(NotSent::Refused(why) | NotSent::Unpostable(why)) => why,
        other => panic!("{other:?}"),
    }
}
