//! Remembers which models fail, and why. It logs when a failure begins, changes or ends, instead of logging every call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actors::messages::models::Trouble;
use crate::domain::id::ModelName;
use crate::domain::service::ServiceEndpoint;
use crate::ports::language_model::{ModelRole, NoAnswer};

/// The models whose last call failed.
#[derive(Debug, Default)]
pub(super) struct FailingModels(BTreeMap<(ServiceEndpoint, ModelRole, ModelName), Failure>);

#[derive(Debug)]
struct Failure {
    trouble: Trouble,
    /// The error codes that were logged. Each is logged once until the model answers again.
    logged_codes: BTreeSet<&'static str>,
}

impl FailingModels {
    /// Notes the result of a call to a model.
    pub(super) fn note_result(
        &mut self,
        at: &ServiceEndpoint,
        model: &Arc<str>,
        role: ModelRole,
        name: &ModelName,
        failure: Option<&NoAnswer>,
    ) {
        let key = (at.clone(), role, name.clone());
        let endpoint = &*at.endpoint;
        match failure {
            // These errors say nothing about the model.
            Some(NoAnswer::Cancelled | NoAnswer::Filtered { .. }) => {}
            Some(failure) => {
                let mut logged_codes = self.0.remove(&key).map(|failure| failure.logged_codes).unwrap_or_default();
                if logged_codes.insert(failure.code()) {
                    let detail = describe(endpoint, role, name, failure, failure.in_our_words());
                    let role = role.as_str();
                    tracing::warn!(
                        role,
                        model = &**model,
                        detail,
                        "a model gives no answer; it is asked again after growing back-offs; /readyz shows its error"
                    );
                }
                let detail = describe(endpoint, role, name, failure, failure.to_string());
                let (name, model) = (name.clone(), model.clone());
                self.0
                    .insert(key, Failure { trouble: Trouble { role, name, model, code: failure.code(), detail }, logged_codes });
            }
            None => {
                if self.0.remove(&key).is_some() {
                    tracing::info!(role = role.as_str(), model = &**model, endpoint, "a model answers again");
                }
            }
        }
    }

    /// All failing models, by endpoint.
    pub(super) fn all(&self) -> Vec<Trouble> {
        self.0.values().map(|failure| failure.trouble.clone()).collect()
    }
}

fn describe(endpoint: &str, role: ModelRole, name: &ModelName, failure: &NoAnswer, words: String) -> String {
    match failure {
        NoAnswer::TimedOut { .. } => format!(
            "{endpoint}: {words}; is it still loading, or too busy? models.{name}.first_token_timeout_secs and {timeout} limit how \
             long the server waits for it",
            // The key of a question's timeout depends on its role.
            timeout =
                if *name == role.into() { ".timeout_secs".to_owned() } else { format!("models.{}.timeout_secs", role.as_str()) }
        ),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tracing::Level;

    use super::*;
    use crate::domain::service::Service;
    use crate::telemetry::fake::Logged;

    fn here() -> ServiceEndpoint {
        ServiceEndpoint { service: Service::LanguageModel, endpoint: "http://here".into() }
    }

    fn model() -> Arc<str> {
        "m".into()
    }

    #[test]
    fn a_lasting_failure_is_logged_when_it_begins_and_when_it_ends() {
        let refused = NoAnswer::Refused { endpoint: "http://here".into(), detail: "400: “you log sesame”".into() };
        let gone = NoAnswer::Unreachable { endpoint: "http://here".into(), detail: "it is off".into() };
        let mut failing_models = FailingModels::default();

        let logged = Logged::from(Level::INFO);
        for _ in 0..1_000 {
            failing_models.note_result(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), Some(&refused));
            failing_models.note_result(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), Some(&gone));
        }
        failing_models.note_result(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), None);
        failing_models.note_result(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), None);

        let log = logged.read();
        let levels: Vec<_> = log.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(levels, ["WARN", "WARN", "INFO"], "each kind of failure once:\n{log}");
        assert!(!log.contains("sesame"), "{log}");
    }

    #[test]
    fn a_failure_lasts_until_the_model_answers_in_that_role() {
        let mut failing_models = FailingModels::default();

        failing_models.note_result(
            &here(),
            &model(),
            ModelRole::Side,
            &ModelRole::Side.into(),
            Some(&NoAnswer::TimedOut { after: Duration::from_secs(4) }),
        );
        failing_models.note_result(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), Some(&NoAnswer::Cancelled));
        failing_models.note_result(&here(), &model(), ModelRole::Main, &ModelRole::Main.into(), None);
        let during = failing_models.all();
        failing_models.note_result(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), None);

        assert_eq!(during.len(), 1);
        assert!(during[0].detail.starts_with("http://here: no answer within 4.0 s; "), "{}", during[0].detail);
        assert!(during[0].detail.contains("models.side.first_token_timeout_secs"), "{}", during[0].detail);
        assert_eq!(failing_models.all(), []);
    }
}
