//! Commands with the real binary: their effects hold for the conversation, and across a restart.

use serde_json::{Value, json};

use super::super::counterpart::journal::Post;
use super::super::counterpart::{Author, Id, Intents, Permissions, Rules, State};
use super::super::home::Home;
use super::{companion, final_answer, me, rules, sub, switch, until};
use crate::harness::Premises;

/// A home with Kim, who may manage channels; and the premises of a server for it.
async fn scene() -> (Home, Id, Premises) {
    let home = Home::with_rules(Rules { heartbeat_tolerance: Rules::quick().heartbeat_tolerance, ..rules() }).await;
    let kim = home.discord.member_with(home.guild, "Kim", Permissions::MANAGE_CHANNELS);
    let premises = Premises::shipped().for_discord(&home.discord).with("safety.notice", "once");
    home.discord.with(|state| state.world.application.description.clear());
    (home, kim, premises)
}

#[tokio::test]
async fn a_channel_is_set_up_adjusted_and_emptied_by_commands_alone() {
    let (Home { discord, general, ana, .. }, kim, premises) = scene().await;
    let ask = async |user, options: Value| final_answer(&discord, user, general, options).await;
    let room = format!("discord:{general}");
    let server = premises.start().await;
    discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
    discord.sessions(1).await;

    assert!(ask(ana, sub("status", json!([]))).await.starts_with("**No companion is here yet.**"));
    let welcome = ask(kim, sub("join", json!([companion("aria")]))).await;
    assert!(welcome.starts_with("**Aria** is here now.") && welcome.lines().count() == 1, "{welcome}");
    discord.say(ana, general, "hey aria, how was your day?");
    let told = |post: &Post| post.content.contains("\n-# \u{24d8} Companions here are AI");
    assert!(told(&discord.post_in(general).await), "the first answer that Ana gets");
    assert!(ask(kim, sub("about", json!([]))).await.starts_with("Companions here are AI"));
    assert!(discord.look(|state| state.world.application.description.clone()).starts_with("Companions here are AI"));
    let why = ask(ana, sub("why", json!([]))).await;
    assert!(why.contains("**Aria** decided to speak (it was addressed)"), "{why}");
    assert!(why.contains("**What they wait for now**\n• "), "{why}");
    discord.set_language(ana, "de");
    let why = ask(ana, sub("why", json!([]))).await;
    assert!(why.contains("**Aria** hat entschieden, etwas zu sagen (wurde angesprochen)"), "{why}");
    assert!(why.contains("**Worauf sie gerade warten**\n• ") && !why.contains("thinks"), "{why}");
    discord.set_language(ana, "en-US");
    let level = json!({ "type": 3, "name": "level", "value": "very_quiet" });
    ask(kim, sub("talkativeness", json!([level]))).await;
    assert!(ask(ana, me("ignore", json!([]))).await.contains("until you use"));
    server.stop().await;

    let server = premises.start().await;
    discord.resumes(1).await;
    let status = ask(ana, sub("status", json!([]))).await;
    assert!(
        status.contains("**Aria** rarely speaks up") && status.contains("You asked companions not to listen to you"),
        "{status}"
    );
    discord.say(ana, general, "hey aria, do you hear me?");
    discord.say(kim, general, "hey aria, and me?");
    let posts = discord.posts_in(general, 2).await;
    assert!(told(&posts[1]), "the first answer that Kim gets");
    let history = server.history(&room).await;
    assert!(!history.iter().any(|(.., text)| text.contains("Companions here are AI")), "{history:?}");
    assert!(history.iter().any(|(.., text)| text == "hey aria, and me?"), "{history:?}");
    assert!(!history.iter().any(|(.., text)| text == "hey aria, do you hear me?"), "{history:?}");
    assert!(ask(ana, me("ignore", json!([switch("off")]))).await.contains("listen to you again"));
    let asked = discord.command(ana, general, me("forget", json!([])));
    let question = discord.answer_to(asked).await;
    let button = question.data["components"][0]["components"][0]["custom_id"].as_str().expect("a button");
    let forgotten = discord.final_answer(discord.press(ana, general, button)).await.content;
    assert!(forgotten.starts_with("Forgotten: your messages (1), with"), "{forgotten}");
    assert!(!server.history(&room).await.iter().any(|(.., text)| text == "hey aria, how was your day?"));
    assert!(ask(kim, sub("pause", json!([]))).await.starts_with("Paused in this channel: Aria."));
    assert!(ask(kim, sub("leave", json!([companion("Aria")]))).await.starts_with("**Aria** is no longer here."));
    assert!(ask(ana, sub("status", json!([]))).await.starts_with("**No companion is here yet.**"));
    let registered = discord.requests("create_command");
    assert_eq!(registered, 6, "after the restart they were still registered");
    server.stop().await;
}

