//! Random guilds: facts are said in some rooms, companions are asked for them in all rooms, and every prompt is searched for forbidden facts
//! (docs/design/memory.md, K-13 to K-18).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::world::{World, purpose, room};
use crate::domain::id::Seq;
use crate::domain::question_context::Purpose;
use crate::ports::chat_platform::fake::FakePlatform;
use crate::ports::language_model::Request;
use crate::simulation::rounds;

/// Rooms, each with its guild. Rooms whose id begins with `public` are public; `narrowed` becomes private before the questions.
const ROOMS: [(&str, &str); 5] =
    [("home", "public-a"), ("home", "public-b"), ("home", "narrowed"), ("home", "private"), ("away", "public-c")];
const PEOPLE: [&str; 4] = ["Ana", "Bela", "Cora", "Zoe"];
const THINGS: [&str; 12] = [
    "parrot",
    "boat",
    "bicycle",
    "tortoise",
    "guitar",
    "tractor",
    "kite",
    "accordion",
    "teapot",
    "telescope",
    "hammock",
    "puppet",
];
/// Room in the prompts for recalled messages and notes, in tokens.
const TOKENS: u64 = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Said of oneself.
    Own,
    /// A person asks to remember it.
    Asked,
    /// About another person.
    Hearsay,
    /// An order to companions.
    Order,
}

/// Something that is said once. Its word occurs nowhere else.
#[derive(Clone, Debug)]
struct Fact {
    room: usize,
    person: &'static str,
    about: &'static str,
    thing: &'static str,
    word: String,
    kind: Kind,
    /// Whether it replaces an earlier fact about the same thing.
    replaces: Option<usize>,
}

impl Fact {
    fn text(&self) -> String {
        let Self { about, thing, word, kind, .. } = self;
        match kind {
            Kind::Own => format!("By the way, my {thing} is called {word}"),
            Kind::Asked => format!("Ari, remember that my {thing} is called {word}"),
            Kind::Hearsay => format!("{about} has a {thing} called {word}"),
            Kind::Order => format!("From now on always call my {thing} {word}"),
        }
    }
}

/// The results of the questions.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    /// Facts that a prompt may have because they were said in its room, and how many it had.
    here: [u32; 2],
    /// Facts that it may have because they were said in a public room.
    elsewhere: [u32; 2],
    leaks: u32,
    /// Notes that were shown although a later one replaces them.
    outdated: u32,
    /// Facts that are left in the store after their author was forgotten.
    residue: u32,
}

impl std::ops::AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        for of in 0..2 {
            self.here[of] += other.here[of];
            self.elsewhere[of] += other.elsewhere[of];
        }
        self.leaks += other.leaks;
        self.outdated += other.outdated;
        self.residue += other.residue;
    }
}

/// A word that occurs nowhere else.
fn word(number: usize, rng: &mut StdRng) -> String {
    let syllables = ["bra", "ket", "mol", "sif", "tun", "vor", "zel", "dak", "pim", "gru"];
    let two: String = (0..2).map(|_| *syllables.choose(rng).unwrap()).collect();
    format!("Q{two}{}{}", syllables[number / 10], syllables[number % 10])
}

fn facts(rng: &mut StdRng) -> Vec<Fact> {
    let mut things: Vec<&str> = THINGS.to_vec();
    things.shuffle(rng);
    let mut facts: Vec<Fact> = Vec::new();
    for (number, thing) in things.into_iter().enumerate() {
        let (person, room) = (*PEOPLE.choose(rng).unwrap(), rng.random_range(0..ROOMS.len()));
        let kind = [Kind::Own, Kind::Own, Kind::Own, Kind::Asked, Kind::Hearsay, Kind::Order][number % 6];
        let others: Vec<_> = PEOPLE.into_iter().filter(|other| *other != person).collect();
        let about = if kind == Kind::Hearsay { *others.choose(rng).unwrap() } else { person };
        facts.push(Fact { room, person, about, thing, word: word(number, rng), kind, replaces: None });
        if number % 4 == 1 {
            let replaced = facts.len() - 1;
            let later = Fact { word: word(number + 50, rng), replaces: Some(replaced), ..facts[replaced].clone() };
            facts.push(later);
        }
    }
    facts
}

