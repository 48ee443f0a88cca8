//! Random rooms with deletions, edits, opt-outs, `clear`, retention and neighbours: what is found is what may be found, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::super::world::{World, channel_key, of_json, room};
use crate::actors::companion::history::is_heard;
use crate::actors::erasure::retention;
use crate::actors::membership::opt_out::OptOutService;
use crate::actors::recall::{Question, Stretch};
use crate::domain::id::Seq;
use crate::domain::message::{Author, Message};
use crate::domain::moment::Moment;
use crate::ports::opt_out::OptOut as _;

const ROOMS: [&str; 2] = ["den", "lobby"];
const PEOPLE: [&str; 3] = ["Ana", "Ben", "Zoe"];
const DAY: f64 = 86_400.0;
/// More rooms are tried with `TERTULIA_RECALL_ROOMS`.
const WORLDS: u64 = 20;

/// A message, as a person remembers it.
struct Said {
    room: usize,
    seq: Seq,
    by: usize,
    mark: String,
    day: u32,
    is_gone: bool,
}

/// What may be found in a room: the marks.
fn allowed(said: &[Said], room: usize, ignored: &BTreeSet<usize>) -> BTreeSet<String> {
    let may = |said: &&Said| said.room == room && !said.is_gone && !ignored.contains(&said.by);
    said.iter().filter(may).map(|said| said.mark.clone()).collect()
}

async fn found(world: &World, room: usize) -> BTreeSet<String> {
    let messages = [Message::new(Author::of_name("Ben".into()), "Where is the zebra?".into()).into()];
    let question = Question {
        messages: &messages,
        names: &["Aria"],
        recalled: Vec::new(),
        now: Moment::ZERO.zoned(&TimeZone::UTC),
        people: BTreeMap::new(),
        elsewhere: Vec::new(),
        stretch: Stretch { after: Seq::NONE, before: Seq(u64::MAX), notes_after: Seq::NONE },
    };
    let key = channel_key(ROOMS[room]);
    let is_heard = |from: &Author| is_heard(from, &world.context, &key.guild);
    let found = world.context.recall.like(question, &key, &*world.context.store, is_heard, |_| true, 100_000).await.unwrap();
    found.messages.iter().filter_map(|said| said.message.text.split(' ').next().map(str::to_owned)).collect()
}

async fn live(seed: u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    let world = World::with_lobby_settings(json!({ "storage": { "retention_days": 2 } })).await;
    world.open("den", &["aria"]).await;
    let (mut all, mut ignored, mut day): (Vec<Said>, BTreeSet<usize>, u32) = (Vec::new(), BTreeSet::new(), 0);
    for step in 0..dice.random_range(8..40) {
        let (here, by) = (dice.random_range(0..ROOMS.len()), dice.random_range(0..PEOPLE.len()));
        let some = (!all.is_empty()).then(|| dice.random_range(0..all.len()));
        match (dice.random_range(0..100), some) {
            (0..60, _) | (_, None) => {
                let mark = format!("m{step}x");
                let text = format!("{mark} zebra");
                let seq = world.say_with(ROOMS[here], json!({ "from": PEOPLE[by], "text": text })).await;
                all.push(Said { room: here, seq, by, mark, day, is_gone: false });
            }
            (60..68, Some(at)) => {
                let Said { room: of, seq, .. } = all[at];
                drop(world.backend.messages.delete(&room(ROOMS[of]), seq).await);
                all[at].is_gone = true;
            }
            (68..75, Some(at)) if !all[at].is_gone => {
                let (seq, of, mark) = (all[at].seq, all[at].room, format!("e{step}x"));
                let edit = of_json(json!({ "text": format!("{mark} zebra") }));
                world.backend.messages.edit(&room(ROOMS[of]), seq, edit).await.map(drop).unwrap();
                all[at].mark = mark;
            }
            (75..80, _) => {
                world.backend.rooms.clear(&room(ROOMS[here])).await.unwrap();
                all.iter_mut().filter(|said| said.room == here).for_each(|said| said.is_gone = true);
            }
            (80..84, _) => {
                drop(world.forget(PEOPLE[by], false).await);
                all.iter_mut().filter(|said| said.by == by).for_each(|said| said.is_gone = true);
            }
            (84..90, _) => {
                let ignores = !ignored.contains(&by);
                let opt_outs = OptOutService::new(world.context.clone());
                let _changed = opt_outs.ignore(&"home".into(), &PEOPLE[by].into(), ignores).await.unwrap();
                if ignores {
                    ignored.insert(by)
                } else {
                    ignored.remove(&by)
                };
            }
            (90..94, _) => {
                world.pass(DAY).await;
                day += 1;
                retention::pass(&world.context).await;
                all.iter_mut().filter(|said| said.day + 2 <= day).for_each(|said| said.is_gone = true);
            }
            _ => {
                // What is known by now is kept for a minute.
                assert_eq!(found(&world, here).await, allowed(&all, here, &ignored), "seed {seed}, step {step}");
            }
        }
        world.pass(if dice.random_bool(0.1) { 120.0 } else { 5.0 }).await;
    }
    for (here, name) in ROOMS.iter().enumerate() {
        assert_eq!(found(&world, here).await, allowed(&all, here, &ignored), "seed {seed}, {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_found_that_may_not_be() {
    let worlds = std::env::var("TERTULIA_RECALL_ROOMS").ok().and_then(|rooms| rooms.parse::<u64>().ok());
    for seed in 0..worlds.map_or(WORLDS, |rooms| rooms.div_ceil(ROOMS.len() as u64)) {
        live(seed).await;
    }
}
