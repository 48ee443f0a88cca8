//! Delivery errors: the reason why companions cannot speak in a channel is logged once, and again if it returns.

use tertulia::adapters::discord::platform::Discord;
use tertulia::ports::chat_platform::ChatPlatform as _;
use tertulia::telemetry::fake::Logged;

use super::super::counterpart::{Id, Permissions};
use super::super::home::{Home, part, snowflake};
use super::{Scene, refusal, say};

fn delivery_error(client: &Discord, channel: Id) -> Option<String> {
    client.delivery_errors().last(snowflake(channel)).map(|error| error.why)
}

#[tokio::test]
async fn a_missing_permission_is_logged_once_and_again_if_it_returns() {
    let Scene { home: Home { discord, guild, general, .. }, client } = Scene::new().await;
    let logged = Logged::from(tracing::Level::TRACE);
    let warnings = || logged.read().matches("companions cannot speak in this channel").count();

    discord.deny(general, discord.bot_role(guild), Permissions::MANAGE_WEBHOOKS);
    for text in ["one", "two", "three"] {
        let why = refusal(&client, &part(general, text)).await;
        assert_eq!(delivery_error(&client, general), Some(why));
    }
    let first_warnings = warnings();
    discord.deny(general, discord.bot_role(guild), Permissions::empty());
    say(&client, &part(general, "four")).await;
    let error_after_post = delivery_error(&client, general);
    discord.deny(general, discord.bot_role(guild), Permissions::MANAGE_WEBHOOKS);
    client.webhooks_changed(snowflake(general));
    refusal(&client, &part(general, "five")).await;

    assert_eq!((first_warnings, error_after_post, warnings()), (1, None, 2));
    let log = logged.read();
    assert!(log.contains("WARN") && log.contains("allow Manage Webhooks"), "{log}");
    assert_eq!(log.matches("companions can speak in this channel again").count(), 1);
}

#[tokio::test]
async fn a_missing_permission_blocks_a_channel_until_something_changes_there() {
    let Scene { home: Home { discord, guild, general, .. }, client } = Scene::new().await;
    let other = discord.channel(guild, "other");
    let is_blocked = |channel| client.is_unpostable(&part(channel, "").channel);

    discord.deny(general, discord.bot_role(guild), Permissions::MANAGE_WEBHOOKS);
    refusal(&client, &part(general, "one")).await;
    let at_first = [general, other].map(is_blocked);
    client.access_changed(snowflake(guild), Some(snowflake(other)));
    let after_change_elsewhere = is_blocked(general);
    client.access_changed(snowflake(guild), Some(snowflake(general)));
    let after_change = is_blocked(general);
    refusal(&client, &part(general, "two")).await;
    let after_second_refusal = is_blocked(general);
    discord.deny(general, discord.bot_role(guild), Permissions::empty());
    client.access_changed(snowflake(guild), None);
    say(&client, &part(general, "three")).await;

    assert_eq!(
        (at_first, after_change_elsewhere, after_change, after_second_refusal, is_blocked(general)),
        ([true, false], true, false, true, false)
    );
    refusal(&client, &part(other, " \u{200b} ")).await;
    assert!(!is_blocked(other), "another text would be accepted");
}

#[tokio::test]
async fn a_deleted_channel_and_a_removed_bot_are_logged_once_for_each_channel() {
    let Scene { home: Home { discord, guild, general, .. }, client } = Scene::new().await;
    let gone = discord.channel(guild, "gone");
    let logged = Logged::from(tracing::Level::TRACE);
    say(&client, &part(gone, "before")).await;

    discord.remove_channel(gone);
    refusal(&client, &part(gone, "one")).await;
    refusal(&client, &part(gone, "two")).await;
    discord.expel_bot(guild);
    refusal(&client, &part(general, "one")).await;
    refusal(&client, &part(general, "two")).await;

    let log = logged.read();
    assert_eq!(log.matches("companions cannot speak in this channel").count(), 2, "{log}");
    assert!(log.contains("The channel does not exist any more.") && log.contains("invite it again"), "{log}");
    client.channel_gone(snowflake(gone));
    assert_eq!(delivery_error(&client, gone), None);
}
