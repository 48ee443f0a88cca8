//! The built-in model: no network, no weights, and the same answer to the same question.
//!
//! It plays a companion well enough to demonstrate the whole system, and its records name it as a rehearsal.

mod ballot;
mod dice;
mod kind;
mod memory;
mod notes;
mod phrases;
mod situation;
mod tools;

#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::time::sleep;

use self::dice::Dice;
use self::situation::Situation;
use crate::domain::question_context::{Purpose, QuestionContext};
use crate::domain::repetition;
use crate::domain::vote::together::Voter;
use crate::ports::language_model::{Answer, Asker, Draft, Identity, LanguageModel, NoAnswer, Request};
use crate::settings::models;

/// The time that a quick person takes for a decision, in seconds.
const DECISION_SECS: (f64, f64) = (0.4, 0.9);

/// The time that a quick person takes for a statement, in seconds.
const STATEMENT_SECS: (f64, f64) = (1.5, 3.0);

/// The fraction of an answer's time that passes before its words begin.
const THINKING: f64 = 0.3;

pub struct Rehearsal {
    seed: u64,
    pace: f64,
    identity: Identity,
}

impl Rehearsal {
    /// A model that answers at the pace of the settings. At pace 0 it answers immediately.
    pub fn new(settings: &models::Rehearsal) -> Self {
        let name = || "rehearsal".into();
        let identity = Identity { provider: name(), model: name(), endpoint: name() };
        Self { seed: settings.seed, pace: settings.pace, identity }
    }

    async fn wait(&self, secs: f64) {
        let duration = crate::settings::duration(secs * self.pace);
        if !duration.is_zero() {
            sleep(duration).await;
        }
    }

    async fn say(&self, text: &str, secs: f64, drafts: Option<&mpsc::UnboundedSender<Draft>>) {
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        self.wait(secs * THINKING).await;
        for word in &words {
            self.wait(secs * (1.0 - THINKING) / words.len() as f64).await;
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
        let situation = Situation::of(request, context);
        let mut statement = String::new();
        if let &Purpose::Statement { tries, trigger, .. } = &context.purpose {
            let answered = tools::answered(request, context, trigger);
            let (calls, excuses) = tools::wanted(request, &answered);
            if !calls.is_empty() {
                self.wait(dice.between(DECISION_SECS)).await;
                let usage = request.estimated_usage(&calls.iter().map(|call| &*call.arguments).collect::<String>());
                let model = Some(self.identity.model.to_string());
                let finish_reason = Some("tool_calls".to_owned());
                return Ok(Answer { model, finish_reason, tool_calls: calls, ..Answer::of_text("", usage) });
            }
            let mut parts: Vec<String> = answered.reminders.iter().filter_map(tools::reminded).collect();
            let is_reminder = !parts.is_empty();
            parts.extend(tools::told(request).into_iter().chain(excuses));
            if parts.is_empty() {
                let remembered = memory::remembered(request, context, &situation).filter(|_| tries == 0);
                parts.push(remembered.unwrap_or_else(|| phrases::statement(&situation, tries, &mut dice)));
            } else if is_reminder && parts.len() == answered.reminders.len() && !answered.asked.is_empty() {
                // Whoever spoke beside the reminder is answered, too.
                let beside = QuestionContext { newest: answered.asked, purpose: context.purpose.clone() };
                parts.push(phrases::statement(&Situation::of(request, &beside), tries, &mut dice));
            }
            statement = parts.join("\n");
        }
        let (text, secs) = match &context.purpose {
            &Purpose::Vote { trigger } => (ballot::vote(trigger, &situation, &mut dice), DECISION_SECS),
            Purpose::Votes { of } => (votes(self.seed, request, of), DECISION_SECS),
            Purpose::Statement { .. } => (statement, STATEMENT_SECS),
            Purpose::Summary | Purpose::Brief | Purpose::Caption => (summary(&request.user()), DECISION_SECS),
            Purpose::Notes => (notes::notes(&request.user()), DECISION_SECS),
            Purpose::Judgement => (judgement(context), DECISION_SECS),
        };
        self.say(&text, dice.between(secs), drafts).await;
        let usage = request.estimated_usage(&text);
        let model = Some(self.identity.model.to_string());
        Ok(Answer { model, finish_reason: Some("stop".to_owned()), ..Answer::of_text(text, usage) })
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// One object with the vote of each companion. Each vote is the same as for a separate question.
fn votes(seed: u64, request: &Request, of: &[(Voter, QuestionContext)]) -> String {
    let alone = of.iter().filter_map(|(Voter { id, name }, context)| {
        let Purpose::Vote { trigger } = context.purpose else { return None };
        let request = Request { companion: Some(Asker { id: id.clone(), name: name.clone() }), ..request.clone() };
        let mut dice = Dice::of(seed, &request, context);
        let vote = ballot::vote(trigger, &Situation::of(&request, context), &mut dice);
        // A text can always be serialised.
        Some(format!("{}:{vote}", serde_json::to_string(id).unwrap_or_default()))
    });
    format!("{{{}}}", alone.collect::<Vec<_>>().join(","))
}

/// A sentence, followed by the score of the lexical judge.
fn judgement(context: &QuestionContext) -> String {
    let texts: Vec<&str> = context.newest.iter().map(|line| &*line.text).collect();
    let score = repetition::lexical(&texts);
    let verdict = if score > repetition::THRESHOLD { "They say the same again and again." } else { "They say different things." };
    format!("{verdict}\n{score}")
}

/// A few of the lines, evenly spaced from the first, each truncated.
fn summary(text: &str) -> String {
    const LINES: usize = 5;
    const CHARS: usize = 120;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let step = lines.len().div_ceil(LINES).max(1);
    let excerpts: Vec<String> = lines.iter().step_by(step).map(|line| line.chars().take(CHARS).collect()).collect();
    format!("In short: {}", excerpts.join(" / "))
}
