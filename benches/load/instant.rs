//! A model that answers at once, so that the time of models is not measured.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::sync::mpsc;

use tertulia::domain::question_context::{Purpose, QuestionContext};
use tertulia::domain::trigger::Trigger;
use tertulia::ports::language_model::{Answer, Draft, Identity, LanguageModel, NoAnswer, Request};

/// One in this number of questions without a direct address is answered YES.
const YES_INTERVAL: u64 = 8;

/// Answers YES to each direct address, and to some other questions.
pub(super) struct Instant {
    identity: Identity,
    questions: AtomicU64,
}

impl Default for Instant {
    fn default() -> Self {
        let identity = Identity { provider: "bench".into(), model: "instant".into(), endpoint: "bench".into() };
        Self { identity, questions: AtomicU64::new(0) }
    }
}

impl Instant {
    fn wants_to_speak(&self, trigger: Trigger) -> bool {
        trigger == Trigger::DirectAddress || self.questions.fetch_add(1, Ordering::Relaxed).is_multiple_of(YES_INTERVAL)
    }
}

#[async_trait]
impl LanguageModel for Instant {
    async fn ask(&self, request: &Request, _: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let text = match request.extensions.get().map(|context: &QuestionContext| &context.purpose) {
            Some(Purpose::Vote { trigger }) if self.wants_to_speak(*trigger) => {
                r#"{"reason": "That is something for me.", "decision": "YES", "importance": 6, "selected": false, "closing": "none"}"#
            }
            Some(Purpose::Vote { .. }) => {
                r#"{"reason": "They talk to each other.", "decision": "NO", "importance": 2, "selected": false, "closing": "none"}"#
            }
            Some(Purpose::Statement { .. }) => {
                "I would have a look at it in the morning, when there is light and nobody is in a hurry."
            }
            Some(Purpose::Votes { .. }) => "{}",
            Some(Purpose::Notes) => "",
            Some(Purpose::Summary | Purpose::Brief | Purpose::Caption) => "They talked about buses, bread and bicycles.",
            Some(Purpose::Judgement) | None => "They say different things.\n0.1",
        };
        let text = text.to_owned();
        let usage = request.estimated_usage(&text);
        Ok(Answer::of_text(text, usage))
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}