#[tokio::test]
async fn who_exports_the_own_data_gets_the_own_words_and_nobody_elses() {
    let (Home { discord, general, ana, .. }, kim, premises) = scene().await;
    let server = premises.start().await;
    discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
    discord.sessions(1).await;
    let earlier = discord.say(kim, general, "Kim was here");
    final_answer(&discord, kim, general, sub("join", json!([companion("aria")]))).await;
    discord.say(kim, general, "hey aria, I am Kim");
    discord.post_in(general).await;
    let deleted = discord.say(ana, general, "hey aria, this goes");
    discord.posts_in(general, 2).await;
    discord.reply(ana, general, earlier, "hey aria, this stays", true);
    discord.posts_in(general, 3).await;
    discord.delete(general, deleted);
    let room = format!("discord:{general}");
    until("the deletion", async || !server.history(&room).await.iter().any(|(.., text)| text.ends_with("goes"))).await;

    let interaction = discord.command(ana, general, sub("export-me", json!([])));
    let answer = discord.answer_to(interaction).await;
    let file = discord.final_answer(interaction).await.attachments.pop().expect("a file");

    assert!(answer.ephemeral);
    let entries: Vec<Value> = serde_json::from_str(file["content"].as_str().expect("a text")).expect("JSON");
    let texts: Vec<_> = entries.iter().map(|entry| entry["message"]["text"].as_str()).collect();
    assert_eq!(texts, [None, Some("hey aria, this stays")], "{entries:?}");
    let recorded = server.get(&format!("/api/export?room={room}")).await.to_string();
    assert!(recorded.contains("Kim was here") && !file.to_string().contains("Kim"), "what Ana quoted is Kim's");
    assert!(entries[0]["told_at"].is_string() && entries[0]["opted_out"] == false, "{entries:?}");
    let figures = server.get("/api/usage/safety").await;
    assert_eq!(figures["total"]["told"], json!({ "first": 2, "day": 0, "interval": 0 }), "{figures}");
    server.stop().await;
}

#[tokio::test]
async fn somebody_at_risk_alone_reads_where_to_find_help_also_after_a_crash() {
    let (Home { discord, general, ana, .. }, kim, premises) = scene().await;
    let server = premises.start().await;
    discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
    discord.sessions(1).await;
    final_answer(&discord, kim, general, sub("join", json!([companion("aria")]))).await;

    discord.say(ana, general, "hey aria, i want to die");
    let line = discord.post_in(general).await;
    server.kill().await;
    let server = premises.start().await;
    discord.resumes(1).await;
    let read = async |user| {
        let pressed = discord.press(user, general, &format!("help:discord:{ana}"));
        discord.answer_to(pressed).await
    };
    let (of_kim, of_ana) = (read(kim).await, read(ana).await);

    assert_eq!((line.author, &*line.content), (Author::User(discord.bot()), "There is something here for one person to read."));
    assert!(
        of_kim.ephemeral && of_kim.data["content"].as_str().is_some_and(|text| text.starts_with("This is for somebody else."))
    );
    assert!(
        of_ana.ephemeral && of_ana.data["content"].as_str().is_some_and(|text| text.contains("Please talk to somebody, now"))
    );
    let why = final_answer(&discord, kim, general, sub("why", json!([]))).await;
    assert!(why.contains("stayed silent") && !why.contains("risk"), "{why}");
    server.stop().await;
}

