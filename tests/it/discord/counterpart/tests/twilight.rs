//! Real clients (twilight) against the test double.

use serde_json::json;
use tokio::time::timeout;
use twilight_gateway::{ConfigBuilder, Event, EventTypeFlags, Intents, Shard, ShardId, StreamExt as _};
use twilight_http::Client;
use twilight_model::application::interaction::InteractionData;
use twilight_model::http::interaction::{InteractionResponse, InteractionResponseData, InteractionResponseType};
use twilight_model::id::Id as TwilightId;
use twilight_model::id::marker::{ChannelMarker, GuildMarker};

use super::super::{Author, Counterpart, Id, Kind, Permissions};
use crate::discord::home::Home;
use crate::harness::PATIENCE;

fn shard(discord: &Counterpart) -> Shard {
    // Without an installed provider, the first TLS configuration panics.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let intents = Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES | Intents::MESSAGE_CONTENT;
    let config = ConfigBuilder::new(discord.token(), intents).proxy_url(discord.gateway_url()).build();
    Shard::with_config(ShardId::ONE, config)
}

fn client(discord: &Counterpart) -> Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::builder().token(discord.token()).proxy(discord.origin().to_owned(), true).build()
}

/// Waits for an event. An unreadable event fails the test, a lost connection does not.
async fn until<T>(shard: &mut Shard, look: impl Fn(Event) -> Option<T>) -> T {
    let found = async {
        loop {
            match shard.next_event(EventTypeFlags::all()).await.expect("the shard continues") {
                Ok(event) => {
                    if let Some(found) = look(event) {
                        return found;
                    }
                }
                Err(error) => {
                    let kind = format!("{:?}", error.kind());
                    assert!(!kind.starts_with("Deserializing"), "{error:?}");
                }
            }
        }
    };
    timeout(PATIENCE, found).await.expect("in time")
}

fn channel(id: Id) -> TwilightId<ChannelMarker> {
    TwilightId::new(id.0)
}

fn guild_id(id: Id) -> TwilightId<GuildMarker> {
    TwilightId::new(id.0)
}

