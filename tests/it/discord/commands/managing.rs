//! What commands do, who may use them, and in which channels.

use serde_json::{Value, json};
use tertulia::domain::id::GuildId;
use tertulia::ports::backend::Refused;
use tertulia::ports::backend::room::RoomId;
use tertulia::ports::backend::room_service::RoomService as _;

use super::super::counterpart::{Does, Kind, On, Permissions};
use super::super::home::snowflake;
use super::{Scene, at, companion, me, sub, switch};

#[tokio::test]
async fn commands_add_adjust_pause_and_remove_a_companion() {
    let scene = Scene::new().await;
    let ask = async |options: Value| scene.final_answer(scene.kim, scene.general, options).await;

    assert!(ask(sub("status", json!([]))).await.contains("/tertulia join companion:aria"));
    let welcome = ask(sub("join", json!([companion("ARI")]))).await;
    assert!(welcome.starts_with("**Aria** is here now."), "{welcome}");
    assert_eq!(welcome.lines().count(), 1, "no permission is missing: {welcome}");
    assert!(ask(sub("join", json!([companion("Aria")]))).await.contains("is here already"));
    ask(sub("join", json!([companion("ben")]))).await;
    let level = json!({ "type": 3, "name": "level", "value": "very_quiet" });
    let adjusted = ask(sub("talkativeness", json!([level, companion("Aria")]))).await;
    assert!(adjusted.contains("**Aria** rarely speaks up") && !adjusted.contains("Ben"), "{adjusted}");
    assert!(ask(sub("status", json!([]))).await.contains("**Aria** rarely speaks up"));
    assert!(ask(sub("pause", json!([companion("Aria")]))).await.starts_with("Paused in this channel: Aria."));
    assert!(ask(sub("pause", json!([]))).await.starts_with("Paused in this channel: Aria and Ben."));
    assert!(ask(sub("status", json!([]))).await.contains("The whole channel is paused."));
    assert_eq!(ask(sub("pause", json!([switch("off")]))).await, "Resumed in this channel: Aria and Ben.");
    let level = json!({ "type": 3, "name": "level", "value": "default" });
    assert!(ask(sub("talkativeness", json!([level]))).await.contains("**Aria** speaks up now and then."));
    assert!(ask(sub("leave", json!([companion("Aria")]))).await.starts_with("**Aria** is no longer here."));
    assert!(ask(sub("leave", json!([companion("Aria")]))).await.contains("not in this channel. In this channel: Ben."));

    let channel = snowflake(scene.general).channel();
    let room = scene.backend.get(&RoomId::of(&channel).unwrap()).await.unwrap();
    assert_eq!((room.guild.clone(), room.paused, room.companions.len()), (snowflake(scene.guild).guild(), false, 1));
    let probe = scene.backend.probe();
    assert!(probe.admitted.iter().all(|(channel_ref, _)| channel_ref.channel == channel && channel_ref.parent.is_none()));
}

#[tokio::test]
async fn companions_speak_only_when_spoken_to_until_another_level_is_chosen() {
    let scene = Scene::new().await;
    let ask = async |options: Value| scene.final_answer(scene.kim, scene.general, options).await;
    let level = |value: &str| json!({ "type": 3, "name": "level", "value": value });
    let hours = |value: &str| json!({ "type": 3, "name": "quiet_hours", "value": value });
    ask(sub("join", json!([companion("aria")]))).await;
    ask(sub("join", json!([companion("ben")]))).await;

    let one = ask(sub("talkativeness", json!([level("spoken_to"), companion("Aria")]))).await;
    assert!(one.contains("**Aria** speaks only when it is spoken to.") && !one.contains("In this channel, companions"), "{one}");
    let night = ask(sub("talkativeness", json!([hours("23:00-08:00"), companion("Ben")]))).await;
    assert!(
        night.contains("**Ben** speaks up now and then. In the hours 23:00-08:00, it speaks only when it is spoken to."),
        "{night}"
    );
    let all = ask(sub("talkativeness", json!([level("spoken_to")]))).await;
    assert!(all.contains("In this channel, companions speak only when they are spoken to, at all times."), "{all}");
    assert!(ask(sub("status", json!([]))).await.contains("In this channel, companions speak only when they are spoken to"));
    let eager = ask(sub("talkativeness", json!([level("eager")]))).await;
    assert!(eager.contains("**Aria** often speaks up.") && !eager.contains("In this channel, companions"), "{eager}");
    assert!(eager.contains("**Ben** often speaks up. In the hours 23:00-08:00, it speaks only when it is spoken to."), "{eager}");
    assert!(ask(sub("talkativeness", json!([hours("at night")]))).await.contains("such as `23:00-08:00`"));
    assert!(ask(sub("talkativeness", json!([]))).await.starts_with("Choose a level"));
}

