//! Events about guilds, channels and threads.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::{BOT, Call, GENERAL, HOME, OTHER, OWN_ROLE, World, home, id, ready, with};
use crate::domain::moment::Moment;
use crate::incoming::NameLookup as _;
use crate::intake::Intake;
use crate::ports::gateway::Shard;
use crate::ports::inbound_events::{ChannelRef, Reached};

const THREAD: u64 = 400;

fn thread(parent: u64) -> Value {
    json!({ "id": THREAD.to_string(), "guild_id": HOME.to_string(), "parent_id": parent.to_string(), "type": 11, "name": "aside",
            "thread_metadata": { "archived": false } })
}

#[tokio::test]
async fn a_guild_of_the_shard_that_a_new_session_does_not_list_is_gone() {
    let (shard, shards) = (1, NonZeroU32::new(2).unwrap());
    let mut world = World::unready(Shard { number: shard, of: shards });
    let [mine, others, left] = [1_u64 << 22, 2 << 22, 3 << 22];
    world.core.guilds.lock().extend([mine, others, left].map(|guild| id(guild).guild()));
    world.core.guilds.lock().push(id(700).direct_guild());

    world.kept("READY", ready(&[mine])).await;

    assert_eq!(world.core.calls(), [Call::GuildGone(id(left).guild().to_string())]);
}

#[tokio::test]
async fn an_unreadable_list_of_guilds_deletes_nothing() {
    for odd in [json!([{ "id": "x" }]), json!(7), Value::Null] {
        let mut world = World::new().await;

        world.kept("READY", with(ready(&[]), json!({ "guilds": odd }))).await;

        assert_eq!(world.core.calls(), []);
    }
}

#[tokio::test]
async fn events_that_may_allow_posting_end_the_pause_of_their_channels_only() {
    let here = |channel: u64| json!({ "id": channel.to_string(), "guild_id": HOME.to_string(), "type": 0, "name": "general" });
    let of_guild = |more: Value| with(json!({ "guild_id": HOME.to_string() }), more);
    let webhooks = |channel: u64| of_guild(json!({ "channel_id": channel.to_string() }));
    let role = || of_guild(json!({ "role": { "id": "950", "name": "Bots" }, "role_id": "950" }));
    let elsewhere = || json!({ "guild_id": "101", "user": { "id": BOT.to_string() } });

    for (kind, data, is_tried) in [
        ("CHANNEL_UPDATE", here(GENERAL), true),
        ("CHANNEL_UPDATE", here(OTHER), false),
        ("WEBHOOKS_UPDATE", webhooks(GENERAL), true),
        ("WEBHOOKS_UPDATE", webhooks(OTHER), false),
        ("GUILD_ROLE_UPDATE", role(), true),
        ("GUILD_ROLE_DELETE", role(), true),
        ("GUILD_MEMBER_UPDATE", of_guild(json!({ "user": { "id": BOT.to_string() } })), true),
        ("GUILD_MEMBER_UPDATE", elsewhere(), false),
        ("GUILD_CREATE", home(), true),
        ("TYPING_START", webhooks(GENERAL), false),
    ] {
        let mut world = World::new().await;
        world.kept("GUILD_CREATE", home()).await;
        world.discord.delivery_errors().record(id(GENERAL), "no permission", Moment::ZERO, Some(Duration::from_secs(600)));

        world.kept(kind, data).await;

        assert_eq!(world.discord.delivery_errors().is_blocked(id(GENERAL)), !is_tried, "{kind}");
        assert!(world.discord.delivery_errors().last(id(GENERAL)).is_some());
    }
}

#[tokio::test]
async fn an_archived_thread_without_companions_leaves_the_cache() {
    let mut world = World::new().await;
    let archived = |parent| with(thread(parent), json!({ "thread_metadata": { "archived": true } }));

    world.kept("THREAD_CREATE", thread(OTHER)).await;
    assert!(world.discord.cache().has_channel(id(THREAD)));
    world.kept("THREAD_UPDATE", archived(OTHER)).await;
    assert!(!world.discord.cache().has_channel(id(THREAD)));
    world.kept("THREAD_UPDATE", archived(GENERAL)).await;
    assert!(world.discord.cache().has_channel(id(THREAD)));
}

