//! The models that an endpoint has: `GET /models`.

use reqwest::StatusCode;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::OpenAi;
use crate::adapters::endpoint::body;
use crate::adapters::endpoint::failure::{Broken, shortened};
use crate::ports::language_model::NoAnswer;

/// No more of them are shown.
const MOST_NAMES: usize = 2_000;
/// A longer name is of no model.
const MAX_NAME_CHARS: usize = 200;
/// A longer list is refused.
const MAX_BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize)]
struct List {
    data: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

impl OpenAi {
    /// The names of its models, in the order of the alphabet.
    ///
    /// # Errors
    /// The endpoint cannot be reached, refuses, or has no such list.
    pub async fn names(&self) -> Result<Vec<String>, NoAnswer> {
        let by = Instant::now() + self.first_token_timeout;
        timeout_at(by, self.names_by(by)).await.unwrap_or_else(|_| Err(self.no_first_token()))
    }

    async fn names_by(&self, by: Instant) -> Result<Vec<String>, NoAnswer> {
        let sent = self.http.get(self.names_url.clone()).headers(self.headers()?).send().await;
        let response = sent.map_err(|broke| self.failures.of_connection(broke))?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status != StatusCode::OK {
            let body = body::of_error(response, by).await;
            return Err(self.failures.of_status(status, &headers, &body));
        }
        let body = body::whole(response, MAX_BYTES, self.idle_timeout, &self.failures).await?;
        let list: List =
            serde_json::from_slice(&body).map_err(|error| self.failures.in_answer(Broken::garbled(error.to_string(), &body)))?;
        let mut names: Vec<_> = list.data.into_iter().map(|named| shortened(&named.id, MAX_NAME_CHARS)).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(MOST_NAMES);
        Ok(names)
    }
}
