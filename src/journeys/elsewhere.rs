//! Channels of other platforms as the backend shows them: like rooms of the console, and never from one guild to another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::abroad::{self, ana, channel_ref, is_of_discord};
use super::keeping::dead_letter;
use super::world::{World, lines, room};
use crate::actors::membership::changes;
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, GuildId};
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::DecisionQuery;
use crate::ports::backend::keeping::ExportForm;
use crate::ports::backend::usage::UsageQuery;
use crate::ports::chat_platform::{Capabilities, ChatPlatform, NotRead, NotSent, Part};

const CHANNELS: [(&str, &str); 4] =
    [("discord:1", "discord:10"), ("discord:1", "discord:11"), ("discord:2", "discord:20"), ("dm:discord:77", "discord:77")];

/// Two channels of a guild and one of another, in which Aria is a member, and a direct message with her.
async fn has_members() -> World {
    let world = World::new().await;
    for (guild, channel) in &CHANNELS[..3] {
        world.backend.rooms.admit(&channel_ref(guild, channel), &"aria".into()).await.unwrap();
    }
    assert!(changes::ensure_room(&world.context, &channel_ref("dm:discord:77", "discord:77")).await.unwrap());
    world.rest().await;
    world
}

async fn post(world: &World, guild: &str, channel: &str, text: &str) {
    abroad::deliver(world, &channel_ref(guild, channel), ana(world, &format!("{channel}/{text}"), text)).await;
}

async fn used(world: &World, guild: &str) -> Value {
    let query = UsageQuery { guild: Some(guild.into()), from: None, to: None };
    serde_json::to_value(world.backend.records.usage(query).await.unwrap()).unwrap()["guilds"][0]["calls"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_channel_is_shown_like_any_room() {
    let world = has_members().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let mut watching = world.watch("discord:10", None).await;

    post(&world, "discord:1", "discord:10", "Ari, are you there?").await;
    world.pass(5.0).await;

    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "Ari, are you there?"), ("aria", "Hello!")]));
    assert_eq!(world.decisions("discord:10").await[0]["room"], "discord:10");
    let names = watching.names().await;
    assert!(
        ["message", "evaluate", "decision", "statement"].iter().all(|name| names.iter().any(|seen| seen == name)),
        "{names:?}"
    );
    let state = world.state("discord:10").await;
    assert_eq!(state.companions[0].id.as_str(), "aria");
    let why = world.why("discord:10", None, None).await.unwrap();
    assert_eq!(why.story[0].text, "Ana said to Aria: “Ari, are you there?”");
    assert!(world.export("discord:10", ExportForm::Json).await[0].contains(r#""channel":"discord:10""#));
    let script: Value = serde_json::from_str(&world.export("discord:10", ExportForm::Replay).await[0]).unwrap();
    assert_eq!(script["events"].as_array().unwrap().iter().filter(|event| event["text"] == "Ari, are you there?").count(), 1);
    assert_eq!(used(&world, "discord:1").await, 2);
    world.backend.rooms.clear(&room("discord:10")).await.unwrap();
    world.delete_room("discord:10").await;
    assert!(matches!(world.try_history("discord:10").await, Err(Refused::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_direct_message_or_a_guild_is_shown_in_another() {
    let world = has_members().await;
    world.backend.rooms.admit(&channel_ref("discord:2", "discord:20"), &"bruno".into()).await.unwrap();
    post(&world, "dm:discord:77", "discord:77", "a secret").await;
    post(&world, "discord:2", "discord:20", "Bruno, a story").await;
    world.pass(60.0).await;
    post(&world, "discord:1", "discord:10", "Bruno?").await;
    world.pass(60.0).await;

    let asked = format!("{:?}", world.side.asked.lock().last().unwrap());
    assert!(asked.contains("Bruno?") && !asked.contains("secret") && !asked.contains("story"), "{asked}");
    // A companion that is a member only in another guild has no name here.
    assert_eq!(world.decisions("discord:10").await[0]["trigger"], "lull");
    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "Bruno?")]));
    assert_eq!(used(&world, "discord:1").await, 1);
    let unknown = world.why("discord:99", None, None).await;
    assert!(
        matches!(unknown, Err(Refused::NotFound(detail)) if !detail.contains("discord:77") && !detail.contains("discord:20"))
    );
    // The operator sees all of them.
    let query = DecisionQuery { room: None, companion: None, after: None, limit: 10 };
    let everywhere = world.backend.records.decisions(query).await.unwrap().decisions;
    let rooms: Vec<_> = everywhere.iter().map(|one| one.room.to_string()).collect();
    assert!(rooms.contains(&"discord:77".to_owned()) && rooms.contains(&"discord:20".to_owned()), "{rooms:?}");
}

#[tokio::test(start_paused = true)]
async fn a_person_is_forgotten_in_all_channels_of_the_guild_and_in_no_other_guild() {
    let world = has_members().await;
    for (guild, channel) in CHANNELS {
        post(&world, guild, channel, "zebra").await;
    }
    world.pass(3_600.0).await;
    // These channels have no members any more, and for one the former members are unknown.
    world.backend.rooms.dismiss(&channel_ref("discord:1", "discord:10"), &"aria".into()).await.unwrap();
    let membership = world.context.memberships.remove(&"discord:11".into()).unwrap();

    let forgotten = world.forget_in("discord:1", "discord:5", false).await.unwrap();

    world.context.memberships.put(&"discord:11".into(), membership).unwrap();
    assert_eq!(forgotten.messages, 2);
    for (channel, left) in [("discord:10", 0), ("discord:11", 0), ("discord:20", 1), ("discord:77", 1)] {
        assert_eq!(world.history(channel).await.len(), left, "{channel}");
        assert_eq!(world.export(channel, ExportForm::Json).await.concat().contains("zebra"), left > 0, "{channel}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retried_dead_letter_keeps_the_id_of_its_platform() {
    let world = has_members().await;
    post(&world, "discord:1", "discord:10", "one").await;
    let channel_key = ChannelKey::new(&"discord:1".into(), &"discord:10".into());
    let by_id = async |world: &World| world.reader().message(&channel_key, "discord:10/one").await.unwrap().unwrap();
    let first = by_id(&world).await;
    dead_letter(&world, &channel_key, first, "a bug").await;
    let world = world.crash().await;

    let listed = world.backend.maintenance.quarantine().await.unwrap().messages;
    world.backend.maintenance.retry(&listed[0].id).await.unwrap();

    assert_eq!((&*listed[0].room, listed[0].guild.as_str()), ("discord:10", "discord:1"));
    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "one")]));
    let again = by_id(&world).await;
    assert!(again > first);
    let event = world.reader().event(&channel_key, again).await.unwrap().unwrap().event;
    assert!(matches!(&event, Event::Said { message, .. } if *message.text == *"one"), "{event:?}");
}

