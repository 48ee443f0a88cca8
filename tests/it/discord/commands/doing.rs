//! What commands do, for whom, and where.

use serde_json::{Value, json};
use tertulia::domain::id::GuildId;
use tertulia::ports::backend::Refused;

use super::super::counterpart::channels::{Kind, Overwrite};
use super::super::counterpart::permissions::{MANAGE_CHANNELS, MANAGE_WEBHOOKS, VIEW_CHANNEL};
use super::backend::room_id;
use super::{Scene, at, companion, me, snowflake, sub, switch};

#[tokio::test]
async fn a_companion_is_let_in_tempered_paused_and_sent_out() {
    let scene = Scene::new().await;
    let told = async |options: Value| scene.told(scene.kim, scene.general, options).await;

    assert!(told(sub("status", json!([]))).await.contains("/tertulia join companion:aria"));
    let welcome = told(sub("join", json!([companion("ARI")]))).await;
    assert!(welcome.starts_with("**Aria** is here now."), "{welcome}");
    assert_eq!(welcome.lines().count(), 1, "nothing is missing: {welcome}");
    assert!(told(sub("join", json!([companion("Aria")]))).await.contains("is here already"));
    told(sub("join", json!([companion("ben")]))).await;
    let level = json!({ "type": 3, "name": "level", "value": "very_quiet" });
    let tempered = told(sub("talkativeness", json!([level, companion("Aria")]))).await;
    assert!(tempered.contains("**Aria** rarely speaks up") && !tempered.contains("Ben"), "{tempered}");
    assert!(told(sub("status", json!([]))).await.contains("**Aria** rarely speaks up"));
    assert!(told(sub("pause", json!([companion("Aria")]))).await.starts_with("Paused in this channel: Aria."));
    assert!(told(sub("pause", json!([]))).await.starts_with("Paused in this channel: Aria and Ben."));
    assert!(told(sub("status", json!([]))).await.contains("The whole channel is paused."));
    assert_eq!(told(sub("pause", json!([switch("off")]))).await, "Resumed in this channel: Aria and Ben.");
    let level = json!({ "type": 3, "name": "level", "value": "default" });
    assert!(told(sub("talkativeness", json!([level]))).await.contains("**Aria** speaks up now and then."));
    assert!(told(sub("leave", json!([companion("Aria")]))).await.starts_with("**Aria** is no longer here."));
    assert!(told(sub("leave", json!([companion("Aria")]))).await.contains("not in this channel. In this channel: Ben."));

    let channel = snowflake(scene.general).channel();
    let inside = scene.backend.inside();
    let room = &inside.rooms[&room_id(channel.as_str())];
    assert_eq!((room.guild.clone(), room.paused, room.companions.len()), (snowflake(scene.guild).guild(), false, 1));
    assert!(inside.admitted.iter().all(|(channel_ref, _)| channel_ref.channel == channel && channel_ref.parent.is_none()));
}

