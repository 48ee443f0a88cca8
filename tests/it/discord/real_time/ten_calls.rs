//! Ten calls in ten guilds, of which one is cut again and again.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::commands::{companion, final_answer, sub};
use super::super::counterpart::voice::Person;
use super::super::counterpart::{Id, Permissions};
use super::super::home::Home;
use super::call::{rules, settled};
use super::figures::load;
use super::killed::Stream;
use super::story;
use crate::harness::call::sentence;
use crate::harness::parameter;

const CALLS: usize = 10;
const CUT_EVERY: Duration = Duration::from_secs(20);

/// `cargo test --release --test it -- --ignored --nocapture ten_calls` prints the figures. `SECS` sets for how long they go on.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes"]
async fn of_ten_calls_the_other_nine_lose_no_frame_while_one_is_cut() {
    let home = Home::with_rules(rules()).await;
    let (discord, bot) = (&home.discord, home.bot);
    let guilds: Vec<Id> = (1..CALLS).map(|number| discord.guild(&format!("Guild {number}"))).chain([home.guild]).collect();
    let channels: Vec<Id> = guilds.iter().map(|guild| discord.voice_channel(*guild, "harbour")).collect();
    let names: Vec<String> = channels.iter().map(Id::to_string).collect();
    let premises = story::premises().await.without_limits().for_discord(discord).with("voice.read_text_aloud", "true");
    let server = premises.with("discord.voice_channels", &json!(names).to_string()).start().await;
    discord.wait_for("the command", |state| !state.world.commands.is_empty()).await;
    discord.sessions(1).await;
    let mut people = Vec::new();
    for (guild, channel) in guilds.iter().zip(&channels) {
        let kim = discord.member_with(*guild, "Kim", Permissions::MANAGE_CHANNELS);
        final_answer(discord, kim, *channel, sub("join", json!([companion("aria")]))).await;
        let person = discord.call(kim, *channel).await;
        discord.bot_called(*channel).await;
        person.grouped(2).await;
        person.talk(&sentence()[..1]).await;
        people.push(person);
    }
    let sent = || channels.iter().map(|channel| discord.voice().counts(*channel, bot).sent).sum::<usize>();
    let before = settled(&server, sent).await;

    // In every second call a person speaks, in the others a companion. One of these is cut.
    let (listeners, speakers): (Vec<_>, Vec<_>) = people.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let listeners: Vec<Person> = listeners.into_iter().map(|(_, person)| person).collect();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let talks: Vec<_> = speakers.into_iter().map(|(_, person)| tokio::spawn(talk_until(person, stopped.clone()))).collect();
    let (begun, mut cuts) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(parameter("SECS", 600)) {
        for person in &listeners {
            let newest = person.look(|noted| noted.heard.last().map(|heard| heard.at));
            if newest.is_none_or(|newest| newest.elapsed() > Duration::from_secs(3)) {
                discord.say(person.seat.user, person.seat.channel, story::ASK);
            }
        }
        sleep(CUT_EVERY).await;
        // Every second time its session is lost, too.
        discord.voice().fail_resumes(cuts % 2);
        discord.voice().cut(listeners[0].seat.channel, bot);
        cuts += 1;
    }
    stop.send_replace(true);
    for talk in talks {
        talk.await.expect("a person");
    }

    let after = settled(&server, sent).await;
    let (sent, received) = (after.0 - before.0, after.1 - before.1);
    println!("load {}; {cuts} cuts; {received} of {sent} packets of people reached companions", load());
    for (number, person) in listeners.iter().enumerate() {
        let Stream { heard, lost, skipped, longest_wait } = Stream::of(person, bot);
        if number == 0 {
            println!("the call that is cut: {heard} packets heard");
        } else {
            println!("another call: {heard} packets heard, {lost} lost, {skipped} skipped, at most {longest_wait:?} between two");
            assert_eq!((lost, skipped), (0, 0));
        }
    }
    assert_eq!(received, sent);
}

async fn talk_until(person: Person, stopped: tokio::sync::watch::Receiver<bool>) -> Person {
    while !*stopped.borrow() {
        person.talk(&sentence()).await;
    }
    person
}
