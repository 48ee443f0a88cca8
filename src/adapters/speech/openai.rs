//! Recognition and synthesis at any server with OpenAI's audio API.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/audio>. Each request contains one stretch of speech, or one
//! sentence.

mod pcm;
mod recognition;
mod recorder;
mod synthesis;
mod transcript;
mod upload;

#[cfg(test)]
mod fake;
#[cfg(test)]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::time::{Instant, timeout_at};

pub use self::recognition::OpenAiRecognition;
pub use self::synthesis::OpenAiSynthesis;
use super::service::At;
use crate::adapters::endpoint::body;
use crate::adapters::endpoint::failure::Broken;
use crate::adapters::endpoint::service::Service;
use crate::ports::language_model::NoAnswer;
use crate::settings::Problem;

const PROVIDER: &str = "openai";

/// One path of the API.
struct Server {
    service: Service,
    url: Url,
    model: Arc<str>,
    timeout: Duration,
}

/// A response without a success status.
struct Refusal {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Server {
    fn new(at: At, path: &str) -> Result<Self, Problem> {
        let At { base_url, model, key, timeout, authorities, .. } = at;
        let service = Service::openai(base_url, key, &authorities)?;
        Ok(Self { url: service.beneath(path), service, model, timeout })
    }

    /// Posts a body. Waits for the head of a success response, or for the whole of any other response.
    async fn post(&self, media_type: &str, body: Vec<u8>, by: Instant) -> Result<Result<Response, Refusal>, NoAnswer> {
        let Service { http, headers, failures, .. } = &self.service;
        let request =
            http.request(Method::POST, self.url.clone()).headers(headers.clone()).header(CONTENT_TYPE, media_type).body(body);
        let response = match timeout_at(by, http.send(request)).await {
            Ok(sent) => sent.map_err(|broke| failures.of_connection(broke))?,
            Err(_) => return Err(self.late()),
        };
        if response.status().is_success() {
            return Ok(Ok(response));
        }
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Err(Refusal { status, headers, body: body::of_error(response, by).await }))
    }

    fn refused(&self, refusal: &Refusal) -> NoAnswer {
        self.service.failures.of_status(refusal.status, &refusal.headers, &refusal.body)
    }

    fn broken(&self, broken: Broken) -> NoAnswer {
        self.service.failures.in_answer(broken)
    }

    const fn late(&self) -> NoAnswer {
        NoAnswer::TimedOut { after: self.timeout }
    }
}
