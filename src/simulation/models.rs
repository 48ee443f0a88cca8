//! Models whose answers depend on the planned weather: late, wrong, malformed or missing. They check that a guild's words stay in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;

use super::calls;
use super::dice::{Dice, hash};
use super::faults::FaultKind;
use super::plan::{Beat, CAST};
use super::stage::{Stage, lock};
use crate::domain::id::{CompanionId, GuildId};
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::ports::language_model::{Answer, Draft, Identity, LanguageModel, ModelRole, NoAnswer, Request, TokenUsage};

/// Longer than any caller waits.
const FOR_EVER: Duration = Duration::from_secs(86_400);

pub(super) struct SimModel {
    stage: Arc<Stage>,
    identity: Identity,
    /// How often the same question was asked.
    asked: Mutex<BTreeMap<u64, u64>>,
    calls_in_flight: Arc<AtomicI64>,
}

struct CallInFlight(Arc<AtomicI64>);

impl Drop for CallInFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SimModel {
    pub(super) fn new(stage: Arc<Stage>, name: &str) -> Arc<Self> {
        let identity = Identity { provider: "simulated".into(), model: name.into(), endpoint: name.into() };
        Arc::new(Self { stage, identity, asked: Mutex::default(), calls_in_flight: Arc::default() })
    }

    /// The number of calls in flight.
    pub(super) fn calls_in_flight(&self) -> i64 {
        self.calls_in_flight.load(Ordering::Relaxed)
    }

    /// The random numbers depend on the question and how often it was asked, so that the order of callers does not matter.
    fn dice(&self, request: &Request) -> Dice {
        let companion_id = request.companion.as_ref().map_or("", |companion| companion.id.as_str());
        let purpose = match &context(request).purpose {
            // Without `tries`: nobody asks for another statement in a simulation.
            Purpose::Statement { trigger, closing, .. } => format!("Statement {{ trigger: {trigger:?}, closing: {closing:?} }}"),
            purpose => format!("{purpose:?}"),
        };
        let what = hash(format!("{} {companion_id} {purpose} {}", request.guild, request.user()).as_bytes());
        let mut asked = lock(&self.asked);
        let times = asked.entry(what).or_default();
        *times += 1;
        Dice::new(self.stage.plan.seed ^ what.rotate_left(17) ^ *times, "model")
    }

    fn check(&self, request: &Request) {
        let plan = &self.stage.plan;
        let guild = request.guild.as_str();
        let newest = context(request).newest.iter().map(|line| &*line.text);
        let (system, user) = (request.messages[0].words(), request.user());
        for text in [&*system, &*user].into_iter().chain(newest) {
            if let Some(word) = plan.foreign_word(guild, text) {
                self.stage.violate(format!("a prompt of guild {guild} holds {word:?}, a word of another guild"));
            }
        }
    }

    /// Notes a fault of the main model alone: questions to the side model may stay unanswered.
    fn note(&self, request: &Request, what: impl FnOnce(GuildId, Option<CompanionId>) -> FaultKind) {
        if request.role == ModelRole::Main {
            let companion = request.companion.as_ref().map(|companion| companion.id.clone());
            self.stage.note_fault(what(request.guild.clone(), companion));
        }
    }

    fn words(&self, request: &Request, dice: &mut Dice) -> String {
        let weather = &self.stage.plan.weather;
        let word = self.stage.plan.word_of(request.guild.as_str());
        let is_calm = self.stage.is_calm();
        if !is_calm && dice.chance(weather.malformed) {
            self.stage.reach("malformed answer");
            self.note(request, |guild, companion| FaultKind::Wordless { guild, companion });
            return dice
                .pick(&[
                    "",
                    "  \n ",
                    "maybe",
                    "{\"decision\": \"YE",
                    "{\"reason\": \"x\"}",
                    "<think>YES",
                    "[1, 2",
                    "\u{0}\u{7}",
                    "YES NO",
                ])
                .to_string();
        }
        let decide =
            |dice: &mut Dice| if dice.chance(if is_calm { 0.15 } else { weather.wants_to_speak }) { "YES" } else { "NO" };
        let decision = decide(dice);
        match &context(request).purpose {
            Purpose::Vote { .. } => {
                let vote = self.vote(decision, word, dice);
                match dice.below(8) {
                    0 => format!("So says {word}.\n{decision}"),
                    1 => format!("Well: ```json\n{vote}\n```"),
                    _ => vote.to_string(),
                }
            }
            Purpose::Votes { of } => {
                let mut votes = serde_json::Map::new();
                for (voter, _) in of {
                    if is_calm || !dice.chance(weather.malformed) {
                        let decision = decide(dice);
                        votes.insert(voter.id.to_string(), self.vote(decision, word, dice));
                    }
                }
                serde_json::Value::Object(votes).to_string()
            }
            Purpose::Statement { .. } => self.statement(word, dice),
            Purpose::Notes => note_of(&request.user(), word),
            Purpose::Summary | Purpose::Brief | Purpose::Caption => format!("They talked of {word}."),
            Purpose::Judgement => dice.pick(&["0.1", "It is.\n0.9", "1", "who knows", ""]).to_string(),
        }
    }

