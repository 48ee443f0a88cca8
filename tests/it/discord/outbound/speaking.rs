//! Statements are posted under the right name, and mention only people who may be mentioned.

use futures_util::future::join_all;
use tertulia::adapters::discord::platform::Discord;
use tertulia::ports::chat_platform::{ChatPlatform as _, NotSent, Part};
use tertulia::telemetry::fake::Logged;

use super::super::counterpart::{Author, Bucket, Counterpart, Does, Id, Kind, On, Permissions, Rules, Scope};
use super::super::home::{Home, part, snowflake};
use super::{Scene, client, client_with, direct, say};

fn username(author: &Author) -> &str {
    match author {
        Author::Webhook { username, .. } => username,
        Author::User(_) => panic!("{author:?}"),
    }
}

fn picture(author: &Author) -> Option<&str> {
    match author {
        Author::Webhook { avatar_url, .. } => avatar_url.as_deref(),
        Author::User(_) => panic!("{author:?}"),
    }
}

fn webhooks(discord: &Counterpart) -> usize {
    discord.look(|state| state.world.webhooks.len())
}

#[tokio::test]
async fn a_companion_speaks_under_its_own_name() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;

    let first = say(&client, &part(general, "Good evening.")).await;
    let second = say(&client, &Part { name: "Zed".into(), ..part(general, "And to you.") }).await;

    let posts = discord.posts();
    let shown: Vec<_> = posts.iter().map(|post| (post.message, username(&post.author), post.content.as_str())).collect();
    assert_eq!(shown, [(first, "Mira", "Good evening."), (second, "Zed", "And to you.")]);
    assert_eq!(client.newest(&snowflake(general).channel(), &[]).as_deref(), Some(&*second.0.to_string()));
    assert_eq!(webhooks(&discord), 1);
}

#[tokio::test]
async fn a_companion_shows_its_picture_and_speaks_without_one_if_it_is_invalid() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;
    let with_picture = |picture: &str, text| Part { picture: Some(picture.into()), ..part(general, text) };

    say(&client, &with_picture("https://example.org/mira.png", "one")).await;
    say(&client, &part(general, "two")).await;
    // The settings would reject both of these pictures.
    say(&client, &with_picture("ftp://example.org/mira.png", "three")).await;
    say(&client, &with_picture(&format!("https://example.org/{}", "x".repeat(3_000)), "four")).await;

    let posts = discord.posts();
    let shown: Vec<_> = posts.iter().map(|post| (picture(&post.author), post.content.as_str())).collect();
    assert_eq!(shown, [(Some("https://example.org/mira.png"), "one"), (None, "two"), (None, "three"), (None, "four")]);
}

#[tokio::test]
async fn twenty_concurrent_first_statements_create_one_webhook_and_the_next_client_finds_it() {
    let Home { discord, general, .. } = Home::new().await;
    discord.foreign_webhook(general, "somebody's");
    let first = client(&discord);

    let parts: Vec<Part> = (0..20).map(|n| part(general, &format!("word {n}"))).collect();
    let sent = join_all(parts.iter().map(|part| first.send(part))).await;
    say(&client(&discord), &part(general, "from another")).await;

    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    assert_eq!(webhooks(&discord), 2);
    assert_eq!(discord.requests("create_webhook"), 1);
    assert_eq!(discord.posts().len(), 21);
}

#[tokio::test]
async fn a_deleted_webhook_is_replaced_and_the_statement_is_posted_once() {
    let logged = Logged::from(tracing::Level::TRACE);
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;
    say(&client, &part(general, "one")).await;
    let webhook = discord.look(|state| *state.world.webhooks.keys().next().expect("a webhook"));

    discord.remove_webhook(webhook);
    say(&client, &part(general, "two")).await;
    say(&client, &part(general, "three")).await;

    assert_eq!((discord.posts_in(general, 3).await.len(), webhooks(&discord)), (3, 1));
    assert_eq!(discord.requests("create_webhook"), 2);
    assert_eq!(client.delivery_errors().last(snowflake(general)), None);
    let logged = logged.read();
    assert!(!logged.contains("WARN") && logged.contains("looking for another one"), "{logged}");
}

#[tokio::test]
async fn a_change_reported_while_a_webhook_is_created_creates_no_second_one() {
    let Scene { home: Home { discord, guild, general, .. }, client } = Scene::new().await;
    let elsewhere = discord.channel(guild, "elsewhere");
    let hang = discord.spoil_next(1, On::route("create_webhook"), Does::Hang);
    let (first_part, second_part) = (part(general, "one"), part(general, "two"));

    let meanwhile = async {
        discord
            .wait_for("the request that creates a webhook", |state| state.journal.requests_of("create_webhook").next().is_some())
            .await;
        client.webhooks_changed(snowflake(general));
        let others = async {
            // These take longer than creating a second webhook would.
            for text in ["a", "b", "c"] {
                say(&client, &part(elsewhere, text)).await;
            }
            discord.lift(hang);
        };
        tokio::join!(client.send(&second_part), others).0
    };
    let (first, second) = tokio::join!(client.send(&first_part), meanwhile);

    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    let created = discord.look(|state| state.world.webhooks.values().filter(|webhook| webhook.channel == general).count());
    assert_eq!(created, 1);
}

