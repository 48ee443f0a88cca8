//! One guild whose requests hang, and the others beside it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, interval_at};

use super::super::counterpart::{Does, On, Rules, now_ms};
use super::number;
use super::town::{Channel, Size, Town};
use crate::harness::{Server, Watch};

/// `cargo test --release --test it -- --ignored --nocapture a_guild_that_hangs` prints how long the other guilds wait, after a minute or less.
/// `GUILDS` and `WORDS` (questions in each guild) change it. Discord's own limits do not apply here, and the load stays below the fifty requests
/// a second that the server allows itself. So every delay that is left is the server's.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes up to a minute"]
async fn a_guild_that_hangs_does_not_slow_others() {
    let size = Size { guilds: number("GUILDS", 20) as usize, shards: 2 };
    let town = Town::with_rules(size, 1, Rules::roomy()).await;
    let premises = town.premises().with("discord.request_timeout_secs", "15");
    let server = premises.start().await;
    town.load_rooms().await;
    let (hanging, others) = town.channels.split_first().expect("some");
    let words = number("WORDS", 20);

    // Creates everything that is created only once, such as webhooks.
    let _ = talk(&town, &server, others, 2).await;
    let before = talk(&town, &server, others, words).await;
    town.discord.spoil(On { guild: Some(hanging.guild), ..On::default() }, Does::Hang);
    for number in 0..10 {
        town.discord.say(hanging.first_person(), hanging.id, &format!("Aria, what of {number} here?"));
    }
    let during = talk(&town, &server, others, words).await;

    println!("from decision to post in {} guilds:", others.len());
    for (what, took) in [("no guild hangs", before), ("another guild hangs", during)] {
        println!("  {what}: {} posts, p50 {:.1} ms, p99 {:.1} ms", took.len(), percentile(&took, 0.5), percentile(&took, 0.99));
    }
}

/// In every channel a person asks Aria, waits for the answer, and asks again. Returns the milliseconds between each decision and its post.
async fn talk(town: &Town, server: &Server, channels: &[Channel], words: u64) -> Vec<f64> {
    let mut watched = Vec::new();
    for channel in channels {
        watched.push((channel, server.watch(&format!("discord:{}", channel.id), None).await));
    }
    let began = (Instant::now(), now_ms() as f64);
    let mut decided = Vec::new();
    // Each question leads to a post and a typing request. Two such bursts never fall into the same second.
    let spacing = Duration::from_secs_f64(channels.len() as f64 / 10.0);
    let mut ticks = interval_at(began.0 + spacing, spacing);
    for word in 0..words {
        ticks.tick().await;
        for channel in channels {
            town.discord.say(channel.first_person(), channel.id, &format!("Aria, what of {word}?"));
        }
        for (channel, watch) in &mut watched {
            decided.extend(answer(watch).await.map(|at| (channel.id, at)));
        }
    }
    let mut posts = town.discord.posts();
    posts.retain(|post| post.at >= began.0);
    let mut took: Vec<f64> = decided
        .iter()
        .filter_map(|(channel, decided)| {
            let posted = posts.iter().filter(|post| post.channel == *channel);
            let mut posted = posted.map(|post| began.1 + (post.at - began.0).as_secs_f64() * 1_000.0);
            posted.find(|posted| posted >= decided).map(|posted| posted - decided)
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took
}

/// Waits for the decision about a question and, if Aria speaks, for her statement. Returns the time of the decision, in milliseconds since 1970.
async fn answer(watch: &mut Watch) -> Option<f64> {
    loop {
        let decision = watch.event("decision").await;
        if decision["trigger"] != "direct_address" {
            continue;
        }
        if decision["decision"] != "YES" {
            return None;
        }
        watch.event("statement").await;
        return Some(decided_at_ms(&decision));
    }
}

fn decided_at_ms(decision: &Value) -> f64 {
    let at: jiff::Timestamp = decision["at"].as_str().expect("a time").parse().expect("a time");
    Duration::try_from(at.duration_since(jiff::Timestamp::UNIX_EPOCH)).expect("after 1970").as_secs_f64() * 1_000.0
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}