    fn vote(&self, decision: &str, word: &str, dice: &mut Dice) -> serde_json::Value {
        let closing = match dice.chance(self.stage.plan.weather.closes) {
            true => *dice.pick(&["pre-closing", "closing", "terminal"]),
            false => "none",
        };
        let (importance, selected) = (dice.below(14) as f64 - 2.0, dice.chance(0.1));
        json!({
            "reason": format!("So says {word}."), "decision": decision, "importance": importance, "selected": selected,
            "closing": closing,
        })
    }

    fn statement(&self, word: &str, dice: &mut Dice) -> String {
        let weather = &self.stage.plan.weather;
        if dice.chance(weather.repeats) {
            return format!("{word}, {word}, always {word}.");
        }
        let whom = if dice.chance(weather.names_others) { dice.pick(&CAST).1 } else { "friends" };
        let unique = dice.next() % 1_000_000;
        let sentence = format!("I say {word} {unique}, {whom}. ");
        if word == calls::WORD {
            // Long enough to be interrupted.
            return sentence.repeat(dice.between(1, 8) as usize);
        }
        if dice.chance(0.15) { sentence.repeat(dice.between(2, 12) as usize) } else { sentence }
    }
}

/// A note about the first line of a talk that has a word.
fn note_of(prompt: &str, word: &str) -> String {
    let line = prompt.lines().find_map(|line| {
        let (begin, text) = line.split_once(": \"")?;
        let (number, who) = begin.split_once(' ')?;
        text.contains(word).then_some((number.parse::<u64>().ok()?, who))
    });
    let note = |(number, who)| json!({ "about": who, "text": format!("{who} spoke of {word}."), "from": [number] });
    line.map(note).unwrap_or_default().to_string()
}

#[async_trait]
impl LanguageModel for SimModel {
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        *self.stage.notes().asked.entry((self.stage.life(), request.role.as_str())).or_default() += 1;
        self.stage.alive().await;
        self.calls_in_flight.fetch_add(1, Ordering::Relaxed);
        let _under_way = CallInFlight(self.calls_in_flight.clone());
        self.check(request);
        self.stage.beat(Beat::Asked);
        let mut dice = self.dice(request);
        let weather = &self.stage.plan.weather;
        let is_calm = self.stage.is_calm();
        let mut takes = dice.millis(1, weather.model_millis.max(2));
        if !is_calm && dice.chance(weather.model_hangs) {
            self.stage.reach("model hangs or is late");
            takes = if dice.chance(0.5) { FOR_EVER } else { Duration::from_secs(dice.between(5, 130)) };
        }
        let is_long = request.role == ModelRole::Main && dice.clone().chance(weather.long_statements);
        if !is_calm && is_long && takes < FOR_EVER {
            takes = takes.max(Dice::new(dice.clone().next(), "long statement").millis(5_000, 90_000));
        }
        self.note(request, |_, _| FaultKind::Called(takes));
        self.stage.pass(takes).await;
        if !is_calm && dice.chance(weather.model_panics) {
            self.stage.reach("model panics");
            let (now, life) = (self.stage.now(), self.stage.life());
            self.stage.notes().panicked.push((now, life, request.role.as_str()));
            self.note(request, |guild, companion| FaultKind::Failed { code: "unreachable", guild, companion });
            std::panic::resume_unwind(Box::new("a call panics, as the simulation planned"));
        }
        self.stage.beat(Beat::Answered);
        if !is_calm && dice.chance(weather.model_errors) {
            self.stage.reach("model error");
            let (endpoint, detail) = (self.identity.endpoint.clone(), "as the simulation planned".to_owned());
            let error = match dice.below(4) {
                0 => NoAnswer::Unreachable { endpoint, detail },
                1 => NoAnswer::Refused { endpoint, detail },
                2 => NoAnswer::Overloaded { endpoint, detail, retry_after: None },
                _ => NoAnswer::Overloaded { endpoint, detail, retry_after: Some(dice.millis(1, 30_000)) },
            };
            self.note(request, |guild, companion| FaultKind::Failed { code: error.code(), guild, companion });
            return Err(error);
        }
        let text = self.words(request, &mut dice);
        let mut pen = Dice::new(dice.clone().next(), "pen");
        let written = if !is_calm && request.role == ModelRole::Main && pen.chance(0.5) { text.len() / 2 } else { 0 };
        let (first, rest) = text.split_at(text.floor_char_boundary(written));
        if !first.is_empty() {
            drop(drafts.map(|drafts| drafts.send(Draft::More(first.to_owned()))));
            self.stage.pass(pen.millis(100, 3_000)).await;
            if pen.chance(weather.model_errors) {
                self.stage.reach("model lost while it writes");
                let detail = "as the simulation planned".to_owned();
                let error = NoAnswer::Unreachable { endpoint: self.identity.endpoint.clone(), detail };
                self.note(request, |guild, companion| FaultKind::Failed { code: error.code(), guild, companion });
                return Err(error);
            }
        }
        drop(drafts.map(|drafts| drafts.send(Draft::More(rest.to_owned()))));
        let usage = TokenUsage::new(20, 5);
        Ok(Answer::of_text(text, usage))
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

fn context(request: &Request) -> &QuestionContext {
    request.extensions.get().expect("every question has a context")
}
