//! Measures what recall finds, and how long it takes.
//!
//! `cargo bench --bench recall -- FILE` reads long dialogues with questions in the public format of LoCoMo (`locomo10.json`), and prints which share of
//! the labelled messages fits into so many tokens of a prompt if the newest messages are taken, the best by BM25, and those that recall takes. Without FILE it
//! makes talks of its own. Then it looks something up in a room of 10,000 messages on sled, for the first time and again.

#[path = "shared/system.rs"]
mod system;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use ractor::Actor;
use serde_json::{Value, json};
use system::{context, millis, room, say};
use tertulia::actors::recall::{Question, Stretch};
use tertulia::actors::runtime::root::Root;
use tertulia::adapters::store::sled::{OpenOptions, SledStore};
use tertulia::backend;
use tertulia::backend::loading::load_rooms;
use tertulia::domain::id::{CompanionId, Seq};
use tertulia::domain::message::{Author, Message};
use tertulia::domain::moment::Moment;
use tertulia::domain::prompt::{Said, shown_of_recalled};
use tertulia::domain::recall::Corpus;
use tertulia::domain::recall::words::Words;
use tertulia::journal::channel_key::ChannelKey;
use tertulia::settings::Settings;
use tertulia::telemetry::instruments::Instruments;
use tertulia::telemetry::recorder::Recorder;
use tokio::time::Instant;

// As the server has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BUDGETS: [usize; 3] = [300, 1_000, 2_000];
const MESSAGES: usize = 10_000;
const LOOKUPS: usize = 50;

/// A dialogue, and questions about it, each with the messages that hold its answer.
#[derive(Default)]
struct Dialogue {
    /// Speaker and text.
    said: Vec<(String, String)>,
    questions: Vec<(String, BTreeSet<usize>)>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Cargo passes `--bench`.
    let file = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let settings = Settings::overlay(json!({})).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let words = Words::new(&settings.memory.algorithms());
    let dialogues = match &file {
        Some(file) => read(&std::fs::read_to_string(file).with_context(|| format!("{file} cannot be read"))?)?,
        None => (0..10).map(own).collect(),
    };
    table(&dialogues, &words);
    time().await
}

/// The dialogues of a file.
fn read(text: &str) -> anyhow::Result<Vec<Dialogue>> {
    let file: Vec<Value> = serde_json::from_str(text)?;
    Ok(file.iter().map(dialogue).collect())
}

fn dialogue(sample: &Value) -> Dialogue {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (mut dialogue, mut numbers) = (Dialogue::default(), HashMap::new());
    let sessions = (1..).map_while(|number| {
        let conversation = &sample["conversation"];
        let is_later = |key: &String| {
            let later = key.strip_prefix("session_").and_then(|number| number.parse::<usize>().ok());
            later.is_some_and(|later| later >= number)
        };
        let has_more = conversation.as_object().is_some_and(|object| object.keys().any(is_later));
        has_more.then(|| conversation[format!("session_{number}")].as_array().cloned().unwrap_or_default())
    });
    for turn in sessions.flatten() {
        numbers.insert(text(&turn, "dia_id"), dialogue.said.len());
        dialogue.said.push((text(&turn, "speaker"), text(&turn, "text")));
    }
    for question in sample["qa"].as_array().into_iter().flatten() {
        // The questions of category 5 have no answer.
        if question["category"] == 5 {
            continue;
        }
        let evidence = question["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let evidence = evidence.flat_map(|one| one.split([';', ' ', ','])).filter_map(|id| numbers.get(id).copied());
        let evidence: BTreeSet<usize> = evidence.collect();
        if !evidence.is_empty() {
            dialogue.questions.push((text(question, "question"), evidence));
        }
    }
    dialogue
}

/// A talk in which somebody tells a few things among much else, and questions about them in other words.
fn own(number: usize) -> Dialogue {
    const TOLD: [(&str, &str); 6] = [
        ("My cat is called Mora, she hides when it thunders.", "What is the name of Ana's cat?"),
        ("I moved to Lisbon in spring because of the light there.", "Why did Ana move to Lisbon?"),
        ("The doctor said that I must not eat walnuts any more.", "Which nuts may Ana not eat?"),
        ("My brother repairs accordions in a village near Graz.", "What does Ana's brother do for a living, accordions?"),
        ("I am reading a long novel about a lighthouse keeper.", "What is the novel about that Ana reads?"),
        ("Our choir sings in the old brewery on the third of May.", "Where will the choir be singing?"),
    ];
    let mut dialogue = Dialogue::default();
    for at in 0..600 {
        match TOLD.get(at / 60).filter(|_| at % 60 == number * 5 % 60) {
            Some((told, question)) => {
                dialogue.questions.push(((*question).to_owned(), BTreeSet::from([at])));
                dialogue.said.push(("Ana".to_owned(), (*told).to_owned()));
            }
            None => {
                let matter = ["the bus", "the rain", "lunch", "the match", "a film", "the garden", "work"][at % 7];
                let text = format!("I thought about {matter} for a while on day {at}, and it was as on every other day.");
                dialogue.said.push((["Ana", "Ben"][at % 2].to_owned(), text));
            }
        }
    }
    dialogue
}

fn table(dialogues: &[Dialogue], words: &Words) {
    let mut sums: BTreeMap<&str, [f64; 3]> = BTreeMap::new();
    let questions: usize = dialogues.iter().map(|dialogue| dialogue.questions.len()).sum();
    let (id, now) = (CompanionId::from("aria"), Moment::ZERO.zoned(&TimeZone::UTC));
    for dialogue in dialogues {
        let (mut corpus, mut reader) = (Corpus::default(), words.reader());
        let said = dialogue.said.iter().enumerate().map(|(at, (speaker, text))| {
            corpus.push(Seq(at as u64), Moment::ZERO, speaker, text, &mut reader);
            let message = Message::new(Author::of_name(speaker.as_str().into()), text.as_str().into());
            Said::new(Seq(at as u64), Moment::ZERO, message.into())
        });
        let said: Vec<Said> = said.collect();
        for (question, evidence) in &dialogue.questions {
            let query = words.query([("Eve", &**question)], &["Aria"], &now);
            let scores = corpus.scores(&query, words);
            let mut plain: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
            plain.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(b.cmp(a)));
            let mut known = BTreeSet::new();
            let found = corpus.search(&query, words).flat_map(|found| corpus.passage(found.index, &query, words));
            let found = found.filter(|at| known.insert(*at)).collect();
            for (way, order) in [("newest only", (0..said.len()).rev().collect()), ("BM25", plain), ("as recalled", found)] {
                let order: Vec<Said> = order.iter().map(|at| said[*at].clone()).collect();
                for (sum, budget) in sums.entry(way).or_default().iter_mut().zip(BUDGETS) {
                    let shown = shown_of_recalled(&order, &id, "Aria", &TimeZone::UTC, budget);
                    let found = shown.iter().filter(|seq| evidence.contains(&(seq.0 as usize))).count();
                    *sum += found as f64 / evidence.len() as f64;
                }
            }
        }
    }
    let said: usize = dialogues.iter().map(|dialogue| dialogue.said.len()).sum();
    println!("{} dialogues, {said} messages, {questions} questions", dialogues.len());
    println!("| looked up | {} | {} | {} tokens |\n| --- | ---: | ---: | ---: |", BUDGETS[0], BUDGETS[1], BUDGETS[2]);
    for (way, sums) in ["newest only", "BM25", "as recalled"].map(|way| (way, sums.get(way).copied().unwrap_or_default())) {
        let [few, some, many] = sums.map(|sum| sum / questions.max(1) as f64);
        println!("| {way} | {few:.3} | {some:.3} | {many:.3} |");
    }
}

