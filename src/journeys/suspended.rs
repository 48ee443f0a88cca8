//! A channel that dies whenever it continues from its record: it is suspended for a while, shown, and retried when the operator wants it.

use std::time::Duration;

use super::world::{World, channel_key, lines, room};
use crate::actors::messages::guilds::{Cause, GuildsMessage, Suspended};
use crate::actors::runtime::actor_keys::{GuildKey, GuildsKey};
use crate::actors::writer::requests::look;
use crate::domain::conversation::poison;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::{encode, encode_snapshot, json_of};
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::WhyAt;
use crate::ports::backend::keeping::{Quarantine, SuspendedChannel};
use crate::ports::store::Value;
use crate::ports::store::key::Key;

#[tokio::test(start_paused = true)]
async fn a_channel_that_dies_of_its_snapshot_is_suspended_shown_and_affects_no_other() {
    let (world, channel_key, harmless) = suspended().await;
    world.side.answers([Ok("Me.\nYES")]);
    world.say("den", "Bruno?").await;
    world.say_then_pass("lobby", "Ari?", 40.0).await;

    let quarantine = world.backend.maintenance.quarantine().await.unwrap();
    assert_eq!(world.spans.named("supervisor.escalate").len(), 1, "the escalation is visible");
    let alone = the_lobby_alone(&quarantine);
    assert!(alone.detail.contains("console:lobby") && alone.detail.contains("panicked"), "{}", alone.detail);
    assert!(world.history("den").await.contains(&("bruno".into(), "Hello!".into())));
    assert!(look(&world.context, &room("lobby").channel()).await.is_none(), "it is suspended");

    // Released too early, it dies again, and is suspended again.
    world.backend.maintenance.release(&alone.id).await.unwrap();
    assert_eq!(suspensions(&world).await, []);
    assert!(matches!(world.backend.maintenance.release(&alone.id).await, Err(Refused::NotFound(_))));
    world.pass(250.0).await;
    let Quarantine { channels: again, messages, .. } = world.backend.maintenance.quarantine().await.unwrap();
    assert_eq!((again.len(), messages), (1, Vec::new()), "messages that arrived meanwhile are not blamed");
    assert!(again[0].since.0 > alone.since.0, "it was retried");

    // Restores the value, as a backup would.
    world.put(&channel_key, key::snapshot, harmless).await;
    let until = again[0].until.0.since(world.context.clock.now());
    world.pass(until.as_secs_f64() - 25.0).await;
    assert!(look(&world.context, &room("lobby").channel()).await.is_none(), "it is not retried earlier");
    world.backend.maintenance.release(&again[0].id).await.unwrap();
    world.pass(20.0).await;
    assert!(world.history("lobby").await.ends_with(&lines(&[("Ana", "Ari?"), ("aria", "Hello!")])));
    assert_eq!(suspensions(&world).await, []);
}

/// After a restart of the process nothing says which message killed the channel while it continued from its record.
#[tokio::test(start_paused = true)]
async fn a_room_that_a_message_keeps_away_returns_once_the_message_is_deleted() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    let deadly = world.say("lobby", &format!("Ari, {}", poison::GONE_ON)).await;
    let mut world = world.crash().await;
    world.expect_deaths();
    world.side.answers([Ok("They mean me.\nYES")]);
    world.say_then_pass("lobby", "Ari?", 250.0).await;
    let quarantine = world.backend.maintenance.quarantine().await.unwrap();

    world.backend.messages.delete(&room("lobby"), deadly).await.unwrap();
    world.backend.maintenance.release(&the_lobby_alone(&quarantine).id).await.unwrap();
    world.pass(20.0).await;

    assert!(world.history("lobby").await.ends_with(&lines(&[("Ana", "Ari?"), ("aria", "Hello!")])));
    assert_eq!(world.backend.maintenance.quarantine().await.unwrap(), Quarantine::default());
}

