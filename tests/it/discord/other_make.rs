//! A bot that is played by discord.js (tests/discord-client/bot.mjs) reads what the program and people post. `.ci/discord-client` installs it.

use serde_json::{Value, json};

use super::counterpart::{Counterpart, Id, Permissions, Rules};
use super::home::Home;
use super::node::Node;
use super::{client, commands};
use crate::harness::{PATIENCE, Premises};

/// The bot of another library. It has the program's token, and a session of its own.
struct Bot {
    node: Node,
    channel: Id,
}

impl Bot {
    fn start(discord: &Counterpart, channel: Id) -> Self {
        let (api, token) = (format!("{}/api", discord.api_url()), discord.token());
        let set = [("TERTULIA_DISCORD_API", &*api), ("TERTULIA_DISCORD_TOKEN", &*token)];
        Self { node: Node::start("discord-client/bot.mjs", "TERTULIA_DISCORD_MODULES", &set), channel }
    }

    /// Waits for an event that has these fields, and has arrived at any time.
    async fn event(&mut self, name: &str, fields: Value) -> Value {
        let what = format!("{name} {fields}");
        let (fields, name) = (fields.as_object().expect("an object").clone(), name.to_owned());
        let is_it = |event: &&Value| event["event"] == *name && fields.iter().all(|(field, value)| event[field] == *value);
        self.node.until(&what, 0, |events| events.iter().find(is_it).or(failure(events)).cloned()).await
    }

    /// Lets it do something in the channel. Returns the answer.
    async fn does(&mut self, action: &str, more: Value) -> Value {
        let mut command = json!({ "do": action, "channel": self.channel });
        command.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let before = self.node.count();
        self.node.command(&command).await;
        let is_answer = |event: &&Value| event["event"] == "done";
        self.node.until(action, before, |events| events.iter().find(is_answer).or(failure(events)).cloned()).await
    }
}

/// What discord.js could not do.
fn failure(events: &[Value]) -> Option<&Value> {
    let failure = events.iter().find(|event| event["event"] == "error");
    assert!(failure.is_none(), "discord.js failed: {}", failure.expect("it is there")["error"].as_str().unwrap_or_default());
    None
}