/// Times looking something up in a long room.
async fn time() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let options = OpenOptions {
        accept_loss: false,
        deadline: Duration::from_secs(10),
        cache_bytes: 64 << 20,
        new_id: 1,
        instruments: Instruments::noop(),
        held: None,
    };
    let store = Arc::new(SledStore::open(folder.path(), &options)?);
    let context = context(store.clone(), Recorder::silent())?;
    let backend = backend::backend(context.clone(), store);
    let (root, ended) = Actor::spawn(None, Root, context.clone()).await?;
    load_rooms(&context, &[], false).await?;
    let plan = serde_json::from_value(json!({ "guild": "home", "companions": [] }))?;
    backend.rooms.put(&room("long"), plan).await?;
    let talks: Vec<Dialogue> = (0..20).map(own).collect();
    for (_, text) in talks.iter().flat_map(|talk| &talk.said).cycle().take(MESSAGES) {
        say(&backend, "long", text).await?;
    }
    let channel_key = ChannelKey::new(&"home".into(), &"console:long".into());
    let from = Author::of_name("Ben".into());
    let questions: Vec<Arc<Message>> = talks
        .iter()
        .flat_map(|talk| &talk.questions)
        .map(|(question, _)| Arc::new(Message::new(from.clone(), question.as_str().into())))
        .collect();
    let stretch = Stretch { after: Seq::NONE, before: Seq(u64::MAX), notes_after: Seq::NONE };
    let now = Moment::ZERO.zoned(&TimeZone::UTC);
    let asked = |question| Question {
        messages: std::slice::from_ref(question),
        names: &["Aria"],
        recalled: Vec::new(),
        now: now.clone(),
        people: BTreeMap::new(),
        elsewhere: Vec::new(),
        stretch,
    };
    let budget = 2 * context.settings.prompt.recall_tokens;
    let (mut first, mut again, mut found) = (Vec::new(), Vec::new(), 0);
    for question in questions.iter().cycle().take(LOOKUPS) {
        context.recall.forget(&channel_key);
        for times in [&mut first, &mut again] {
            let began = Instant::now();
            let like = context.recall.like(asked(question), &channel_key, &*context.store, |_| true, |_| true, budget);
            found += like.await?.messages.len();
            times.push(began.elapsed());
        }
    }
    println!("\n| in a room of {MESSAGES} messages | 50 %, ms | 99 %, ms |\n| --- | ---: | ---: |");
    for (what, times) in [("for the first time", &mut first), ("again", &mut again)] {
        times.sort_unstable();
        println!("| {what} | {:.1} | {:.1} |", millis(times, 0.5), millis(times, 0.99));
    }
    println!("{found} messages were found");
    root.stop(None);
    ended.await?;
    Ok(())
}
