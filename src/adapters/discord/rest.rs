//! Asks Discord's REST API: within its limits, each request once, and never longer than it may take.
//!
//! Nothing is tried again here. Whoever asks knows what a request does when it arrives twice; here it is only told whether it can have
//! arrived ([`Failed`]).

mod measures;
mod passage;
mod request;

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use self::measures::Measures;
use self::passage::{Passage, Passages};
pub use self::request::Request;
use super::clock::Clocks;
use super::limits::{Answer, Limits, Scope};
use super::refusals::{Refusal, wrong_fields};
use crate::domain::text::is_invisible;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::instruments::Instruments;

/// The version of the API (Discord's documentation, "API Reference", "API Versioning").
const VERSION: &str = "v10";
/// A connection that takes longer will not come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An answer longer than this is none: a hundred messages with all their embeds are shorter.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// As many characters of what cannot be read are told.
const MOST_WORDS: usize = 200;
/// An answer that says that Discord failed, and came sooner than this, was not waited for by whoever stands before Discord: the request is
/// over, or will be soon.
const SOON: Duration = Duration::from_secs(3);
/// What a request that Discord failed at so soon still does, it does within this.
const STILL_ARRIVES: Duration = Duration::from_secs(5);
/// A connection on which nothing comes back for so long is not used any more.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A request that did not do what it was for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failed {
    /// It certainly did nothing, and may be tried again.
    #[error("{detail}")]
    NotNow {
        /// How long Discord wants to be left alone with it, if that is known.
        after: Option<Duration>,
        /// What happened.
        detail: String,
    },
    /// It may have done what it was for.
    #[error("{detail}")]
    Unknown {
        /// What happened.
        detail: String,
        /// What it has not done after this time it never will.
        within: Duration,
    },
    /// Discord will not do it.
    #[error("{0}")]
    Refused(Refusal),
}

/// Discord's REST API, as one bot uses it.
pub struct Rest {
    client: Client,
    /// Without a slash at the end.
    base: String,
    token: SecretString,
    timeout: Duration,
    clocks: Arc<Clocks>,
    passages: Passages,
    measures: Measures,
}

/// An answer, read as far as it came.
struct Answered {
    limits: Answer,
    /// When it was made, if it says so.
    date: Option<String>,
    /// Why the body could not be read, if it could not.
    body: Result<Vec<u8>, String>,
}

/// What Discord says with a refusal, and with a 429.
#[derive(Default, Deserialize)]
struct Said {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retry_after: Option<f64>,
    /// What is wrong, field by field.
    #[serde(default)]
    errors: Value,
}

impl Rest {
    /// The API at `api_url`, asked with this token, each request within `request_timeout_secs`. Its answers tell these clocks the time.
    ///
    /// # Errors
    /// The address or the token cannot be used.
    pub fn new(settings: &Settings, token: SecretString, clocks: Arc<Clocks>) -> Result<Self, Problem> {
        let url = settings.api()?;
        // The bot's token goes with every request; it has to be one that a header takes.
        authorization(&token).ok_or_else(|| problem("token", "holds characters that cannot be sent"))?;
        let timeout = settings.request_timeout();
        Ok(Self {
            client: client(&url, timeout, &settings.user_agent())
                .map_err(|error| problem("api_url", &format!("cannot be used: {error}")))?,
            base: format!("{}/{VERSION}", url.as_str().trim_end_matches('/')),
            token,
            timeout,
            clocks,
            passages: Passages::new(Limits::default()),
            measures: Measures::default(),
        })
    }

    /// The same, measured here.
    pub fn measured(self, instruments: Instruments) -> Self {
        Self { measures: Measures(instruments), ..self }
    }

    /// How long a request may take. One that was sent so long ago has arrived, or never will.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks, and reads the answer. It waits for the limits as long as a request may take; whoever would wait longer is told how long.
    ///
    /// # Errors
    /// See [`Failed`]; an answer that cannot be read is `Unknown`.
    pub async fn ask<T: DeserializeOwned>(&self, request: Request) -> Result<T, Failed> {
        let body = self.tell(&request).await?;
        serde_json::from_slice(&body).map_err(|error| {
            // It may quote what was answered.
            let why: String = self.plain(&error.to_string()).chars().take(MOST_WORDS).collect();
            Failed::Unknown { detail: format!("Discord's answer cannot be read: {why}"), within: Duration::ZERO }
        })
    }