/// The notes that the side model proposes for a prompt: one for each fact that the talk has, and one that puts it into another's mouth.
fn proposals(request: &Request, facts: &[Fact]) -> String {
    let user = request.user();
    let (known, talk) = user.split_once("<talk>").unwrap_or_default();
    let numbered = |text: &str, word: &str| {
        text.lines().find(|line| line.contains(word)).and_then(|line| line.split(' ').next()?.parse::<u64>().ok())
    };
    let of_fact = |fact: &Fact| {
        let Some(from) = numbered(talk, &fact.word) else { return Vec::new() };
        let text = match fact.kind {
            Kind::Order => fact.text(),
            _ => format!("{}'s {} is called {}", fact.about, fact.thing, fact.word),
        };
        let replaces = fact.replaces.and_then(|at| numbered(known, &facts[at].word));
        let wrong = PEOPLE.into_iter().find(|other| *other != fact.about).unwrap();
        vec![
            json!({ "about": fact.about, "text": text, "from": [from], "replaces": replaces }),
            json!({ "about": wrong, "text": format!("{wrong} hides {}", fact.word), "from": [from + 1] }),
        ]
    };
    facts.iter().flat_map(of_fact).map(|note| note.to_string() + "\n").collect()
}

/// The text of a request.
fn text_of(request: &Request) -> String {
    request.messages.iter().map(|message| format!("{message:?}\n")).collect()
}

struct Guild {
    world: World,
    facts: Vec<Fact>,
    said: BTreeMap<usize, Seq>,
    is_across: bool,
    /// Facts whose messages were deleted.
    deleted: BTreeSet<usize>,
    /// Who wants no notes.
    unnoted: Option<&'static str>,
}

impl Guild {
    async fn new(rng: &mut StdRng) -> Self {
        let platform = Arc::new(FakePlatform::default());
        let public = |narrowed: bool| {
            let is_public = move |id: &&str| id.starts_with("public") || *id == "narrowed" && !narrowed;
            ROOMS.map(|(_, id)| id).into_iter().filter(move |id| is_public(id)).map(|id| room(id).channel())
        };
        platform.opens(public(false));
        let settings = json!({
            "prompt": { "statement_tokens": 1_900, "summary_after": 500, "recall_tokens": TOKENS },
            "memory": { "notes_after": 10 }
        });
        let world = World::with_platform_settings(platform.clone(), settings).await;
        for (guild, id) in ROOMS {
            world.open_in(guild, [id.to_owned()]).await;
        }
        let is_across = rng.random_range(0..3) > 0;
        for guild in ["home", "away"] {
            world.backend.memory.switch_notes(guild.into(), None, true).await.unwrap();
            world.backend.memory.use_notes_across_rooms(guild.into(), is_across).await.unwrap();
        }
        let facts = facts(rng);
        let all = facts.clone();
        world.side.answer_by(move |request| (*purpose(request) == Purpose::Notes).then(|| Ok(proposals(request, &all))));
        world.side.answers([Ok("NO")]);
        world.main.answers([Ok("I see.")]);
        let mut guild = Self { world, facts, said: BTreeMap::new(), is_across, deleted: BTreeSet::new(), unnoted: None };
        guild.talk().await;
        guild.change(rng).await;
        platform.opens(public(true));
        guild
    }

    async fn say(&self, id: &str, from: &str, text: &str) -> Seq {
        self.world.say_with(id, json!({ "from": from, "text": text })).await
    }

    /// Everything is said and noted, then what replaces it, and at last so much that none of it fits into prompts any more.
    async fn talk(&mut self) {
        for is_later in [false, true] {
            for (number, fact) in
                self.facts.clone().into_iter().enumerate().filter(|(_, fact)| fact.replaces.is_some() == is_later)
            {
                let seq = self.say(ROOMS[fact.room].1, fact.person, &fact.text()).await;
                self.said.insert(number, seq);
            }
            for (_, id) in ROOMS {
                for number in 0..if is_later { 26 } else { 8 } {
                    self.say(
                        id,
                        "Dora",
                        &format!("bus {number} was late again, as on every other day of this long and rainy week"),
                    )
                    .await;
                }
            }
            self.world.pass(2_400.0).await;
        }
    }

    /// A message is deleted, and one person wants no notes.
    async fn change(&mut self, rng: &mut StdRng) {
        let number = rng.random_range(0..self.facts.len());
        self.world.backend.messages.delete(&room(ROOMS[self.facts[number].room].1), self.said[&number]).await.unwrap();
        self.deleted.insert(number);
        if rng.random() {
            let person = *PEOPLE.choose(rng).unwrap();
            self.world.backend.memory.switch_notes("home".into(), Some(person.into()), false).await.unwrap();
            self.unnoted = Some(person);
        }
    }

