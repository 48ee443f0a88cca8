//! What is said in channels of other platforms, as the backend tells it: like rooms of the console, and never from one guild to another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::Value;

use super::abroad::is_of_discord;
use super::abroad::{self, ana, channel_ref};
use super::keeping::set_aside_at;
use super::world::{World, room, said};
use crate::actors::membership::changes;
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, GuildId};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Reader;
use crate::ports::backend::decisions::{DecisionQuery, WhyQuery};
use crate::ports::backend::keeping::{ExportForm, ExportQuery, Forget};
use crate::ports::backend::usage::UsageQuery;
use crate::ports::backend::{Backend, Refused};
use crate::ports::chat_platform::{Capabilities, ChatPlatform, NotRead, NotSent, Part};
use crate::ports::membership::MembershipPort;

/// Two channels of a guild and one of another, in which Aria lives, and a direct message with her.
async fn has_members() -> World {
    let world = World::new().await;
    for (guild, channel) in [("discord:1", "discord:10"), ("discord:1", "discord:11"), ("discord:2", "discord:20")] {
        world.backend.admit(&channel_ref(guild, channel), &"aria".into()).await.unwrap();
    }
    assert!(changes::ensure_room(&world.context, &channel_ref("dm:discord:77", "discord:77")).await.unwrap());
    world.rest().await;
    world
}

async fn says(world: &World, guild: &str, channel: &str, text: &str) {
    abroad::says(world, &channel_ref(guild, channel), ana(world, &format!("{channel}/{text}"), text)).await;
}

async fn exported(world: &World, id: Option<&str>, form: ExportForm) -> String {
    let lines = world.backend.export(ExportQuery { room: id.map(room), form }).await.unwrap();
    lines.map(|line| line.unwrap()).collect::<Vec<_>>().await.join("\n")
}

