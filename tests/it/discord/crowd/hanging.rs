//! One guild whose requests hang, and the others beside it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::super::counterpart::faults::{Does, On};
use super::super::counterpart::moment::now_ms;
use super::number;
use super::town::{Channel, Size, Town};
use crate::harness::Server;

/// `cargo test --release --test it -- --ignored --nocapture a_guild_that_hangs` prints how long the others wait, after a minute or two.
/// `GUILDS` and `WORDS` (in each guild) change it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute or two"]
async fn a_guild_that_hangs_slows_no_other() {
    let guilds = number("GUILDS", 20) as usize;
    let town = Town::new(Size { guilds, channels_in_a_guild: 1, shards: 2 }, 1).await;
    let server = town.premises().with("discord.request_timeout_secs", "15").start().await;
    town.move_in().await;
    let (first, others) = town.channels.split_first().expect("some");
    let words = number("WORDS", 20);

    // Whatever is made once, as webhooks are, is there.
    let _ = talk(&town, &server, others, 2).await;
    let before = talk(&town, &server, others, words).await;
    town.discord.spoil(On { guild: Some(first.guild), ..On::default() }, Does::Hang);
    for number in 0..10 {
        town.discord.say(first.somebody(), first.id, &format!("Aria, what of {number} here?"));
    }
    let during = talk(&town, &server, others, words).await;

    println!("from decision to post, {} guilds, {} posts each way:", others.len(), before.len());
    println!("  none hangs:  p50 {:.1} ms, p99 {:.1} ms", at(&before, 0.5), at(&before, 0.99));
    println!("  one hangs:   p50 {:.1} ms, p99 {:.1} ms", at(&during, 0.5), at(&during, 0.99));
}

/// In every channel somebody asks Aria, waits for the answer, and asks again. How many milliseconds were between the decision and the post.
async fn talk(town: &Town, server: &Server, channels: &[Channel], words: u64) -> Vec<f64> {
    let began = (Instant::now(), now_ms());
    let mut took = Vec::new();
    for word in 0..words {
        for channel in channels {
            town.discord.say(channel.somebody(), channel.id, &format!("Aria, what of {word}?"));
        }
        let expected = channels.len() * (usize::try_from(word).expect("a few") + 1);
        town.discord
            .until("the answers", |state| {
                let since = state.journal.posts.iter().filter(|post| post.at >= began.0);
                let here = since.filter(|post| channels.iter().any(|channel| channel.id == post.channel));
                (here.count() >= expected).then_some(())
            })
            .await;
    }
    for channel in channels {
        let page = server.get(&format!("/api/decisions?room=discord:{}&limit=1000", channel.id)).await;
        let yes = page["decisions"].as_array().expect("decisions").iter().filter(|decision| decision["decision"] == "YES");
        let decided: Vec<f64> = yes.map(ms).filter(|at| *at >= began.1 as f64).collect();
        let posts = town.discord.posts();
        let posted = posts.iter().filter(|post| post.channel == channel.id && post.at >= began.0);
        let posted = posted.map(|post| began.1 as f64 + (post.at - began.0).as_secs_f64() * 1_000.0);
        took.extend(decided.into_iter().zip(posted).map(|(decided, posted)| posted - decided));
    }
    took.sort_by(f64::total_cmp);
    took
}

fn ms(decision: &Value) -> f64 {
    let at: jiff::Timestamp = decision["at"].as_str().expect("a time").parse().expect("a time");
    Duration::try_from(at.duration_since(jiff::Timestamp::UNIX_EPOCH)).expect("after 1970").as_secs_f64() * 1_000.0
}

fn at(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}