#[tokio::test(start_paused = true)]
async fn a_channel_with_an_unreadable_record_is_suspended_and_returns_once_it_is_readable() {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    let seq = world.say_then_pass("lobby", "one", 60.0).await;
    let channel_key = channel_key("lobby");
    let place = |ward, no| Key::event(ward, no, seq);
    let intact = world.put(&channel_key, place, b"\x01not what it was").await.unwrap();
    let world = world.crash().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    assert!(world.say("lobby", "Ari?").await > seq);
    world.say_then_pass("den", "Bruno?", 40.0).await;

    let quarantine = world.backend.maintenance.quarantine().await.unwrap();
    let alone = the_lobby_alone(&quarantine);
    let named = format!("event {seq} of channel console:lobby of guild home cannot be read: it is not JSON");
    assert!(alone.detail.contains(&named) && alone.detail.contains("history verify"), "{}", alone.detail);
    assert_eq!(world.history("den").await, lines(&[("Ana", "Bruno?"), ("bruno", "Hello!")]));

    // Released too early, it cannot continue either.
    world.backend.maintenance.release(&alone.id).await.unwrap();
    world.pass(1.0).await;
    let again = suspensions(&world).await.remove(0);
    assert!(again.since.0 > alone.since.0, "it was retried");

    // Restores the value, as a backup would.
    world.put(&channel_key, place, intact).await;
    world.pass(again.until.0.since(world.context.clock.now()).as_secs_f64() + 20.0).await;
    assert!(world.history("lobby").await.ends_with(&lines(&[("Ana", "Ari?"), ("aria", "Hello!")])));
    assert_eq!(suspensions(&world).await, []);
    assert_eq!(world.spans.named("actor.restart").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_room_whose_number_is_unreadable_is_listed_at_once() {
    let world = World::with_lobby().await;
    world.say("lobby", "one").await;
    let channel_key = channel_key("lobby");
    world.put(&channel_key, |_, _| key::channel_name(&channel_key), b"?").await;

    // The start reads what is pending first.
    let world = world.crash().await;
    world.pass(1.0).await;

    let channels = suspensions(&world).await;
    assert_eq!(channels.len(), 1);
    let named = "channel console:lobby of guild home cannot be read (`tertulia history verify` says what): the number: it has format version";
    assert!(channels[0].detail.contains(named), "{}", channels[0].detail);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_guild_retries_its_suspended_channels() {
    let (world, ..) = suspended().await;
    let before = suspensions(&world).await.remove(0);

    world.context.directory.find(&GuildKey("home".into())).unwrap().kill();
    world.pass(1.0).await;
    let meanwhile = suspensions(&world).await;
    world.pass(250.0).await;

    assert_eq!(meanwhile, []);
    let after = suspensions(&world).await;
    assert_eq!(after.len(), 1);
    assert!(after[0].since.0 > before.since.0);
}

#[tokio::test(start_paused = true)]
async fn reads_of_a_suspended_room_answer_at_once_with_the_reason() {
    let (world, ..) = suspended().await;
    let asked = world.say_then_pass("lobby", "Ari?", 5.0).await;
    let begun = tokio::time::Instant::now();

    let state = world.state("lobby").await;
    let why = world.why("lobby", None, None).await.unwrap();
    let fate = world.why("lobby", None, Some(WhyAt::Message(asked.to_string().into()))).await.unwrap();
    let seen = (world.backend.rooms.get(&room("lobby")).await, world.backend.rooms.list().await, world.history("lobby").await);

    assert_eq!(begun.elapsed(), Duration::ZERO);
    let kept_away = state.kept_away.expect("the room is suspended");
    assert_eq!(kept_away.id.as_deref(), Some("channel:console:lobby"));
    assert_eq!(kept_away.until, Some(suspensions(&world).await[0].until));
    assert!(
        kept_away.detail.contains("crashed each time it was restored") && kept_away.detail.contains("release it"),
        "{kept_away:?}"
    );
    assert!(state.companions[0].buffer.contains(&"Ari?".into()), "the state shows the record: {:?}", state.companions);
    for waiting in [why.waiting_for.unwrap(), fate.companions[0].waiting_for.clone().unwrap()] {
        assert!(waiting.text.starts_with("The room has failed several times. It starts again in "), "{waiting:?}");
    }
    assert!(seen.0.is_ok() && seen.1.is_ok());
    assert_eq!(seen.2.last(), Some(&("Ana".into(), "Ari?".into())));

    // No other room of the guild is suspended.
    assert_eq!(world.state("den").await.kept_away, None);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_room_is_shown_while_its_record_kills_its_reader() {
    let mut world = World::with_lobby().await;
    world.expect_deaths();
    world.say_then_pass("lobby", "harmless", 60.0).await;
    let deadly = world.say("lobby", poison::TAKEN_IN).await;

    let mut reads = Vec::new();
    for _ in 0..100 {
        let state = world.state("lobby").await;
        let why = world.why("lobby", None, None).await.unwrap();
        reads.extend(state.kept_away.map(|kept_away| (kept_away, why)));
        world.pass(0.02).await;
    }

    let (kept_away, _) = reads.first().expect("a read happened while it was dead");
    assert!(kept_away.id.is_none() && kept_away.detail.contains("panics when it restores the room"), "{kept_away:?}");
    let texts = reads.iter().filter_map(|(_, why)| Some(&why.waiting_for.as_ref()?.text)).collect::<Vec<_>>();
    assert!(texts.iter().any(|text| text.contains("fails when it loads this room")), "{texts:?}");
    let quarantine = world.backend.maintenance.quarantine().await.unwrap();
    assert_eq!(quarantine.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [deadly]);
    assert_eq!(world.state("lobby").await.kept_away, None, "the message that killed is a dead letter");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_room_is_not_listed_any_more_once_its_guild_is_quarantined() {
    let (world, channel_key, ..) = suspended().await;
    let alone = suspensions(&world).await.remove(0);
    // The pending work wakes its channel again and again.
    world.side.set_delay(Duration::from_secs(10_000));
    world.say("den", "Bruno?").await;
    let last = world.kill_until_quarantine("den").await;
    let Quarantine { guilds, channels, .. } = world.backend.maintenance.quarantine().await.unwrap();
    assert_eq!((guilds.len(), channels), (1, Vec::new()));
    let state = world.state("den").await;
    assert_eq!(state.kept_away.and_then(|kept_away| kept_away.id).as_deref(), Some("home"), "every room of the guild shows it");

    // The guild's earlier messages arrive after its end, because supervision overtakes messages.
    let (since, until) = (alone.since.0, alone.until.0);
    let (guild, channel, cause) = (channel_key.guild.clone(), channel_key.channel.clone(), Cause::Died);
    let entry = Suspended { guild, channel, cause, reason: "late".into(), since, until };
    let guilds = world.context.directory.find(&GuildsKey()).unwrap();
    guilds.cast(GuildsMessage::Suspended(last.unwrap(), entry)).unwrap();

    assert_eq!(suspensions(&world).await, []);
    assert!(matches!(world.backend.maintenance.release(&alone.id).await, Err(Refused::NotFound(_))));
}

/// The lobby is suspended for five minutes, and nothing else is listed.
fn the_lobby_alone(quarantine: &Quarantine) -> &SuspendedChannel {
    assert_eq!((&quarantine.guilds[..], &quarantine.messages[..]), (&[][..], &[][..]), "the guild is not quarantined");
    let [alone] = &quarantine.channels[..] else { panic!("it is not listed: {:?}", quarantine.channels) };
    assert_eq!((&*alone.id, alone.guild.as_str(), &*alone.room), ("channel:console:lobby", "home", "lobby"));
    assert_eq!(alone.until.0.since(alone.since.0), Duration::from_secs(300));
    alone
}

/// The suspended channels, as the operator sees them.
async fn suspensions(world: &World) -> Vec<SuspendedChannel> {
    world.backend.maintenance.quarantine().await.unwrap().channels
}

/// A system in which `lobby` is suspended, because it dies of its snapshot, with a harmless snapshot of it. Nothing is wrong in `den`.
async fn suspended() -> (World, ChannelKey, Value) {
    let world = World::with_lobby().await;
    world.open("den", &["bruno"]).await;
    world.say("den", "no poison-pill").await;
    world.say("lobby", "harmless").await;
    let conversation = look(&world.context, &room("lobby").channel()).await.expect("it is awake").conversation;
    let channel_key = channel_key("lobby");
    let head = world.reader().head(&channel_key).await.unwrap().last;
    let harmless = encode_snapshot(head, &conversation);
    let deadly = String::from_utf8(json_of(&harmless)).unwrap().replace("harmless", poison::GONE_ON);
    let deadly = encode(&serde_json::from_str::<serde_json::Value>(&deadly).unwrap());
    world.put(&channel_key, key::snapshot, deadly).await;
    let mut world = world.crash().await;
    world.expect_deaths();
    world.pass(250.0).await;
    (world, channel_key, harmless)
}
