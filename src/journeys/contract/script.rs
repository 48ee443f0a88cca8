//! The steps of a scripted evening, and how each is performed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::calling;
use super::super::world::{World, asking_companion, purpose, room};
use crate::actors::runtime::actor_keys::{ChannelActorKey, CompanionKey, TurnTakingManagerKey};
use crate::actors::runtime::directory::ActorKey as Address;
use crate::domain::moment::Moment;
use crate::domain::question_context::Purpose;
use crate::ports::language_model::{NoAnswer, Request};
use crate::telemetry::fake::SpanMemory;

/// A section of the evening, with its heading.
pub(super) struct Chapter(pub(super) &'static str, pub(super) &'static [Step]);

pub(super) enum Step {
    /// A person sends a message to a room: room, sender, text.
    Says(&'static str, &'static str, &'static str),
    /// A person enters the voice call of a room.
    Enters(&'static str, &'static str),
    /// A person has just said something in a voice call: room, speaker, words.
    Tells(&'static str, &'static str, &'static str),
    /// A person leaves the voice call of a room.
    Quits(&'static str, &'static str),
    /// From now on the side model answers this for a companion.
    Thinks(&'static str, Mind),
    /// From now on the side model takes this number of seconds for a companion.
    Takes(&'static str, f64),
    /// From now on the side model gives this judgement of repetition.
    Judges(&'static str),
    /// From now on the main model writes this.
    Writes(&'static str),
    /// From now on the main model refuses.
    RefusesToWrite,
    /// This number of seconds pass.
    Pass(f64),
    /// An external companion votes in the round about the newest event: room, companion, vote.
    Votes(&'static str, &'static str, Mind),
    /// An external companion with the floor makes a statement: room, companion, text.
    Speaks(&'static str, &'static str, &'static str),
    /// An operator pauses a room, or continues it.
    Pauses(&'static str, bool),
    /// A room is cleared.
    Clears(&'static str),
    /// An actor is killed.
    Dies(Who),
    /// An actor is killed this number of times, each time as soon as it has restarted.
    DiesAgainAndAgain(Who, u32),
    /// The whole system ends as by `kill -9`, and another one starts with what is stored.
    Crashes,
}

#[derive(Clone, Copy)]
pub(super) enum Who {
    Channel(&'static str),
    Companion(&'static str),
    /// The turn-taking manager of a room.
    Manager(&'static str),
}

/// How the side model decides.
#[derive(Clone, Copy)]
pub(super) struct Mind {
    answer: Kind,
    importance: u8,
    closing: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Yes,
    No,
    Riddle,
    Refusal,
    Outage,
}

pub(super) const YES: Mind = Mind { answer: Kind::Yes, importance: 5, closing: "none" };
pub(super) const NO: Mind = Mind { answer: Kind::No, importance: 0, closing: "none" };
/// An answer that is neither YES nor NO.
pub(super) const RIDDLE: Mind = Mind { answer: Kind::Riddle, ..NO };
/// No answer: the model refuses.
pub(super) const REFUSAL: Mind = Mind { answer: Kind::Refusal, ..NO };
/// No answer: the model is unreachable.
pub(super) const OUTAGE: Mind = Mind { answer: Kind::Outage, ..NO };

impl Mind {
    /// The same, with another importance.
    pub(super) const fn of(self, importance: u8) -> Self {
        Self { importance, ..self }
    }

    /// The same, with another closing stage.
    pub(super) const fn ending(self, closing: &'static str) -> Self {
        Self { closing, ..self }
    }

    fn answers(self) -> Result<String, NoAnswer> {
        let decision = match self.answer {
            Kind::Yes => "YES",
            Kind::No => "NO",
            Kind::Riddle => return Ok(RIDDLED.to_owned()),
            Kind::Refusal => return Err(refusal()),
            Kind::Outage => return Err(NoAnswer::Unreachable { endpoint: "scripted".into(), detail: SECRET.into() }),
        };
        let Self { importance, closing, .. } = self;
        let ballot =
            json!({ "reason": THOUGHT, "decision": decision, "importance": importance, "selected": false, "closing": closing });
        Ok(ballot.to_string())
    }
}

/// Other texts of models. No span and no series may contain them.
const THOUGHT: &str = "Between ourselves, I would rather sing.";
const RIDDLED: &str = "Who can tell the tide from the moon?";
const SECRET: &str = "the line to the lighthouse is cut";
const SUMMARY: &str = "They spoke of boats and of the weather.";
/// The default statements of the main model, one after the other, without repetition.
const SMALL_TALK: [&str; 7] = [
    "The tide is out.",
    "Figs, then?",
    "My aunt rowed over to the island once.",
    "Bring a lamp next time.",
    "No boats before Thursday.",
    "Who painted that door?",
    "It smells of rain.",
];

/// Every text of a person or a model. No span and no series may contain any of them.
pub(super) fn words(chapters: &[Chapter]) -> Vec<&'static str> {
    let sent = chapters.iter().flat_map(|Chapter(_, steps)| steps.iter()).filter_map(|step| match step {
        Step::Says(_, _, text) | Step::Tells(_, _, text) | Step::Speaks(_, _, text) | Step::Writes(text) => Some(*text),
        _ => None,
    });
    sent.chain([THOUGHT, RIDDLED, SECRET, SUMMARY]).chain(SMALL_TALK).collect()
}

/// The result of an evening.
pub(super) struct Evening {
    /// When each chapter began.
    pub(super) began: Vec<Moment>,
    /// The records of each system: the first, and the one after each crash.
    pub(super) systems: Vec<SpanMemory>,
}

/// The present answers of the models.
struct Models {
    minds: BTreeMap<&'static str, Mind>,
    judgement: &'static str,
    writing: Option<Result<&'static str, NoAnswer>>,
    written: usize,
}

/// Performs the evening. Each chapter takes whole minutes.
pub(super) async fn live_through(chapters: &[Chapter], overlay: Value) -> Evening {
    let models = Models { minds: BTreeMap::new(), judgement: "Not at all.\n0.1", writing: None, written: 0 };
    let models = Arc::new(Mutex::new(models));
    let mut world = World::with_overlay(overlay).await;
    equip(&mut world, &models);
    world.open("lobby", &["aria"]).await;
    world.open("salon", &["aria", "bruno", "cleo"]).await;
    world.open_with("studio", json!(["aria", { "id": "zed", "external": true }])).await;
    let mut evening = Evening { began: Vec::new(), systems: vec![world.spans.clone()] };
    for Chapter(_, steps) in chapters {
        let minute = Duration::from_secs(60);
        let into = Duration::from_micros(world.context.clock.now().as_micros() % minute.as_micros() as u64);
        tokio::time::sleep(minute - into).await;
        evening.began.push(world.context.clock.now());
        for step in *steps {
            if let Step::Crashes = step {
                world = world.crash().await;
                equip(&mut world, &models);
                evening.systems.push(world.spans.clone());
            } else {
                happen(step, &mut world, &models).await;
            }
        }
    }
    world.pass(60.0).await;
    evening
}

async fn happen(step: &Step, world: &mut World, models: &Mutex<Models>) {
    match step {
        Step::Says(id, who, text) => drop(world.say_with(id, json!({ "from": who, "text": text })).await),
        Step::Enters(id, who) => calling::join(world, id, who).await,
        Step::Tells(id, who, text) => drop(calling::says_in(world, id, who, text).await),
        Step::Quits(id, who) => calling::leave(world, id, who).await,
        Step::Thinks(companion, mind) => drop(models.lock().minds.insert(companion, *mind)),
        Step::Takes(companion, secs) => world.side.set_delay_for(companion, Duration::from_secs_f64(*secs)),
        Step::Judges(judgement) => models.lock().judgement = judgement,
        Step::Writes(text) => models.lock().writing = Some(Ok(text)),
        Step::RefusesToWrite => models.lock().writing = Some(Err(refusal())),
        Step::Pass(secs) => world.pass(*secs).await,
        Step::Votes(id, from, mind) => {
            let state = if mind.answer == Kind::Yes { "speak" } else { "listen" };
            let about = opened(world, id).await;
            let Mind { importance, closing, .. } = mind;
            let vote = json!({ "from": from, "messageId": about, "state": state, "importance": importance, "selected": false, "closing": closing });
            world.vote(id, vote).await.unwrap();
        }
        Step::Speaks(id, from, text) => {
            let about = opened(world, id).await;
            world.speak(id, json!({ "from": from, "message_id": about, "text": text })).await.unwrap();
        }
        Step::Pauses(id, is_paused) => drop(world.patch(id, json!({ "paused": is_paused })).await.unwrap()),
        Step::Clears(id) => world.backend.rooms.clear(&room(id)).await.unwrap(),
        Step::Dies(who) => {
            kill(world, *who);
            world.rest().await;
        }
        Step::DiesAgainAndAgain(who, times) => {
            let mut left = *times;
            while left > 0 {
                left -= u32::from(kill(world, *who));
                world.pass(0.1).await;
            }
        }
        Step::Crashes => unreachable!("the world is another one then"),
    }
}

/// The message of the newest round of a room.
async fn opened(world: &World, id: &str) -> String {
    let opened = world.recorded(id, "round_opened").await;
    opened.last().expect("a round was opened")["message_id"].to_string().replace('"', "")
}

/// Kills an actor; false if it is not running.
fn kill(world: &World, who: Who) -> bool {
    fn at<P: Address>(world: &World, place: &P) -> bool {
        world.context.directory.find(place).map(|actor| actor.kill()).is_some()
    }
    match who {
        Who::Channel(id) => at(world, &ChannelActorKey(room(id).channel())),
        Who::Companion(id) => at(world, &CompanionKey("home".into(), id.into())),
        Who::Manager(id) => at(world, &TurnTakingManagerKey(room(id).channel())),
    }
}

/// Makes the models of a world follow the script.
fn equip(world: &mut World, models: &Arc<Mutex<Models>>) {
    world.expect_deaths();
    let script = |models: Arc<Mutex<Models>>| move |request: &Request| Some(models.lock().answers(request));
    world.side.answer_by(script(models.clone()));
    world.main.answer_by(script(models.clone()));
    calling::play_aloud(world, Default::default());
}

impl Models {
    fn answers(&mut self, request: &Request) -> Result<String, NoAnswer> {
        match purpose(request) {
            Purpose::Vote { .. } => {
                let mind = self.minds.get(asking_companion(request)).copied().unwrap_or(NO);
                mind.answers()
            }
            Purpose::Votes { .. } => Ok("{}".to_owned()),
            Purpose::Judgement => Ok(self.judgement.to_owned()),
            Purpose::Notes => Ok(String::new()),
            Purpose::Summary | Purpose::Brief | Purpose::Caption => Ok(SUMMARY.to_owned()),
            Purpose::Statement { .. } => match &self.writing {
                Some(writing) => writing.clone().map(str::to_owned),
                None => {
                    self.written += 1;
                    Ok(SMALL_TALK[self.written % SMALL_TALK.len()].to_owned())
                }
            },
        }
    }
}

fn refusal() -> NoAnswer {
    NoAnswer::Refused { endpoint: "scripted".into(), detail: SECRET.into() }
}
