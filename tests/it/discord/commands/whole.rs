//! The real program: what commands change holds, for whoever speaks and over a restart.

use serde_json::{Value, json};

use super::super::counterpart::Counterpart;
use super::super::counterpart::permissions::MANAGE_CHANNELS;
use super::super::counterpart::rules::Rules;
use super::{companion, me, rules, sub, switch, told};
use crate::harness::Premises;

#[tokio::test]
async fn a_channel_is_begun_tempered_and_ended_by_commands_alone() {
    let discord = Counterpart::with_rules(Rules { heartbeat_tolerance: Rules::quick().heartbeat_tolerance, ..rules() }).await;
    let guild = discord.guild("Home");
    let general = discord.channel(guild, "general");
    let (ana, kim) = (discord.member(guild, "Ana"), discord.member(guild, "Kim"));
    discord.give_role(guild, kim, discord.role(guild, "Keepers", MANAGE_CHANNELS));
    let premises = Premises::shipped()
        .with("discord.token", &discord.token())
        .with("discord.api_url", &format!("{}/api", discord.api_url()));
    let ask = async |user, options: Value| told(&discord, user, general, options).await;
    let room = format!("discord:{general}");
    let server = premises.start().await;
    discord.until("the command", |state| state.world.commands.first().map(|_| ())).await;
    discord.sessions(1).await;

    assert!(ask(ana, sub("status", json!([]))).await.starts_with("**Nobody lives here yet.**"));
    let welcome = ask(kim, sub("join", json!([companion("aria")]))).await;
    assert!(welcome.starts_with("**Aria** lives here now.") && welcome.lines().count() == 1, "{welcome}");
    discord.say(ana, general, "hey aria, how was your day?");
    discord.post_in(general).await;
    let why = ask(ana, sub("why", json!([]))).await;
    assert!(why.contains("**Aria** decided to speak (somebody turned to it)"), "{why}");
    assert!(why.contains("considers to speak after: "), "{why}");
    let level = json!({ "type": 3, "name": "level", "value": "very_quiet" });
    ask(kim, sub("talkativeness", json!([level]))).await;
    assert!(ask(ana, me("ignore", json!([]))).await.contains("until you take it back"));
    server.stop().await;

    let server = premises.start().await;
    discord.resumes(1).await;
    let status = ask(ana, sub("status", json!([]))).await;
    assert!(status.contains("**Aria** rarely speaks up") && status.contains("You asked not to be heard"), "{status}");
    discord.say(ana, general, "hey aria, do you hear me?");
    discord.say(kim, general, "hey aria, and me?");
    discord.posts_in(general, 2).await;
    let history = server.history(&room).await;
    assert!(history.iter().any(|(.., text)| text == "hey aria, and me?"), "{history:?}");
    assert!(!history.iter().any(|(.., text)| text == "hey aria, do you hear me?"), "{history:?}");
    assert!(ask(ana, me("ignore", json!([switch("off")]))).await.contains("listen to you again"));
    let sure = json!([{ "type": 5, "name": "sure", "value": true }]);
    let forgotten = ask(ana, me("forget", sure)).await;
    assert!(forgotten.starts_with("Forgotten: 1 message of yours"), "{forgotten}");
    assert!(!server.history(&room).await.iter().any(|(.., text)| text == "hey aria, how was your day?"));
    assert!(ask(kim, sub("pause", json!([]))).await.starts_with("Paused in this channel: Aria."));
    assert!(ask(kim, sub("leave", json!([companion("Aria")]))).await.starts_with("**Aria** does not live here any more."));
    assert!(ask(ana, sub("status", json!([]))).await.starts_with("**Nobody lives here yet.**"));
    let registered = discord.look(|state| state.journal.requests_of("create_command").count());
    assert_eq!(registered, 2, "they were there after the restart");
    server.stop().await;
}
