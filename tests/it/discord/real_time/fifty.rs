//! Fifty people talk in one call: what each of them costs, and whether a companion's packets come in time beside them.

use std::time::Duration;

use tokio::time::{Instant, interval, sleep};

use super::super::counterpart::Id;
use super::super::counterpart::voice::Person;
use super::call::{Call, rules};
use super::figures::{load, print};
use super::story;
use crate::harness::call::sentence;
use crate::harness::{Premises, Server, parameter};
use crate::speech::{deepgram, with_deepgram};

const PEOPLE: usize = 50;
const FRAME: Duration = Duration::from_millis(20);

/// `cargo test --release --test it -- --ignored --nocapture fifty_people_who_talk` prints the figures. `SECS` sets for how long they talk.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes four minutes"]
async fn fifty_people_who_talk_are_heard_with_a_part_of_a_core() {
    let span = Duration::from_secs(parameter("SECS", 60));
    let call = Call::begin(rules(), story::premises().await.with("voice.max_people", "60")).await;
    let ana = call.enter().await;
    println!("load {}", load());
    print("between two ticks of a timer of 20 ms, off by", jitter(idle_ticks(span).await));

    call.home.discord.say(call.home.ana, call.channel, story::ASK);
    ana.heard_from(call.home.bot, 50).await;
    let alone = share(&call.server, span).await;
    print("between two packets of a companion, off by", spoken_jitter(&ana, call.home.bot, span));
    println!("processor time of a companion that speaks: {:.1} % of a core; load {}", alone * 100.0, load());
    drop(ana);

    // People who talk would interrupt it.
    crowd(Premises::shipped(), span).await;
}

/// `cargo test --release --test it -- --ignored --nocapture fifty_people_who_are_streamed` prints the figures. `SECS` sets for how long they talk.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes"]
async fn fifty_people_who_are_streamed_to_a_recogniser_take_a_part_of_a_core() {
    let span = Duration::from_secs(parameter("SECS", 60));
    let recogniser = deepgram(&[]).await;
    recogniser.books.open().texts_to_hear.extend(std::iter::repeat_n("I think so, too.", 10_000));
    let premises = with_deepgram(Premises::shipped(), &recogniser).with("speech.recognition", r#"["deepgram"]"#);
    let premises = premises.with("speech.max_concurrent", "60").with("voice.max_streams", "60");

    crowd(premises, span).await;

    let (streams, frames) = {
        let book = recogniser.books.open();
        (book.connections, book.frames)
    };
    println!("{streams} streams in all, {:.0} s of audio reached the recogniser", frames as f64 * FRAME.as_secs_f64());
    assert!(streams >= PEOPLE, "everybody has a stream");
}

/// Fifty people talk half of the time. Prints what they take.
async fn crowd(premises: Premises, span: Duration) {
    let call = Call::begin(rules(), premises.with("voice.max_people", "60")).await;
    let first = call.enter().await;
    first.talk(&sentence()).await;
    let discord = &call.home.discord;
    let mut people = vec![first];
    let before = call.server.resident_bytes();
    for number in 1..PEOPLE {
        let user = discord.member(call.home.guild, &format!("person{number}"));
        people.push(discord.call(user, call.channel).await);
        discord.voice().set_deafened(call.channel, user, true);
        call.grouped(number + 1).await;
    }
    discord.voice().set_deafened(call.channel, call.home.ana, true);
    let entered = call.server.resident_bytes();
    let talk: Vec<_> = people.into_iter().enumerate().map(|(number, person)| tokio::spawn(talks(person, number))).collect();
    sleep(Duration::from_secs(5)).await;
    let (at_first, sent) = (call.server.resident_bytes(), call.counts(call.home.bot).sent);
    let received = call.packets_received().await;
    let busy = share(&call.server, span).await;
    let (sent, received) = (call.counts(call.home.bot).sent - sent, call.packets_received().await - received);
    let at_end = call.server.resident_bytes();
    talk.iter().for_each(|talk| talk.abort());

    let each = |resident: u64| (resident.saturating_sub(before)) as f64 / (PEOPLE - 1) as f64 / 1024.0;
    println!("{PEOPLE} people talk half of the time for {span:?}: {:.1} % of a core; load {}", busy * 100.0, load());
    println!("{received} packets heard of about {sent}");
    println!(
        "memory of each: {:.0} KiB on entering, {:.0} KiB after 5 s of talk, {:.0} KiB at the end",
        each(entered),
        each(at_first),
        each(at_end)
    );
    assert!(received + PEOPLE * 50 >= sent, "nobody is left out");
}

/// Says a sentence again and again with pauses of the same length, in which nothing is sent, as on Discord.
async fn talks(person: Person, number: usize) {
    let sentence = sentence();
    let length = FRAME * u32::try_from(sentence.len()).expect("a few");
    sleep(length * number as u32 / PEOPLE as u32 * 2).await;
    loop {
        person.talk(&sentence).await;
        sleep(length).await;
    }
}

/// The share of a core that a server takes within a time.
async fn share(server: &Server, span: Duration) -> f64 {
    let (begun, used) = (Instant::now(), server.processor_time());
    sleep(span).await;
    (server.processor_time() - used).as_secs_f64() / begun.elapsed().as_secs_f64()
}

async fn idle_ticks(span: Duration) -> Vec<Instant> {
    let (mut ticks, mut times) = (interval(FRAME), Vec::new());
    while times.len() < (span.as_millis() / FRAME.as_millis()) as usize {
        ticks.tick().await;
        times.push(Instant::now());
    }
    times
}

/// How much the times between two packets of one stretch of speech, the newest ones, differ from 20 ms.
fn spoken_jitter(person: &Person, bot: Id, span: Duration) -> Vec<Duration> {
    person.look(|noted| {
        let from = Instant::now() - span;
        let heard: Vec<_> = noted.heard.iter().filter(|heard| heard.user == Some(bot) && heard.at >= from).collect();
        let talk = heard.windows(2).filter(|two| two.iter().all(|heard| heard.end_to_end));
        talk.map(|two| (two[1].at - two[0].at).abs_diff(FRAME)).collect()
    })
}

fn jitter(times: Vec<Instant>) -> Vec<Duration> {
    times.windows(2).map(|two| (two[1] - two[0]).abs_diff(FRAME)).collect()
}
