//! Asks a SearXNG. Its results are untrusted text; their addresses are never fetched.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Certificate, Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::content::Text;
use crate::domain::breaker::{Breaker, Verdict};
use crate::domain::text::one_line;
use crate::http_client::{self, Client};
use crate::ports::clock::Clock;
use crate::ports::language_model::Tool;
use crate::ports::tools::{Answer, Failure, OfferedTool};
use crate::settings::Problem;

pub(crate) const NAME: &str = "search";

/// The longest time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(8);
/// The share of a call's time limit that a request may take, so that the request ends first.
const SHARE_OF_CALL: f64 = 0.8;
/// The longest response, in bytes. Twenty results have some 20,000.
const MAX_BYTES: usize = 1 << 20;
const MOST_RESULTS: usize = 5;
/// The most characters of a query, a title, an address and a snippet.
const MAX_QUERY_CHARS: usize = 400;
const MAX_TITLE_CHARS: usize = 120;
const MAX_ADDRESS_CHARS: usize = 300;
const MAX_SNIPPET_CHARS: usize = 400;
/// The pause after a failure, and the longest that the service can ask for.
const COOL_DOWN: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(3600);

pub(crate) struct Search {
    url: Url,
    client: Client,
    limit: Duration,
    clock: Arc<dyn Clock>,
    breaker: Mutex<Breaker>,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    url: String,
    #[serde(default)]
    title: String,
    /// The snippet. Some engines have none.
    content: Option<String>,
}

/// Why there are no results.
struct NoResults {
    reason: String,
    /// Whether the service was reached.
    is_sent: bool,
    /// Whether it failed, and with what pause. A refusal, whose reason does not pass, is none.
    verdict: Verdict,
}

impl NoResults {
    fn failed(reason: impl Into<String>, pause: Option<Duration>) -> Self {
        Self { reason: reason.into(), is_sent: true, verdict: Verdict::Failing(pause) }
    }

    fn refused(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_sent: true, verdict: Verdict::Alive }
    }
}

impl Search {
    /// # Errors
    /// Returns an error if no client can be built for the URL.
    pub(crate) fn new(
        url: Url,
        call_limit: Duration,
        authorities: &[Certificate],
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let client = Client::new(&url, http_client::builder(&url, authorities).http1_only(), None);
        let client =
            client.map_err(|error| Problem::new("search_url", format!("cannot be used: {}", http_client::reason(&error))))?;
        let limit = TIMEOUT.min(call_limit.mul_f64(SHARE_OF_CALL));
        Ok(Self { url, client, limit, clock, breaker: Mutex::new(Breaker::new(1, COOL_DOWN)) })
    }

    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The tool, unless the service rests after a failure.
    pub(crate) fn offered(&self) -> Option<OfferedTool> {
        let parameters = json!({
            "type": "object",
            "properties": { "query": { "type": "string", "description": "a few words to search for", "maxLength": MAX_QUERY_CHARS } },
            "required": ["query"],
            "additionalProperties": false,
        });
        let description =
            "Search the web. Returns titles, addresses and snippets of at most five pages. Name the pages that you use."
                .to_owned();
        let tool = Tool { name: NAME.to_owned(), description, parameters };
        self.allows_call().then_some(OfferedTool { tool, read_only: true, place: self.host().into() })
    }

    pub(crate) async fn call(&self, arguments: &Map<String, Value>) -> Result<Answer, Failure> {
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let query = one_line(query, MAX_QUERY_CHARS);
        let mut text = Text::default();
        if query.is_empty() {
            text.add("The argument query is missing: give a few words to search for.");
            return Ok(text.answer(true));
        }
        if !self.allows_call() {
            return Err(Failure::NotMade("the search failed a moment ago; it rests for a while".into()));
        }
        let is_probe = self.breaker.lock().started(self.clock.now());
        let late = || NoResults::failed(format!("it did not answer within {} seconds", self.limit.as_secs_f64()), None);
        let outcome = timeout(self.limit, self.results(&query)).await.unwrap_or_else(|_| Err(late()));
        let verdict = outcome.as_ref().err().map_or(Verdict::Alive, |none| none.verdict);
        self.breaker.lock().ended(self.clock.now(), is_probe, verdict);
        let results = match outcome {
            Ok(results) => results,
            Err(NoResults { reason, is_sent, .. }) => {
                let about = format!("the search service {}: {reason}", self.host());
                if !is_sent {
                    return Err(Failure::NotMade(about.into()));
                }
                // A search changes nothing, so it does not matter whether it was begun.
                tracing::warn!(reason, "the search service returned no results");
                text.add(&about);
                return Ok(text.answer(true));
            }
        };
        let is_address = |found: &&Found| Url::parse(&found.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        for (index, found) in results.iter().filter(is_address).take(MOST_RESULTS).enumerate() {
            let title = one_line(&found.title, MAX_TITLE_CHARS);
            let address = one_line(&found.url, MAX_ADDRESS_CHARS);
            let snippet = one_line(found.content.as_deref().unwrap_or_default(), MAX_SNIPPET_CHARS);
            text.add(&format!("{}. {title}\n{address}\n{snippet}", index + 1));
        }
        if results.is_empty() {
            text.add("Nothing was found.");
        }
        Ok(text.answer(false))
    }

    fn allows_call(&self) -> bool {
        self.breaker.lock().allows_call(self.clock.now())
    }

    async fn results(&self, query: &str) -> Result<Vec<Found>, NoResults> {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/search", self.url.path().trim_end_matches('/')));
        url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
        let response = self.client.send(self.client.request(Method::GET, url)).await;
        let response =
            response.map_err(|error| NoResults { is_sent: !error.is_connect, ..NoResults::failed(error.reason, None) })?;
        let pause = pause(response.headers());
        Err(match response.status() {
            StatusCode::OK => {
                let read = serde_json::from_slice::<Results>(&body(response).await?);
                return read.map(|read| read.results).map_err(|_| {
                    NoResults::refused("its answer is not the JSON of a SearXNG; tools.search_url must be that of one")
                });
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let again =
                    pause.map_or_else(String::new, |pause| format!("; it asks for a pause of {} seconds", pause.as_secs()));
                NoResults::failed(format!("it gets too many requests (429){again}"), pause)
            }
            StatusCode::FORBIDDEN => NoResults::refused(
                "it refuses (403): add json to search.formats in its settings.yml, and see whether its limiter is on",
            ),
            status if status.is_server_error() => NoResults::failed(format!("it answered {status}"), pause),
            status => NoResults::refused(format!("it answered {status}; tools.search_url must be that of a SearXNG")),
        })
    }
}

/// Reads a body that is not too long.
async fn body(mut response: Response) -> Result<Vec<u8>, NoResults> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| NoResults::failed(http_client::reason(&error), None))? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(NoResults::refused(format!("its answer has more than {MAX_BYTES} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The pause that a service asks for, in seconds.
fn pause(headers: &HeaderMap) -> Option<Duration> {
    let secs = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(secs).min(LONGEST_REST))
}
