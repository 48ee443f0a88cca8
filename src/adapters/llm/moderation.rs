//! A client for OpenAI's moderations API, which other services offer, too.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/moderations>. Mistral's answers have no `flagged`, and some servers
//! name no category.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Certificate, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::adapters::endpoint::body;
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::service::Service;
use crate::ports::language_model::NoAnswer;
use crate::ports::moderation::Moderation;
use crate::settings::Problem;
use crate::settings::models::{self, parsed_base_url};

/// The longest response.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// The longest pause in a response. The caller's timeout is shorter.
const IDLE: Duration = Duration::from_secs(10);
/// The longest name of a category.
const MAX_CATEGORY_BYTES: usize = 64;
/// The category if the service names none.
const UNNAMED: &str = "unnamed";

pub struct OpenAiModeration {
    service: Service,
    model: Option<String>,
}

#[derive(Serialize)]
struct Question<'a> {
    input: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Verdict>,
}

#[derive(Deserialize)]
struct Verdict {
    flagged: Option<bool>,
    /// An object with a boolean for each category, or a list of the categories that apply.
    #[serde(default)]
    categories: Value,
    /// The categories that apply, in Llama's API.
    #[serde(default)]
    flagged_categories: Value,
    #[serde(default)]
    category_scores: Value,
}

impl OpenAiModeration {
    /// A client of the configured service. It trusts these authorities in addition to those of the machine.
    ///
    /// # Errors
    /// Returns an error if the address or the key cannot be used.
    pub fn new(settings: &models::moderation::Moderation, authorities: &[Certificate]) -> Result<Self, Problem> {
        let service = Service::openai(parsed_base_url(&settings.base_url)?, settings.key()?, authorities)?;
        Ok(Self { service, model: settings.model.clone() })
    }
}

#[async_trait]
impl Moderation for OpenAiModeration {
    async fn refusal_of(&self, text: &str) -> Result<Option<Arc<str>>, NoAnswer> {
        let Service { http, headers, failures, .. } = &self.service;
        let question = serde_json::to_vec(&Question { input: text, model: self.model.as_deref() });
        let question = question.map_err(|error| failures.in_answer(Broken::Request(error.to_string())))?;
        let request = http.request(Method::POST, self.service.beneath("moderations")).headers(headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(question);
        let response = http.send(request).await.map_err(|broke| failures.of_connection(broke))?;
        let (status, headers) = (response.status(), response.headers().clone());
        if !status.is_success() {
            let told = body::of_error(response, Instant::now() + IDLE).await;
            return Err(failures.of_status(status, &headers, &told));
        }
        let answer = body::whole(response, MAX_ANSWER_BYTES, IDLE, failures).await?;
        let garbled = |why: String| failures.in_answer(Broken::garbled(why, &answer));
        let Answer { results } = serde_json::from_slice(&answer).map_err(|error| garbled(error.to_string()))?;
        if results.is_empty() || results.iter().any(|verdict| verdict.flagged.is_none() && verdict.listed().is_null()) {
            return Err(garbled("it has no verdict".to_owned()));
        }
        Ok(results.iter().find_map(Verdict::category))
    }
}

impl Verdict {
    fn listed(&self) -> &Value {
        if self.categories.is_null() { &self.flagged_categories } else { &self.categories }
    }

