//! Every guild has a word that is said nowhere else, by the same people to the same companions. The test searches for it in every question
//! and every answer of the other guilds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::abroad::{self, ana, channel_ref};
use super::world::{World, purpose, room};
use crate::actors::inbound::Inbound;
use crate::actors::membership::changes;
use crate::domain::id::Seq;
use crate::domain::message::{Author, Role};
use crate::domain::question_context::Purpose;
use crate::ports::backend::decisions::{DecisionQuery, WhyAt, WhyQuery};
use crate::ports::backend::keeping::ExportForm;
use crate::ports::backend::usage::UsageQuery;
use crate::ports::inbound_events::{Acceptance, InboundEvents, InboundMessage};
use crate::ports::language_model::Request;
use crate::simulation::rounds;
use crate::texts::Language;

/// Guilds and their channels: two guilds of a platform, two direct messages of one person, and a room of the console.
const PLACES: [(&str, &str); 6] = [
    ("discord:1", "discord:10"),
    ("discord:1", "discord:11"),
    ("discord:2", "discord:20"),
    ("dm:discord:77", "discord:77"),
    ("dm:discord:78", "discord:78"),
    ("home", "lobby"),
];

fn word(guild: &str) -> String {
    let number = PLACES.iter().position(|(one, _)| *one == guild).expect("a known guild");
    format!("zq{number}qz")
}

fn words(text: &str) -> BTreeSet<String> {
    let found = text.match_indices("zq").filter_map(|(at, _)| text.get(at..at + 5)).filter(|word| word.ends_with("qz"));
    found.map(str::to_owned).collect()
}

async fn inhabited() -> World {
    let world = World::with_overlay(json!({
        "prompt": { "summary_after": 3 },
        "gate": { "addresses_per_minute": 1000 },
        "turn_taking": { "turn_delay_secs": 0.0 },
    }))
    .await;
    for (guild, channel) in PLACES {
        if guild.starts_with("dm:") {
            assert!(changes::ensure_room(&world.context, &channel_ref(guild, channel)).await.unwrap());
        } else if guild == "home" {
            world.open(channel, &["aria", "bruno"]).await;
        } else {
            for companion in ["aria", "bruno"] {
                world.backend.rooms.admit(&channel_ref(guild, channel), &companion.into()).await.unwrap();
            }
        }
    }
    world.rest().await;
    // Models repeat everything that they are shown, so that a leaked word spreads.
    let repeat = |request: &Request| {
        let seen = words(&format!("{request:?}")).into_iter().collect::<Vec<_>>().join(" ");
        let sent = match purpose(request) {
            Purpose::Vote { .. } => {
                json!({ "reason": format!("because of {seen}"), "decision": "YES", "importance": 5 }).to_string()
            }
            _ => format!("they spoke of {seen}"),
        };
        Some(Ok(sent))
    };
    world.side.answer_by(repeat);
    world.main.answer_by(repeat);
    world
}

async fn post(world: &World, (guild, channel): (&str, &str), number: usize) {
    let (word, id) = (word(guild), format!("{channel}/{number}"));
    let text = if number.is_multiple_of(3) { format!("{word} and so on") } else { format!("Aria, what of {word}?") };
    if guild == "home" {
        world.say_with(channel, json!({ "from": format!("Ana {word}"), "text": text, "id": id })).await;
        return;
    }
    let mut inbound_message = ana(world, &id, &text);
    // The same person everywhere, under another name in each guild.
    inbound_message.from.name = format!("Ana {word}").into();
    abroad::deliver(world, &channel_ref(guild, channel), inbound_message).await;
}

