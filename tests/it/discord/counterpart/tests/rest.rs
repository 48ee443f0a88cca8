//! What Discord refuses over REST. Tests of the client rely on it: what the double accepts anyway, they would not notice.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Bucket, Counterpart, Does, Id, Intents, Mentions, On, Permissions, Rules, Scope};
use super::client::{INTENTS, Rest, RestResponse, Socket, home};
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
async fn invalid_messages_are_refused() {
    let (Home { discord, general, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let long = "ä".repeat(2_001);

    for (body, code) in [
        (json!({}), 50006),
        (json!({ "content": "" }), 50006),
        (json!({ "content": " \n " }), 50006),
        (json!({ "content": long }), 50035),
        (json!({ "content": 5 }), 50035),
        (json!({ "content": "x", "nonce": "x".repeat(26) }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "parse": ["all"] } }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "parse": ["users"], "users": ["1"] } }), 50035),
        (json!({ "content": "x", "allowed_mentions": { "users": vec!["1"; 101] } }), 50035),
    ] {
        assert_eq!(rest.post(&path, body.clone()).await.refusal(), (400, code), "{body}");
    }
    let refused = rest.post(&path, json!({ "content": long })).await;
    assert_eq!(refused.body["errors"]["content"]["_errors"][0]["code"], "BASE_TYPE_MAX_LENGTH");
    assert_eq!(rest.post(&path, json!({ "content": "ä".repeat(2_000) })).await.status, 200);
    // A feature that the test double lacks is refused with 501, and fails a test that does not expect this.
    let forward = json!({ "message_reference": { "type": 1, "message_id": "1", "channel_id": general }, "content": "x" });
    assert_eq!(rest.post(&path, forward).await.status, 501);
    assert_eq!(discord.with(|state| std::mem::take(&mut state.journal.unsupported)).len(), 1);
}

#[tokio::test]
async fn allowed_mentions_limit_who_is_notified() {
    let (Home { discord, guild, general, ana, .. }, rest) = home().await;
    let path = format!("/channels/{general}/messages");
    let (bo, role) = (discord.member(guild, "Bo"), discord.role(guild, "Friends", Permissions::empty()));
    let content = format!("<@{ana}> <@!{bo}> <@&{role}> @everyone");
    let notified = async |allowed: Value| {
        let mut body = json!({ "content": content });
        if !allowed.is_null() {
            body["allowed_mentions"] = allowed;
        }
        rest.post(&path, body).await;
        discord.posts().last().map(|post| post.mentions.clone()).expect("a post")
    };
    let only = |users: &[Id], roles: &[Id], everyone| Mentions { users: users.to_vec(), roles: roles.to_vec(), everyone };

    assert_eq!(notified(Value::Null).await, only(&[ana, bo], &[role], false), "everyone needs a permission");
    assert_eq!(notified(json!({ "parse": [] })).await, Mentions::default());
    assert_eq!(notified(json!({ "parse": ["roles"], "users": [bo] })).await, only(&[bo], &[role], false));
    let loud = discord.role(guild, "Loud", Permissions::MENTION_EVERYONE);
    discord.give_role(guild, discord.bot(), loud);
    assert_eq!(notified(json!({ "parse": ["everyone"] })).await, only(&[], &[], true));
}

#[tokio::test]
async fn invalid_names_pictures_and_texts_are_refused() {
    let (Home { discord: _discord, general, .. }, rest) = home().await;
    let (_, path) = rest.webhook(general, "companions").await;
    let long = "x".repeat(81);

    for name in ["Clyde", "my DISCORD", "", "   ", &long] {
        let body = json!({ "content": "x", "username": name });
        assert_eq!(rest.post(&path, body).await.refusal(), (400, 50035), "{name:?}");
        let made = rest.post(&format!("/channels/{general}/webhooks"), json!({ "name": name })).await;
        assert_eq!(made.refusal(), (400, 50035), "{name:?}");
    }
    for body in [json!({ "content": "x", "avatar_url": "ftp://x" }), json!({ "content": "x".repeat(2_001) })] {
        assert_eq!(rest.post(&path, body).await.refusal(), (400, 50035));
    }
    assert_eq!(rest.post(&path, json!({ "username": "Mira" })).await.refusal(), (400, 50006));
    assert_eq!(rest.post(&path, json!({ "content": "x", "username": "  Mira   Hill " })).await.status, 204);
}

