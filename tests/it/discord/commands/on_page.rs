//! Discord is turned on and off on the page while the server runs.

use reqwest::Method;
use serde_json::json;

use super::super::counterpart::{Permissions, Rules};
use super::super::home::{Home, section};
use super::{companion, final_answer, rules, sub};
use crate::harness::Premises;

#[tokio::test]
async fn a_token_of_the_page_connects_discord_at_once_and_its_removal_ends_it() {
    let home = Home::with_rules(Rules { heartbeat_tolerance: Rules::quick().heartbeat_tolerance, ..rules() }).await;
    let Home { discord, guild, general, ana, .. } = &home;
    let kim = discord.member_with(*guild, "Kim", Permissions::MANAGE_CHANNELS);
    let premises = Premises::shipped().with("discord.api_url", &section(discord).api_url).with("safety.notice", "off");
    let server = premises.start().await;
    let with_token = |token: Option<String>| Some(json!({ "values": { "discord.token": token } }));

    let tried = Some(json!({ "values": { "discord.token": discord.token() }, "about": "discord" }));
    let tried = server.done(Method::POST, "/api/settings/try", tried).await;
    server.done(Method::PATCH, "/api/settings", with_token(Some(discord.token()))).await;

    assert_eq!(tried["works"], true, "{tried}");
    assert!(tried["invitation"].as_str().is_some_and(|link| link.contains("client_id=")), "{tried}");
    discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
    discord.sessions(1).await;
    final_answer(discord, kim, *general, sub("join", json!([companion("aria")]))).await;
    discord.say(*ana, *general, "hey aria, how was your day?");
    discord.post_in(*general).await;

    server.done(Method::PATCH, "/api/settings", with_token(None)).await;
    let ready = server.get("/readyz").await;
    assert!(!ready["parts"].to_string().contains("\"discord\""), "{ready}");
    discord.wait_for("the end of the connection", |state| state.gateway.connections.is_empty()).await;
    discord.say(*ana, *general, "hey aria, are you still here?");
    server.done(Method::PATCH, "/api/settings", with_token(Some(discord.token()))).await;
    // The message that nobody received is read and answered.
    discord.posts_in(*general, 2).await;
    let log = server.kill().await;
    assert!(!log.contains(&discord.token()), "{log}");
}