/// Everything that the backend shows of a room.
async fn shown(world: &World, id: &str) -> Vec<(&'static str, String)> {
    let (id, backend) = (room(id), &world.backend);
    let json = |value: Value| value.to_string();
    let mut shown = vec![
        ("room", json(serde_json::to_value(backend.rooms.get(&id).await.unwrap()).unwrap())),
        ("state", json(serde_json::to_value(backend.rooms.state(&id).await.unwrap()).unwrap())),
        ("history", format!("{:?}", world.try_history(id.as_str()).await.unwrap())),
        ("live", format!("{:?}", world.watch(id.as_str(), Some(0)).await.seen().await)),
    ];
    let query = DecisionQuery { room: Some(id.clone()), companion: None, after: Some(Seq(0)), limit: 1_000 };
    let decisions = backend.records.decisions(query).await.unwrap().decisions;
    shown.push(("decisions", decisions.iter().map(|one| json(serde_json::to_value(one).unwrap())).collect()));
    let moments = decisions.iter().map(|one| Some(WhyAt::Event(one.seq))).chain([None]);
    for at in moments {
        for companion in ["aria", "bruno"] {
            let query =
                WhyQuery { room: id.clone(), companion: Some(companion.into()), at: at.clone(), language: Language::English };
            if let Ok(why) = backend.records.why(query).await {
                shown.push(("why", json(serde_json::to_value(why).unwrap())));
            }
        }
    }
    for form in [ExportForm::Json, ExportForm::Replay] {
        shown.push(("export", world.export(id.as_str(), form).await.join("\n")));
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn the_word_of_a_guild_is_in_no_question_and_no_answer_of_another() {
    for seed in 0..rounds(2, 4) as usize {
        let mut world = inhabited().await;
        for number in 0..30 {
            // A different order for each seed, which includes every place once: 5 and 6 have no common divisor but 1.
            post(&world, PLACES[(number * 5 + seed + number / 6 * (seed + 1)) % PLACES.len()], number).await;
            world.pass(if number.is_multiple_of(4) { 15.0 } else { 0.3 }).await;
        }
        world.pass(120.0).await;
        check_questions(&world);
        world = world.crash().await;
        world.pass(120.0).await;

        check_questions(&world);
        for (guild, channel) in PLACES {
            let own = BTreeSet::from([word(guild)]);
            let shown = shown(&world, channel).await;
            for (what, text) in &shown {
                assert!(words(text).is_subset(&own), "{what} of {channel} tells {:?}", words(text));
            }
            for what in ["history", "live", "export", "why"] {
                assert!(shown.iter().any(|(one, text)| *one == what && words(text) == own), "{what} of {channel} tells nothing");
            }
            let used = world.backend.records.usage(UsageQuery { guild: Some(guild.into()), from: None, to: None }).await.unwrap();
            let used = serde_json::to_value(&used).unwrap();
            assert!(words(&used.to_string()).is_empty() && used["guilds"].as_array().unwrap().len() == 1, "{used}");
            assert_eq!(used["guilds"][0]["guild"], guild);
        }
        // Requests for missing things, or things of other guilds, are refused without any words.
        let unknown = world.why("discord:99", None, None).await.unwrap_err();
        let taken = world.backend.rooms.admit(&channel_ref("discord:2", "discord:10"), &"cleo".into()).await.unwrap_err();
        assert!(words(&format!("{unknown:?}{taken:?}")).is_empty());
        let foreign = Inbound::new(world.context.clone()).said(&channel_ref("discord:2", "discord:10"), foreign(&world)).await;
        assert!(!matches!(foreign, Ok(Acceptance::New(_))), "{foreign:?}");
        assert!(words(&format!("{:?}", world.backend.maintenance.readiness().await)).is_empty());
    }
}

/// A message of one guild sent to a channel of another.
fn foreign(world: &World) -> InboundMessage {
    let from = Author { id: "discord:6".into(), name: "Eve".into(), role: Role::Person };
    InboundMessage { from, ..ana(world, "foreign", "Aria?") }
}

/// Whether every question contains words of its own guild only.
fn check_questions(world: &World) {
    let asked: Vec<Request> = [&world.side, &world.main].iter().flat_map(|model| model.asked.lock().clone()).collect();
    for request in &asked {
        let own = BTreeSet::from([word(request.guild.as_str())]);
        let found = words(&format!("{request:?}"));
        assert!(found.is_subset(&own), "{:?} of {} holds {found:?}", purpose(request), request.guild);
    }
    // Its export and its counts contain no words.
    assert!(words(&format!("{:?}", world.spans.spans())).is_empty());
}