#[tokio::test]
async fn a_webhook_notifies_users_but_roles_and_everyone_only_if_allowed() {
    let (Home { discord, guild, general, ana, .. }, rest) = home().await;
    let (_, path) = rest.webhook(general, "companions").await;
    let role = discord.role(guild, "Friends", Permissions::empty());
    let content = format!("<@{ana}> <@&{role}> @everyone");

    rest.post(&path, json!({ "content": content })).await;
    rest.post(&path, json!({ "content": content, "allowed_mentions": { "parse": [] } })).await;
    rest.post(&path, json!({ "content": content, "allowed_mentions": { "parse": ["everyone", "roles"] } })).await;

    let mentions: Vec<_> = discord.posts().into_iter().map(|post| post.mentions).collect();
    assert_eq!((mentions[0].users.as_slice(), mentions[0].roles.len(), mentions[0].everyone), (&[ana][..], 0, false));
    assert_eq!(mentions[1], Mentions::default());
    assert_eq!((mentions[2].users.len(), mentions[2].roles.as_slice(), mentions[2].everyone), (0, &[role][..], true));
}

/// Registers a command.
async fn register(rest: &Rest, application: Id, command: Value) -> RestResponse {
    rest.post(&format!("/applications/{application}/commands"), command).await
}

fn named(name: &str) -> Value {
    json!({ "name": name, "description": "What it does" })
}

