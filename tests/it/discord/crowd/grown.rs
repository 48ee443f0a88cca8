//! A bot in very many guilds: how long a start takes, how much memory, and how soon a new guild is known.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, interval};

use super::super::commands::{companion, final_answer, rules, sub};
use super::super::counterpart::{Channel, Kind, Rules};
use super::number;
use super::town::{Size, Town};
use crate::harness::Server;

/// `cargo test --test it -- --ignored --nocapture five_thousand_guilds` prints the figures after some minutes. `GUILDS`, `CHANNELS` (of each) and
/// `ROOMS` (channels with a companion) change it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some minutes"]
async fn five_thousand_guilds_are_known_soon_after_a_start_and_the_commands_registered_once() {
    let guilds = number("GUILDS", 5_000) as usize;
    let size = Size { guilds, shards: (guilds as u64).div_ceil(1_000) };
    let rules = Rules { heartbeat_tolerance: Duration::from_secs(60), resume_buffer: 20_000, ..rules() };
    let mut town = Town::with_rules(size, 1, rules).await;
    let guilds_of: Vec<_> = town.channels.iter().map(|channel| channel.guild).collect();
    town.discord.with(|state| {
        // The test double answers heartbeats late while it reports a thousand guilds.
        state.rules.heartbeat_interval = Duration::from_secs(41);
        for (guild, other) in guilds_of.iter().flat_map(|guild| (1..number("CHANNELS", 1)).map(move |other| (*guild, other))) {
            let id = state.world.new_id();
            state.world.channels.insert(id, Channel::new(id, Kind::Text, Some(guild), &format!("c{other}")));
        }
    });
    let premises = town.premises();

    let began = Instant::now();
    let server = premises.start().await;
    known(&server, guilds).await;
    report("first start", began, &server);
    let rooms = town.channels.iter().step_by((guilds / number("ROOMS", 500) as usize).max(1)).cloned().collect();
    let all = std::mem::replace(&mut town.channels, rooms);
    let began = Instant::now();
    town.load_rooms().await;
    println!("{} channels got a companion in {:?}", town.channels.len(), began.elapsed());

    let began = Instant::now();
    let guild = town.discord.guild("New");
    known(&server, guilds + 1).await;
    println!("a new guild was known after {:?}", began.elapsed());
    let (general, owner) = (town.discord.channel(guild, "general"), town.discord.look(|state| state.world.application.owner));
    let began = Instant::now();
    let welcome = final_answer(&town.discord, owner, general, sub("join", json!([companion("aria")]))).await;
    println!("its first command was answered after {:?}", began.elapsed());
    let began = Instant::now();
    town.discord.say(town.channels[0].first_person(), town.channels[0].id, "hey aria, are you there?");
    town.discord.post_in(town.channels[0].id).await;
    println!("a message was answered after {:?}", began.elapsed());
    report("at work", began, &server);
    server.stop().await;

    let began = Instant::now();
    let server = premises.start().await;
    town.discord.resumes(size.shards as usize).await;
    report("start that resumes", began, &server);
    server.stop().await;
    town.discord.forget_left_sessions();
    let began = Instant::now();
    let server = premises.start().await;
    known(&server, guilds + 1).await;
    report("start with new sessions", began, &server);

    assert!(welcome.starts_with("**Aria** is here now."), "{welcome}");
    assert_eq!((all.len(), town.discord.requests("create_command")), (guilds, 6));
    server.stop().await;
}

/// Waits until so many guilds are available.
async fn known(server: &Server, guilds: usize) {
    let available = async || {
        let measured = server.measured("tertulia_discord_guilds").await;
        measured.iter().filter(|(labels, _)| labels.contains("\"available\"")).map(|(_, count)| *count).sum::<f64>()
    };
    let mut ticks = interval(Duration::from_millis(200));
    while available().await < guilds as f64 {
        ticks.tick().await;
    }
}

fn report(what: &str, began: Instant, server: &Server) {
    let (megabytes, processor) = (server.resident_bytes() / 1_000_000, server.processor_time());
    println!("{what}: {:?}, {megabytes} MB, {processor:?} of processor time so far", began.elapsed());
}
