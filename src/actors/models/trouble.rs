//! Remembers which models give no answer, and why; says so when it begins, changes or ends, and not with every call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actors::messages::models::Trouble;
use crate::domain::id::ModelName;
use crate::domain::service::ServiceEndpoint;
use crate::ports::language_model::{ModelRole, NoAnswer};

/// The models that gave no answer when they were called last.
#[derive(Debug, Default)]
pub(super) struct Troubles(BTreeMap<(ServiceEndpoint, ModelRole, ModelName), Known>);

#[derive(Debug)]
struct Known {
    trouble: Trouble,
    /// What was said of it in the log: each kind of failure once, until it is over.
    told: BTreeSet<&'static str>,
}

impl Troubles {
    /// A call to a model ended, with an answer or without.
    pub(super) fn learn(
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
            // That nobody wants it any more says nothing about who was asked.
            Some(NoAnswer::Cancelled) => {}
            Some(failure) => {
                let mut told = self.0.remove(&key).map(|known| known.told).unwrap_or_default();
                let in_our_words = in_words(endpoint, role, name, failure, failure.in_our_words());
                if told.insert(failure.code()) {
                    let (role, detail) = (role.as_str(), &*in_our_words);
                    tracing::warn!(
                        role,
                        model = &**model,
                        detail,
                        "a model gives no answer; it is asked again, later and later; /readyz shows what it said"
                    );
                }
                let detail = in_words(endpoint, role, name, failure, failure.to_string());
                let (name, model) = (name.clone(), model.clone());
                self.0.insert(key, Known { trouble: Trouble { role, name, model, detail, in_our_words }, told });
            }
            None => {
                if self.0.remove(&key).is_some() {
                    tracing::info!(role = role.as_str(), model = &**model, endpoint, "a model answers again");
                }
            }
        }
    }

    /// All of them, by endpoint.
    pub(super) fn all(&self) -> Vec<Trouble> {
        self.0.values().map(|known| known.trouble.clone()).collect()
    }
}

fn in_words(endpoint: &str, role: ModelRole, name: &ModelName, failure: &NoAnswer, words: String) -> String {
    match failure {
        NoAnswer::TimedOut { .. } => format!(
            "{endpoint}: {words}; is it still loading, or too busy? models.{name}.first_token_timeout_secs and {timeout} say how \
             long is waited for it",
            // How long a question may take is a matter of its role.
            timeout =
                if *name == role.into() { ".timeout_secs".to_owned() } else { format!("models.{}.timeout_secs", role.as_str()) }
        ),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::service::Service;
    use crate::telemetry::memory::Lines;

    fn here() -> ServiceEndpoint {
        ServiceEndpoint { service: Service::LanguageModel, endpoint: "http://here".into() }
    }

    fn model() -> Arc<str> {
        "m".into()
    }

    #[test]
    fn an_hour_of_trouble_is_told_when_it_begins_and_when_it_ends() {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
        let refused = NoAnswer::Refused { endpoint: "http://here".into(), detail: "400: “you said sesame”".into() };
        let gone = NoAnswer::Unreachable { endpoint: "http://here".into(), detail: "it is off".into() };
        let mut troubles = Troubles::default();

        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..1_000 {
                troubles.learn(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), Some(&refused));
                troubles.learn(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), Some(&gone));
            }
            troubles.learn(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), None);
            troubles.learn(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), None);
        });

        let said = lines.text();
        let levels: Vec<_> = said.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(levels, ["WARN", "WARN", "INFO"], "each kind of failure once:\n{said}");
        assert!(!said.contains("sesame"), "{said}");
    }

    #[test]
    fn a_trouble_lasts_until_that_role_is_answered_there() {
        let mut troubles = Troubles::default();

        troubles.learn(
            &here(),
            &model(),
            ModelRole::Side,
            &ModelRole::Side.into(),
            Some(&NoAnswer::TimedOut { after: Duration::from_secs(4) }),
        );
        troubles.learn(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), Some(&NoAnswer::Cancelled));
        troubles.learn(&here(), &model(), ModelRole::Main, &ModelRole::Main.into(), None);
        let during = troubles.all();
        troubles.learn(&here(), &model(), ModelRole::Side, &ModelRole::Side.into(), None);

        assert_eq!(during.len(), 1);
        assert!(during[0].detail.starts_with("http://here: no answer within 4.0 s; "), "{}", during[0].detail);
        assert!(during[0].detail.contains("models.side.first_token_timeout_secs"), "{}", during[0].detail);
        assert_eq!(troubles.all(), []);
    }
}