#[tokio::test(start_paused = true)]
async fn a_title_is_one_line_of_plain_text_and_missing_if_unknown() {
    let title = format!("#gen\u{202e}eral\n  · {}", "x".repeat(300));
    let world = World::with_platform(Arc::new(Titled(title))).await;
    world.backend.rooms.admit(&channel_ref("discord:1", "discord:10"), &"aria".into()).await.unwrap();
    world.backend.rooms.admit(&channel_ref("discord:1", "discord:11"), &"aria".into()).await.unwrap();

    let rooms = world.backend.rooms.list().await.unwrap().rooms;

    let title = rooms[1].title.as_deref().unwrap();
    assert!(title.starts_with("#general · xxx") && title.ends_with("x…"), "{title}");
    assert_eq!(title.chars().count(), 201);
    assert_eq!((rooms[0].id.as_str(), &rooms[0].title), ("lobby", &None));
    assert_eq!((rooms[2].id.as_str(), &rooms[2].title), ("discord:11", &None));
    assert_eq!(serde_json::to_value(&rooms[2]).unwrap().get("title"), None);
}

/// A platform that knows the title of one of its channels.
struct Titled(String);

#[async_trait]
impl ChatPlatform for Titled {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn serves(&self, channel: &ChannelId) -> bool {
        is_of_discord(channel)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { longest_part: 2_000, request_timeout: Duration::from_secs(10), typing_shows: None, is_written_here: false }
    }

    fn newest(&self, _: &ChannelId, _: &[Arc<str>]) -> Option<Arc<str>> {
        None
    }

    fn title(&self, channel: &ChannelId) -> Option<String> {
        (channel.as_str() == "discord:10").then(|| self.0.clone())
    }

    async fn send(&self, _: &Part) -> Result<Arc<str>, NotSent> {
        Err(NotSent::Refused("nothing is said here".into()))
    }

    async fn change(&self, _: &GuildId, _: &ChannelId, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), NotSent> {
        Ok(())
    }

    async fn find(&self, _: &Part, _: Option<&str>, _: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        Ok(None)
    }

    async fn typing(&self, _: &GuildId, _: &ChannelId) {}
}