#[tokio::test]
async fn members_without_manage_channels_change_nothing() {
    let scene = Scene::new().await;
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria")]))).await;
    let level = json!({ "type": 3, "name": "level", "value": "quiet" });

    for options in [
        sub("join", json!([companion("ben")])),
        sub("leave", json!([companion("aria")])),
        sub("talkativeness", json!([level])),
        sub("pause", json!([])),
    ] {
        let answer = scene.final_answer(scene.ana, scene.general, options).await;
        assert!(answer.contains("you need the permission **Manage Channels** here"), "{answer}");
    }
    for options in [sub("status", json!([])), sub("why", json!([])), sub("help", json!([])), me("ignore", json!([]))] {
        let answer = scene.final_answer(scene.ana, scene.general, options).await;
        assert!(!answer.contains("you need"), "{answer}");
    }
    assert_eq!(["join", "leave", "talkativeness"].map(|command| scene.counted(command, "refused")), [1.0; 3]);

    assert_eq!(scene.backend.probe().admitted.len(), 1);
    let room = scene.backend.get(&RoomId::of(&snowflake(scene.general).channel()).unwrap()).await.unwrap();
    assert_eq!((room.companions.len(), room.paused, &*room.companions[0].interjection), (1, false, "average"));
}

#[tokio::test]
async fn pause_for_me_in_the_menu_of_the_own_name_opts_out_and_elsewhere_explains_itself() {
    let scene = Scene::new().await;
    let on = async |target| {
        let interaction = scene.discord.invoke_on_user(scene.ana, scene.general, "Pause for me", target).expect("it is offered");
        let answer = scene.discord.answer_to(interaction).await;
        assert!(answer.ephemeral, "{answer:?}");
        scene.discord.final_answer(interaction).await.content
    };

    assert!(on(scene.kim).await.contains("is about you alone"));
    assert!(scene.backend.ignored().is_empty(), "it changes nothing for others");
    assert!(on(scene.ana).await.contains("until you use `/tertulia ignore me switch:off`"));
    assert!(on(scene.ana).await.contains("as you wanted"), "again, without an effect");
    let person = snowflake(scene.ana).person();
    assert_eq!(*scene.backend.ignored(), [(snowflake(scene.guild).guild(), person)].into());
}

#[tokio::test]
async fn the_status_says_where_no_reaction_can_acknowledge_a_stop() {
    let scene = Scene::new().await;
    let status = async || scene.final_answer(scene.ana, scene.general, sub("status", json!([]))).await;

    assert!(!status().await.contains("Add Reactions"));
    scene.discord.deny(scene.general, scene.guild, Permissions::ADD_REACTIONS);
    assert!(status().await.contains("allow Add Reactions"));
}

#[tokio::test]
async fn a_command_for_another_channel_needs_the_permission_there() {
    let scene = Scene::new().await;
    let [secret, forum, voice] =
        [Kind::Text, Kind::Forum, Kind::Voice].map(|kind| scene.discord.channel_of(scene.guild, kind, "c"));
    scene.discord.deny(secret, scene.kim, Permissions::MANAGE_CHANNELS);
    scene.discord.allow(secret, scene.ana, Permissions::MANAGE_CHANNELS);
    let join = |channel| sub("join", json!([companion("aria"), at(channel)]));

    let refused = scene.final_answer(scene.kim, scene.general, join(secret)).await;
    assert!(refused.contains(&format!("**Manage Channels** in <#{secret}>")), "{refused}");
    assert!(scene.final_answer(scene.ana, scene.general, join(forum)).await.contains("you need"));
    let welcome = scene.final_answer(scene.ana, scene.general, join(secret)).await;
    assert!(welcome.starts_with(&format!("**Aria** is in <#{secret}> now.")), "{welcome}");
    let welcome = scene.final_answer(scene.kim, scene.general, join(forum)).await;
    assert!(welcome.contains(&format!("is in <#{forum}> now, and in every post there")), "{welcome}");
    assert!(scene.final_answer(scene.kim, scene.general, join(voice)).await.contains("now."));
    let gone = scene.final_answer(scene.kim, scene.general, sub("leave", json!([companion("aria"), at(forum)]))).await;
    assert!(gone.starts_with(&format!("**Aria** is no longer in <#{forum}>.")), "{gone}");
    // A channel of another guild cannot be chosen.
    let (_, away, _) = scene.elsewhere();
    assert!(scene.discord.invoke(scene.kim, scene.general, "tertulia", join(away)).is_err());
}

