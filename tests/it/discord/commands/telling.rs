//! What commands tell of a channel, and what they offer.

use serde_json::{Value, json};
use tertulia::ports::chat_platform::{ChatPlatform as _, Part};

use super::super::counterpart::channels::Overwrite;
use super::super::counterpart::permissions::MANAGE_WEBHOOKS;
use super::{Scene, at, companion, snowflake, sub};

#[tokio::test]
async fn a_status_tells_what_went_wrong_until_it_went_well() {
    let scene = Scene::new().await;
    scene.told(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    scene.told(scene.kim, scene.general, sub("join", json!([companion("ben")]))).await;
    let status = async || scene.told(scene.ana, scene.general, sub("status", json!([]))).await;
    let bot_role = scene.discord.look(|state| state.world.guilds[&scene.guild].members[&state.world.bot()].roles[0]);
    let part = Part {
        guild: snowflake(scene.guild).guild(),
        channel: snowflake(scene.general).channel(),
        companion: "aria".into(),
        name: "Aria".into(),
        picture: None,
        text: "Hello.".into(),
        nonce: "1".into(),
    };

    let well = status().await;
    assert!(well.contains("**Aria** speaks up now and then.") && well.ends_with("read and speak here."), "{well}");
    assert!(well.contains("**Ben** often speaks up. It has ended this conversation, and comes back"), "{well}");
    scene.discord.overwrite(scene.general, Overwrite::role(bot_role, 0, MANAGE_WEBHOOKS));
    scene.platform.send(&part).await.expect_err("it is refused");
    scene.discord.overwrite(scene.general, Overwrite::role(bot_role, MANAGE_WEBHOOKS, 0));
    let trouble = status().await;
    assert!(
        trouble.contains("The last statement could not be posted here (<t:") && trouble.contains("allow Manage Webhooks"),
        "{trouble}"
    );
    scene.platform.send(&part).await.expect("it is posted");
    assert_eq!(status().await, well);
    scene.backend.inside().models_fail = true;
    let silent = status().await;
    assert!(silent.contains("does not answer at the moment") && !silent.contains("secret.example"), "{silent}");
}

#[tokio::test]
async fn a_status_tells_when_most_is_not_read() {
    let scene = Scene::new().await;
    let (direct, _) = scene.discord.direct(scene.ana, "hi");
    scene.platform.set_reads_all(false);

    let status = scene.told(scene.ana, scene.general, sub("status", json!([]))).await;
    for told in ["Message Content Intent > on", "or replies to them", "`/tertulia say`", "Ask a companion about this"] {
        assert!(status.contains(told), "{status}");
    }
    let own = scene.told(scene.ana, direct, sub("status", json!([]))).await;
    assert!(!own.contains("Message Content"), "everything is read there: {own}");
    scene.platform.set_reads_all(true);
    let status = scene.told(scene.ana, scene.general, sub("status", json!([]))).await;
    assert!(!status.contains("Message Content"), "{status}");
}

#[tokio::test]
async fn why_tells_of_this_channel_alone() {
    let scene = Scene::new().await;
    let (_, away, zoe) = scene.elsewhere();
    let other = scene.discord.channel(scene.guild, "other");
    for (who, channel) in [(scene.kim, scene.general), (scene.kim, other), (zoe, away)] {
        scene.told(who, channel, sub("join", json!([companion("aria")]))).await;
    }

    let why = scene.told(scene.ana, scene.general, sub("why", json!([]))).await;

    let room = snowflake(scene.general).channel();
    assert!(why.contains("**Aria** was asked (it had become quiet), and stayed silent"), "{why}");
    assert!(why.contains(&format!("nothing for me in discord\\:{}", scene.general)) && why.contains("<t:1777636800:R>"), "{why}");
    assert!(why.contains("considers speaking after: 9 more messages, or its name."), "{why}");
    assert!(scene.backend.inside().asked_about.iter().all(|asked| asked.as_str() == room.as_str()));
    // A room of another guild under this channel's number is as if it were not there.
    let guild = snowflake(scene.guild).guild();
    scene.backend.inside().rooms.values_mut().filter(|room| room.guild == guild).for_each(|room| room.guild = "discord:1".into());
    let none = scene.told(scene.ana, scene.general, sub("why", json!([]))).await;
    assert!(none.starts_with("Nothing was decided here yet"), "{none}");
}

#[tokio::test]
async fn names_are_offered_while_somebody_types() {
    let scene = Scene::new().await;
    let focused = |typed: &str| json!({ "type": 3, "name": "companion", "value": typed, "focused": true });
    let offered = async |options: Value| scene.offered(scene.kim, scene.general, options).await;

    assert_eq!(offered(sub("join", json!([focused("")]))).await, ["Aria", "Ben"]);
    assert_eq!(offered(sub("leave", json!([focused("")]))).await, [""; 0]);
    scene.told(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    assert_eq!(offered(sub("join", json!([focused("")]))).await, ["Ben"]);
    assert_eq!(offered(sub("join", json!([focused("BENN")]))).await, ["Ben"]);
    assert_eq!(offered(sub("leave", json!([focused("a")]))).await, ["Aria"]);
    assert_eq!(offered(sub("why", json!([focused("x")]))).await, [""; 0]);
    assert_eq!(offered(sub("say", json!([focused("a")]))).await, ["Aria"]);
    let other = scene.discord.channel(scene.guild, "other");
    assert_eq!(offered(sub("join", json!([focused(""), at(other)]))).await, ["Aria", "Ben"]);
    assert_eq!(offered(sub("leave", json!([focused(""), at(other)]))).await, [""; 0]);
}
