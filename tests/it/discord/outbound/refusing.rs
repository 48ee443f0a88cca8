//! Permanent refusals: the reason says what to do, and never contains a secret.

use serde_json::json;
use tertulia::ports::chat_platform::{ChatPlatform as _, NotSent};
use tertulia::telemetry::fake::Logged;

use super::super::counterpart::{Does, Kind, On, Permissions};
use super::super::home::{Home, adapter, part, section_at};
use super::{Scene, client, direct, refusal, say};

#[tokio::test]
async fn the_reason_of_a_refusal_says_what_to_change_in_discord() {
    let Scene { home: Home { discord, guild, general, ana, .. }, client } = Scene::new().await;
    let bot_role = discord.bot_role(guild);
    let [closed, gone, full, locked] = ["closed", "gone", "full", "locked"].map(|name| discord.channel(guild, name));
    let forum = discord.channel_of(guild, Kind::Forum, "forum");
    let thread = discord.thread(locked, "aside", ana);
    let (direct_channel, _) = discord.direct(ana, "hi");
    say(&client, &part(gone, "before")).await;
    discord.deny(closed, bot_role, Permissions::MANAGE_WEBHOOKS);
    discord.remove_channel(gone);
    for n in 0..15 {
        discord.foreign_webhook(full, &format!("webhook {n}"));
    }
    discord.with(|state| state.change_thread(thread, |thread| thread.locked = true));
    discord.close_directs(ana);

    for (statement, expected) in [
        (part(closed, "x"), "allow Manage Webhooks."),
        (part(gone, "x"), "The channel does not exist any more."),
        (part(full, "x"), "Edit Channel > Integrations > Webhooks > delete one"),
        (part(thread, "x"), "Unlock Thread"),
        (part(forum, "x"), "in a forum, only in its posts"),
        (direct(direct_channel, "x"), "accepts no direct messages from the bot"),
        (part(general, " \u{200b} "), "nothing in the text is visible"),
    ] {
        let why = refusal(&client, &statement).await;

        assert!(why.contains(expected), "{why}");
        assert!(!why.contains(&discord.token()), "{why}");
    }
    assert_eq!(discord.posts().len(), 1);
}

#[tokio::test]
async fn a_field_that_discord_refuses_is_named() {
    let Home { discord, general, .. } = Home::new().await;
    let field_errors =
        json!({ "_errors": [{ "code": "BASE_TYPE_BAD_LENGTH", "message": "Must be between 1 and 80 in length." }] });
    let body = json!({ "code": 50_035, "message": "Invalid Form Body", "errors": { "username": field_errors } });
    discord.spoil(On::route("execute_webhook"), Does::Says(400, body));

    let why = refusal(&client(&discord), &part(general, "x")).await;

    assert_eq!(why, "(Discord said 400, code 50035: Invalid Form Body: username: Must be between 1 and 80 in length.)");
}

#[tokio::test]
async fn after_a_token_reset_the_reason_says_so_without_the_token() {
    let Home { discord, general, .. } = Home::new().await;
    let (client, token) = (client(&discord), discord.token());
    discord.reset_token();

    let why = refusal(&client, &part(general, "x")).await;

    assert!(why.contains("Developer Portal > the application > Bot > Reset Token"), "{why}");
    assert!(!why.contains(&token) && !format!("{client:?}").contains(&token), "{why} {client:?}");
}

#[tokio::test]
async fn an_unreachable_discord_means_sending_later() {
    let Home { discord, general, .. } = Home::new().await;
    let (token, api_url) = (discord.token(), discord.api_url());
    drop(discord);
    let client = adapter(&section_at(&api_url), &token);

    let unreachable = client.send(&part(general, "x")).await.expect_err("the server is gone");

    assert!(matches!(&unreachable, NotSent::Later { .. }), "{unreachable:?}");
    assert!(unreachable.to_string().contains("Discord cannot be reached"), "{unreachable}");
    assert!(!format!("{unreachable:?}").contains(&token));
}

#[tokio::test]
async fn the_tokens_of_the_bot_and_the_webhook_are_never_logged_or_returned() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;
    let logged = Logged::from(tracing::Level::TRACE);
    say(&client, &part(general, "one")).await;
    let (id, token) = discord.look(|state| {
        state.world.webhooks.values().next().map(|webhook| (webhook.id, webhook.token.clone())).expect("a webhook")
    });

    let mut results = String::new();
    for does in [Does::Cut, Does::Status(400), Does::Status(500), Does::Garbled] {
        discord.spoil_next(1, On::route("execute_webhook"), does);
        results += &format!("{:?}", client.send(&part(general, "two")).await);
    }
    discord.remove_webhook(id);
    say(&client, &part(general, "three")).await;

    let logged = logged.read();
    assert!(logged.contains("a webhook cannot be used any more"), "{logged}");
    for secret in [token, discord.token()] {
        assert!(!logged.contains(&secret) && !results.contains(&secret), "{results} {logged}");
    }
}
