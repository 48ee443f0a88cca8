//! Messages that wait while a channel catches up, or while the core accepts nothing.

use std::sync::Arc;

use super::super::counterpart::faults::{Does, On};
use super::core::Core;
use super::{Process, counterpart};

#[tokio::test]
async fn a_channel_that_catches_up_delays_no_other_channel_even_with_many_new_messages() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, other) = (discord.channel(guild, "general"), discord.channel(guild, "other"));
    let ana = discord.member(guild, "Ana");
    core.add_companion(guild, general);
    core.add_companion(guild, other);
    discord.say(ana, general, "missed");
    let hang = discord.spoil(On { route: Some("messages"), channel: Some(general), ..On::default() }, Does::Hang);
    let process = Process::with_settings(&discord, &core, |settings| settings.backfill_messages = 5_000);
    let mut connection = process.connect(&discord).await;
    discord
        .until("the request for the history", |state| (state.journal.requests_of("messages").count() == 1).then_some(()))
        .await;

    // More events than the lanes allow in flight.
    let messages: Vec<_> = (0..1_500).map(|number| discord.say(ana, general, &number.to_string())).collect();
    discord.say(ana, other, "elsewhere");
    core.until("the message elsewhere", |core| core.texts(other) == ["Ana: elsewhere"]).await;
    assert!(core.texts(general).is_empty());
    discord.lift(hang);
    connection.wait_until_all_kept().await;

    let expected: Vec<_> =
        ["Ana: missed".to_owned()].into_iter().chain((0..messages.len()).map(|number| format!("Ana: {number}"))).collect();
    assert_eq!(core.texts(general), expected);
    assert!(core.catch_ups(general).iter().all(|(_, gap)| gap.is_none()), "{:?}", core.catch_ups(general));
}

#[tokio::test]
async fn events_that_the_core_did_not_accept_are_sent_again_to_the_next_connection() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    core.add_companion(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;
    discord.say(ana, general, "one");
    core.until("the message", |core| core.texts(general).len() == 1).await;
    connection.wait_until_all_kept().await;
    core.hold(general);
    let two = discord.say(ana, general, "two");
    let three = discord.say(ana, general, "three");
    discord.delivered(three).await;
    discord.delivered(two).await;

    let session = connection.end().await;
    core.release(general);
    let _connection = process.resume(&discord, &session).await;

    core.until("all messages", |core| core.texts(general).len() == 3).await;
    assert_eq!(core.texts(general), ["Ana: one", "Ana: two", "Ana: three"]);
    assert!(core.catch_ups(general).is_empty());
}

#[tokio::test]
async fn while_the_core_accepts_nothing_only_some_channels_are_read() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (other, ana) = (discord.channel(guild, "other"), discord.member(guild, "Ana"));
    core.add_companion(guild, other);
    let channels: Vec<_> = (0..60).map(|number| discord.channel(guild, &number.to_string())).collect();
    for channel in &channels {
        core.add_companion(guild, *channel);
        core.hold(*channel);
        discord.say(ana, *channel, "missed");
    }
    let history_requests = || discord.look(|state| state.journal.requests_of("messages").count());
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;

    discord
        .until("the requests for histories", |state| (state.journal.requests_of("messages").count() == 32).then_some(()))
        .await;
    discord.say(ana, other, "elsewhere");
    core.until("the message", |core| core.texts(other) == ["Ana: elsewhere"]).await;
    assert_eq!(history_requests(), 32);
    for channel in &channels {
        core.release(*channel);
    }
    connection.wait_until_all_kept().await;

    assert!(channels.iter().all(|channel| core.texts(*channel) == ["Ana: missed"]));
}
