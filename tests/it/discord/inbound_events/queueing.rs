//! What is said while a channel catches up, and while the core takes nothing.

use std::sync::Arc;

use super::super::counterpart::faults::{Does, On};
use super::core::Core;
use super::{Process, counterpart};

#[tokio::test]
async fn a_channel_that_is_read_for_long_holds_up_no_other_whatever_is_said_in_it() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, other) = (discord.channel(guild, "general"), discord.channel(guild, "other"));
    let ana = discord.member(guild, "Ana");
    core.load_rooms(guild, general);
    core.load_rooms(guild, other);
    discord.say(ana, general, "missed");
    let hang = discord.spoil(On { route: Some("messages"), channel: Some(general), ..On::default() }, Does::Hang);
    let process = Process::with(&discord, &core, |settings| settings.backfill_messages = 5_000);
    let mut connection = process.connect(&discord).await;
    discord.until("the question", |state| (state.journal.requests_of("messages").count() == 1).then_some(())).await;

    // More than may be under way at once.
    let said: Vec<_> = (0..1_500).map(|number| discord.say(ana, general, &number.to_string())).collect();
    discord.say(ana, other, "elsewhere");
    core.until("what was said elsewhere", |core| core.texts(other) == ["Ana: elsewhere"]).await;
    assert!(core.texts(general).is_empty());
    discord.lift(hang);
    connection.settled().await;

    let expected: Vec<_> =
        ["Ana: missed".to_owned()].into_iter().chain((0..said.len()).map(|number| format!("Ana: {number}"))).collect();
    assert_eq!(core.texts(general), expected);
    assert!(core.read(general).iter().all(|(_, missed)| missed.is_none()), "{:?}", core.read(general));
}

#[tokio::test]
async fn what_the_core_did_not_take_is_told_again_to_the_next_connection() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    core.load_rooms(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.settled().await;
    discord.say(ana, general, "one");
    core.until("it", |core| core.texts(general).len() == 1).await;
    connection.settled().await;
    core.hold(general);
    let two = discord.say(ana, general, "two");
    let three = discord.say(ana, general, "three");
    discord.delivered(three).await;
    discord.delivered(two).await;

    let session = connection.end().await;
    core.release(general);
    let _connection = process.resume(&discord, &session).await;

    core.until("all of it", |core| core.texts(general).len() == 3).await;
    assert_eq!(core.texts(general), ["Ana: one", "Ana: two", "Ana: three"]);
    assert!(core.read(general).is_empty());
}

#[tokio::test]
async fn while_the_core_takes_nothing_no_more_is_read_than_some_channels() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (other, ana) = (discord.channel(guild, "other"), discord.member(guild, "Ana"));
    core.load_rooms(guild, other);
    let channels: Vec<_> = (0..60).map(|number| discord.channel(guild, &number.to_string())).collect();
    for channel in &channels {
        core.load_rooms(guild, *channel);
        core.hold(*channel);
        discord.say(ana, *channel, "missed");
    }
    let questions = || discord.look(|state| state.journal.requests_of("messages").count());
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;

    discord.until("the questions", |state| (state.journal.requests_of("messages").count() == 32).then_some(())).await;
    discord.say(ana, other, "elsewhere");
    core.until("it", |core| core.texts(other) == ["Ana: elsewhere"]).await;
    assert_eq!(questions(), 32);
    for channel in &channels {
        core.release(*channel);
    }
    connection.settled().await;

    assert!(channels.iter().all(|channel| core.texts(*channel) == ["Ana: missed"]));
}
