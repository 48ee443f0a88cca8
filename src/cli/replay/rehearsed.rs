//! Answers the questions of a replay with the built-in model `rehearsal` where the script has no answers.

use std::time::Duration;

use futures_util::FutureExt as _;

use crate::adapters::llm::rehearsal::Rehearsal;
use crate::domain::closing::Stage;
use crate::domain::conversation::Conversation;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::Message;
use crate::domain::model_role::ModelRole;
use crate::domain::question_context::{Line, Purpose, QuestionContext};
use crate::ports::language_model::{Asker, LanguageModel as _, Request};
use crate::replay::{Answer, Question, Responder, Script, ScriptedAnswers};
use crate::settings::models;

/// The response times in the replay.
const DECISION: Duration = Duration::from_millis(650);
const STATEMENT: Duration = Duration::from_millis(2_250);

pub(super) struct Rehearsed<'a> {
    script: &'a Script,
    scripted: ScriptedAnswers<'a>,
    model: Rehearsal,
}

impl<'a> Rehearsed<'a> {
    pub(super) fn of(script: &'a Script) -> Self {
        // The replay adds the response times itself.
        let at_once = models::Rehearsal { pace: 0.0, ..script.settings.models.rehearsal.clone() };
        Self { script, scripted: ScriptedAnswers::of(script), model: Rehearsal::new(&at_once) }
    }

    fn ask(&self, role: ModelRole, companion: Option<&CompanionId>, purpose: Purpose, newest: Vec<Line>) -> Answer {
        let companion = companion.and_then(|id| self.script.companions.get(id));
        let asker = companion.map(|companion| Asker { id: companion.id.clone(), name: companion.name.clone() });
        let request = Request { companion: asker, ..Request::new(role, "replay".into(), u32::MAX) };
        let request = request.with(QuestionContext { purpose, newest });
        let answer = self.model.ask(&request, None).now_or_never();
        let outcome = match answer {
            Some(Ok(answer)) => Ok(answer.text().into_owned()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("rehearsal did not answer at once".to_owned()),
        };
        Answer { outcome, delay: if role == ModelRole::Main { STATEMENT } else { DECISION } }
    }
}

impl Responder for Rehearsed<'_> {
    fn answer(&mut self, question: Question<'_>, conversation: &Conversation) -> Answer {
        let role = match question {
            Question::Decision { .. } | Question::Judgement => ModelRole::Side,
            Question::Statement { .. } => ModelRole::Main,
        };
        if !self.script.unscripted.contains(&role) {
            return self.scripted.answer(question, conversation);
        }
        match question {
            Question::Decision { evaluated } => {
                let purpose = Purpose::Vote { trigger: evaluated.trigger };
                self.ask(role, Some(&evaluated.companion), purpose, lines_until(conversation, evaluated.upto))
            }
            Question::Statement { companion, trigger, messages } => {
                let closing = conversation.gate(companion).map_or(Stage::None, |gate| gate.stage);
                let upto = messages.last().copied().unwrap_or(conversation.handled());
                let purpose = Purpose::Statement { trigger, closing, tries: 0 };
                self.ask(role, Some(companion), purpose, lines_until(conversation, upto))
            }
            Question::Judgement => {
                let newest: Vec<_> = conversation.judged_statements().map(|(_, message)| message.clone()).collect();
                self.ask(role, None, Purpose::Judgement, Line::newest_of(newest.iter().map(|message| &**message)))
            }
        }
    }
}

/// The newest messages of the window up to `upto`.
fn lines_until(conversation: &Conversation, upto: Seq) -> Vec<Line> {
    let entries = conversation.window().entries().filter(|entry| entry.seq <= upto);
    Line::newest_of(entries.map(|entry| -> &Message { &entry.message }))
}
