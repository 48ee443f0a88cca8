//! Inbound events while a connection is up.

use std::sync::Arc;

use serde_json::json;
use tertulia::ports::chat_platform::{ChatPlatform as _, Part};
use tertulia::ports::inbound_events::Answered;

use super::super::counterpart::channels::{Kind, Overwrite};
use super::super::counterpart::id::Id;
use super::super::counterpart::intents::{DIRECT_MESSAGES, GUILD_MESSAGES, GUILDS};
use super::super::counterpart::permissions::SEND_MESSAGES;
use super::core::Core;
use super::{Process, counterpart};

#[tokio::test]
async fn messages_edits_and_deletions_reach_the_core() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, other) = (discord.channel(guild, "general"), discord.channel(guild, "other"));
    let (ana, bob) = (discord.member(guild, "Ana"), discord.member(guild, "Bob"));
    core.add_companion(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;

    discord.say(ana, other, "not here");
    let first = discord.say(ana, general, &format!("Hello <@{bob}> in <#{other}>"));
    let second = discord.reply(bob, general, first, "Hello yourself", true);
    let sticker = json!({ "id": "749054660769218631", "name": "Wave", "format_type": 3 });
    discord.say_with(ana, general, "", |message| message.stickers.push(sticker));
    let question = json!({ "question": { "text": "Pizza?" }, "answers": [{ "answer_id": 1, "poll_media": { "text": "yes" } }] });
    discord.say_with(ana, general, "", |message| message.poll = Some(question));
    discord.forward(bob, general, first, general);
    discord.unfold(general, first, json!({ "type": "link" }));
    core.until("the messages", |core| core.texts(general).len() == 5).await;
    let expected = [
        "Ana: Hello @Bob in #other",
        "Bob: Hello yourself",
        "Ana: [sticker: Wave]",
        "Ana: [poll: Pizza? Answers: yes]",
        "Bob: [forwarded]\n> Hello @Bob in #other",
    ];
    assert_eq!(core.texts(general), expected);

    discord.edit(general, first, "Hello all");
    core.until("the edit", |core| core.texts(general)[0] == "Ana: Hello all").await;
    discord.delete(general, first);
    core.until("the deletion", |core| core.texts(general).len() == 4).await;
    let third = discord.say(ana, general, "and more");
    discord.delete_bulk(general, &[second, third]);
    core.until("the deletions", |core| core.texts(general).len() == 3).await;
    assert!(core.texts(other).is_empty());
}

#[tokio::test]
async fn messages_in_threads_posts_and_direct_messages_have_their_guild_and_parent() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, forum) = (discord.channel(guild, "general"), discord.channel_of(guild, Kind::Forum, "plans"));
    let ana = discord.member(guild, "Ana");
    core.add_companion(guild, general);
    core.add_companion(guild, forum);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;

    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);
    discord.say(ana, thread, "in a thread");
    let post = discord.open_post(ana, forum, "Summer", "Where to?");
    let (direct, _) = discord.direct(ana, "psst");

    core.until("all messages", |core| [thread, post, direct].iter().all(|id| !core.texts(*id).is_empty())).await;
    let channel_ref = |id| {
        let (channel_ref, inbound_message) = core.last(id);
        (channel_ref.guild.to_string(), channel_ref.parent.map(|parent| parent.to_string()), inbound_message.to_all)
    };
    assert_eq!(channel_ref(thread), (format!("discord:{guild}"), Some(format!("discord:{general}")), false));
    assert_eq!(channel_ref(post), (format!("discord:{guild}"), Some(format!("discord:{forum}")), false));
    assert_eq!(channel_ref(direct), (format!("dm:discord:{direct}"), None, true));
    let titles =
        [thread, post, direct].map(|id| process.discord.title(&format!("discord:{id}").as_str().into()).expect("a title"));
    assert_eq!(titles, ["aside · #general · Home", "Summer · #plans · Home", "direct message with Ana"]);
}

#[tokio::test]
async fn a_refused_typing_indicator_is_sent_again_after_the_channel_changed() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let bot_role = discord.look(|state| state.world.guilds[&guild].members[&state.world.bot()].roles[0]);
    core.add_companion(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;
    let send_typing = async || {
        process.discord.typing(&format!("discord:{guild}").as_str().into(), &format!("discord:{general}").as_str().into()).await
    };
    discord.overwrite(general, Overwrite::role(bot_role, 0, SEND_MESSAGES));
    discord.say(ana, general, "before");
    core.until("the messages", |core| core.texts(general).len() == 1).await;
    send_typing().await;
    send_typing().await;
    let requests = discord.look(|state| state.journal.requests_of("typing").count());

    discord.overwrite(general, Overwrite::role(bot_role, SEND_MESSAGES, 0));
    discord.say(ana, general, "after");
    core.until("the messages", |core| core.texts(general).len() == 2).await;
    send_typing().await;

    assert_eq!((requests, discord.look(|state| state.journal.typing.len())), (1, 1));
}

