//! Words arrive, under the right name, and call nobody who may not be called.

use futures_util::future::join_all;
use tertulia::ports::chat_platform::{ChatPlatform as _, NotSent, Part};

use super::super::counterpart::Counterpart;
use super::super::counterpart::channels::{Kind, Overwrite};
use super::super::counterpart::faults::{Does, On, Scope};
use super::super::counterpart::messages::Author;
use super::super::counterpart::permissions::{MENTION_EVERYONE, SEND_MESSAGES};
use super::super::counterpart::rules::{Bucket, Rules};
use super::{client, client_with, direct, home, part, say, snowflake};

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
    let (discord, _, general) = home().await;
    let client = client(&discord);

    let first = say(&client, &part(general, "Good evening.")).await;
    let second = say(&client, &Part { name: "Zed".into(), ..part(general, "And to you.") }).await;

    let posts = discord.posts();
    let told: Vec<_> = posts.iter().map(|post| (post.message, username(&post.author), post.content.as_str())).collect();
    assert_eq!(told, [(first, "Mira", "Good evening."), (second, "Zed", "And to you.")]);
    assert_eq!(client.newest(&snowflake(general).channel(), &[]).as_deref(), Some(&*second.0.to_string()));
    assert_eq!(webhooks(&discord), 1);
}

#[tokio::test]
async fn a_companion_shows_its_picture_and_is_not_silent_for_want_of_one() {
    let (discord, _, general) = home().await;
    let client = client(&discord);
    let with = |picture: &str, text| Part { picture: Some(picture.into()), ..part(general, text) };

    say(&client, &with("https://example.org/mira.png", "one")).await;
    say(&client, &part(general, "two")).await;
    // The settings let none of these through.
    say(&client, &with("ftp://example.org/mira.png", "three")).await;
    say(&client, &with(&format!("https://example.org/{}", "x".repeat(3_000)), "four")).await;

    let posts = discord.posts();
    let shown: Vec<_> = posts.iter().map(|post| (picture(&post.author), post.content.as_str())).collect();
    assert_eq!(shown, [(Some("https://example.org/mira.png"), "one"), (None, "two"), (None, "three"), (None, "four")]);
}

#[tokio::test]
async fn twenty_first_statements_make_one_webhook_and_the_next_client_finds_it() {
    let (discord, _, general) = home().await;
    discord.foreign_webhook(general, "somebody's");
    let first = client(&discord);

    let parts: Vec<Part> = (0..20).map(|n| part(general, &format!("word {n}"))).collect();
    let sent = join_all(parts.iter().map(|part| first.send(part))).await;
    say(&client(&discord), &part(general, "from another")).await;

    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    assert_eq!(webhooks(&discord), 2);
    assert_eq!(discord.look(|state| state.journal.requests_of("create_webhook").count()), 1);
    assert_eq!(discord.posts().len(), 21);
}

#[tokio::test]
async fn a_removed_webhook_is_replaced_and_its_words_are_posted_once() {
    let (discord, _, general) = home().await;
    let client = client(&discord);
    say(&client, &part(general, "one")).await;
    let webhook = discord.look(|state| *state.world.webhooks.keys().next().expect("one"));

    discord.remove_webhook(webhook);
    say(&client, &part(general, "two")).await;
    say(&client, &part(general, "three")).await;

    assert_eq!((discord.posts_in(general, 3).await.len(), webhooks(&discord)), (3, 1));
    assert_eq!(discord.look(|state| state.journal.requests_of("create_webhook").count()), 2);
}