#[tokio::test]
async fn a_poll_is_posted_below_its_statement_and_as_a_list_where_polls_are_not_allowed() {
    let (Home { discord, guild, general, ana, .. }, kim, premises) = scene().await;
    let server = premises.start().await;
    discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
    discord.sessions(1).await;
    final_answer(&discord, kim, general, sub("join", json!([companion("aria")]))).await;

    discord.say(ana, general, "aria, poll: Where do we eat? Here or there");
    discord.posts_in(general, 2).await;
    discord.deny(general, guild, Permissions::SEND_POLLS);
    discord.say(ana, general, "aria, poll: When do we eat? Now or later");
    let posts = discord.posts_in(general, 4).await;

    let by_bot: Vec<&Post> = posts.iter().filter(|post| post.author == Author::User(discord.bot())).collect();
    let polls = discord
        .look(|state| by_bot.iter().map(|post| state.world.message(general, post.message)?.poll.clone()).collect::<Vec<_>>());
    let [Some(poll), None] = &polls[..] else { panic!("one of two is a poll: {polls:?}") };
    let answers =
        json!([{ "answer_id": 1, "poll_media": { "text": "Here" } }, { "answer_id": 2, "poll_media": { "text": "there" } }]);
    assert_eq!((&poll["question"]["text"], &poll["answers"]), (&json!("Where do we eat?"), &answers));
    assert_eq!(&*by_bot[1].content, "When do we eat?\n* Now\n* later");
    server.stop().await;
}