    /// Asks for something whose answer tells nothing more.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn tell(&self, request: &Request) -> Result<Vec<u8>, Failed> {
        let began = Instant::now();
        let entered = self.passages.enter(&request.route, began + self.timeout).await;
        if entered.as_ref().map_or(true, |passage| passage.has_waited) {
            self.measures.waited(&request.route, began.elapsed());
        }
        let passage = entered.map_err(|after| {
            self.measures.held_back(&request.route);
            Failed::NotNow { after, detail: "Discord's limits leave no room for it".to_owned() }
        })?;
        self.carry_out(request, passage).await
    }

    /// The same for what nobody needs: it is left out if it would have to wait. None: it was.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn tell_now(&self, request: &Request) -> Result<Option<Vec<u8>>, Failed> {
        let Some(passage) = self.passages.enter_now(&request.route) else { return Ok(None) };
        self.carry_out(request, passage).await.map(Some)
    }

    async fn carry_out(&self, request: &Request, passage: Passage<'_>) -> Result<Vec<u8>, Failed> {
        let (route, began, sent) = (&request.route, Instant::now(), self.clocks.here());
        let answered = match timeout(self.timeout, self.exchange(request)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(failed)) => {
                let is_unreachable = matches!(failed, Failed::NotNow { .. });
                self.measures.ended(route, began.elapsed(), if is_unreachable { "unreachable" } else { "broken" });
                return Err(failed);
            }
            Err(_) => {
                self.measures.ended(route, began.elapsed(), "timeout");
                let detail = format!("no answer within {:.0} s", self.timeout.as_secs_f64());
                return Err(Failed::Unknown { detail, within: Duration::ZERO });
            }
        };
        if let Some(date) = &answered.date {
            self.clocks.answered(date, sent, began);
        }
        self.measures.answered(route, began.elapsed(), &answered.limits, answered.body.is_ok());
        passage.answered(&answered.limits);
        let read = self.read(answered, began.elapsed());
        if let Err(Failed::Refused(refusal)) = &read {
            self.measures.refused(refusal);
        }
        read
    }

    async fn exchange(&self, request: &Request) -> Result<Answered, Failed> {
        let mut sent = self.client.request(request.method.clone(), format!("{}{}", self.base, request.path));
        if request.by_bot {
            sent = sent.header(AUTHORIZATION, authorization(&self.token).ok_or_else(|| failed_to_send("the token"))?);
        }
        if let Some(body) = &request.body {
            sent = sent.json(body);
        }
        let began = Instant::now();
        let response = sent.send().await.map_err(|error| of_connection(error, self.timeout.saturating_sub(began.elapsed())))?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = whole(response).await;
        let limits = limits_of(status, &headers, body.as_deref().unwrap_or_default());
        let date = headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        Ok(Answered { limits, date, body })
    }

    fn read(&self, answered: Answered, took: Duration) -> Result<Vec<u8>, Failed> {
        let Answered { limits, body, .. } = answered;
        match limits.status {
            // It is done, whatever can be read of it.
            200..=299 => body.map_err(|detail| Failed::Unknown { detail, within: Duration::ZERO }),
            429 => Err(Failed::NotNow { after: limits.wait(), detail: "Discord answered 429: too many requests".to_owned() }),
            // Whoever stands before Discord answers so too, and nobody knows what reached it.
            status @ (408 | 500..) => {
                let left = self.timeout.saturating_sub(took);
                let within = if took < SOON { left.min(STILL_ARRIVES) } else { left };
                Err(Failed::Unknown { detail: format!("Discord answered {status}"), within })
            }
            status => {
                let said: Said = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
                let words = format!("{}{}", said.message, wrong_fields(&said.errors));
                Err(Failed::Refused(Refusal::new(status, said.code, &self.plain(&words))))
            }
        }
    }
}

impl Rest {
    /// Words from outside, without the token and what a terminal obeys.
    fn plain(&self, words: &str) -> String {
        let is_plain = |char: char| !char.is_control() && !is_invisible(char);
        words.replace(self.token.expose_secret(), "***").chars().map(|char| if is_plain(char) { char } else { ' ' }).collect()
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").field("base", &self.base).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn client(url: &Url, timeout: Duration, user_agent: &str) -> reqwest::Result<Client> {
    // A redirect is not followed: it would carry the token to a host that nobody named.
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .user_agent(user_agent)
        // Before the request's own time is over, so that it is known that nothing arrived.
        .connect_timeout(CONNECT_TIMEOUT.min(timeout / 2))
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE);
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) {
        // A proxy is the way out; what runs here is not out there.
        builder = builder.no_proxy();
    }
    builder.build()
}

fn problem(key: &str, message: &str) -> Problem {
    Problem { key: key.to_owned(), message: message.to_owned() }
}

fn authorization(token: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bot {}", token.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn failed_to_send(what: &str) -> Failed {
    Failed::NotNow { after: None, detail: format!("{what} cannot be sent") }
}

/// No connection, or one that broke, after which a request may still arrive within this time. The address is left out, since a webhook's holds its token.
fn of_connection(error: reqwest::Error, within: Duration) -> Failed {
    let cause = cause(&error);
    if error.is_connect() {
        return Failed::NotNow { after: None, detail: format!("Discord cannot be reached: {cause}") };
    }
    if error.is_builder() {
        return failed_to_send(&cause);
    }
    Failed::Unknown { detail: format!("the connection to Discord broke: {cause}"), within }
}

/// What lies deepest: the outer words only tell that a request failed, and where.
fn cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else { return "it was given up".to_owned() };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// What an answer tells of limits: in its head, and of a 429 in its body too.
pub(super) fn limits_of(status: u16, headers: &HeaderMap, body: &[u8]) -> Answer {
    let mut limits = told_by(status, headers);
    if status == 429 {
        let said: Said = serde_json::from_slice(body).unwrap_or_default();
        limits.retry_after_secs = [limits.retry_after_secs, said.retry_after].into_iter().flatten().reduce(f64::max);
    }
    limits
}

/// What an answer's head tells of limits (Discord's documentation, "Rate Limits", "Header Format").
fn told_by(status: u16, headers: &HeaderMap) -> Answer {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    Answer {
        status,
        bucket: text("x-ratelimit-bucket").map(str::to_owned),
        remaining: text("x-ratelimit-remaining").and_then(|count| count.parse().ok()),
        reset_after_secs: text("x-ratelimit-reset-after").and_then(|secs| secs.parse().ok()),
        retry_after_secs: text("retry-after").and_then(|secs| secs.parse().ok()),
        scope: match text("x-ratelimit-scope") {
            Some("user") => Some(Scope::User),
            Some("global") => Some(Scope::Global),
            Some("shared") => Some(Scope::Shared),
            _ => None,
        },
    }
}

/// A body of bounded length.
async fn whole(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_BODY_BYTES => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err("Discord's answer has no end".to_owned()),
            Ok(None) => return Ok(body),
            Err(error) => return Err(format!("Discord's answer broke off: {}", cause(&error))),
        }
    }
}