#[tokio::test]
async fn a_change_told_while_a_webhook_is_made_makes_no_second_one() {
    let (discord, guild, general) = home().await;
    let elsewhere = discord.channel(guild, "elsewhere");
    let client = client(&discord);
    let hang = discord.spoil_next(1, On { route: Some("create_webhook"), ..On::default() }, Does::Hang);
    let (one, two) = (part(general, "one"), part(general, "two"));

    let meanwhile = async {
        discord.until("one in the making", |state| state.journal.requests_of("create_webhook").next().map(|_| ())).await;
        client.webhooks_changed(snowflake(general));
        let others = async {
            // They take longer than a second one would.
            for text in ["a", "b", "c"] {
                say(&client, &part(elsewhere, text)).await;
            }
            discord.lift(hang);
        };
        tokio::join!(client.send(&two), others).0
    };
    let (first, second) = tokio::join!(client.send(&one), meanwhile);

    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    let made = discord.look(|state| state.world.webhooks.values().filter(|webhook| webhook.channel == general).count());
    assert_eq!(made, 1);
}

#[tokio::test]
async fn what_a_moved_webhook_posts_elsewhere_is_taken_back() {
    let (discord, guild, general) = home().await;
    let other = discord.channel(guild, "other");
    let thread = discord.thread(general, Kind::PublicThread, "aside", discord.member(guild, "Ana"));
    let client = client(&discord);
    let move_webhook = || {
        discord.with(|state| {
            let there = state.world.webhooks.values().find(|webhook| webhook.channel == general).expect("one").id;
            state.change_webhook(there, |webhook| webhook.channel = other);
        });
    };
    say(&client, &part(general, "one")).await;

    move_webhook();
    let second = say(&client, &part(general, "two")).await;
    move_webhook();
    let aside = say(&client, &part(thread, "three")).await;

    let there = |channel| discord.look(|state| state.world.messages(channel).map(|message| message.id).collect::<Vec<_>>());
    assert_eq!((there(other), there(thread)), (vec![], vec![aside]));
    assert_eq!(there(general).last(), Some(&second));
}

#[tokio::test]
async fn threads_and_forum_posts_are_spoken_in_through_their_parents_webhook() {
    let (discord, guild, general) = home().await;
    let ana = discord.member(guild, "Ana");
    let thread = discord.thread(general, Kind::PublicThread, "aside", ana);
    let post = discord.open_post(ana, discord.channel_of(guild, Kind::Forum, "plans"), "Summer", "Where to?");
    let client = client(&discord);
    client.cache().set_parent(snowflake(thread), Some(snowflake(general)));

    say(&client, &part(thread, "in a thread")).await;
    say(&client, &part(general, "in the channel")).await;
    say(&client, &part(post, "to the sea")).await;

    let channel_keys: Vec<_> = discord.posts().iter().map(|post| post.channel).collect();
    assert_eq!((channel_keys, webhooks(&discord)), (vec![thread, general, post], 2));
    // One was told; the others were asked for.
    assert_eq!(discord.look(|state| state.journal.requests_of("channel").count()), 2);
}

#[tokio::test]
async fn only_people_who_take_part_are_ever_called() {
    let (discord, guild, general) = home().await;
    let (ana, bob) = (discord.member(guild, "Ana"), discord.member(guild, "Bob"));
    let role = discord.role(guild, "Friends", MENTION_EVERYONE);
    let words = format!("@everyone @here <@&{role}> <@{bob}> hello @Ana");
    let (open, closed) = (client(&discord), client_with(&discord, |section| section.mention_people = false));
    for client in [&open, &closed] {
        client.cache().person_spoke(Some(snowflake(guild)), snowflake(general), snowflake(ana), "Ana");
    }

    say(&open, &part(general, &words)).await;
    say(&closed, &part(general, &words)).await;
    // Too long for what would be added: it goes as it is.
    say(&open, &part(general, &format!("{words} {}", "@everyone ".repeat(183)))).await;
    let (talk, _) = discord.direct(bob, "psst");
    say(&open, &direct(talk, &words)).await;

    let called: Vec<_> = discord.posts().into_iter().map(|post| post.mentions).collect();
    assert_eq!(called[0].users, [ana]);
    assert!(called[1..].iter().all(|mentions| mentions.users.is_empty()), "{called:?}");
    assert!(called.iter().all(|mentions| mentions.roles.is_empty() && !mentions.everyone), "{called:?}");
    assert!(discord.posts()[2].content.chars().count() > 1_850);
}