#[tokio::test]
async fn whoever_may_not_manage_channels_changes_nothing() {
    let scene = Scene::new().await;
    scene.told(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    let level = json!({ "type": 3, "name": "level", "value": "quiet" });

    for options in [
        sub("join", json!([companion("ben")])),
        sub("leave", json!([companion("aria")])),
        sub("talkativeness", json!([level])),
        sub("pause", json!([])),
    ] {
        let told = scene.told(scene.ana, scene.general, options).await;
        assert!(told.contains("you need the permission **Manage Channels** here"), "{told}");
    }
    for options in [sub("status", json!([])), sub("why", json!([])), sub("help", json!([])), me("ignore", json!([]))] {
        let told = scene.told(scene.ana, scene.general, options).await;
        assert!(!told.contains("you need"), "{told}");
    }
    assert_eq!(["join", "leave", "talkativeness"].map(|command| scene.counted(command, "refused")), [1.0; 3]);

    let inside = scene.backend.inside();
    assert_eq!(inside.admitted.len(), 1);
    let room = inside.rooms.values().next().expect("a room");
    assert_eq!((room.companions.len(), room.paused, &*room.companions[0].interjection), (1, false, "average"));
}

#[tokio::test]
async fn another_channel_takes_what_one_may_do_there() {
    let scene = Scene::new().await;
    let [secret, forum, voice] =
        [Kind::Text, Kind::Forum, Kind::Voice].map(|kind| scene.discord.channel_of(scene.guild, kind, "c"));
    scene.discord.overwrite(secret, Overwrite::member(scene.kim, 0, MANAGE_CHANNELS));
    scene.discord.overwrite(secret, Overwrite::member(scene.ana, MANAGE_CHANNELS, 0));
    let join = |channel| sub("join", json!([companion("aria"), at(channel)]));

    let refused = scene.told(scene.kim, scene.general, join(secret)).await;
    assert!(refused.contains(&format!("**Manage Channels** in <#{secret}>")), "{refused}");
    assert!(scene.told(scene.ana, scene.general, join(forum)).await.contains("you need"));
    let welcome = scene.told(scene.ana, scene.general, join(secret)).await;
    assert!(welcome.starts_with(&format!("**Aria** is in <#{secret}> now.")), "{welcome}");
    let welcome = scene.told(scene.kim, scene.general, join(forum)).await;
    assert!(welcome.contains(&format!("is in <#{forum}> now, and in every post there")), "{welcome}");
    assert!(scene.told(scene.kim, scene.general, join(voice)).await.contains("now."));
    let gone = scene.told(scene.kim, scene.general, sub("leave", json!([companion("aria"), at(forum)]))).await;
    assert!(gone.starts_with(&format!("**Aria** is no longer in <#{forum}>.")), "{gone}");
    // What is not there to be chosen cannot be.
    let (_, away, _) = scene.elsewhere();
    assert!(scene.discord.invoke(scene.kim, scene.general, "tertulia", join(away)).is_err());
}

#[tokio::test]
async fn in_a_thread_it_is_the_thread_itself() {
    let scene = Scene::new().await;
    let forum = scene.discord.channel_of(scene.guild, Kind::Forum, "forum");
    let post = scene.discord.open_post(scene.ana, forum, "Cats", "Look");
    let thread = scene.discord.thread(scene.general, Kind::PublicThread, "aside", scene.kim);

    for (channel, parent) in [(post, forum), (thread, scene.general)] {
        scene.told(scene.kim, channel, sub("join", json!([companion("aria")]))).await;

        let inside = scene.backend.inside();
        let (channel_ref, _) = inside.admitted.last().expect("she was let in");
        assert_eq!(
            (channel_ref.channel.clone(), channel_ref.parent.clone()),
            (snowflake(channel).channel(), Some(snowflake(parent).channel()))
        );
    }
    let aside = scene.discord.thread(scene.general, Kind::PublicThread, "another", scene.kim);
    scene.told(scene.kim, scene.general, sub("join", json!([companion("ben")]))).await;
    let status = scene.told(scene.ana, aside, sub("status", json!([]))).await;
    assert!(status.contains(&format!("those of <#{}>", scene.general)) && status.contains("Ben"), "{status}");
    let pause = scene.told(scene.kim, aside, sub("pause", json!([]))).await;
    assert!(pause.contains("Until then, use this command there."), "{pause}");
    assert!(scene.told(scene.kim, aside, sub("leave", json!([companion("aria")]))).await.contains("In this channel: Ben."));
    // It is taken out of the thread alone, whoever else lives there.
    scene.told(scene.kim, aside, sub("leave", json!([companion("ben")]))).await;
    let (channel_ref, _) = scene.backend.inside().dismissed.pop().expect("it was sent out");
    assert_eq!((channel_ref.channel, channel_ref.parent), (snowflake(aside).channel(), Some(snowflake(scene.general).channel())));
}

#[tokio::test]
async fn in_a_direct_message_all_of_it_is_ones_own() {
    let scene = Scene::new().await;
    let (direct, _) = scene.discord.direct(scene.ana, "hi");

    let status = scene.told(scene.ana, direct, sub("status", json!([]))).await;
    assert!(status.starts_with("**Who is here**: as soon as you say something\n• **Aria** "), "{status}");
    assert!(scene.told(scene.ana, direct, sub("pause", json!([]))).await.starts_with("Say something here first"));
    let welcome = scene.told(scene.ana, direct, sub("join", json!([companion("aria")]))).await;
    assert!(welcome.starts_with("**Aria** is here now."), "{welcome}");
    assert!(scene.told(scene.ana, direct, sub("pause", json!([]))).await.starts_with("Paused"));

    let inside = scene.backend.inside();
    let channel_ref = &inside.admitted[0].0;
    assert_eq!(
        (channel_ref.guild.clone(), channel_ref.channel.clone()),
        (snowflake(direct).direct_guild(), snowflake(direct).channel())
    );
}

#[tokio::test]
async fn what_is_missing_is_told_when_somebody_comes() {
    let scene = Scene::new().await;
    let bot_role = scene.discord.look(|state| state.world.guilds[&scene.guild].members[&state.world.bot()].roles[0]);
    let [mute, deaf] = ["mute", "deaf"].map(|name| scene.discord.channel(scene.guild, name));
    scene.discord.overwrite(mute, Overwrite::role(bot_role, 0, MANAGE_WEBHOOKS));
    scene.discord.overwrite(deaf, Overwrite::role(bot_role, 0, VIEW_CHANNEL));

    let told = scene.told(scene.kim, mute, sub("join", json!([companion("aria")]))).await;
    assert!(told.contains("Fix this first") && told.contains("allow Manage Webhooks."), "{told}");
    let told = scene.told(scene.kim, scene.general, sub("join", json!([companion("aria"), at(deaf)]))).await;
    assert!(told.contains("allow View Channel"), "{told}");
    assert!(scene.told(scene.ana, mute, sub("status", json!([]))).await.contains("allow Manage Webhooks."));
}

#[tokio::test]
async fn people_decide_whether_they_are_heard_and_remembered() {
    let scene = Scene::new().await;
    let told = async |options: Value| scene.told(scene.ana, scene.general, options).await;
    let (guild, person) = (snowflake(scene.guild).guild(), snowflake(scene.ana).person());

    assert!(told(me("forget", json!([]))).await.contains("`/tertulia forget me sure:True`"));
    assert!(told(me("forget", json!([{ "type": 5, "name": "sure", "value": false }]))).await.contains("cannot be undone"));
    assert!(scene.backend.inside().forgotten.is_empty(), "nothing is forgotten by mistake");
    let forgotten = told(me("forget", json!([{ "type": 5, "name": "sure", "value": true }]))).await;
    assert!(forgotten.starts_with("Forgotten: 2 messages of yours, with 1 decision and 0 summaries"), "{forgotten}");
    let forget = scene.backend.inside().forgotten.pop().expect("she is forgotten");
    assert_eq!((forget.guild, &*forget.person), (guild.clone(), person.as_str()));

    assert!(told(me("ignore", json!([]))).await.contains("`/tertulia ignore me switch:off`"));
    assert!(scene.backend.inside().ignored.contains(&(guild.clone(), person.clone())));
    assert!(told(sub("status", json!([]))).await.contains("You asked companions not to listen to you"));
    assert!(told(me("ignore", json!([switch("on")]))).await.contains("as you wanted"));
    assert!(told(me("ignore", json!([switch("off")]))).await.contains("listen to you again"));
    assert!(scene.backend.inside().ignored.is_empty());

    let (direct, _) = scene.discord.direct(scene.ana, "hi");
    scene.told(scene.ana, direct, me("ignore", json!([]))).await;
    let expected: (GuildId, _) = (snowflake(direct).direct_guild(), person);
    assert!(scene.backend.inside().ignored.contains(&expected), "there, and nowhere else");
}

#[tokio::test]
async fn what_the_core_refuses_is_told_in_plain_words() {
    let scene = Scene::new().await;
    let join = || sub("join", json!([companion("aria")]));
    let unknown = scene.told(scene.kim, scene.general, sub("join", json!([companion("@everyone")]))).await;
    assert_eq!(unknown, "There is no companion called “\\@everyone”. Available companions: Aria and Ben.");

    for (refusal, expected) in [
        (Refused::Conflict("Aria and Ari share the name \"ari\"".into()), "cannot be done: Aria and Ari share the name"),
        (Refused::Unavailable { detail: "/var/lib".into(), retry_after: None }, "Please try again in a minute."),
        (Refused::Broken("/var/lib".into()), "tell the operator of the bot"),
    ] {
        scene.backend.inside().refuses = Some(refusal);
        let told = scene.told(scene.kim, scene.general, join()).await;
        assert!(told.contains(expected) && !told.contains("/var"), "{told}");
    }
    scene.backend.inside().refuses = None;
    scene.backend.inside().panics = true;
    assert!(scene.told(scene.kim, scene.general, join()).await.contains("Something went wrong here"));
    scene.backend.inside().panics = false;
    assert!(scene.told(scene.kim, scene.general, join()).await.contains("is here now"));
}