#[tokio::test]
async fn invalid_commands_are_refused() {
    let discord = Counterpart::with_rules(Rules::roomy()).await;
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let with = |options: Value| json!({ "name": "tertulia", "description": "d", "options": options });
    let option = |name: &str, more: Value| {
        let mut option = json!({ "type": 3, "name": name, "description": "d" });
        option.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        option
    };
    let sub = |name: &str, options: Value| json!({ "type": 1, "name": name, "description": "d", "options": options });
    let choices = |count: usize| json!({ "choices": vec![json!({ "name": "c", "value": "c" }); count] });

    for bad in [
        named("Upper"),
        named("two words"),
        named(&"x".repeat(33)),
        json!({ "name": "x" }),
        json!({ "name": "x", "description": "d".repeat(101) }),
        json!({ "name": "x", "description": "d", "default_member_permissions": "all" }),
        with(json!([option("one", json!({})), option("two", json!({ "required": true }))])),
        with(json!([option("one", json!({})), option("one", json!({}))])),
        with(json!([option("one", choices(26))])),
        with(json!([option("one", json!({ "autocomplete": true, "choices": [{ "name": "c", "value": "c" }] }))])),
        with(json!([sub("outer", json!([sub("inner", json!([]))]))])),
        with((0..26).map(|number| option(&format!("o{number}"), json!({}))).collect()),
        with(
            (0..25)
                .map(|number| {
                    sub(
                        &format!("s{number}"),
                        json!([option(
                            &"x".repeat(32),
                            json!({ "choices": vec![json!({ "name": "x".repeat(90), "value": "x".repeat(90) }); 3] })
                        )]),
                    )
                })
                .collect(),
        ),
        json!({}),
    ] {
        assert_eq!(register(&rest, application, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    let good = with(json!([
        sub("status", json!([])),
        sub("join", json!([option("companion", json!({ "required": true, "autocomplete": true }))]))
    ]));
    assert_eq!(register(&rest, application, good).await.status, 201);
}

struct Scene {
    discord: Counterpart,
    rest: Rest,
    socket: Socket,
    general: Id,
    ana: Id,
    application: Id,
}

/// A home in which `/tertulia` can be used, and a session that receives its interactions.
async fn scene(rules: Rules) -> Scene {
    let Home { discord, general, ana, .. } = Home::with_rules(rules).await;
    let rest = Rest::new(&discord);
    let application = discord.bot();
    let who = json!({ "name": "who", "description": "Who", "type": 3, "autocomplete": true });
    let command = json!({ "name": "tertulia", "description": "Everything", "options": [who] });
    let made = rest.post(&format!("/applications/{application}/commands"), command).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (socket, _) = Socket::ready(&discord, INTENTS).await;
    Scene { discord, rest, socket, general, ana, application }
}

impl Scene {
    /// Ana uses the command. Returns the interaction's id, the path that takes the first answer, and the path of that answer.
    async fn ask(&mut self) -> (Id, String, String) {
        let id = self.discord.command(self.ana, self.general, json!([]));
        let event = self.socket.event("INTERACTION_CREATE").await;
        assert_eq!(event["id"], json!(id));
        let token = event["token"].as_str().expect("a token").to_owned();
        (id, format!("/interactions/{id}/{token}/callback"), format!("/webhooks/{}/{token}/messages/@original", self.application))
    }
}

fn message(text: &str, flags: u64) -> Value {
    json!({ "type": 4, "data": { "content": text, "flags": flags } })
}

#[tokio::test]
async fn an_invalid_answer_is_refused_and_can_be_corrected() {
    let mut scene = scene(Rules::quick()).await;
    let (id, callback, original) = scene.ask().await;

    for bad in [json!({}), json!({ "type": 7, "data": {} }), json!({ "type": 99 }), message(&"x".repeat(2_001), 0)] {
        assert_eq!(scene.rest.post(&callback, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    assert_eq!(scene.rest.post(&callback, message("", 0)).await.refusal(), (400, 50006));
    assert_eq!(scene.rest.post(&callback, message("Only you.", 64)).await.status, 204);
    assert_eq!(scene.rest.get(&original).await.body["content"], "Only you.");
    assert!(scene.discord.answer_to(id).await.ephemeral);
    let history = scene.rest.get(&format!("/channels/{}/messages", scene.general)).await.body;
    assert_eq!(history, json!([]), "nobody else sees it");
}

#[tokio::test]
async fn autocomplete_takes_at_most_twenty_five_choices() {
    let mut scene = scene(Rules::quick()).await;
    let focused = json!([{ "name": "who", "type": 3, "value": "mi", "focused": true }]);
    let id = scene.discord.complete(scene.ana, scene.general, "tertulia", focused).expect("the command is offered");
    let event = scene.socket.event("INTERACTION_CREATE").await;
    assert_eq!((&event["type"], &event["data"]["options"][0]["focused"]), (&json!(4), &json!(true)));
    let callback = format!("/interactions/{id}/{}/callback", event["token"].as_str().expect("a token"));
    let choices = |count: usize, name: &str| json!({ "type": 8, "data": { "choices": vec![json!({ "name": name, "value": "mira" }); count] } });

    for bad in [choices(26, "Mira"), choices(1, ""), choices(1, &"x".repeat(101)), json!({ "type": 8 }), message("x", 0)] {
        assert_eq!(scene.rest.post(&callback, bad.clone()).await.refusal(), (400, 50035), "{bad}");
    }
    assert_eq!(scene.rest.post(&callback, choices(25, "Mira")).await.status, 204);
    assert_eq!(scene.discord.answer_to(id).await.kind, 8);
}

/// Rules whose windows do not end while a test runs.
fn slow() -> Rules {
    let bucket = |requests| Bucket { requests, window: Duration::from_secs(600) };
    Rules {
        buckets: BTreeMap::from([("create_message", bucket(2)), ("execute_webhook", bucket(1))]),
        bucket: bucket(1_000),
        global_window: Duration::from_secs(600),
        global_requests: 1_000,
        ..Rules::quick()
    }
}

#[tokio::test]
async fn a_bucket_reports_what_remains_and_refuses_the_excess() {
    let discord = Counterpart::with_rules(slow()).await;
    let guild = discord.guild("Home");
    let (one, two) = (discord.channel(guild, "one"), discord.channel(guild, "two"));
    let rest = Rest::new(&discord);

    let first = rest.say(one, "1").await;
    let second = rest.say(one, "2").await;
    let third = rest.say(one, "3").await;

    let remaining = |response: &RestResponse| (response.status, response.header("x-ratelimit-remaining").to_owned());
    assert_eq!([&first, &second, &third].map(remaining), [(200, "1".to_owned()), (200, "0".to_owned()), (429, "0".to_owned())]);
    assert_eq!((first.header("x-ratelimit-limit"), third.header("x-ratelimit-scope")), ("2", "user"));
    let reset: f64 = first.header("x-ratelimit-reset-after").parse().expect("seconds");
    assert!((590.0..=600.0).contains(&reset), "{reset}");
    assert_eq!(
        (&third.body["global"], third.body["retry_after"].as_f64().map(|after| after > 590.0)),
        (&json!(false), Some(true))
    );
    assert!(third.header("retry-after").parse::<u64>().is_ok_and(|after| after >= 590));
    // Another channel has a bucket of its own; the bucket's name says nothing of the channel.
    let other = rest.say(two, "1").await;
    assert_eq!((other.status, other.header("x-ratelimit-bucket")), (200, first.header("x-ratelimit-bucket")));
    assert_eq!(rest.get(&format!("/channels/{one}")).await.status, 200);
    assert_eq!(discord.look(|state| state.journal.limits_exceeded()), 1);
    assert_eq!(discord.posts().len(), 3, "a refused message is not posted");
}

#[tokio::test]
async fn a_bot_may_make_fifty_requests_a_second_over_all_routes() {
    let discord = Counterpart::with_rules(Rules { global_requests: 50, ..slow() }).await;
    let rest = Rest::new(&discord);
    for _ in 0..50 {
        assert_eq!(rest.get("/users/@me").await.status, 200);
    }

    let more = rest.get("/applications/@me").await;

    assert_eq!((more.status, &more.body["global"]), (429, &json!(true)));
    assert_eq!((more.header("x-ratelimit-global"), more.header("x-ratelimit-scope")), ("true", "global"));
    // Requests without the bot's token are counted by address.
    let mut open = Rest::new(&discord);
    open.token.clear();
    assert_eq!(open.get("/webhooks/5/token/messages/5").await.refusal(), (404, 10015));
}

#[tokio::test]
async fn too_many_invalid_requests_ban_the_address() {
    let rules = Rules { invalid_requests: 4, ..slow() };
    let discord = Counterpart::with_rules(rules).await;
    let guild = discord.guild_without_bot("Elsewhere");
    let (rest, mut stranger) = (Rest::new(&discord), Rest::new(&discord));
    stranger.token = "wrong".to_owned();

    discord.spoil_next(1, On::default(), Does::TooMany { retry_after: Duration::from_secs(1), scope: Scope::Shared });
    assert_eq!(rest.get("/users/@me").await.status, 429);
    assert_eq!(rest.get("/channels/5").await.status, 404);
    assert_eq!(discord.look(|state| state.limits.invalid_requests()), 0, "neither counts");
    for _ in 0..2 {
        assert_eq!(stranger.get("/users/@me").await.status, 401);
        assert_eq!(rest.get(&format!("/guilds/{guild}")).await.status, 403);
    }

    let banned = rest.get("/users/@me").await;
    assert_eq!((banned.status, banned.body.as_str(), banned.header("x-ratelimit-scope")), (429, Some("error code: 1015"), ""));
    assert_eq!(discord.look(|state| state.journal.bans), 1);
}

#[tokio::test]
async fn without_the_content_intent_only_the_webhooks_token_shows_its_messages() {
    let (Home { discord, general, .. }, rest) = home().await;
    discord.set_privileged(Intents::empty());
    let (_, path) = rest.webhook(general, "companions").await;

    let posted = rest.post(&format!("{path}?wait=true"), json!({ "content": "Hello" })).await.id();

    for place in [format!("/channels/{general}/messages?limit=1"), format!("/channels/{general}/messages/{posted}")] {
        let read = rest.get(&place).await.body;
        assert_eq!(read.get(0).unwrap_or(&read)["content"], "", "{place}");
    }
    assert_eq!(rest.get(&format!("{path}/messages/{posted}")).await.body["content"], "Hello");
}