#[tokio::test]
async fn links_are_unfolded_only_if_the_settings_say_so() {
    let (discord, _, general) = home().await;

    let plain = say(&client(&discord), &part(general, "https://example.org")).await;
    let unfolded = say(&client_with(&discord, |section| section.embed_links = true), &part(general, "https://example.org")).await;

    let flags = |id| discord.look(|state| state.world.message(general, id).map(|message| message.flags));
    assert_eq!((flags(plain), flags(unfolded)), (Some(1 << 2), Some(0)));
}

#[tokio::test]
async fn a_name_that_discord_refuses_is_made_one_that_it_takes() {
    let (discord, _, general) = home().await;
    let client = client(&discord);

    for name in ["Clyde", "Discordia", "", "everyone", &"x".repeat(200)] {
        say(&client, &Part { name: name.into(), ..part(general, "hello") }).await;
    }

    let posts = discord.posts();
    let names: Vec<&str> = posts.iter().map(|post| username(&post.author)).collect();
    assert_eq!(names, ["Clydé", "Díscordia", "companion", "éveryone", &"x".repeat(80)]);
}

#[tokio::test]
async fn a_direct_message_that_is_sent_twice_is_posted_once() {
    let (discord, guild, general) = home().await;
    let ana = discord.member(guild, "Ana");
    let (talk, _) = discord.direct(ana, "Are you there?");
    let client = client(&discord);
    discord.spoil_next(1, On { route: Some("create_message"), ..On::default() }, Does::CutAfterwards);
    let words = direct(talk, "I am.");

    let once = say(&client, &words).await;
    let again = say(&client, &words).await;
    say(&client, &direct(talk, "Still.")).await;
    say(&client, &part(general, "I am.")).await;

    let posts = discord.posts();
    let told: Vec<_> = posts.iter().map(|post| post.content.as_str()).collect();
    assert_eq!((told, posts[0].message, once), (vec!["I am.", "Still.", "I am."], again, again));
    assert_eq!(posts[0].author, Author::User(discord.look(|state| state.world.bot())));
}

#[tokio::test]
async fn a_direct_message_that_may_have_arrived_is_not_sent_again_after_something_else_went_wrong() {
    let (discord, guild, _) = home().await;
    let (talk, _) = discord.direct(discord.member(guild, "Ana"), "Are you there?");
    let client = client(&discord);
    let create = On { route: Some("create_message"), ..On::default() };
    discord.spoil_next(1, create.clone(), Does::CutAfterwards);
    let hour = std::time::Duration::from_secs(3_600);
    discord.spoil_next(1, create, Does::TooMany { retry_after: hour, scope: Scope::User });

    let sent = client.send(&direct(talk, "I am.")).await;

    assert!(matches!(sent, Err(NotSent::Unknown { .. })), "{sent:?}");
    assert_eq!(discord.posts().len(), 1);
}

#[tokio::test]
async fn typing_is_shown_and_not_tried_again_where_it_is_refused() {
    let (discord, guild, general) = home().await;
    let bot_role = discord.look(|state| state.world.guilds[&guild].members[&state.world.bot()].roles[0]);
    let (client, channel_key) = (client(&discord), snowflake(general).channel());
    client.typing(&snowflake(guild).guild(), &channel_key).await;

    discord.overwrite(general, Overwrite::role(bot_role, 0, SEND_MESSAGES));
    client.typing(&snowflake(guild).guild(), &channel_key).await;
    client.typing(&snowflake(guild).guild(), &channel_key).await;

    let (shown, asked) = discord.look(|state| (state.journal.typing.len(), state.journal.requests_of("typing").count()));
    assert_eq!((shown, asked), (1, 2));
}

#[tokio::test]
async fn a_flood_of_words_keeps_within_the_limits() {
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