    /// The category with the highest score. `None`: the text is accepted.
    fn category(&self) -> Option<Arc<str>> {
        let score = |name: &str| self.category_scores[name].as_f64().unwrap_or_default();
        let refused: Vec<&str> = match self.listed() {
            Value::Object(all) => all.iter().filter(|(_, is_refused)| **is_refused == true).map(|(name, _)| &**name).collect(),
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let heaviest = refused.into_iter().max_by(|one, other| score(one).total_cmp(&score(other)));
        let is_flagged = self.flagged.unwrap_or(heaviest.is_some());
        // Any other text might be a quotation of the statement.
        let is_name = |name: &&str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/ ".contains(&byte);
            name.len() <= MAX_CATEGORY_BYTES && name.bytes().all(is_part)
        };
        is_flagged.then(|| heaviest.filter(is_name).unwrap_or(UNNAMED).into())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;
    use axum::{Json, Router};
    use parking_lot::Mutex;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    /// What a service says that gives this answer, and the body of the request that it got.
    async fn asked(status: u16, answer: &'static str) -> (Result<Option<Arc<str>>, NoAnswer>, Value) {
        let got = Arc::new(Mutex::new(Value::Null));
        let record = got.clone();
        let answer = move |headers: HeaderMap, Json(body): Json<Value>| async move {
            *record.lock() = json!({ "key": headers["authorization"].to_str().unwrap(), "body": body });
            (StatusCode::from_u16(status).unwrap(), answer)
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let serving = tokio::spawn(axum::serve(listener, Router::new().route("/v1/moderations", post(answer))).into_future());
        let settings = models::moderation::Moderation {
            base_url,
            model: Some("omni".to_owned()),
            api_key: Some("sk-mod".into()),
            api_key_file: None,
        };
        let said = OpenAiModeration::new(&settings, &[]).unwrap().refusal_of("Hm?").await;
        serving.abort();
        let got = got.lock().clone();
        (said, got)
    }

    #[tokio::test]
    async fn a_service_is_asked_about_the_text_with_the_key_and_its_errors_are_no_verdict() {
        let refused = r#"{"results": [{"flagged": false}, {"flagged": true, "categories": {"violence": true}}]}"#;

        let (verdict, got) = asked(200, refused).await;

        assert_eq!(verdict.unwrap().as_deref(), Some("violence"));
        assert_eq!(got, json!({ "key": "Bearer sk-mod", "body": { "input": "Hm?", "model": "omni" } }));
        assert_eq!(asked(200, r#"{"results": [{"flagged": false}]}"#).await.0.unwrap(), None);
        for (status, answer, error) in [
            (401, r#"{"error": {"message": "Incorrect API key: sk-mod"}}"#, "key_rejected"),
            // anything-llm 251.
            (429, "{}", "overloaded"),
            (429, r#"{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}"#, "no_credit"),
            (
                400,
                r#"{"error": {"code": "context_length_exceeded", "message": "maximum context length is 32768 tokens"}}"#,
                "refused",
            ),
            (404, "Not Found", "unknown_model"),
            (200, r#"{"results": []}"#, "refused"),
            (200, r#"{"results": [{"verdict": "bad"}]}"#, "refused"),
            (200, "<html>", "refused"),
        ] {
            let failed = asked(status, answer).await.0.unwrap_err();
            assert!(failed.code() == error && !failed.to_string().contains("sk-mod"), "{status} {answer}: {failed}");
        }
    }

    fn category(verdict: serde_json::Value) -> Option<Arc<str>> {
        serde_json::from_value::<Verdict>(verdict).unwrap().category()
    }

    #[test]
    fn verdicts_of_several_makes_are_read() {
        let openai = json!({
            "flagged": true,
            "categories": { "harassment": true, "violence": true, "sexual": false },
            "category_scores": { "harassment": 0.52, "violence": 0.9, "sexual": 0.01 },
            "category_applied_input_types": { "violence": ["text"] },
        });
        let mistral = json!({ "categories": { "pii": true, "law": false }, "category_scores": { "pii": 0.8, "law": 0.1 } });

        // openai-python 1786 (categories without a verdict), openai-node 223 (unknown categories).
        let unrated = json!({
            "flagged": true,
            "categories": { "illicit": null, "new/kind": true, "illicit/violent": true },
            "category_scores": { "illicit": null, "new/kind": null, "illicit/violent": 0.6 },
        });
        assert_eq!(category(unrated).as_deref(), Some("illicit/violent"));
        // llama-api-python 33.
        assert_eq!(category(json!({ "flagged": false, "flagged_categories": null })), None);
        let llama = json!({ "flagged": true, "flagged_categories": ["indiscriminate-weapons"] });
        assert_eq!(category(llama).as_deref(), Some("indiscriminate-weapons"));
        assert_eq!(category(openai).as_deref(), Some("violence"));
        assert_eq!(category(mistral).as_deref(), Some("pii"));
        assert_eq!(category(json!({ "flagged": true })).as_deref(), Some(UNNAMED));
        assert_eq!(category(json!({ "flagged": true, "categories": { "sexual/minors": null } })).as_deref(), Some(UNNAMED));
        assert_eq!(category(json!({ "flagged": true, "categories": ["S1"] })).as_deref(), Some("S1"));
        assert_eq!(category(json!({ "categories": { "pii": false } })), None);
        let below = json!({ "flagged": false, "categories": { "violence": true } });
        assert_eq!(category(below), None, "what a service flags is its own decision");
        for name in ["a".repeat(65), "what she\nwrote".to_owned()] {
            assert_eq!(category(json!({ "categories": { name: true } })).as_deref(), Some(UNNAMED));
        }
    }
}