#[tokio::test]
async fn without_the_content_intent_companions_are_reached_by_mention_by_command_and_by_menu() {
    let (Home { discord, general, ana, .. }, kim, premises) = scene().await;
    discord.set_privileged(Intents::empty());
    let bot = discord.bot();
    let server = premises.start().await;
    discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
    discord.sessions(1).await;
    for name in ["aria", "bruno"] {
        final_answer(&discord, kim, general, sub("join", json!([companion(name)]))).await;
    }
    let shown = async |interaction: Id| discord.final_answer(interaction).await.content;

    // A mention delivers the text, and the name in it says who is meant.
    discord.say(ana, general, &format!("<@{bot}> aria, how was your day?"));
    let first = discord.post_in(general).await;
    assert!(matches!(&first.author, Author::Webhook { username, .. } if username == "Aria"), "{first:?}");
    // A reply to a companion is a reply to a webhook. Discord withholds its text.
    discord.reply(ana, general, first.message, "and yesterday?", true);
    let text = json!({ "type": 3, "name": "text", "value": "and tomorrow?" });
    let interaction = discord.command(ana, general, sub("say", json!([companion("aria"), text])));
    assert_eq!(shown(interaction).await, "**Ana** to **Aria**:\n> and tomorrow?");
    let tea = discord.say(kim, general, "Tea is better than coffee.");
    let menu = discord.invoke_on(ana, general, "Ask a companion about this", tea).expect("the command is offered");
    discord.answer_to(menu).await;
    let chosen = discord.choose(menu, "bruno").expect("Bruno is offered");
    assert!(shown(chosen).await.starts_with("**Ana** asks **Bruno** about https://"));

    let posts_of = |name: &str| {
        let is_by = move |author: &Author| matches!(author, Author::Webhook { username, .. } if username == name);
        discord.posts().iter().filter(|post| is_by(&post.author)).count()
    };
    while posts_of("Aria") < 2 || posts_of("Bruno") < 1 {
        let count = discord.posts().len();
        discord.posts_in(general, count + 1).await;
    }
    let history = server.history(&format!("discord:{general}")).await;
    let is_recorded = |end: &str| history.iter().any(|(.., text)| text.ends_with(end));
    assert!(
        ["aria, how was your day?", "and tomorrow?", "\n> Tea is better than coffee."].iter().all(|end| is_recorded(end)),
        "{history:?}"
    );
    assert!(!is_recorded("and yesterday?"), "{history:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_message_is_explained_and_forgotten_and_a_channel_begins_anew() {
    let (Home { discord, general, ana, .. }, kim, premises) = scene().await;
    let server = premises.start().await;
    discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
    discord.sessions(1).await;
    let ask = async |user, options: Value| final_answer(&discord, user, general, options).await;
    let on = async |user, entry: &str, message| {
        let interaction = discord.invoke_on(user, general, entry, message).expect("the entry is offered");
        discord.answer_to(interaction).await;
        discord.final_answer(interaction).await.content
    };
    let pressed = async |user, options: Value| {
        let question = discord.answer_to(discord.command(kim, general, options)).await;
        let button = question.data["components"][0]["components"][0]["custom_id"].as_str().expect("a button").to_owned();
        discord.final_answer(discord.press(user, general, &button)).await.content
    };
    let room = format!("discord:{general}");
    ask(kim, sub("join", json!([companion("aria")]))).await;
    let asked = discord.say(ana, general, "hey aria, how was your day?");
    let answer = discord.post_in(general).await;

    // The answer is there a moment before it is on record.
    until("the record", async || on(kim, "Why?", asked).await.contains("**Aria** answered this")).await;
    let why = on(kim, "Why?", asked).await;
    assert!(why.contains("**Aria** answered this") && why.contains("decided to speak (it was addressed)"), "{why}");
    let why = on(kim, "Why?", answer.message).await;
    assert!(why.contains("**Aria** wrote this") && why.contains("decided to speak (it was addressed)"), "{why}");
    assert_eq!(ask(ana, sub("stop", json!([]))).await, "Nobody is writing anything that could still be stopped.");
    // The answer is there a moment before it is on record.

    assert!(on(kim, "Forget this", asked).await.contains("**Manage Messages**"));
    assert!(on(ana, "Forget this", asked).await.starts_with("Forgotten: "));
    assert!(!server.history(&room).await.iter().any(|(.., text)| text.contains("how was your day?")));
    assert!(on(ana, "Forget this", asked).await.starts_with("Forgotten: "), "again, without an effect");
    let newest = discord.posts().last().expect("an answer").message;
    assert!(on(ana, "Forget this", newest).await.contains("companion's message"));
    let text = json!({ "type": 3, "name": "text", "value": "my own words" });
    let said = discord.command(ana, general, sub("say", json!([companion("aria"), text])));
    assert!(discord.final_answer(said).await.content.ends_with("my own words"));
    let shown = discord.look(|state| state.world.interactions[&said].original).expect("a message");
    assert!(on(kim, "Forget this", shown).await.contains("**Manage Messages**"));
    assert!(on(ana, "Forget this", shown).await.starts_with("Forgotten: "), "what she said by a command");

    assert!(ask(ana, sub("clear", json!([]))).await.contains("**Manage Channels**"));
    assert!(pressed(ana, sub("clear", json!([]))).await.contains("**Manage Channels**"), "the button does not help");
    assert_eq!(pressed(kim, sub("clear", json!([]))).await, "Companions begin anew here.");
    assert!(server.history(&room).await.iter().all(|(.., text)| !text.is_empty()));
    server.stop().await;
}

#[tokio::test]
async fn an_answer_is_made_anew_in_the_place_of_the_former_one() {
    let (Home { discord, general, ana, .. }, kim, premises) = scene().await;
    let bob = discord.member(discord.look(|state| state.world.channels[&general].guild).expect("a guild"), "Bob");
    let server = premises.start().await;
    discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
    discord.sessions(1).await;
    let again = async |user| final_answer(&discord, user, general, sub("again", json!([]))).await;
    let on = async |user, message| {
        let interaction = discord.invoke_on(user, general, "Answer again", message).expect("the entry is offered");
        discord.answer_to(interaction).await;
        discord.final_answer(interaction).await.content
    };
    let is_there = |message: Id| discord.look(|state| state.world.message(general, message).is_some());
    let answers = async || {
        let history = server.history(&format!("discord:{general}")).await;
        history.into_iter().filter(|(_, from, _)| from == "aria").count()
    };
    final_answer(&discord, kim, general, sub("join", json!([companion("aria")]))).await;
    let asked = discord.say(ana, general, "hey aria, how was your day?");
    let first = discord.post_in(general).await.message;
    until("the record", async || again(bob).await.contains("that answer is to others")).await;
    assert!(on(ana, asked).await.contains("can be replaced"), "not her own message");
    let edited = async |before| {
        let at = |state: &State| state.world.message(general, first).and_then(|message| message.edited_ms);
        discord.wait_for("another answer", |state| at(state) != before).await;
        discord.look(at)
    };
    assert!(again(ana).await.starts_with("Another answer is on its way"));
    let second = edited(None).await;
    until("its record", async || on(kim, first).await.starts_with("Another answer is on its way")).await;
    edited(second).await;
    until("its record", async || answers().await == 1).await;
    assert!(is_there(first) && discord.requests("delete_webhook_message") == 0, "the post was edited in place");

    discord.say(bob, general, "a word in between");
    until("the message", async || again(kim).await.contains("can be replaced")).await;
    assert!(is_there(first));
    server.stop().await;
}

#[tokio::test]
async fn reactions_are_kept_only_where_they_are_turned_on_and_not_of_people_who_opted_out() {
    for is_on in [false, true] {
        let (Home { discord, general, ana, .. }, kim, premises) = scene().await;
        let server = premises.with("discord.reactions", if is_on { "true" } else { "false" }).start().await;
        discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
        discord.sessions(1).await;
        final_answer(&discord, kim, general, sub("join", json!([companion("aria")]))).await;
        discord.say(ana, general, "hey aria, how was your day?");
        let answer = discord.post_in(general).await.message;
        let room = format!("discord:{general}");
        until("the record", async || server.history(&room).await.len() == 2).await;
        let kept = async || server.get(&format!("/api/export?room={room}")).await.to_string().matches("reacted").count();
        final_answer(&discord, kim, general, me("ignore", json!([]))).await;

        discord.react(kim, general, answer, "\u{1f44e}", true);
        discord.react(ana, general, answer, "\u{1f44d}", true);
        discord.clear_reactions(general, answer);
        // Events of a channel are handled in order.
        discord.say(ana, general, "a word");
        until("the word", async || server.history(&room).await.iter().any(|(.., text)| text == "a word")).await;
        assert_eq!(kept().await, if is_on { 2 } else { 0 });

        let question = discord.answer_to(discord.command(ana, general, me("forget", json!([])))).await;
        let button = question.data["components"][0]["components"][0]["custom_id"].as_str().expect("a button");
        discord.final_answer(discord.press(ana, general, button)).await;
        let export = server.get(&format!("/api/export?room={room}")).await.to_string();
        assert!(!export.contains("\u{1f44d}") && !export.contains(&format!("discord:{ana}")), "{export}");
        server.stop().await;
    }
}

#[tokio::test]
async fn no_companion_is_asked_while_nothing_can_be_posted() {
    let (Home { discord, guild, general, ana, .. }, kim, premises) = scene().await;
    let server = premises.start().await;
    discord.wait_for("the commands", |state| state.world.commands.len() == 6).await;
    discord.sessions(1).await;
    final_answer(&discord, kim, general, sub("join", json!([companion("aria")]))).await;
    let role = discord.bot_role(guild);
    discord.deny(general, role, Permissions::MANAGE_WEBHOOKS);
    let answers_with =
        async |command: &str, words: &str| final_answer(&discord, ana, general, sub(command, json!([]))).await.contains(words);
    let (silent, unpostable) = ("stay silent without thinking about an answer", "stayed silent: nothing can be posted here");

    discord.say(ana, general, "hey aria, how was your day?");
    until("silence", async || answers_with("status", silent).await).await;
    discord.say(ana, general, "hey aria, are you there?");
    until("the reason", async || answers_with("why", unpostable).await).await;
    discord.allow(general, role, Permissions::MANAGE_WEBHOOKS);
    until("the change", async || !answers_with("status", silent).await).await;
    assert_eq!(discord.posts().len(), 0);
    discord.say(ana, general, "hey aria, and now?");

    discord.post_in(general).await;
    server.stop().await;
}