async fn used(world: &World, guild: &str) -> Value {
    let query = UsageQuery { guild: Some(guild.into()), from: None, to: None };
    serde_json::to_value(world.backend.usage(query).await.unwrap()).unwrap()["guilds"][0]["calls"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_channel_is_told_as_any_room_is() {
    let world = has_members().await;
    world.side.answers([Ok("They mean me.\nYES")]);
    let mut watching = world.watch("discord:10", None).await;

    says(&world, "discord:1", "discord:10", "Ari, are you there?").await;
    world.pass(5.0).await;

    assert_eq!(world.history("discord:10").await, said(&[("Ana", "Ari, are you there?"), ("aria", "Hello!")]));
    assert_eq!(world.decisions("discord:10").await[0]["room"], "discord:10");
    let names = watching.names().await;
    assert!(
        ["message", "evaluate", "decision", "statement"].iter().all(|name| names.iter().any(|seen| seen == name)),
        "{names:?}"
    );
    let state = world.backend.state(&room("discord:10")).await.unwrap();
    assert_eq!(state.companions[0].id.as_str(), "aria");
    let why = world.backend.why(WhyQuery { room: room("discord:10"), companion: None, at: None }).await.unwrap();
    assert_eq!(why.story[0].text, "Ana said to Aria: “Ari, are you there?”");
    assert!(exported(&world, Some("discord:10"), ExportForm::Json).await.contains(r#""channel":"discord:10""#));
    let script: Value = serde_json::from_str(&exported(&world, Some("discord:10"), ExportForm::Replay).await).unwrap();
    assert_eq!(script["events"].as_array().unwrap().iter().filter(|event| event["text"] == "Ari, are you there?").count(), 1);
    assert_eq!(used(&world, "discord:1").await, 2);
    world.backend.clear(&room("discord:10")).await.unwrap();
    world.backend.delete_room(&room("discord:10")).await.unwrap();
    assert!(matches!(world.backend.history(&room("discord:10"), all()).await, Err(Refused::NotFound(_))));
}

fn all() -> crate::ports::backend::messages::HistoryQuery {
    crate::ports::backend::messages::HistoryQuery { after: None, before: None, limit: 10 }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_direct_message_or_of_a_guild_is_told_in_another() {
    let world = has_members().await;
    world.backend.admit(&channel_ref("discord:2", "discord:20"), &"bruno".into()).await.unwrap();
    says(&world, "dm:discord:77", "discord:77", "a secret").await;
    says(&world, "discord:2", "discord:20", "Bruno, a story").await;
    world.pass(60.0).await;
    says(&world, "discord:1", "discord:10", "Bruno?").await;
    world.pass(60.0).await;

    let asked = format!("{:?}", world.side.asked.lock().unwrap().last().unwrap());
    assert!(asked.contains("Bruno?") && !asked.contains("secret") && !asked.contains("story"), "{asked}");
    // Whoever lives in another guild alone has no name here.
    assert_eq!(world.decisions("discord:10").await[0]["trigger"], "lull");
    assert_eq!(world.history("discord:10").await, said(&[("Ana", "Bruno?")]));
    assert_eq!(used(&world, "discord:1").await, 1);
    let unknown = world.backend.why(WhyQuery { room: room("discord:99"), companion: None, at: None }).await;
    assert!(
        matches!(unknown, Err(Refused::NotFound(detail)) if !detail.contains("discord:77") && !detail.contains("discord:20"))
    );
    // The operator sees all of them.
    let query = DecisionQuery { room: None, companion: None, after: None, limit: 10 };
    let rooms: Vec<_> = world.backend.decisions(query).await.unwrap().decisions.iter().map(|one| one.room.to_string()).collect();
    assert!(rooms.contains(&"discord:77".to_owned()) && rooms.contains(&"discord:20".to_owned()), "{rooms:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_forgotten_in_a_guild_is_forgotten_in_all_its_channels_and_in_no_other_guild() {
    let world = has_members().await;
    for (guild, channel) in
        [("discord:1", "discord:10"), ("discord:1", "discord:11"), ("discord:2", "discord:20"), ("dm:discord:77", "discord:77")]
    {
        says(&world, guild, channel, "zebra").await;
    }
    world.pass(3_600.0).await;
    // Nobody lives there any more, and of one it is not even known who did.
    world.backend.dismiss(&channel_ref("discord:1", "discord:10"), &"aria".into()).await.unwrap();
    let membership = world.context.memberships.take(&"discord:11".into()).unwrap();

    let forgotten =
        world.backend.forget(Forget { guild: "discord:1".into(), person: "discord:5".into(), answers: false }).await.unwrap();

    world.context.memberships.put(&"discord:11".into(), membership).unwrap();
    assert_eq!(forgotten.messages, 2);
    for (channel, left) in [("discord:10", 0), ("discord:11", 0), ("discord:20", 1), ("discord:77", 1)] {
        assert_eq!(world.history(channel).await.len(), left, "{channel}");
        assert_eq!(exported(&world, Some(channel), ExportForm::Json).await.contains("zebra"), left > 0, "{channel}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_set_aside_and_tried_again_still_goes_by_its_platforms_id() {
    let world = has_members().await;
    says(&world, "discord:1", "discord:10", "one").await;
    let channel_key = ChannelKey::new(&"discord:1".into(), &"discord:10".into());
    let by_id = async |world: &World| Reader::new(&*world.store).message(&channel_key, "discord:10/one").await.unwrap().unwrap();
    let first = by_id(&world).await;
    set_aside_at(&world, &channel_key, first).await;
    let world = world.crash().await;

    let listed = world.backend.quarantine().await.unwrap().messages;
    world.backend.retry(&listed[0].id).await.unwrap();

    assert_eq!((&*listed[0].room, listed[0].guild.as_str()), ("discord:10", "discord:1"));
    assert_eq!(world.history("discord:10").await, said(&[("Ana", "one")]));
    let again = by_id(&world).await;
    assert!(again > first);
    assert_eq!(
        Reader::new(&*world.store).event(&channel_key, again).await.unwrap().map(|recorded| text_of(&recorded.event)),
        Some("one".into())
    );
}

fn text_of(event: &Event) -> Arc<str> {
    match event {
        Event::Said { message, .. } => message.text.clone(),
        other => panic!("{other:?} is no message"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_title_is_one_line_of_plain_text_and_absent_where_none_is_known() {
    let title = format!("#gen\u{202e}eral\n  · {}", "x".repeat(300));
    let world = World::over(Arc::new(Titled(title))).await;
    world.backend.admit(&channel_ref("discord:1", "discord:10"), &"aria".into()).await.unwrap();
    world.backend.admit(&channel_ref("discord:1", "discord:11"), &"aria".into()).await.unwrap();

    let rooms = world.backend.rooms().await.unwrap().rooms;

    let title = rooms[1].title.as_deref().unwrap();
    assert!(title.starts_with("#general · xxx") && title.ends_with("x…"), "{title}");
    assert_eq!(title.chars().count(), 201);
    assert_eq!((rooms[0].id.as_str(), &rooms[0].title), ("lobby", &None));
    assert_eq!((rooms[2].id.as_str(), &rooms[2].title), ("discord:11", &None));
    assert_eq!(serde_json::to_value(&rooms[2]).unwrap().get("title"), None);
}

/// A platform that knows what one of its channels is called.
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

    async fn find(&self, _: &Part, _: Option<&str>, _: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        Ok(None)
    }

    async fn typing(&self, _: &GuildId, _: &ChannelId) {}
}
