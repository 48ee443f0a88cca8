//! The built-in model: no network, no weights, the same words for the same question.
//!
//! It plays a companion well enough to show the whole machine moving, and says in every record that it is a rehearsal.

mod among;
mod ballot;
mod decide;
mod dice;
mod hearing;
mod kind;
mod phrases;
mod temper;
mod topic;

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::time::sleep;

use self::dice::Dice;
use self::hearing::Hearing;
use self::temper::Temper;
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::domain::repetition;
use crate::ports::language_model::{Answer, Draft, Identity, LanguageModel, NoAnswer, Request, Usage};
use crate::settings::models;

/// A quick person's decision, in seconds.
const DECISION_SECS: (f64, f64) = (0.4, 0.9);

/// A quick person's statement, in seconds.
const STATEMENT_SECS: (f64, f64) = (1.5, 3.0);

/// The part of a statement's time that passes before its first word.
const THINKING: f64 = 0.3;

/// The built-in model.
pub struct Rehearsal {
    seed: u64,
    pace: f64,
    identity: Identity,
}

impl Rehearsal {
    /// Plays at the pace of the settings; at pace 0 it answers at once.
    pub fn new(settings: &models::Rehearsal) -> Self {
        let name = || "rehearsal".into();
        let identity = Identity { provider: name(), model: name(), endpoint: name() };
        Self { seed: settings.seed, pace: settings.pace, identity }
    }

    async fn pass(&self, secs: f64) {
        let span = models::seconds(secs * self.pace);
        if !span.is_zero() {
            sleep(span).await;
        }
    }

    async fn say(&self, text: &str, secs: f64, drafts: Option<&mpsc::UnboundedSender<Draft>>) {
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        self.pass(secs * THINKING).await;
        for word in &words {
            self.pass(secs * (1.0 - THINKING) / words.len() as f64).await;
            drop(drafts.map(|drafts| drafts.send(Draft::More((*word).to_owned()))));
        }
    }
}

#[async_trait]
impl LanguageModel for Rehearsal {
    async fn ask(&self, request: &Request, drafts: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let Some(context) = request.extensions.get::<QuestionContext>() else {
            let detail = "it answers nothing but what companions and their rooms ask".to_owned();
            return Err(NoAnswer::Refused { endpoint: self.identity.endpoint.clone(), detail });
        };
        let mut dice = Dice::of(self.seed, request, context);
        let hearing = Hearing::of(request, context);
        let temper = Temper::of(context);
        let (text, secs) = match context.purpose {
            Purpose::Decision { trigger } => (decide::decision(trigger, &hearing, temper, &mut dice), DECISION_SECS),
            Purpose::Vote { trigger } => (ballot::vote(trigger, &hearing, temper, &mut dice), DECISION_SECS),
            Purpose::Statement { closing, .. } => (phrases::statement(&hearing, temper, closing, &mut dice), STATEMENT_SECS),
            Purpose::Summary => (summary(&request.user()), DECISION_SECS),
            Purpose::Judgement => (judgement(context), DECISION_SECS),
        };
        self.say(&text, dice.between(secs), drafts).await;
        let usage = Usage::estimate(request, &text);
        let model = Some(self.identity.model.to_string());
        Ok(Answer { model, finish_reason: Some("stop".to_owned()), ..Answer::of_text(text, usage) })
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// The score of the judge that needs no model, with a sentence before it.
fn judgement(context: &QuestionContext) -> String {
    let texts: Vec<&str> = context.newest.iter().map(|line| &*line.text).collect();
    let score = repetition::lexical(&texts);
    let found = if score > repetition::THRESHOLD { "They say the same again and again." } else { "They say different things." };
    format!("{found}\n{score}")
}

/// A few of the lines, from the first to the last, each cut short.
fn summary(text: &str) -> String {
    const LINES: usize = 5;
    const CHARS: usize = 120;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let step = lines.len().div_ceil(LINES).max(1);
    let kept: Vec<String> = lines.iter().step_by(step).map(|line| line.chars().take(CHARS).collect()).collect();
    format!("In short: {}", kept.join(" / "))
}