#[tokio::test]
async fn a_post_that_a_moved_webhook_puts_in_another_channel_is_deleted() {
    let Scene { home: Home { discord, guild, general, ana, .. }, client } = Scene::new().await;
    let other = discord.channel(guild, "other");
    let thread = discord.thread(general, "aside", ana);
    let move_webhook = || {
        discord.with(|state| {
            let webhook = state.world.webhooks.values().find(|webhook| webhook.channel == general).expect("a webhook").id;
            state.change_webhook(webhook, |webhook| webhook.channel = other);
        });
    };
    say(&client, &part(general, "one")).await;

    move_webhook();
    let second = say(&client, &part(general, "two")).await;
    move_webhook();
    let aside = say(&client, &part(thread, "three")).await;

    let messages = |channel| discord.look(|state| state.world.messages(channel).map(|message| message.id).collect::<Vec<_>>());
    assert_eq!((messages(other), messages(thread)), (vec![], vec![aside]));
    assert_eq!(messages(general).last(), Some(&second));
}

#[tokio::test]
async fn companions_speak_in_threads_and_forum_posts_through_the_parents_webhook() {
    let Scene { home: Home { discord, guild, general, ana, .. }, client } = Scene::new().await;
    let thread = discord.thread(general, "aside", ana);
    let post = discord.open_post(ana, discord.channel_of(guild, Kind::Forum, "plans"), "Summer", "Where to?");
    client.cache().set_parent(snowflake(thread), Some(snowflake(general)));

    say(&client, &part(thread, "in a thread")).await;
    say(&client, &part(general, "in the channel")).await;
    say(&client, &part(post, "to the sea")).await;

    let channels: Vec<_> = discord.posts().iter().map(|post| post.channel).collect();
    assert_eq!((channels, webhooks(&discord)), (vec![thread, general, post], 2));
    // The thread's parent was in the cache. The other two channels were requested.
    assert_eq!(discord.requests("channel"), 2);
}

#[tokio::test]
async fn only_people_who_take_part_are_mentioned() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    let bob = discord.member(guild, "Bob");
    let role = discord.role(guild, "Friends", Permissions::MENTION_EVERYONE);
    let text = format!("@everyone @here <@&{role}> <@{bob}> hello @Ana");
    let (mentioning, silent) = (client(&discord), client_with(&discord, |section| section.mention_people = false));
    for client in [&mentioning, &silent] {
        client.cache().person_spoke(Some(snowflake(guild)), snowflake(general), snowflake(ana), "Ana");
    }

    say(&mentioning, &part(general, &text)).await;
    say(&silent, &part(general, &text)).await;
    // Too long with the markup that a mention would add, so it is sent as plain text.
    say(&mentioning, &part(general, &format!("{text} {}", "@everyone ".repeat(183)))).await;
    let (direct_channel, _) = discord.direct(bob, "psst");
    say(&mentioning, &direct(direct_channel, &text)).await;

    let mentions: Vec<_> = discord.posts().into_iter().map(|post| post.mentions).collect();
    assert_eq!(mentions[0].users, [ana]);
    assert!(mentions[1..].iter().all(|mentions| mentions.users.is_empty()), "{mentions:?}");
    assert!(mentions.iter().all(|mentions| mentions.roles.is_empty() && !mentions.everyone), "{mentions:?}");
    assert!(discord.posts()[2].content.chars().count() > 1_850);
}

#[tokio::test]
async fn links_show_previews_only_if_the_settings_say_so() {
    let Home { discord, general, .. } = Home::new().await;

    let plain = say(&client(&discord), &part(general, "https://example.org")).await;
    let embedded = say(&client_with(&discord, |section| section.embed_links = true), &part(general, "https://example.org")).await;

    let flags = |id| discord.look(|state| state.world.message(general, id).map(|message| message.flags));
    assert_eq!((flags(plain), flags(embedded)), (Some(1 << 2), Some(0)));
}

#[tokio::test]
async fn a_name_that_discord_refuses_is_changed_to_one_that_it_accepts() {
    let Scene { home: Home { discord, general, .. }, client } = Scene::new().await;

    for name in ["Clyde", "Discordia", "", "everyone", &"x".repeat(200)] {
        say(&client, &Part { name: name.into(), ..part(general, "hello") }).await;
    }

    let posts = discord.posts();
    let names: Vec<&str> = posts.iter().map(|post| username(&post.author)).collect();
    assert_eq!(names, ["Clydé", "Díscordia", "companion", "éveryone", &"x".repeat(80)]);
}