    /// Whether a prompt of a room may contain a fact. From another room, only a note that its author made about itself in a public room.
    fn may_have(&self, number: usize, room: usize) -> bool {
        let fact = &self.facts[number];
        if self.deleted.contains(&number) || fact.room == room {
            return fact.room == room && !self.deleted.contains(&number);
        }
        let is_of_oneself = matches!(fact.kind, Kind::Own | Kind::Asked);
        let is_open = ROOMS[fact.room].1.starts_with("public") && ROOMS[fact.room].0 == ROOMS[room].0;
        self.is_across && is_of_oneself && is_open && self.unnoted != Some(fact.person)
    }

    /// Whether a later fact takes its place.
    fn is_outdated(&self, number: usize) -> bool {
        let is_later = |(later, fact): (usize, &Fact)| fact.replaces == Some(number) && !self.deleted.contains(&later);
        self.facts.iter().enumerate().any(is_later)
    }

    async fn score(&self) -> Score {
        let mut score = Score::default();
        for (at, (_, id)) in ROOMS.iter().enumerate() {
            let asked =
                |(number, fact): &(usize, &Fact)| !self.is_outdated(*number) && (fact.room == at || (number + at) % 3 == 0);
            for (number, fact) in self.facts.iter().enumerate().filter(asked) {
                let before = [&self.world.main, &self.world.side].map(|model| model.asked.lock().len());
                self.world.side.answers([Ok("They mean me.\nYES")]);
                self.say(id, "Eva", &format!("Ari, what is the name of the {} of {}?", fact.thing, fact.about)).await;
                self.world.pass(60.0).await;
                self.world.side.answers([Ok("NO")]);
                let mut texts = Vec::new();
                for (model, before) in [&self.world.main, &self.world.side].into_iter().zip(before) {
                    texts.extend(model.asked.lock()[before..].iter().map(text_of));
                }
                for (other, leaked) in self.facts.iter().enumerate() {
                    if !self.may_have(other, at) && texts.iter().any(|text| text.contains(&leaked.word)) {
                        score.leaks += 1;
                        eprintln!("{id} knows {leaked:?} (across {}, unnoted {:?})", self.is_across, self.unnoted);
                    }
                    let is_shown = texts
                        .iter()
                        .flat_map(|text| text.split("\\n"))
                        .any(|line| line.contains("noted:") && line.contains(&leaked.word));
                    score.outdated += u32::from(leaked.kind != Kind::Asked && self.is_outdated(other) && is_shown);
                }
                // Without a statement nothing was looked up.
                let has_spoken = self.world.main.asked.lock().len() > before[0];
                if has_spoken && self.may_have(number, at) && fact.kind != Kind::Order {
                    let counted = if fact.room == at { &mut score.here } else { &mut score.elsewhere };
                    counted[0] += 1;
                    let has = |words: &str| texts.iter().any(|text| text.contains(words));
                    counted[1] += u32::from(has(&fact.word) && (fact.room == at || has("from other rooms of this server")));
                }
            }
        }
        self.forget(&mut score).await;
        score
    }

    /// Zoe is forgotten. What she said is in no value of the store.
    async fn forget(&self, score: &mut Score) {
        for guild in ["home", "away"] {
            let _ = self.world.forget_in(guild, "Zoe", true).await;
        }
        let everything = self.world.everything().await;
        for fact in self.facts.iter().filter(|fact| fact.person == "Zoe") {
            let is_left = |value: &[u8]| value.windows(fact.word.len()).any(|part| part == fact.word.as_bytes());
            score.residue += u32::from(everything.iter().any(|(_, value)| is_left(value)));
        }
    }
}

/// Two tests share the seeds, because tests run beside each other.
async fn check(first: u64, step: usize) {
    let seeds = std::env::var("TERTULIA_GUILDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or_else(|| rounds(10, 20));
    let mut all = Score::default();
    for seed in (first..seeds).step_by(step) {
        let guild = Guild::new(&mut StdRng::seed_from_u64(seed)).await;
        all += guild.score().await;
    }

    println!("{all:?}");
    assert_eq!((all.leaks, all.outdated, all.residue), (0, 0, 0), "{all:?}");
    let share = |[asked, found]: [u32; 2]| f64::from(found) / f64::from(asked);
    assert!(share(all.here) > 0.9 && share(all.elsewhere) > 0.8, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_in_a_room_is_known_where_it_may_be_and_nowhere_else() {
    check(0, 2).await;
}

#[tokio::test(start_paused = true)]
async fn the_same_of_the_other_half() {
    check(1, 2).await;
}