#[tokio::test]
async fn a_deleted_channel_is_gone_with_its_threads() {
    let mut world = World::new().await;
    world.kept("THREAD_CREATE", thread(GENERAL)).await;

    world.kept("CHANNEL_DELETE", json!({ "id": GENERAL.to_string(), "guild_id": HOME.to_string(), "type": 0 })).await;

    let mut gone = world.core.calls();
    gone.sort_by_key(|call| format!("{call:?}"));
    let expected = ["discord:200", "discord:400"].map(|channel| Call::ChannelGone("discord:100".to_owned(), channel.to_owned()));
    assert_eq!(gone, expected);
    assert_eq!(world.discord.cache().newest(id(GENERAL)), None);
}

#[tokio::test]
async fn names_follow_changes() {
    let mut world = World::new().await;
    let guild = HOME.to_string();

    world.kept("GUILD_UPDATE", json!({ "id": guild, "name": "House", "roles": [{ "id": OWN_ROLE.to_string(), "name": "T", "tags": { "bot_id": BOT } }] })).await;
    world.kept("CHANNEL_UPDATE", json!({ "id": GENERAL.to_string(), "guild_id": guild, "type": 0, "name": "talk" })).await;
    world.kept("GUILD_ROLE_CREATE", json!({ "guild_id": guild, "role": { "id": "30", "name": "mods" } })).await;
    world
        .kept("GUILD_EMOJIS_UPDATE", json!({ "guild_id": guild, "emojis": [{ "id": "40", "name": "wave", "animated": false }] }))
        .await;
    world
        .kept(
            "THREAD_LIST_SYNC",
            json!({ "guild_id": guild, "channel_ids": [GENERAL.to_string()], "threads": [thread(GENERAL)] }),
        )
        .await;

    let cache = world.discord.cache();
    assert_eq!(cache.title(&id(THREAD).channel()).as_deref(), Some("aside · #talk · House"));
    assert_eq!(cache.names(Some(id(HOME))).role(id(30)).as_deref(), Some("mods"));
    assert_eq!(cache.own_role(id(HOME)), Some(id(OWN_ROLE)));
    assert_eq!(cache.mentionables(id(GENERAL)).emojis.len(), 1);
    world.kept("GUILD_ROLE_DELETE", json!({ "guild_id": HOME.to_string(), "role_id": "30" })).await;
    assert_eq!(world.discord.cache().names(Some(id(HOME))).role(id(30)), None);
}

#[tokio::test(start_paused = true)]
async fn a_direct_message_that_cannot_be_requested_is_recorded_as_a_gap() {
    let mut world = World::unready(Shard { number: 0, of: NonZeroU32::MIN });
    world.core.guilds.lock().push(id(700).direct_guild());
    *world.core.reached.lock() = Some(Reached { newest: Some("1".into()), since: Moment::ZERO });

    world.kept("READY", ready(&[])).await;

    let channel_ref = ChannelRef { guild: id(700).direct_guild(), channel: id(700).channel(), parent: None };
    assert_eq!(world.core.calls(), [Call::CaughtUp(channel_ref, 0, Some("unreachable".into()))]);
}

#[tokio::test]
async fn guild_counts_continue_when_a_session_resumes() {
    let mut world = World::new().await;
    let counted = |world: &World, state| world.measured.metrics().total("tertulia_discord_guilds", &[("guild_state", state)]);
    assert_eq!((counted(&world, "available"), counted(&world, "unavailable")), (1.0, 0.0));

    world.intake = Intake::new(&world.shared, Shard { number: 0, of: NonZeroU32::MIN });
    world.kept("RESUMED", json!({})).await;

    assert_eq!((counted(&world, "available"), counted(&world, "unavailable")), (1.0, 0.0));
    world.kept("GUILD_DELETE", json!({ "id": HOME.to_string(), "unavailable": true })).await;
    assert_eq!((counted(&world, "available"), counted(&world, "unavailable")), (0.0, 1.0));
}
