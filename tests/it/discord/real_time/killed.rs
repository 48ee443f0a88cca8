//! The voice gateway is killed again and again while people and companions speak.

use std::time::Duration;

use tokio::time::Instant;

use super::super::counterpart::Id;
use super::super::counterpart::voice::Person;
use super::call::{Call, rules, talking_during};
use super::figures::{load, print};
use super::story;
use crate::harness::call::sentence;
use crate::harness::parameter;

/// How many packets are heard between two kills: a connection that does not last for a second is followed by a pause.
const BETWEEN: usize = 75;

/// Packets of a companion as somebody heard them.
pub struct Stream {
    pub heard: usize,
    /// Packets that are missing, by their numbers.
    pub lost: usize,
    /// Frames that were never sent although the companion spoke on, by their timestamps.
    pub skipped: usize,
    /// The longest time between two packets of speech.
    pub longest_wait: Duration,
}

impl Stream {
    pub fn of(person: &Person, bot: Id) -> Self {
        person.look(|noted| {
            let heard = noted.heard.iter().filter(|heard| heard.user == Some(bot)).collect::<Vec<_>>();
            let mut stream = Self { heard: heard.len(), lost: 0, skipped: 0, longest_wait: Duration::ZERO };
            for two in heard.windows(2) {
                stream.lost += usize::from(two[1].sequence.wrapping_sub(two[0].sequence).wrapping_sub(1));
                // After silence it may have been quiet for any time.
                if two.iter().all(|heard| heard.end_to_end) {
                    stream.skipped += (two[1].timestamp.wrapping_sub(two[0].timestamp) / 960).saturating_sub(1) as usize;
                    stream.longest_wait = stream.longest_wait.max(two[1].at - two[0].at);
                }
            }
            stream
        })
    }
}

/// People who join and leave while something else happens.
struct Guests<'a> {
    call: &'a Call,
    users: Vec<Id>,
    here: Option<Person>,
}

impl<'a> Guests<'a> {
    fn of(call: &'a Call) -> Self {
        let users = ["Bo", "Cho"].map(|name| call.home.discord.member(call.home.guild, name));
        Self { call, users: users.into(), here: None }
    }

    /// Somebody joins, or leaves.
    async fn change(&mut self) {
        let (discord, guild) = (&self.call.home.discord, self.call.home.guild);
        match self.here.take() {
            Some(guest) => discord.hang_up(guild, guest).await,
            None => {
                self.users.rotate_left(1);
                self.here = Some(discord.call(self.users[0], self.call.channel).await);
            }
        }
    }
}

/// `cargo test --release --test it -- --ignored --nocapture gateway_killed_while` prints the figures. `KILLS` sets how many kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes"]
async fn a_gateway_killed_while_people_speak_costs_no_frame() {
    let call = Call::begin(rules(), story::premises().await).await;
    let ana = call.enter().await;
    ana.talk(&sentence()).await;
    let before = call.settled().await;
    let mut guests = Guests::of(&call);

    let mut resumed = Vec::new();
    let killing = async {
        for kill in 1..=parameter("KILLS", 50) {
            resumed.push(call.cut().await);
            if kill % 3 == 0 {
                guests.change().await;
            }
            call.says_more(call.home.ana, BETWEEN).await;
        }
    };
    talking_during(&ana, &sentence(), killing).await;

    let after = call.settled().await;
    let (sent, received) = (after.0 - before.0, after.1 - before.1);
    println!("load {}; {received} of {sent} packets reached the companion", load());
    print("killed until resumed", resumed);
    assert_eq!(received, sent);
}

/// As above.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes"]
async fn a_gateway_killed_while_a_companion_speaks_costs_no_frame() {
    let call = Call::begin(rules(), story::premises().await).await;
    let ana = call.enter().await;
    call.home.discord.say(call.home.ana, call.channel, story::ASK);
    ana.heard_from(call.home.bot, BETWEEN).await;
    let mut guests = Guests::of(&call);

    let mut resumed = Vec::new();
    for kill in 1..=parameter("KILLS", 50) {
        resumed.push(call.cut().await);
        if kill % 3 == 0 {
            guests.change().await;
        }
        call.says_more(call.home.bot, BETWEEN).await;
    }

    let Stream { heard, lost, skipped, longest_wait } = Stream::of(&ana, call.home.bot);
    println!("load {}; {heard} packets heard, {lost} lost, {skipped} skipped, at most {longest_wait:?} between two", load());
    print("killed until resumed", resumed);
    assert_eq!((lost, skipped), (0, 0));
}

/// `cargo test --release --test it -- --ignored --nocapture cannot_follow` prints the figures. `TIMES` sets how often.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn a_change_of_the_group_that_the_bot_cannot_follow_is_recovered_in_three_seconds() {
    let mut call = Call::begin(rules(), story::premises().await).await;
    let ana = call.enter().await;
    let mut recovered = Vec::new();

    for _ in 0..parameter("TIMES", 20) {
        let mut guests = Guests::of(&call);
        let (voice, bot) = (call.home.discord.voice(), call.home.bot);
        let reported = voice.look(|voice| voice.journal.reported.len());
        voice.garble_commit(call.channel, bot);
        let commits = voice.look(|voice| voice.journal.commits.len());
        let joined = async {
            guests.change().await;
            guests.here.as_ref().expect("somebody joined").grouped(3).await;
        };
        let broken = async {
            voice.until("the commit", |voice| (voice.journal.commits.len() > commits).then_some(())).await;
            let broken = Instant::now();
            voice.until("the report", |voice| (voice.journal.reported.len() > reported).then_some(())).await;
            call.grouped(2).await;
            broken.elapsed()
        };
        recovered.push(tokio::join!(joined, broken).1);
        guests.change().await;
        call.grouped(1).await;
    }

    println!("load {}", load());
    print("commit until the group is whole again", recovered.iter().copied());
    assert!(recovered.iter().all(|time| *time < Duration::from_secs(3)));
    ana.talk(&sentence()).await;
    call.watch.event_that("message", |event| event["modality"] == "voice").await;
}
