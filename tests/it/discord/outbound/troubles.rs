//! What keeps companions from speaking in a channel is told once, in plain words, and again when it comes back.

use tertulia::adapters::discord::platform::Discord;
use tertulia::ports::chat_platform::ChatPlatform as _;

use super::super::counterpart::Counterpart;
use super::super::counterpart::channels::Overwrite;
use super::super::counterpart::id::Id;
use super::super::counterpart::permissions::MANAGE_WEBHOOKS;
use super::logged::Logged;
use super::{client, home, part, refusal, say, snowflake};

fn trouble(client: &Discord, channel: Id) -> Option<String> {
    client.delivery_errors().last(snowflake(channel)).map(|trouble| trouble.why)
}

fn deny(discord: &Counterpart, guild: Id, channel: Id, denied: u64) {
    let role = discord.look(|state| state.world.guilds[&guild].members[&state.world.bot()].roles[0]);
    discord.overwrite(channel, Overwrite::role(role, 0, denied));
}

#[tokio::test]
async fn a_missing_permission_is_told_once_and_again_after_it_was_mended() {
    let (discord, guild, general) = home().await;
    let logged = Logged::begin();
    let client = client(&discord);
    let told = || logged.read().matches("companions cannot speak in this channel").count();

    deny(&discord, guild, general, MANAGE_WEBHOOKS);
    for words in ["one", "two", "three"] {
        let why = refusal(&client, &part(general, words)).await;
        assert_eq!(trouble(&client, general), Some(why));
    }
    let first = told();
    deny(&discord, guild, general, 0);
    say(&client, &part(general, "four")).await;
    let mended = trouble(&client, general);
    deny(&discord, guild, general, MANAGE_WEBHOOKS);
    client.webhooks_changed(snowflake(general));
    refusal(&client, &part(general, "five")).await;

    assert_eq!((first, mended, told()), (1, None, 2));
    let log = logged.read();
    assert!(log.contains("WARN") && log.contains("allow Manage Webhooks"), "{log}");
    assert_eq!(log.matches("companions can speak in this channel again").count(), 1);
}

#[tokio::test]
async fn a_missing_permission_bars_a_channel_until_something_changes_there() {
    let (discord, guild, general) = home().await;
    let other = discord.channel(guild, "other");
    let client = client(&discord);
    let is_barred = |channel| client.is_unpostable(&part(channel, "").channel);

    deny(&discord, guild, general, MANAGE_WEBHOOKS);
    refusal(&client, &part(general, "one")).await;
    let first = [general, other].map(is_barred);
    client.access_changed(snowflake(guild), Some(snowflake(other)));
    let elsewhere = is_barred(general);
    client.access_changed(snowflake(guild), Some(snowflake(general)));
    let changed = is_barred(general);
    refusal(&client, &part(general, "two")).await;
    let again = is_barred(general);
    deny(&discord, guild, general, 0);
    client.access_changed(snowflake(guild), None);
    say(&client, &part(general, "three")).await;

    assert_eq!((first, elsewhere, changed, again, is_barred(general)), ([true, false], true, false, true, false));
    refusal(&client, &part(other, " \u{200b} ")).await;
    assert!(!is_barred(other), "other words would be taken");
}

#[tokio::test]
async fn a_deleted_channel_and_a_bot_that_was_thrown_out_are_told_once_for_each_channel() {
    let (discord, guild, general) = home().await;
    let gone = discord.channel(guild, "gone");
    let logged = Logged::begin();
    let client = client(&discord);
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
    assert_eq!(trouble(&client, gone), None);
}

#[tokio::test]
async fn words_that_show_nothing_are_no_trouble_of_the_channels() {
    let (discord, _, general) = home().await;
    let client = client(&discord);

    refusal(&client, &part(general, " \u{200b} ")).await;

    assert_eq!(trouble(&client, general), None);
}

#[tokio::test]
async fn a_removed_webhook_is_mended_without_trouble() {
    let (discord, _, general) = home().await;
    let logged = Logged::begin();
    let client = client(&discord);
    say(&client, &part(general, "one")).await;

    let webhook = discord.look(|state| *state.world.webhooks.keys().next().expect("one"));
    discord.remove_webhook(webhook);
    say(&client, &part(general, "two")).await;

    assert_eq!(trouble(&client, general), None);
    assert!(!logged.read().contains("WARN"), "{}", logged.read());
    assert!(logged.read().contains("looking for another one"), "{}", logged.read());
}
