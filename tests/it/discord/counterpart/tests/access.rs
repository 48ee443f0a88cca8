//! Permissions, authorization, and reading guilds, members and the application.

use serde_json::{Value, json};

use super::super::{Counterpart, Id, Intents, Kind, Permissions};
use super::client::{Rest, home};
use crate::discord::home::Home;

/// A user's permissions in a channel.
fn permissions(discord: &Counterpart, user: Id, channel: Id) -> Permissions {
    discord.look(|state| state.world.permissions(&state.world.channels[&channel], user))
}

#[tokio::test]
async fn overwrites_apply_in_the_documented_order() {
    let discord = Counterpart::start().await;
    let guild = discord.guild_without_bot("Home");
    let (channel, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
    let (one, two) = (discord.role(guild, "One", Permissions::MANAGE_GUILD), discord.role(guild, "Two", Permissions::empty()));
    let sends = || permissions(&discord, ana, channel).contains(Permissions::SEND_MESSAGES);
    assert!(sends());

    discord.deny(channel, guild, Permissions::SEND_MESSAGES);
    assert!(!sends(), "denied to everyone");
    discord.allow(channel, one, Permissions::SEND_MESSAGES);
    discord.deny(channel, two, Permissions::SEND_MESSAGES);
    discord.give_role(guild, ana, two);
    assert!(!sends(), "denied to a role");
    discord.give_role(guild, ana, one);
    assert!(sends(), "allowed by one role, which outweighs denials by other roles");
    discord.deny(channel, ana, Permissions::SEND_MESSAGES);
    assert!(!sends(), "denied to the member");
    assert!(!permissions(&discord, ana, channel).contains(Permissions::EMBED_LINKS), "as is what needs the permission to send");
    discord.deny(channel, ana, Permissions::VIEW_CHANNEL);
    assert_eq!(permissions(&discord, ana, channel), Permissions::empty(), "a channel that cannot be viewed permits nothing");
    discord.give_role(guild, ana, discord.role(guild, "Admin", Permissions::ADMINISTRATOR));
    assert_eq!(permissions(&discord, ana, channel), Permissions::all());
    let owner = discord.look(|state| state.world.application.owner);
    assert_eq!(permissions(&discord, owner, channel), Permissions::all());
}

#[tokio::test]
async fn a_timed_out_member_can_only_read() {
    let Home { discord, guild, general, ana, .. } = Home::new().await;

    discord.with(|state| state.change_member(guild, ana, |member| member.timed_out = true));

    assert_eq!(permissions(&discord, ana, general), Permissions::VIEW_CHANNEL | Permissions::READ_MESSAGE_HISTORY);
    assert_eq!(permissions(&discord, discord.person("Nobody"), general), Permissions::empty());
}

#[tokio::test]
async fn a_category_is_visible_with_any_of_its_channels() {
    let discord = Counterpart::start().await;
    let guild = discord.guild("Home");
    let bot = discord.bot();
    let category = discord.channel_of(guild, Kind::Category, "Talk");
    discord.deny(category, bot, Permissions::VIEW_CHANNEL);
    let is_visible = || discord.look(|state| state.world.may_view(&state.world.channels[&category], bot));
    assert!(!is_visible());

    let channel = discord.channel(guild, "general");
    discord.with(|state| state.change_channel(channel, |channel| channel.parent = Some(category)));

    assert!(is_visible());
}

#[tokio::test]
async fn requests_without_a_valid_token_or_user_agent_are_refused() {
    let discord = Counterpart::start().await;
    let mut rest = Rest::new(&discord);

    rest.agent = "curl/8";
    assert_eq!(rest.get("/users/@me").await.refusal(), (403, 40333));
    rest.agent = "DiscordBot (https://example.org, 1) more";
    assert_eq!(rest.get("/users/@me").await.body["bot"], true);
    rest.token = "wrong".to_owned();
    assert_eq!(rest.get("/users/@me").await.refusal(), (401, 0));
    rest.token.clear();
    assert_eq!(rest.get("/gateway/bot").await.status, 401);
}

#[tokio::test]
async fn wrong_paths_methods_and_bodies_are_refused() {
    let (Home { discord, general, .. }, rest) = home().await;
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let post = async |kind: &str, body: &'static str| {
        let url = format!("{}/api/v10/channels/{general}/messages", discord.api_url());
        let request = http.post(url).header("user-agent", rest.agent).header("authorization", format!("Bot {}", rest.token));
        let body = request.header("content-type", kind).body(body).send().await.expect("an answer").text().await.expect("a body");
        serde_json::from_str::<Value>(&body).expect("JSON")["code"].clone()
    };

    assert_eq!(rest.get("/nowhere").await.refusal(), (404, 0));
    assert_eq!(rest.get("/channels/x").await.refusal(), (404, 0));
    assert_eq!(rest.delete("/users/@me").await.refusal(), (405, 0));
    assert_eq!(post("application/json", "{").await, 50109);
    assert_eq!(post("text/plain", "{}").await, 50035);
    assert_eq!(post("application/json", r#"{"content":"x"}"#).await, Value::Null);
    let old = http.get(format!("{}/api/v5/users/@me", discord.api_url())).header("user-agent", rest.agent);
    assert_eq!(old.send().await.expect("an answer").status().as_u16(), 400);
}

#[tokio::test]
async fn guilds_and_their_members_are_readable_for_guild_members() {
    let discord = Counterpart::start().await;
    let (home, away) = (discord.guild("Home"), discord.guild_without_bot("Away"));
    let (ana, bo) = (discord.member(home, "Ana"), discord.person("Bo"));
    let rest = Rest::new(&discord);

    assert_eq!(rest.get(&format!("/guilds/{home}")).await.body["name"], "Home");
    assert_eq!(rest.get(&format!("/guilds/{away}")).await.refusal(), (403, 50001));
    assert_eq!(rest.get("/guilds/5").await.refusal(), (404, 10004));
    assert_eq!(rest.get(&format!("/guilds/{home}/members/{ana}")).await.body["user"]["id"], json!(ana));
    assert_eq!(rest.get(&format!("/guilds/{home}/members/{bo}")).await.refusal(), (404, 10007));
    assert_eq!(rest.get(&format!("/guilds/{home}/members/5")).await.refusal(), (404, 10013));
    discord.guild("Other");
    assert_eq!(rest.get("/users/@me/guilds").await.body.as_array().map(Vec::len), Some(2));
    assert_eq!(rest.get("/users/@me/guilds?limit=1").await.body[0]["id"], json!(home));
    assert_eq!(rest.get("/users/@me/guilds?limit=201").await.refusal(), (400, 50035));
}

#[tokio::test]
async fn the_application_shows_its_enabled_intents() {
    let discord = Counterpart::start().await;
    let rest = Rest::new(&discord);
    let flags = async || rest.get("/applications/@me").await.body["flags"].clone();

    assert_eq!(flags().await, 1 << 19);
    discord.set_privileged(Intents::empty());
    assert_eq!(flags().await, 0);
    discord.set_privileged(Intents::MESSAGE_CONTENT | Intents::GUILD_MEMBERS);
    assert_eq!(flags().await, 1 << 19 | 1 << 15);
}

#[tokio::test]
async fn shards_are_recommended_by_the_number_of_guilds() {
    let discord = Counterpart::start().await;
    let rest = Rest::new(&discord);
    let shards = async || rest.get("/gateway/bot").await.body["shards"].clone();
    assert_eq!(shards().await, 1);

    for number in 0..1_001 {
        discord.guild(&number.to_string());
    }

    assert_eq!(shards().await, 2);
    discord.with(|state| state.rules.recommended_shards = Some(4));
    assert_eq!(shards().await, 4);
}

#[tokio::test]
async fn a_voice_channel_needs_the_permission_to_connect() {
    let discord = Counterpart::start().await;
    let guild = discord.guild("Home");
    let voice = discord.channel_of(guild, Kind::Voice, "hall");
    let bot = discord.bot();
    let rest = Rest::new(&discord);

    discord.overwrite(voice, bot, Permissions::MANAGE_CHANNELS, Permissions::CONNECT);

    assert_eq!(rest.get(&format!("/channels/{voice}/messages")).await.refusal(), (403, 50001));
}
