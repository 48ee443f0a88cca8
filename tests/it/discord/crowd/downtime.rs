//! A server that was down for less time, and for more time, than Discord keeps a session.

use std::time::Duration;

use serde_json::Value;

use super::super::counterpart::{Id, Rules};
use super::town::{Channel, Size, Town};
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn after_a_short_downtime_the_session_is_resumed_and_after_a_long_one_history_is_read() {
    let town = Town::small().await;
    let premises = town.premises();
    let server = premises.start().await;
    town.load_rooms().await;
    let [home] = &town.channels[..] else { unreachable!() };
    town.discord.say(home.first_person(), home.id, "Aria, who is there?");
    town.discord.posts_in(home.id, 1).await;
    server.stop().await;

    let missed = talk_while_down(&town, home);
    let server = premises.start().await;
    town.discord.posts_in(home.id, 2).await;
    server.rest(&room(home)).await;
    let after_a_short_downtime = record(&server, home).await;
    server.stop().await;
    town.discord.forget_left_sessions();
    let missed_for_long = talk_while_down(&town, home);
    let server = premises.start().await;
    town.discord.posts_in(home.id, 3).await;
    server.rest(&room(home)).await;
    let after_a_long_downtime = record(&server, home).await;
    server.stop().await;

    assert!(
        after_a_short_downtime.holds_once(&missed) && after_a_short_downtime.caught_up.is_empty(),
        "{after_a_short_downtime:?}"
    );
    assert!(after_a_long_downtime.holds_once(&missed) && after_a_long_downtime.holds_once(&missed_for_long));
    assert_eq!(after_a_long_downtime.caught_up, [missed_for_long.len() as u64]);
    let (identifies, resumes) = town.discord.look(|state| {
        let accepted = state.journal.resumes.iter().filter(|resume| resume.replayed.is_some());
        (state.journal.identifies.len(), accepted.count())
    });
    assert_eq!((identifies, resumes), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_90_minutes_ahead_makes_no_message_too_old_to_answer() {
    let rules = Rules { behind: Duration::from_secs(5_400), ..Rules::quick() };
    let town = Town::with_rules(Size { guilds: 1, shards: 1 }, 1, rules).await;
    let server = town.premises().start().await;
    town.load_rooms().await;
    let [home] = &town.channels[..] else { unreachable!() };

    town.discord.say(home.first_person(), home.id, "Aria, who is there?");
    town.discord.posts_in(home.id, 1).await;

    server.logs("this machine's clock is 90 min ahead of Discord's").await;
    server.stop().await;
}

/// People send three messages while no server runs. The last one addresses Aria.
fn talk_while_down(town: &Town, home: &Channel) -> Vec<Id> {
    ["is anybody there?", "nobody, it seems", "Aria, are you back?"]
        .map(|text| town.discord.say(home.first_person(), home.id, text))
        .to_vec()
}

fn room(home: &Channel) -> String {
    format!("discord:{}", home.id)
}

/// The ids and the catching up that a channel's journal records.
#[derive(Debug)]
struct Record {
    ids: Vec<Id>,
    /// How many messages were read each time that the channel was caught up.
    caught_up: Vec<u64>,
}

impl Record {
    fn holds_once(&self, ids: &[Id]) -> bool {
        ids.iter().all(|id| self.ids.iter().filter(|recorded| *recorded == id).count() == 1)
    }
}

async fn record(server: &Server, home: &Channel) -> Record {
    let export = server.get(&format!("/api/export?room={}", room(home))).await;
    let lines = export.as_str().expect("lines of JSON").lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let events: Vec<Value> = lines.collect();
    let caught_up = events.iter().filter(|event| event["event"] == "caught_up").filter_map(|event| event["read"].as_u64());
    let said = events.iter().filter(|event| event["event"] == "said").filter_map(|event| Id::read(&event["message"]["id"]));
    Record { ids: said.collect(), caught_up: caught_up.collect() }
}