fn text_of(event: Event) -> Option<String> {
    match event {
        Event::MessageCreate(message) => Some(message.content.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn a_real_shard_connects_receives_and_resumes() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    discord.open_post(ana, discord.channel_of(guild, Kind::Forum, "plans"), "Summer", "Where to?");
    let mut shard = shard(&discord);

    let ready = until(&mut shard, |event| if let Event::Ready(ready) = event { Some(ready) } else { None }).await;
    assert_eq!((ready.guilds.len(), ready.guilds[0].unavailable), (1, true));
    let made = until(&mut shard, |event| if let Event::GuildCreate(guild) = event { Some(guild) } else { None }).await;
    assert_eq!(made.id(), guild_id(guild));
    let twilight_model::gateway::payload::incoming::GuildCreate::Available(made) = *made else { panic!("available") };
    assert_eq!((made.channels.len(), made.threads.len()), (2, 1));
    discord.say(ana, general, "Hello, all");
    assert_eq!(until(&mut shard, text_of).await, "Hello, all");

    discord.cut(0);
    discord.say(ana, general, "Still there?");
    assert_eq!(until(&mut shard, text_of).await, "Still there?");
    until(&mut shard, |event| matches!(event, Event::Resumed).then_some(())).await;

    let (resumes, by_resume_url) =
        discord.look(|state| (state.journal.resumes.len(), state.journal.connections[1].by_resume_url));
    assert_eq!((resumes, by_resume_url), (1, true));
    assert_eq!(discord.identifies(), 1);
}

#[tokio::test]
async fn a_real_shard_reads_every_event() {
    let Home { discord, guild, general, ana, bot, .. } = Home::new().await;
    let mut shard = shard(&discord);
    until(&mut shard, |event| matches!(event, Event::GuildCreate(_)).then_some(())).await;

    let first = discord.say(ana, general, &format!("<@{}> hi", discord.bot()));
    discord.forward(ana, general, first, general);
    let second = discord.reply(ana, general, first, "and more", true);
    let third = discord.say_with(ana, general, "", |message| {
        message.stickers.push(json!({ "id": "749054660769218631", "name": "Wave", "format_type": 3 }));
        message.attachments.push(json!({
            "id": "1", "filename": "cat.png", "size": 12, "content_type": "image/png",
            "url": "https://cdn.example.org/cat.png", "proxy_url": "https://cdn.example.org/cat.png",
        }));
        message.embeds.push(json!({ "type": "rich", "title": "A link" }));
    });
    discord.edit(general, first, "hi again");
    discord.delete(general, first);
    discord.delete_bulk(general, &[second, third]);
    let thread = discord.thread(general, "aside", ana);
    discord.with(|state| state.change_thread(thread, |thread| thread.archived = true));
    discord.remove_channel(thread);
    discord.with(|state| state.change_channel(general, |channel| "talk".clone_into(&mut channel.name)));
    let role = discord.role(guild, "Friends", Permissions::empty());
    discord.with(|state| state.remove_role(guild, role));
    discord.with(|state| state.change_guild(guild, |guild| "House".clone_into(&mut guild.name)));
    discord.with(|state| state.change_member(guild, bot, |member| member.nick = Some("Bot".to_owned())));
    discord.direct(ana, "psst");
    discord.remove_channel(general);
    discord.set_outage(guild, true);
    discord.set_outage(guild, false);
    discord.expel_bot(guild);
    let other = discord.guild("Other");

    // Every event must be readable.
    let names = timeout(PATIENCE, async {
        let mut names = Vec::new();
        while let Some(event) = shard.next_event(EventTypeFlags::all()).await {
            let event = event.expect("it can be read");
            names.extend(event.kind().name());
            if matches!(&event, Event::GuildCreate(made) if made.id() == guild_id(other)) {
                return names;
            }
        }
        panic!("the shard ended");
    })
    .await
    .expect("in time");
    let expected = [
        "MESSAGE_CREATE",
        "MESSAGE_CREATE",
        "MESSAGE_CREATE",
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "THREAD_CREATE",
        "THREAD_UPDATE",
        "THREAD_DELETE",
        "CHANNEL_UPDATE",
        "GUILD_ROLE_CREATE",
        "GUILD_ROLE_DELETE",
        "GUILD_UPDATE",
        "GUILD_MEMBER_UPDATE",
        "MESSAGE_CREATE",
        "CHANNEL_DELETE",
        "GUILD_DELETE",
        "GUILD_CREATE",
        "GUILD_DELETE",
        "GUILD_CREATE",
    ];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.starts_with("GATEWAY")).collect();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn a_real_client_posts_and_reads_back() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;
    discord.say(ana, general, "Mira?");
    let client = client(&discord);

    let posted = client.create_message(channel(general)).content("Yes?").await;
    let posted = posted.expect("a post").model().await.expect("a message");
    let webhook = client.create_webhook(channel(general), "companions").await.expect("a webhook");
    let webhook = webhook.model().await.expect("a webhook");
    let message = client
        .execute_webhook(webhook.id, webhook.token.as_deref().expect("a token"))
        .content("Here I am.")
        .username("Mira")
        .avatar_url("https://example.org/mira.png")
        .wait()
        .await
        .expect("a post")
        .model()
        .await
        .expect("a message");
    let history = client.channel_messages(channel(general)).limit(10).await.expect("a history").models().await.expect("messages");
    client.create_typing_trigger(channel(general)).await.expect("a sign");
    let gateway = client.gateway().authed().await.expect("an answer").model().await.expect("a gateway");
    let application = client.current_user_application().await.expect("an answer").model().await.expect("an application");
    let guilds = client.current_user_guilds().await.expect("an answer").models().await.expect("guilds");
    let channels = client.guild_channels(guild_id(guild)).await.expect("an answer").models().await.expect("channels");
    let me = TwilightId::new(application.id.get());
    let member = client.guild_member(guild_id(guild), me).await.expect("an answer").model().await.expect("a member");

    let texts: Vec<&str> = history.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(texts, ["Here I am.", "Yes?", "Mira?"]);
    assert_eq!((history[0].id, history[1].id), (message.id, posted.id));
    let by: Vec<Author> = discord.posts().into_iter().map(|post| post.author).collect();
    let Author::Webhook { username, avatar_url, .. } = &by[1] else { panic!("{by:?}") };
    assert_eq!((username.as_str(), avatar_url.as_deref()), ("Mira", Some("https://example.org/mira.png")));
    assert_eq!((gateway.shards, gateway.session_start_limit.remaining, gateway.url), (1, 1_000, discord.gateway_url()));
    assert_eq!((guilds.len(), channels.len(), member.roles.len()), (1, 1, 1));
}

#[tokio::test]
async fn a_real_client_answers_a_command() {
    let Home { discord, general, ana, .. } = Home::new().await;
    let client = client(&discord);
    let application = TwilightId::new(discord.look(|state| state.world.application.id.0));
    client.interaction(application).create_global_command().chat_input("tertulia", "Everything").await.expect("it is registered");
    let mut shard = shard(&discord);
    until(&mut shard, |event| matches!(event, Event::GuildCreate(_)).then_some(())).await;

    let asked = discord.command(ana, general, json!([]));
    let interaction =
        until(&mut shard, |event| if let Event::InteractionCreate(interaction) = event { Some(interaction) } else { None }).await;
    assert!(matches!(&interaction.data, Some(InteractionData::ApplicationCommand(data)) if data.name == "tertulia"));
    let response = InteractionResponse {
        kind: InteractionResponseType::ChannelMessageWithSource,
        data: Some(InteractionResponseData { content: Some("Well.".to_owned()), ..InteractionResponseData::default() }),
    };
    client.interaction(application).create_response(interaction.id, &interaction.token, &response).await.expect("in time");

    assert_eq!(discord.answer_to(asked).await.kind, 4);
    assert_eq!(discord.answered_text(asked).as_deref(), Some("Well."));
}
