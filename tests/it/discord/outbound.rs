//! What companions say on Discord, sent by the real adapter to the counterpart.

mod delivering;
mod failing;
mod logged;
mod measuring;
mod nonsense;
mod reading;
mod refusing;
mod speaking;
mod troubles;

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

/// A Discord with room for every request, and one guild with one channel.
async fn home() -> (Counterpart, Id, Id) {
    let discord = Counterpart::with_rules(Rules::roomy()).await;
    let guild = discord.guild("Home");
    let general = discord.channel(guild, "general");
    (discord, guild, general)
}

/// The adapter, as it ships but for the address.
fn client(discord: &Counterpart) -> Arc<Discord> {
    client_with(discord, |_| {})
}

/// The adapter with other settings.
fn client_with(discord: &Counterpart, change: impl FnOnce(&mut Section)) -> Arc<Discord> {
    client_by(&discord.token(), &discord.api_url(), change)
}

fn client_by(token: &str, api_url: &str, change: impl FnOnce(&mut Section)) -> Arc<Discord> {
    Arc::new(adapter(token, api_url, change))
}

fn adapter(token: &str, api_url: &str, change: impl FnOnce(&mut Section)) -> Discord {
    let defaults = Settings::defaults().expect("the defaults");
    let mut section: Section = defaults["discord"].clone().try_into().expect("the section");
    section.api_url = format!("{api_url}/api");
    change(&mut section);
    Discord::new(&section, token.into(), Arc::new(SystemClock)).expect("an adapter")
}

/// Words of Mira's in a channel of a guild.
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

/// Words of Mira's in a direct message.
fn direct(channel: Id, text: &str) -> Part {
    Part { guild: snowflake(channel).direct_guild(), ..part(channel, text) }
}

fn snowflake(id: Id) -> Snowflake {
    Snowflake::new(id.0).expect("an id")
}

/// Sends something that is posted.
async fn say(client: &Discord, part: &Part) -> Id {
    let id = client.send(part).await.expect("it is posted");
    Id::parse(&id).expect("an id")
}

/// Why something is refused.
async fn refusal(client: &Discord, part: &Part) -> String {
    match client.send(part).await {
        Err(NotSent::Refused(why) | NotSent::Unpostable(why)) => why,
        other => panic!("{other:?}"),
    }
}