#[tokio::test]
async fn a_command_in_a_thread_applies_to_the_thread() {
    let scene = Scene::new().await;
    let forum = scene.discord.channel_of(scene.guild, Kind::Forum, "forum");
    let post = scene.discord.open_post(scene.ana, forum, "Cats", "Look");
    let thread = scene.discord.thread(scene.general, "aside", scene.kim);

    for (channel, parent) in [(post, forum), (thread, scene.general)] {
        scene.final_answer(scene.kim, channel, sub("join", json!([companion("aria")]))).await;

        let probe = scene.backend.probe();
        let (channel_ref, _) = probe.admitted.last().expect("Aria was added");
        assert_eq!(
            (channel_ref.channel.clone(), channel_ref.parent.clone()),
            (snowflake(channel).channel(), Some(snowflake(parent).channel()))
        );
    }
    let aside = scene.discord.thread(scene.general, "another", scene.kim);
    scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("ben")]))).await;
    let status = scene.final_answer(scene.ana, aside, sub("status", json!([]))).await;
    assert!(status.contains(&format!("those of <#{}>", scene.general)) && status.contains("Ben"), "{status}");
    let pause = scene.final_answer(scene.kim, aside, sub("pause", json!([]))).await;
    assert!(pause.contains("Until then, use this command there."), "{pause}");
    assert!(
        scene.final_answer(scene.kim, aside, sub("leave", json!([companion("aria")]))).await.contains("In this channel: Ben.")
    );
    // The companion is removed from the thread alone.
    scene.final_answer(scene.kim, aside, sub("leave", json!([companion("ben")]))).await;
    let (channel_ref, _) = scene.backend.probe().dismissed.pop().expect("Ben was removed");
    assert_eq!((channel_ref.channel, channel_ref.parent), (snowflake(aside).channel(), Some(snowflake(scene.general).channel())));
}

#[tokio::test]
async fn in_a_direct_message_the_person_may_do_everything() {
    let scene = Scene::new().await;
    let (direct, _) = scene.discord.direct(scene.ana, "hi");

    let status = scene.final_answer(scene.ana, direct, sub("status", json!([]))).await;
    assert!(status.starts_with("**Who is here**: as soon as you say something\n• **Aria** "), "{status}");
    assert!(scene.final_answer(scene.ana, direct, sub("pause", json!([]))).await.starts_with("Say something here first"));
    let welcome = scene.final_answer(scene.ana, direct, sub("join", json!([companion("aria")]))).await;
    assert!(welcome.starts_with("**Aria** is here now."), "{welcome}");
    assert!(scene.final_answer(scene.ana, direct, sub("pause", json!([]))).await.starts_with("Paused"));

    let probe = scene.backend.probe();
    let channel_ref = &probe.admitted[0].0;
    assert_eq!(
        (channel_ref.guild.clone(), channel_ref.channel.clone()),
        (snowflake(direct).direct_guild(), snowflake(direct).channel())
    );
}

#[tokio::test]
async fn missing_permissions_are_reported_when_a_companion_joins() {
    let scene = Scene::new().await;
    let bot_role = scene.discord.bot_role(scene.guild);
    let [mute, deaf] = ["mute", "deaf"].map(|name| scene.discord.channel(scene.guild, name));
    scene.discord.deny(mute, bot_role, Permissions::MANAGE_WEBHOOKS);
    scene.discord.deny(deaf, bot_role, Permissions::VIEW_CHANNEL);

    let answer = scene.final_answer(scene.kim, mute, sub("join", json!([companion("aria")]))).await;
    assert!(answer.contains("Fix this first") && answer.contains("allow Manage Webhooks."), "{answer}");
    let answer = scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("aria"), at(deaf)]))).await;
    assert!(answer.contains("allow View Channel"), "{answer}");
    assert!(scene.final_answer(scene.ana, mute, sub("status", json!([]))).await.contains("allow Manage Webhooks."));
}

