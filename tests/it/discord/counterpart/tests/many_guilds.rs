//! Many guilds at once.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::super::{Counterpart, Id, Rules};
use super::client::{INTENTS, Socket};

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_guilds_on_four_shards_receive_their_messages_in_order() {
    let discord = Counterpart::with_rules(Rules { max_concurrency: 4, ..Rules::quick() }).await;
    let homes: Vec<(Id, Id, Id)> = (0..200)
        .map(|number| {
            let guild = discord.guild(&number.to_string());
            (guild, discord.channel(guild, "general"), discord.member(guild, "Ana"))
        })
        .collect();
    let mut listeners = Vec::new();
    for shard in 0..4 {
        let mut socket = Socket::open(&discord).await;
        socket.identify(&discord.token(), INTENTS, json!([shard, 4])).await;
        assert_eq!(socket.event("READY").await["guilds"].as_array().map(Vec::len), Some(50));
        listeners.push(tokio::spawn(async move {
            let mut received = BTreeMap::<Id, Vec<Id>>::new();
            for _ in 0..50 * 10 {
                let event = socket.event("MESSAGE_CREATE").await;
                let read = |field: &str| Id::read(&event[field]).expect("an id");
                received.entry(read("channel_id")).or_default().push(read("id"));
            }
            received
        }));
    }

    let mut sent = BTreeMap::<Id, Vec<Id>>::new();
    for _ in 0..10 {
        for (_, channel, ana) in &homes {
            sent.entry(*channel).or_default().push(discord.say(*ana, *channel, "hello"));
        }
    }

    for (shard, listener) in (0..).zip(listeners) {
        let received = tokio::time::timeout(Duration::from_secs(120), listener).await.expect("in time").expect("the task ends");
        let homes_of_shard = homes.iter().filter(|(guild, ..)| guild.shard(4) == shard);
        let expected: BTreeMap<Id, Vec<Id>> = homes_of_shard.map(|(_, channel, _)| (*channel, sent[channel].clone())).collect();
        assert_eq!(received, expected);
    }
    let delivered = discord
        .until("every delivery", |state| Some(state.journal.delivered()).filter(|delivered| delivered.len() >= 2_000))
        .await;
    assert_eq!((delivered.len(), delivered.values().max()), (2_000, Some(&1)));
}
