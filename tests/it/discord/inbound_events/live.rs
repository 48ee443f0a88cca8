//! Inbound events while a connection is up.

use serde_json::json;
use tertulia::domain::message::Role;
use tertulia::ports::chat_platform::ChatPlatform as _;
use tertulia::ports::inbound_events::{Answered, ReplyTo};

use super::super::counterpart::{INVITED, Id, Intents, Kind, Permissions};
use super::super::home::{Home, part, snowflake};
use super::{Process, home};

#[tokio::test]
async fn messages_edits_and_deletions_reach_the_core() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let other = discord.channel(guild, "other");
    let bob = discord.member(guild, "Bob");
    let _process = Process::start(&discord, &core).await;

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
async fn what_somebody_wrote_who_opted_out_is_not_read_when_others_forward_it() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let [bob, cleo] = ["Bob", "Cleo"].map(|name| discord.member(guild, name));
    let hidden = discord.channel(guild, "hidden");
    let _process = Process::start(&discord, &core).await;
    let (bobs, cleos) = (discord.say(bob, general, "a secret"), discord.say(cleo, general, "no secret"));
    let unreadable = discord.say(cleo, hidden, "who knows");
    discord.deny(hidden, discord.bot_role(guild), Permissions::VIEW_CHANNEL);
    core.opt_out(bob);

    discord.forward(ana, general, bobs, general);
    discord.forward(ana, general, cleos, general);
    discord.forward(ana, hidden, unreadable, general);
    let forwarded = discord.forward(cleo, general, bobs, hidden);
    discord.forward(ana, hidden, forwarded, general);

    core.until("the messages", |core| core.texts(general).len() == 6).await;
    let withheld = "Ana: [a forwarded message]";
    let expected = [withheld, "Ana: [forwarded]\n> no secret", withheld, withheld];
    assert_eq!(core.texts(general)[2..], expected);
}

#[tokio::test]
async fn messages_in_threads_posts_and_direct_messages_have_their_guild_and_parent() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let forum = discord.channel_of(guild, Kind::Forum, "plans");
    core.add_companion(guild, forum);
    let process = Process::start(&discord, &core).await;

    let thread = discord.thread(general, "aside", ana);
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
    let titles = [thread, post, direct]
        .map(|id| process.client.platform.title(&format!("discord:{id}").as_str().into()).expect("a title"));
    assert_eq!(titles, ["aside · #general · Home", "Summer · #plans · Home", "direct message with Ana"]);
}

#[tokio::test]
async fn a_refused_typing_indicator_is_sent_again_after_the_channel_changed() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let bot_role = discord.bot_role(guild);
    let process = Process::start(&discord, &core).await;
    let (guild_key, channel_key) = (snowflake(guild).guild(), snowflake(general).channel());
    let send_typing = async || process.client.platform.typing(&guild_key, &channel_key).await;
    discord.deny(general, bot_role, Permissions::SEND_MESSAGES);
    discord.say(ana, general, "before");
    core.until("the messages", |core| core.texts(general).len() == 1).await;
    send_typing().await;
    send_typing().await;
    let requests = discord.requests("typing");

    discord.allow(general, bot_role, Permissions::SEND_MESSAGES);
    discord.say(ana, general, "after");
    core.until("the messages", |core| core.texts(general).len() == 2).await;
    send_typing().await;

    assert_eq!((requests, discord.look(|state| state.journal.typing.len())), (1, 1));
}

#[tokio::test]
async fn our_posts_are_recognised_and_foreign_webhooks_count_as_bots() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let beep = discord.foreign_bot("Beep");
    discord.join(guild, beep);
    let process = Process::start(&discord, &core).await;

    let part = part(general, "I am Mira.");
    let ours = Id::parse(&process.client.platform.send(&part).await.expect("the part is posted")).expect("an id");
    let webhook = discord.foreign_webhook(general, "Mira");
    discord.say_by_webhook(webhook, "Mira", "I am not.");
    let newest_of_bots = discord.say(beep, general, "beep");
    let answer = discord.reply(ana, general, ours, "Hello, Mira", false);
    core.until("the answer", |core| core.texts(general).len() == 1).await;

    let (_, inbound_message) = core.last(general);
    assert_eq!(inbound_message.id.as_deref(), Some(&*answer.to_string()));
    let ours = Some(Answered::Ours(Some("Mira".into())));
    assert!(matches!(inbound_message.reply_to, Some(ReplyTo::Foreign { by, .. }) if by == ours));
    core.until_marked(general, newest_of_bots).await;
}

#[tokio::test]
async fn a_server_is_welcomed_once_when_the_bot_is_invited() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let away = discord.guild_without_bot("Away");
    let lounge = discord.channel(away, "lounge");
    discord.with(|state| state.world.guilds.get_mut(&away).expect("the guild").system_channel = Some(lounge));
    let _process = Process::start(&discord, &core).await;

    discord.invite_bot(away, INVITED);
    let post = discord.post_in(lounge).await;
    assert!(post.content.contains("`/tertulia setup`") && post.content.contains("`/tertulia about`"), "{}", post.content);
    // A new session reports the server again.
    discord.invalidate(0, false);
    discord.wait_for("a new session", |state| state.journal.identifies.len() == 2).await;
    discord.say(ana, general, "and afterwards");
    core.until("the message", |core| !core.texts(general).is_empty()).await;

    assert_eq!(discord.posts().iter().filter(|post| post.channel == lounge).count(), 1);
}

#[tokio::test]
async fn what_pluralkit_posts_for_a_person_is_that_persons_message() {
    let (Home { discord, general, ana, .. }, core) = home().await;
    let _process = Process::start(&discord, &core).await;
    let webhook = discord.foreign_webhook(general, "PluralKit Proxy Webhook");
    discord.with(|state| {
        let webhook = state.world.webhooks.get_mut(&webhook).expect("the webhook");
        webhook.application = Some(Id(466_378_653_216_014_359));
    });

    let original = discord.say(ana, general, "L: Aria, are you there?");
    let post = discord.say_by_webhook(webhook, "Luna", "Aria, are you there?");
    discord.delete(general, original);
    discord.say_by_webhook(webhook, "Luna", "Nobody said this.");
    discord.say(ana, general, "the last one");
    core.until("the last message", |core| core.texts(general).last().is_some_and(|text| text.ends_with("the last one"))).await;

    let all: Vec<_> = core.messages().into_iter().map(|(_, message)| message).collect();
    let of_luna: Vec<_> = all.iter().filter(|message| &*message.from.name == "Luna").collect();
    assert_eq!(of_luna.len(), 1, "{of_luna:?}");
    assert_eq!(of_luna[0].id.as_deref(), Some(&*post.to_string()));
    assert_eq!((of_luna[0].from.role, &of_luna[0].from.id), (Role::Person, &all.last().expect("a message").from.id));
}

#[tokio::test]
async fn without_the_message_content_intent_only_mentions_of_the_bot_are_recorded() {
    let (Home { discord, general, ana, bot, .. }, core) = home().await;
    discord.set_privileged(Intents::empty());
    let _process = Process::start(&discord, &core).await;

    discord.say(ana, general, "among ourselves");
    discord.say(ana, general, &format!("<@{bot}> hello"));

    core.until("the mention", |core| !core.texts(general).is_empty()).await;
    assert_eq!(core.texts(general), ["Ana: @tertulia hello"]);
}

#[tokio::test]
async fn deleted_channels_and_left_guilds_are_reported_as_gone() {
    let (Home { discord, guild, general, ana, .. }, core) = home().await;
    let thread = discord.thread(general, "aside", ana);
    let _process = Process::start(&discord, &core).await;

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
