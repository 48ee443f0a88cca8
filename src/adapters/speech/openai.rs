//! Recognition and synthesis at any server that has OpenAI's API for audio.
//!
//! Protocol: <https://platform.openai.com/docs/api-reference/audio>. A request has one stretch of speech, or one sentence.

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

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use secrecy::SecretString;
use tokio::time::{Instant, timeout_at};

pub use self::recognition::OpenAiRecognition;
pub use self::synthesis::OpenAiSynthesis;
use super::service::At;
use crate::adapters::endpoint::address::{bearer, beneath, client, host};
use crate::adapters::endpoint::body;
use crate::adapters::endpoint::failure::{Broken, Failures, OPENAI};
use crate::ports::language_model::NoAnswer;
use crate::settings::Problem;

const PROVIDER: &str = "openai";

/// One path of the API.
struct Server {
    http: Client,
    url: Url,
    host: Option<Arc<str>>,
    model: Arc<str>,
    key: Option<SecretString>,
    timeout: Duration,
    failures: Failures,
}

/// A response that is no success.
struct Refusal {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Server {
    fn new(at: At, path: &str) -> Result<Self, Problem> {
        let At { base_url, model, key, timeout, authorities, .. } = at;
        let endpoint = base_url.origin().ascii_serialization().into();
        Ok(Self {
            http: client(&base_url, &authorities)?,
            url: beneath(&base_url, path),
            host: host(&base_url),
            failures: Failures::new(endpoint, key.clone()).with_api(OPENAI),
            model,
            key,
            timeout,
        })
    }

    /// Posts a body, and waits for the head of a response, or for all of one that is no success.
    async fn post(&self, media_type: &str, body: Vec<u8>, by: Instant) -> Result<Result<Response, Refusal>, NoAnswer> {
        let mut headers = bearer(self.key.as_ref()).map_err(|error| self.failures.in_answer(error))?;
        let media_type = HeaderValue::from_str(media_type);
        let media_type = media_type.map_err(|error| self.failures.in_answer(Broken::Request(error.to_string())))?;
        headers.insert(CONTENT_TYPE, media_type);
        let response = match timeout_at(by, self.http.post(self.url.clone()).headers(headers).body(body).send()).await {
            Ok(sent) => sent.map_err(|broke| self.failures.of_connection(broke))?,
            Err(_) => return Err(self.late()),
        };
        if response.status().is_success() {
            return Ok(Ok(response));
        }
        let (status, headers) = (response.status(), response.headers().clone());
        Ok(Err(Refusal { status, headers, body: body::of_error(response, by).await }))
    }

    fn refused(&self, refusal: &Refusal) -> NoAnswer {
        self.failures.of_status(refusal.status, &refusal.headers, &refusal.body)
    }

    fn broken(&self, broken: Broken) -> NoAnswer {
        self.failures.in_answer(broken)
    }

    const fn late(&self) -> NoAnswer {
        NoAnswer::TimedOut { after: self.timeout }
    }
}
