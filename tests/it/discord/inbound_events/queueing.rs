//! Messages that wait while a channel catches up, or while the core accepts nothing.

use super::super::counterpart::{Does, On};
use super::super::home::Home;
use super::{Process, home};

#[tokio::test]
async fn a_channel_that_catches_up_delays_no_other_channel_even_with_many_new_messages() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let other = discord.channel(guild, "other");
    core.add_companion(guild, other);
    discord.say(ana, general, "missed");
    let hang = discord.spoil(On { route: Some("messages"), channel: Some(general), ..On::default() }, Does::Hang);
    let process = Process::connect(&discord, &core, |settings| settings.backfill_messages = 5_000).await;
    discord.wait_for("the request for the history", |state| state.journal.requests_of("messages").count() == 1).await;

    // More events than the lanes allow in flight.
    let messages: Vec<_> = (0..1_500).map(|number| discord.say(ana, general, &number.to_string())).collect();
    discord.say(ana, other, "elsewhere");
    core.until("the message elsewhere", |core| core.texts(other) == ["Ana: elsewhere"]).await;
    assert!(core.texts(general).is_empty());
    discord.lift(hang);
    process.wait_until_all_kept(&discord).await;

    let expected: Vec<_> =
        ["Ana: missed".to_owned()].into_iter().chain((0..messages.len()).map(|number| format!("Ana: {number}"))).collect();
    assert_eq!(core.texts(general), expected);
    assert!(core.catch_ups(general).iter().all(|(_, gap)| gap.is_none()), "{:?}", core.catch_ups(general));
}

#[tokio::test]
async fn events_that_the_core_did_not_accept_are_sent_again_to_the_next_connection() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let mut process = Process::start(&discord, &core).await;
    discord.say(ana, general, "one");
    core.until("the message", |core| core.texts(general).len() == 1).await;
    process.wait_until_all_kept(&discord).await;
    core.hold(general);
    let two = discord.say(ana, general, "two");
    let three = discord.say(ana, general, "three");
    discord.delivered(three).await;
    discord.delivered(two).await;

    process.client.stop().await;
    core.release(general);
    process.client.start_connection(0, 1);

    core.until("all messages", |core| core.texts(general).len() == 3).await;
    assert_eq!(core.texts(general), ["Ana: one", "Ana: two", "Ana: three"]);
    assert!(core.catch_ups(general).is_empty());
}

#[tokio::test]
async fn while_the_core_accepts_nothing_only_some_channels_are_read() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let channels: Vec<_> = (0..60).map(|number| discord.channel(guild, &number.to_string())).collect();
    for channel in &channels {
        core.add_companion(guild, *channel);
        core.hold(*channel);
        discord.say(ana, *channel, "missed");
    }
    let process = Process::connect(&discord, &core, |_| {}).await;

    discord.wait_for("the requests for histories", |state| state.journal.requests_of("messages").count() == 32).await;
    discord.say(ana, general, "elsewhere");
    core.until("the message", |core| core.texts(general) == ["Ana: elsewhere"]).await;
    assert_eq!(discord.requests("messages"), 32);
    for channel in &channels {
        core.release(*channel);
    }
    process.wait_until_all_kept(&discord).await;

    assert!(channels.iter().all(|channel| core.texts(*channel) == ["Ana: missed"]));
}
