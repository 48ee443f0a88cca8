//! What `status` and `why` say about a channel, and what autocomplete offers.

use serde_json::{Value, json};
use tertulia::ports::backend::decisions::WaitingFor;
use tertulia::ports::chat_platform::ChatPlatform as _;

use super::super::counterpart::Permissions;
use super::super::home::{part, snowflake};
use super::{Scene, at, companion, sub};

#[tokio::test]
async fn a_status_shows_the_last_delivery_error_until_a_delivery_succeeds() {
    let scene = Scene::new().await;
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("ben")]))).await;
    let often = json!([{ "type": 3, "name": "level", "value": "eager" }, companion("ben")]);
    scene.final_answer(scene.kim, scene.general, sub("talkativeness", often)).await;
    let status = async || scene.final_answer(scene.ana, scene.general, sub("status", json!([]))).await;
    let bot_role = scene.discord.bot_role(scene.guild);
    let part = part(scene.general, "Hello.");

    let healthy = status().await;
    assert!(healthy.contains("**Aria** speaks up now and then.") && healthy.ends_with("read and speak here."), "{healthy}");
    assert!(healthy.contains("**Ben** often speaks up. It has ended this conversation, and comes back"), "{healthy}");
    scene.discord.deny(scene.general, bot_role, Permissions::MANAGE_WEBHOOKS);
    scene.platform.send(&part).await.expect_err("it is refused");
    scene.discord.allow(scene.general, bot_role, Permissions::MANAGE_WEBHOOKS);
    let failing = status().await;
    assert!(
        failing.contains("The last statement could not be posted here (<t:") && failing.contains("allow Manage Webhooks"),
        "{failing}"
    );
    scene.platform.send(&part).await.expect("it is posted");
    assert_eq!(status().await, healthy);
    scene.backend.probe().models_fail = true;
    let silent = status().await;
    assert!(silent.contains("does not answer at the moment") && !silent.contains("secret.example"), "{silent}");
}

#[tokio::test]
async fn a_status_says_when_message_content_is_not_read() {
    let scene = Scene::new().await;
    let (direct, _) = scene.discord.direct(scene.ana, "hi");
    scene.platform.set_reads_all(false);

    let status = scene.final_answer(scene.ana, scene.general, sub("status", json!([]))).await;
    for expected in ["Message Content Intent > on", "or replies to them", "`/tertulia say`", "Ask a companion about this"] {
        assert!(status.contains(expected), "{status}");
    }
    let in_direct = scene.final_answer(scene.ana, direct, sub("status", json!([]))).await;
    assert!(!in_direct.contains("Message Content"), "direct messages are always read: {in_direct}");
    scene.platform.set_reads_all(true);
    let status = scene.final_answer(scene.ana, scene.general, sub("status", json!([]))).await;
    assert!(!status.contains("Message Content"), "{status}");
}

#[tokio::test]
async fn why_covers_this_channel_only() {
    let scene = Scene::new().await;
    let (_, away, zoe) = scene.elsewhere();
    let other = scene.discord.channel(scene.guild, "other");
    for (who, channel) in [(scene.kim, scene.general), (scene.kim, other), (zoe, away)] {
        scene.final_answer(who, channel, sub("join", json!([companion("aria")]))).await;
    }

    let text = "Aria thinks about an answer after 9 more messages.".to_owned();
    let waiting_for = WaitingFor { text, messages: Some(9), lull_at: None, retry_at: None, unsettled: 0 };
    scene.backend.probe().waiting_for = Some(waiting_for);

    let why = scene.final_answer(scene.ana, scene.general, sub("why", json!([]))).await;

    let room = snowflake(scene.general).channel();
    assert!(why.contains("**Aria** was asked (it was quiet), and stayed silent"), "{why}");
    assert!(why.contains(&format!("nothing for me in discord\\:{}", scene.general)) && why.contains("<t:1777636800:R>"), "{why}");
    assert!(why.contains("• Aria thinks about an answer after 9 more messages."), "{why}");
    assert!(scene.backend.probe().queried_rooms.iter().all(|room_id| room_id.as_str() == room.as_str()));
    // A room of another guild under this channel's number does not count.
    scene.backend.add_channel(room.as_str(), "discord:1", "elsewhere");
    let none = scene.final_answer(scene.ana, scene.general, sub("why", json!([]))).await;
    assert!(none.starts_with("Nothing was decided here yet"), "{none}");
}

#[tokio::test]
async fn names_are_offered_while_somebody_types() {
    let scene = Scene::new().await;
    let focused = |typed: &str| json!({ "type": 3, "name": "companion", "value": typed, "focused": true });
    let offered = async |options: Value| scene.offered(scene.kim, scene.general, options).await;

    assert_eq!(offered(sub("join", json!([focused("")]))).await, ["Aria", "Ben"]);
    assert_eq!(offered(sub("leave", json!([focused("")]))).await, [""; 0]);
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    assert_eq!(offered(sub("join", json!([focused("")]))).await, ["Ben"]);
    assert_eq!(offered(sub("join", json!([focused("BENN")]))).await, ["Ben"]);
    assert_eq!(offered(sub("leave", json!([focused("a")]))).await, ["Aria"]);
    assert_eq!(offered(sub("why", json!([focused("x")]))).await, [""; 0]);
    assert_eq!(offered(sub("say", json!([focused("a")]))).await, ["Aria"]);
    let other = scene.discord.channel(scene.guild, "other");
    assert_eq!(offered(sub("join", json!([focused(""), at(other)]))).await, ["Aria", "Ben"]);
    assert_eq!(offered(sub("leave", json!([focused(""), at(other)]))).await, [""; 0]);
}
