//! How long the bot is away when it enters a call, is moved, loses its session, or is killed.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::super::commands::{final_answer, sub};
use super::super::counterpart::Permissions;
use super::call::{Call, packets_received, rules, talking_during};
use super::figures::{load, print};
use crate::harness::call::sentence;
use crate::harness::{Premises, parameter};

fn voice(name: &str) -> Value {
    json!([{ "type": 2, "name": "voice", "options": sub(name, json!([])) }])
}

/// `cargo test --release --test it -- --ignored --nocapture bot_enters_and_moves` prints the figures. `TIMES` sets how often.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some seconds"]
async fn the_bot_enters_and_moves_within_150_ms() {
    let call = Call::begin(rules(), Premises::shipped()).await;
    let (discord, guild, bot) = (&call.home.discord, call.home.guild, call.home.bot);
    let lou = discord.member_with(guild, "Lou", Permissions::MANAGE_CHANNELS);
    discord.enter(lou, call.channel);
    discord.bot_called(call.channel).await;
    let (mut entered, mut moved) = (Vec::new(), Vec::new());

    for _ in 0..parameter("TIMES", 30) {
        final_answer(discord, lou, call.channel, voice("leave")).await;
        discord.wait_for("the bot to leave", |state| !state.world.voice_states.contains_key(&(guild, bot))).await;
        let begun = Instant::now();
        discord.command(lou, call.channel, voice("join"));
        discord.bot_called(call.channel).await;
        entered.push(begun.elapsed());

        let begun = Instant::now();
        discord.move_voice_server(call.channel);
        discord.bot_called(call.channel).await;
        moved.push(begun.elapsed());
    }

    println!("load {}", load());
    print("from `/tertulia voice join` to a session", entered);
    print("from the end of a voice server to a session at another one", moved);
}

/// `cargo test --release --test it -- --ignored --nocapture lost_every_ten_seconds` prints the figures. `TIMES` sets how often.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes"]
async fn a_session_that_is_lost_every_ten_seconds_is_back_within_a_second() {
    let call = Call::begin(rules(), Premises::shipped()).await;
    let _ana = call.enter().await;
    let mut absences = Vec::new();

    for _ in 0..parameter("TIMES", 12) {
        sleep(Duration::from_secs(10)).await;
        let lost = Instant::now();
        call.home.discord.voice().close(call.channel, call.home.bot, 4006, "Session no longer valid.");
        call.home.discord.bot_called(call.channel).await;
        absences.push(lost.elapsed());
    }

    println!("load {}", load());
    print("from a lost session to the next one", absences.iter().copied());
    assert!(absences.iter().all(|absence| *absence < Duration::from_secs(1)));
}

/// `cargo test --release --test it -- --ignored --nocapture killed_server_hears` prints the figures. `TIMES` sets how often.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn a_killed_server_hears_again_within_half_a_second() {
    let call = Call::begin(rules(), Premises::shipped()).await;
    let ana = call.enter().await;
    let Call { home, channel, mut server, premises, .. } = call;
    let (mut since_ready, mut since_resumed) = (Vec::new(), Vec::new());

    let killing = async {
        for kill in 1..=parameter("TIMES", 12) {
            server.kill().await;
            server = premises.start().await;
            let ready = Instant::now();
            home.discord.resumes(kill as usize).await;
            let resumed = Instant::now();
            while packets_received(&server).await == 0 {}
            since_ready.push(ready.elapsed());
            since_resumed.push(resumed.elapsed());
            home.discord.voice().grouped(channel, 2).await;
        }
    };
    talking_during(&ana, &sentence(), killing).await;

    println!("load {}", load());
    print("from a server that is ready until it hears", since_ready);
    print("from a session that is resumed until the server hears", since_resumed);
}
