//! Statements of companions on Discord: the real adapter posts them to the test double.

mod delivering;
mod delivery_errors;
mod failing;
mod measuring;
mod nonsense;
mod reading;
mod recordings;
mod refusing;
mod speaking;

use std::sync::Arc;

use tertulia::adapters::discord::platform::Discord;
use tertulia::ports::chat_platform::{ChatPlatform as _, NotSent, Part};
use tertulia::settings::discord::Discord as Section;

use super::counterpart::{Counterpart, Id};
use super::home::{Home, adapter, part, section, snowflake};

/// A home, and the adapter for it.
struct Scene {
    home: Home,
    client: Arc<Discord>,
}

impl Scene {
    async fn new() -> Self {
        let home = Home::new().await;
        let client = client(&home.discord);
        Self { home, client }
    }
}

/// The adapter with default settings, except for the address of the API.
fn client(discord: &Counterpart) -> Arc<Discord> {
    client_with(discord, |_| {})
}

/// The adapter with changed settings.
fn client_with(discord: &Counterpart, change: impl FnOnce(&mut Section)) -> Arc<Discord> {
    let mut section = section(discord);
    change(&mut section);
    Arc::new(adapter(&section, &discord.token()))
}

/// A statement by Mira in a direct message.
fn direct(channel: Id, text: &str) -> Part {
    Part { guild: snowflake(channel).direct_guild(), ..part(channel, text) }
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