/// A registered command, or an option of one, in the words of bot.mjs.
fn as_read(registered: &Value) -> Value {
    let list = |field: &str| registered[field].as_array().cloned().unwrap_or_default();
    json!({
        "name": registered["name"],
        "description": registered["description"].as_str().unwrap_or_default(),
        "german": [registered["name_localizations"]["de"], registered["description_localizations"]["de"]],
        "type": registered["type"].as_u64().unwrap_or(1),
        "required": registered["required"].as_bool().unwrap_or_default(),
        "choices": list("choices").iter().map(|choice| json!([choice["name"], choice["value"]])).collect::<Vec<_>>(),
        "options": list("options").iter().map(as_read).collect::<Vec<_>>(),
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a client of another make: .ci/discord-client"]
async fn a_bot_of_another_library_understands_what_is_posted_and_registered() {
    let Home { discord, guild, general, ana, bot } =
        Home::with_rules(Rules { interaction_deadline: PATIENCE, ..client::rules() }).await;
    let kim = discord.member_with(guild, "Kim", Permissions::MANAGE_CHANNELS);
    let earlier = discord.say(ana, general, "is anybody here?");
    discord.react(ana, general, earlier, "\u{1f44d}", true);
    let server = Premises::shipped().for_discord(&discord).with("safety.notice", "once").start().await;
    discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
    discord.sessions(1).await;

    // READY and GUILD_CREATE.
    let mut reader = Bot::start(&discord, general);
    let ready = reader.event("ready", json!({})).await;
    println!("discord.js {}", ready["version"]);
    let home = json!([{ "name": "Home", "channels": ["general"], "permissions": true, "memberCount": 4 }]);
    assert_eq!((&ready["user"], &ready["guilds"]), (&json!(bot), &home));
    discord.sessions(2).await;

    let newest = reader.does("newest", json!({})).await;
    assert_eq!(
        (&newest["messages"][0]["id"], &newest["messages"][0]["reactions"]),
        (&json!(earlier), &json!([["\u{1f44d}", 1, false]]))
    );
    discord.with(|state| state.type_in(general, kim));
    reader.event("typing", json!({ "user": kim, "channel": "general" })).await;

    // A command, and a statement with the notice about AI.
    let joined = commands::sub("join", json!([commands::companion("aria")]));
    commands::final_answer(&discord, kim, general, joined).await;
    let used = json!({ "name": "tertulia", "subcommand": "join", "companion": "aria", "user": "Kim", "channel": "general" });
    reader.event("interaction", used).await;
    let asked = discord.say(ana, general, "hey aria, how was your day?");
    let question =
        json!({ "id": asked, "author": "Ana", "bot": false, "webhook": null, "content": "hey aria, how was your day?" });
    reader.event("message", question).await;
    let post = discord.post_in(general).await;
    let statement = reader.event("message", json!({ "id": post.message, "author": "Aria", "bot": true })).await;
    assert_eq!(statement["content"], *post.content);
    assert!(post.content.contains("\n-# \u{24d8} Companions here are AI"), "{statement}");
    let webhooks = reader.does("webhooks", json!({})).await;
    assert_eq!(webhooks["webhooks"], json!([[statement["webhook"], "tertulia", bot]]));

    // A reply, which is answered; its edit and its deletion.
    let reply = discord.reply(ana, general, post.message, "aria, and yesterday?", false);
    reader.event("message", json!({ "id": reply, "replyTo": post.message })).await;
    assert_eq!(reader.does("replied", json!({ "message": reply })).await["content"], *post.content);
    let second = discord.posts_in(general, 2).await.remove(1);
    reader.event("message", json!({ "id": second.message, "author": "Aria", "content": &*second.content })).await;
    discord.edit(general, reply, "aria, and the day before?");
    let edit = json!({ "id": reply, "edited": true, "before": "aria, and yesterday?", "content": "aria, and the day before?" });
    reader.event("edited", edit).await;
    discord.delete(general, reply);
    reader.event("deleted", json!({ "id": reply })).await;

    // Reactions: of a person, and its own.
    discord.react(ana, general, post.message, "\u{1f44d}", true);
    reader.event("reacted", json!({ "id": post.message, "emoji": "\u{1f44d}", "user": ana })).await;
    reader.does("react", json!({ "message": post.message, "emoji": "\u{1f44d}" })).await;
    let fetched = reader.does("fetch", json!({ "message": post.message })).await;
    assert_eq!(fetched["reactions"], json!([["\u{1f44d}", 2, true]]));
    discord.react(ana, general, post.message, "\u{1f44d}", false);
    reader.event("unreacted", json!({ "id": post.message, "emoji": "\u{1f44d}", "user": ana })).await;

    // A poll, and buttons.
    discord.say(ana, general, "aria, poll: Where do we eat? Pizza, pasta or salad");
    let poll = json!({
        "question": "Where do we eat?",
        "answers": [[1, "Pizza"], [2, "pasta"], [3, "salad"]],
        "allowMultiselect": false,
        "layoutType": 1,
        "hours": 24,
    });
    let posted = reader.event("message", json!({ "author": "tertulia", "webhook": null, "poll": poll })).await;
    assert_eq!(reader.does("fetch", json!({ "message": posted["id"] })).await["poll"], poll);
    discord.say(ana, general, "hey aria, i want to die");
    let button = format!("help:discord:{ana}");
    let buttons = json!([["Read it", button]]);
    let offered = reader.event("message", json!({ "author": "tertulia", "buttons": buttons })).await;
    discord.press(ana, general, &button);
    reader.event("interaction", json!({ "kind": "ButtonInteraction", "name": button, "on": offered["id"], "user": "Ana" })).await;

    // A command that is being typed, one in the menu of a message, one in that of a person, and a public answer to a command.
    let typed = json!({ "type": 3, "name": "companion", "value": "ar", "focused": true });
    discord.complete(kim, general, "tertulia", commands::sub("leave", json!([typed]))).expect("it is offered");
    let leave = json!({ "kind": "AutocompleteInteraction", "subcommand": "leave", "companion": "ar", "user": "Kim" });
    reader.event("interaction", leave).await;
    discord.invoke_on(kim, general, "Why?", post.message).expect("it is offered");
    let menu = |name: &str, on: Id| json!({ "name": name, "on": on, "user": "Kim" });
    reader.event("interaction", menu("Why?", post.message)).await;
    discord.invoke_on_user(kim, general, "Pause for me", bot).expect("it is offered");
    reader.event("interaction", menu("Pause for me", bot)).await;
    let text = json!({ "type": 3, "name": "text", "value": "and tomorrow?" });
    discord.command(ana, general, commands::sub("say", json!([commands::companion("aria"), text])));
    let shown =
        json!({ "author": "tertulia", "webhook": bot, "command": "Ana", "content": "**Ana** to **Aria**:\n> and tomorrow?" });
    reader.event("edited", shown).await;

    // Its own messages, which nobody answers.
    let own = reader.does("send", json!({ "text": "hey aria, I am a bot" })).await;
    assert_eq!((&own["author"], &own["content"]), (&json!("tertulia"), &json!("hey aria, I am a bot")));
    let edited = reader.does("edit", json!({ "message": own["id"], "text": "hey aria, I am still a bot" })).await;
    assert_eq!((&edited["edited"], &edited["content"]), (&json!(true), &json!("hey aria, I am still a bot")));
    reader.does("delete", json!({ "message": own["id"] })).await;
    reader.event("deleted", json!({ "id": own["id"] })).await;

    // What is registered.
    let registered = discord.look(|state| state.world.commands.iter().map(|command| as_read(&command.data)).collect::<Value>());
    assert_eq!(reader.does("commands", json!({})).await["commands"], registered);

    // A connection that breaks.
    discord.cut(0);
    reader.event("resumed", json!({})).await;
    discord.resumes(2).await;
    let last = discord.say(ana, general, "aria, are you still there?");
    reader.event("message", json!({ "id": last })).await;
    let newest = reader.does("newest", json!({})).await;
    assert!(newest["messages"].as_array().is_some_and(|newest| newest.iter().any(|message| message["id"] == json!(last))));
    let history = server.history(&format!("discord:{general}")).await;
    assert!(!history.iter().any(|(.., text)| text.contains("a bot")), "{history:?}");
    server.stop().await;
}