#[tokio::test]
async fn our_posts_are_recognised_and_foreign_webhooks_count_as_bots() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let general = discord.channel(guild, "general");
    let (ana, bot) = (discord.member(guild, "Ana"), discord.foreign_bot("Beep"));
    discord.join(guild, bot);
    core.add_companion(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;

    let part = Part {
        guild: format!("discord:{guild}").as_str().into(),
        channel: format!("discord:{general}").as_str().into(),
        companion: "mira".into(),
        name: "Mira".into(),
        picture: None,
        text: "I am Mira.".into(),
        nonce: "1".into(),
    };
    let ours = Id::parse(&process.discord.send(&part).await.expect("the part is posted")).expect("an id");
    let webhook = discord.foreign_webhook(general, "Mira");
    discord.say_by_webhook(webhook, "Mira", "I am not.");
    discord.say(bot, general, "beep");
    let answer = discord.reply(ana, general, ours, "Hello, Mira", false);
    core.until("the answer", |core| core.texts(general).len() == 1).await;

    let (_, inbound_message) = core.last(general);
    assert_eq!(*inbound_message.id, *answer.to_string());
    assert_eq!(inbound_message.answers.expect("an answer").by, Some(Answered::Ours(Some("Mira".into()))));
    core.until("the mark", |core| core.mark(general).is_some()).await;
    assert!(core.mark(general).expect("a mark") < answer.to_string());
}

#[tokio::test]
async fn a_mention_of_the_bot_or_its_role_addresses_all_companions_and_its_name_does_not() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    core.add_companion(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;
    let bot = discord.look(|state| state.world.bot());
    let role =
        discord.look(|state| state.world.guilds[&guild].roles.values().find(|role| role.bot == Some(bot)).expect("a role").id);
    discord.with(|state| {
        let mut role = state.world.guilds[&guild].roles[&role].clone();
        role.mentionable = true;
        state.put_role(guild, role);
    });

    for (text, to_all) in [(format!("<@{bot}>?"), true), (format!("<@&{role}>?"), true), ("Tertulia?".to_owned(), false)] {
        let message = discord.say(ana, general, &text);
        core.until("the message", |core| !core.texts(general).is_empty() && *core.last(general).1.id == *message.to_string())
            .await;

        assert_eq!(core.last(general).1.to_all, to_all, "{text}");
    }
}

#[tokio::test]
async fn without_the_message_content_intent_only_mentions_of_the_bot_are_recorded() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    discord.set_privileged(0);
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    core.add_companion(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect_with(&discord, GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES, None).await;
    connection.wait_until_all_kept().await;
    let bot = discord.look(|state| state.world.bot());

    discord.say(ana, general, "among ourselves");
    discord.say(ana, general, &format!("<@{bot}> hello"));

    core.until("the mention", |core| !core.texts(general).is_empty()).await;
    assert_eq!(core.texts(general), ["Ana: @tertulia hello"]);
}

#[tokio::test]
async fn deleted_channels_and_left_guilds_are_reported_as_gone() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let guild = discord.guild("Home");
    let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);
    core.add_companion(guild, general);
    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;

    discord.remove_channel(thread);
    core.until("the deleted thread", |core| core.gone().len() == 1).await;
    discord.remove_channel(general);
    core.until("the deleted channel", |core| core.gone().len() == 2).await;
    discord.set_outage(guild, true);
    discord.set_outage(guild, false);
    discord.expel_bot(guild);
    core.until("the left guild", |core| core.gone().len() == 3).await;

    assert_eq!(core.gone(), [format!("discord:{thread}"), format!("discord:{general}"), format!("guild discord:{guild}")]);
}

#[tokio::test]
async fn a_guild_that_was_left_during_a_downtime_is_reported_as_gone() {
    let (discord, core) = (counterpart().await, Arc::<Core>::default());
    let (guild, left) = (discord.guild("Home"), discord.guild("Left"));
    let (general, other) = (discord.channel(guild, "general"), discord.channel(left, "general"));
    core.add_companion(guild, general);
    core.add_companion(left, other);
    discord.expel_bot(left);

    let process = Process::new(&discord, &core);
    let mut connection = process.connect(&discord).await;
    connection.wait_until_all_kept().await;

    core.until("the left guild", |core| !core.gone().is_empty()).await;
    assert_eq!(core.gone(), [format!("guild discord:{left}")]);
}