#[tokio::test]
async fn a_direct_message_that_is_sent_twice_is_posted_once() {
    let Scene { home: Home { discord, general, ana, .. }, client } = Scene::new().await;
    let (direct_channel, _) = discord.direct(ana, "Are you there?");
    discord.spoil_next(1, On::route("create_message"), Does::CutAfterwards);
    let statement = direct(direct_channel, "I am.");

    let first = say(&client, &statement).await;
    let second = say(&client, &statement).await;
    say(&client, &direct(direct_channel, "Still.")).await;
    say(&client, &part(general, "I am.")).await;

    let posts = discord.posts();
    let contents: Vec<_> = posts.iter().map(|post| post.content.as_str()).collect();
    assert_eq!((contents, posts[0].message, first), (vec!["I am.", "Still.", "I am."], second, second));
    assert_eq!(posts[0].author, Author::User(discord.bot()));
}

#[tokio::test]
async fn a_direct_message_that_may_have_arrived_is_not_sent_again_after_another_error() {
    let Scene { home: Home { discord, ana, .. }, client } = Scene::new().await;
    let (direct_channel, _) = discord.direct(ana, "Are you there?");
    let create = On::route("create_message");
    discord.spoil_next(1, create.clone(), Does::CutAfterwards);
    let hour = std::time::Duration::from_secs(3_600);
    discord.spoil_next(1, create, Does::TooMany { retry_after: hour, scope: Scope::User });

    let sent = client.send(&direct(direct_channel, "I am.")).await;

    assert!(matches!(sent, Err(NotSent::Unknown { .. })), "{sent:?}");
    assert_eq!(discord.posts().len(), 1);
}

#[tokio::test]
async fn many_concurrent_statements_stay_within_the_limits() {
    let bucket = Bucket { requests: 3, window: std::time::Duration::from_millis(100) };
    let rules = Rules { buckets: [("execute_webhook", bucket)].into(), ..Rules::roomy() };
    let discord = Counterpart::with_rules(rules).await;
    let guild = discord.guild("Home");
    let channels = [discord.channel(guild, "a"), discord.channel(guild, "b")];
    let client = client(&discord);

    let parts: Vec<Part> = (0..24).map(|n| part(channels[n % 2], &format!("word {n}"))).collect();
    let sent = join_all(parts.iter().map(|part| client.send(part))).await;

    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    assert_eq!((discord.posts().len(), discord.look(|state| state.journal.limits_exceeded())), (24, 0));
}

#[tokio::test]
async fn a_posted_statement_is_edited_and_deleted_in_channels_threads_and_direct_messages() {
    let Scene { home: Home { discord, general, ana, .. }, client } = Scene::new().await;
    let thread = discord.thread(general, "aside", ana);
    let (private, _) = discord.direct(ana, "hello");

    for posted in [part(general, "one"), part(thread, "one"), direct(private, "one")] {
        let id = say(&client, &posted).await;
        let change =
            async |text| client.change(&posted.guild, &posted.channel, &id.to_string(), text, text.and(Some("It is AI."))).await;
        change(Some("@everyone, two")).await.expect("it is edited");
        let content = || {
            let channel = Id::parse(posted.channel.as_str().trim_start_matches("discord:")).expect("an id");
            discord.look(|state| state.world.message(channel, id).map(|message| message.content.clone()))
        };
        assert!(
            content().is_some_and(|content| content.ends_with("two\n-# ⓘ It is AI.") && !content.contains("@everyone")),
            "{:?}",
            content()
        );
        assert!(matches!(change(Some("\u{200b}")).await, Err(NotSent::Refused(_))));
        change(None).await.expect("it is deleted");
        change(None).await.expect("it is gone already");
        assert_eq!(content(), None);
    }

    let earlier = part(general, "by a webhook that is deleted");
    let id = say(&client, &earlier).await;
    discord
        .look(|state| state.world.webhooks.keys().copied().collect::<Vec<_>>())
        .into_iter()
        .for_each(|webhook| discord.remove_webhook(webhook));
    client.webhooks_changed(snowflake(general));
    let change = async |text| client.change(&earlier.guild, &earlier.channel, &id.to_string(), text, None).await;
    for text in [Some("two"), None] {
        let Err(NotSent::Refused(why)) = change(text).await else { panic!("it is changed: {text:?}") };
        assert!(why.contains("delete it in Discord"), "{why}");
    }
}

#[tokio::test]
async fn a_message_that_stops_a_statement_gets_a_reaction_where_the_bot_may_react() {
    let Scene { home: Home { discord, general, ana, guild, .. }, client } = Scene::new().await;
    let (first, second) = (discord.say(ana, general, "stop"), discord.say(ana, general, "stop!"));
    let stop = async |client: &Discord, message: Id| {
        client.acknowledge_stop(&snowflake(general).channel(), &message.to_string()).await;
    };
    let reactions =
        |message| discord.look(|state| state.world.message(general, message).map(|message| message.reactions.clone()));

    stop(&client, first).await;
    discord.deny(general, guild, Permissions::ADD_REACTIONS);
    stop(&client, second).await;
    stop(&client, second).await;
    stop(&client_with(&discord, |settings| settings.acknowledge_stop = false), first).await;

    assert_eq!(reactions(first), Some([(discord.bot(), "\u{1f6d1}".to_owned())].into()));
    assert_eq!(reactions(second), Some([].into()));
    assert_eq!(discord.requests("react"), 2, "after a refusal it is not tried again at once, and never if it is off");
}