#[tokio::test]
async fn people_can_opt_out_and_be_forgotten() {
    let scene = Scene::new().await;
    let ask = async |options: Value| scene.final_answer(scene.ana, scene.general, options).await;
    let (guild, person) = (snowflake(scene.guild).guild(), snowflake(scene.ana).person());

    assert!(ask(me("forget", json!([]))).await.contains("cannot be undone"));
    assert!(scene.backend.probe().forgotten.is_empty(), "nothing is forgotten by mistake");
    let forgotten = scene.confirmed(scene.ana, me("forget", json!([]))).await;
    assert!(forgotten.starts_with("Forgotten: your messages (2), with the decisions (1) and summaries (0)"), "{forgotten}");
    let forget = scene.backend.probe().forgotten.pop().expect("a request to forget Ana");
    assert_eq!((forget.guild, &*forget.person), (guild.clone(), person.as_str()));

    assert!(ask(me("ignore", json!([]))).await.contains("`/tertulia ignore me switch:off`"));
    assert!(scene.backend.ignored().contains(&(guild.clone(), person.clone())));
    assert!(ask(sub("status", json!([]))).await.contains("You asked companions not to listen to you"));
    assert!(ask(me("ignore", json!([switch("on")]))).await.contains("as you wanted"));
    assert!(ask(me("ignore", json!([switch("off")]))).await.contains("listen to you again"));
    assert!(scene.backend.ignored().is_empty());

    let (direct, _) = scene.discord.direct(scene.ana, "hi");
    scene.final_answer(scene.ana, direct, me("ignore", json!([]))).await;
    let expected: (GuildId, _) = (snowflake(direct).direct_guild(), person);
    assert!(scene.backend.ignored().contains(&expected), "in the direct message, and nowhere else");
}

#[tokio::test]
async fn a_person_gets_the_own_data_as_a_file_of_bounded_size_with_the_newest_first() {
    let scene = Scene::new().await;
    let exported = async || {
        let interaction = scene.discord.command(scene.ana, scene.general, sub("export-me", json!([])));
        assert!(scene.discord.answer_to(interaction).await.ephemeral);
        let message = scene.discord.final_answer(interaction).await;
        let [file] = &message.attachments[..] else { panic!("{message:?}") };
        assert_eq!(file["filename"], "my-data.json");
        (message.content, serde_json::from_str::<Vec<Value>>(file["content"].as_str().expect("a text")).expect("JSON"))
    };

    let (text, own) = exported().await;
    let (guild, person) = (snowflake(scene.guild).guild(), snowflake(scene.ana).person());
    assert_eq!(own, [json!({ "of": person, "in": guild })]);
    assert!(text.contains("Only you see it") && !text.contains("not fit"), "{text}");

    let line = |day: u32| json!({ "at": format!("2026-05-{day:02}T12:00:00.000Z"), "text": "x".repeat(1_000_000) }).to_string();
    scene.backend.probe().said = [2, 9, 1, 8, 3, 7, 4, 6, 5].map(line).to_vec();
    let (text, own) = exported().await;
    let days: Vec<_> = own.iter().map(|line| line["at"].as_str().expect("a time")[8..10].to_owned()).collect();
    assert_eq!(days, ["09", "08", "07", "06", "05", "04", "03"]);
    assert!(text.contains("**Older messages do not fit into the file: 2.** The operators"), "{text}");
}

#[tokio::test]
async fn refusals_by_the_backend_are_explained_in_plain_words() {
    let scene = Scene::new().await;
    let join = || sub("join", json!([companion("aria")]));
    let unknown = scene.final_answer(scene.kim, scene.general, sub("join", json!([companion("@everyone")]))).await;
    assert_eq!(unknown, "There is no companion called “\\@everyone”. Available companions: Aria and Ben.");

    for (refusal, expected) in [
        (Refused::conflict("Aria and Ari share the name \"ari\""), "cannot be done: Aria and Ari share the name"),
        (Refused::Unavailable { detail: "/var/lib".into(), retry_after: None }, "Please try again in a minute."),
        (Refused::broken("/var/lib"), "tell the operator of the bot"),
    ] {
        scene.backend.probe().refuses = Some(refusal);
        let answer = scene.final_answer(scene.kim, scene.general, join()).await;
        assert!(answer.contains(expected) && !answer.contains("/var"), "{answer}");
    }
    scene.backend.probe().refuses = None;
    scene.backend.probe().panics = true;
    assert!(scene.final_answer(scene.kim, scene.general, join()).await.contains("Something went wrong here"));
    scene.backend.probe().panics = false;
    assert!(scene.final_answer(scene.kim, scene.general, join()).await.contains("is here now"));
}

#[tokio::test]
async fn where_only_the_commands_are_a_member_finds_the_link_that_invites_the_bot() {
    let scene = Scene::new().await;
    let unknown = json!({ "code": 50001, "message": "Missing Access" });
    scene.discord.spoil(On::route("guild"), Does::Says(403, unknown));

    for options in [sub("status", json!([])), sub("join", json!([companion("aria")])), sub("why", json!([]))] {
        let answer = scene.final_answer(scene.kim, scene.general, options).await;
        assert!(answer.contains("not in this server") && answer.contains("/oauth2/authorize?client_id="), "{answer}");
    }
    assert!(scene.final_answer(scene.kim, scene.general, sub("help", json!([]))).await.starts_with("**Companions**"));
}
