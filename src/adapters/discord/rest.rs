//! The client of Discord's REST API. It obeys the rate limits, and sends each request once. The wait for the limits and the
//! exchange each have the request timeout.
//!
//! The client does not retry: only the caller knows whether a request may safely arrive twice. [`Failed`] says whether the request may have
//! arrived.

mod metrics;
mod rate_limiter;
mod request;

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, USER_AGENT};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tower::{Layer, Service};

use self::metrics::Metrics;
use self::rate_limiter::{Permit, RateLimiter};
pub use self::request::{File, Request};
use super::clock::Clocks;
use super::limits::{Answer, Limits, Scope};
use super::refusals::{Refusal, wrong_fields};
use crate::domain::text::{first, spaced};
use crate::http_client::{self, Client, reason};
use crate::ports::lease::Lease;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::instruments::Instruments;

/// The version of the API (Discord's documentation, "API Reference", "API Versioning").
const VERSION: &str = "v10";
/// Connecting fails after this time, or after half of the request timeout if that is shorter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The size limit of a response. A hundred messages with all their embeds are smaller.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;
/// The limit of characters shown of a parse error.
const MAX_ERROR_CHARS: usize = 200;
/// A server error that arrives sooner than this is not the timeout of a proxy in front of Discord. So the request has ended, or ends soon.
const QUICK_FAILURE: Duration = Duration::from_secs(3);
/// After such a quick server error, the request may take effect for at most this long.
const LATE_EFFECT: Duration = Duration::from_secs(5);
/// The operating system closes a connection made under a lease if sent data is not acknowledged within this time.
const SENT_WITHIN: Duration = Duration::from_secs(3);
/// The error of a request without the lease.
const NOT_OURS: &str = "another node posts now";
/// The interval of keep-alive pings (HTTP/2). A connection is closed when a ping is unanswered for this long.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Why a request failed, and whether it can have taken effect.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failed {
    /// The request had no effect, and may be retried.
    #[error("{detail}")]
    NotNow {
        /// How long to wait before the retry, if known.
        after: Option<Duration>,
        detail: String,
    },
    /// The request may have taken effect.
    #[error("{detail}")]
    Unknown {
        detail: String,
        /// A request that has not taken effect within this time never will.
        within: Duration,
    },
    /// Discord refused the request permanently.
    #[error("{0}")]
    Refused(Refusal),
}

/// The detail of a failure begins with this if no connection to Discord could be made.
pub const UNREACHABLE: &str = "Discord cannot be reached: ";

/// The client of Discord's REST API for one bot.
pub struct Rest {
    client: Client,
    /// Without a trailing slash.
    base: String,
    token: SecretString,
    /// The header with the token.
    authorization: HeaderValue,
    timeout: Duration,
    user_agent: String,
    clocks: Arc<Clocks>,
    /// Requests are sent only while this lease is held.
    lease: Arc<dyn Lease>,
    rate_limiter: RateLimiter,
    metrics: Metrics,
}

/// A response whose headers arrived. Its body may be missing.
struct RawResponse {
    limits: Answer,
    /// Its `Date` header.
    date: Option<String>,
    /// The body, or why it could not be read.
    body: Result<Vec<u8>, String>,
}

#[derive(Default, Deserialize)]
pub(super) struct ErrorBody {
    #[serde(default)]
    pub code: u32,
    #[serde(default)]
    pub message: String,
    retry_after: Option<f64>,
    /// The errors of individual fields.
    #[serde(default)]
    errors: Value,
}

impl Rest {
    /// Creates a client for `api_url` with this token. A request may take `request_timeout_secs`. The `Date` headers of responses update `clocks`.
    ///
    /// # Errors
    /// Returns an error if the address or the token is not usable.
    pub fn new(settings: &Settings, token: SecretString, clocks: Arc<Clocks>, lease: Arc<dyn Lease>) -> Result<Self, Problem> {
        let url = settings.api()?;
        let authorization = HeaderValue::from_str(&format!("Bot {}", token.expose_secret()));
        let mut authorization = authorization.map_err(|_| Problem::new("token", "holds characters that cannot be sent"))?;
        authorization.set_sensitive(true);
        let timeout = settings.request_timeout();
        Ok(Self {
            client: client(&url, timeout, &lease)
                .map_err(|error| Problem::new("api_url", format!("cannot be used: {}", reason(&error))))?,
            base: format!("{}/{VERSION}", url.as_str().trim_end_matches('/')),
            token,
            authorization,
            timeout,
            user_agent: settings.user_agent(),
            clocks,
            lease,
            rate_limiter: RateLimiter::new(Limits::default()),
            metrics: Metrics::default(),
        })
    }

    /// Records the client's metrics with these instruments.
    pub fn measured(self, instruments: Instruments) -> Self {
        Self { metrics: Metrics(instruments), ..self }
    }

    /// Whether this server may act on Discord now, because it holds the lease.
    pub fn is_permitted(&self) -> bool {
        self.lease.is_held()
    }

    /// How long a request may take. A request sent longer ago has arrived or never will.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a request and parses the response. Waits for the rate limits for at most the request timeout.
    ///
    /// # Errors
    /// See [`Failed`]. A response that cannot be parsed is `Unknown`; a longer wait for the limits is `NotNow` with the wait.
    pub async fn ask<T: DeserializeOwned>(&self, request: Request) -> Result<T, Failed> {
        let body = self.send(&request).await?;
        serde_json::from_slice(&body).map_err(|error| {
            // The parse error may quote the response.
            let why: String = first(&self.sanitized(&error.to_string()), MAX_ERROR_CHARS).to_owned();
            Failed::Unknown { detail: format!("Discord's response cannot be read: {why}"), within: Duration::ZERO }
        })
    }

    /// Sends a request and returns the body of the response. Waits like [`Self::ask`].
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn send(&self, request: &Request) -> Result<Vec<u8>, Failed> {
        let began = Instant::now();
        let acquired = self.rate_limiter.acquire(&request.route, began + self.timeout).await;
        if acquired.as_ref().map_or(true, |permit| permit.has_waited) {
            self.metrics.waited(&request.route, began.elapsed());
        }
        let permit = acquired.map_err(|after| {
            self.metrics.rejected_by_limits(&request.route);
            Failed::NotNow { after, detail: "Discord's rate limits do not allow it now".to_owned() }
        })?;
        self.send_permitted(request, permit).await
    }

    /// Sends an optional request. Returns `None` without sending it if it would have to wait for the limits.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn try_send(&self, request: &Request) -> Result<Option<Vec<u8>>, Failed> {
        let Some(permit) = self.rate_limiter.try_acquire(&request.route) else { return Ok(None) };
        self.send_permitted(request, permit).await.map(Some)
    }

    async fn send_permitted(&self, request: &Request, permit: Permit<'_>) -> Result<Vec<u8>, Failed> {
        let (route, began, sent) = (&request.route, Instant::now(), self.clocks.here());
        let response = match timeout(self.timeout, self.exchange(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(failed)) => {
                let is_unreachable = matches!(failed, Failed::NotNow { .. });
                self.metrics.ended(route, began.elapsed(), if is_unreachable { "unreachable" } else { "broken" });
                return Err(failed);
            }
            Err(_) => {
                self.metrics.ended(route, began.elapsed(), "timeout");
                let detail = format!("no answer within {:.0} s", self.timeout.as_secs_f64());
                return Err(Failed::Unknown { detail, within: Duration::ZERO });
            }
        };
        if let Some(date) = &response.date {
            self.clocks.answered(date, sent, began);
        }
        self.metrics.answered(route, began.elapsed(), &response.limits, response.body.is_ok());
        permit.answered(&response.limits);
        let read = self.read(response, began.elapsed());
        if let Err(Failed::Refused(refusal)) = &read {
            self.metrics.refused(refusal);
        }
        read
    }

    async fn exchange(&self, request: &Request) -> Result<RawResponse, Failed> {
        let mut sent = self.client.request(request.method.clone(), format!("{}{}", self.base, request.path));
        if request.with_bot_token {
            sent = sent.header(AUTHORIZATION, self.authorization.clone());
        }
        sent = match (&request.body, &request.file) {
            (Some(body), Some(file)) => {
                let (media_type, form) = Request::form(body, file);
                sent.header(CONTENT_TYPE, media_type).body(form)
            }
            (Some(body), None) => sent.json(body),
            (None, _) => sent,
        };
        sent = match self.lease.holder() {
            Some(holder) => sent.header(USER_AGENT, format!("{} ({holder})", self.user_agent)),
            None => sent.header(USER_AGENT, &self.user_agent),
        };
        if !self.lease.is_held() {
            return Err(Failed::NotNow { after: None, detail: NOT_OURS.to_owned() });
        }
        let began = Instant::now();
        let response = self
            .client
            .send(sent)
            .await
            .map_err(|error| connection_failure(error, self.timeout.saturating_sub(began.elapsed())))?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = read_body(response).await;
        let limits = limits_of(status, &headers, body.as_deref().unwrap_or_default());
        let date = headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        Ok(RawResponse { limits, date, body })
    }

    fn read(&self, response: RawResponse, took: Duration) -> Result<Vec<u8>, Failed> {
        let RawResponse { limits, body, .. } = response;
        match limits.status {
            // The request took effect, even if the body cannot be read.
            200..=299 => body.map_err(|detail| Failed::Unknown { detail, within: Duration::ZERO }),
            429 => Err(Failed::NotNow { after: limits.wait(), detail: "Discord answered 429: too many requests".to_owned() }),
            // Proxies in front of Discord also answer with these, so it is unknown whether the request reached Discord.
            status @ (408 | 500..) => {
                let left = self.timeout.saturating_sub(took);
                let within = if took < QUICK_FAILURE { left.min(LATE_EFFECT) } else { left };
                Err(Failed::Unknown { detail: format!("Discord answered {status}"), within })
            }
            status => {
                let error: ErrorBody = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
                let message = format!("{}{}", error.message, wrong_fields(&error.errors));
                Err(Failed::Refused(Refusal::new(status, error.code, &self.sanitized(&message))))
            }
        }
    }

    /// Removes the bot's token and control characters from a text that was received.
    fn sanitized(&self, text: &str) -> String {
        spaced(&text.replace(self.token.expose_secret(), "***"))
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").field("base", &self.base).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn client(url: &Url, timeout: Duration, lease: &Arc<dyn Lease>) -> reqwest::Result<Client> {
    let builder = http_client::builder(url, &[]);
    // `OnlyWhileHeld` fails a connect that outlasts the lease. The TCP timeout soon gives up unacknowledged data that was sent under the lease.
    let builder = if lease.holder().is_some() {
        builder.tcp_user_timeout(SENT_WITHIN).connector_layer(OnlyWhileHeld(lease.clone()))
    } else {
        builder
    };
    // Shorter than the request's timeout, so that a failed connect is known to have sent nothing.
    Client::new(url, builder.connect_timeout(CONNECT_TIMEOUT.min(timeout / 2)), Some(KEEP_ALIVE))
}

/// Fails a connection attempt if the lease is not held when the connection is made.
#[derive(Clone)]
struct OnlyWhileHeld(Arc<dyn Lease>);

#[derive(Clone)]
struct Held<S>(S, Arc<dyn Lease>);

impl<S> Layer<S> for OnlyWhileHeld {
    type Service = Held<S>;

    fn layer(&self, connector: S) -> Held<S> {
        Held(connector, self.0.clone())
    }
}

type Connected<T> = Pin<Box<dyn Future<Output = Result<T, Box<dyn Error + Send + Sync>>> + Send>>;

impl<S, T> Service<T> for Held<S>
where
    S: Service<T, Error = Box<dyn Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Connected<S::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, to: T) -> Self::Future {
        let (connecting, lease) = (self.0.call(to), self.1.clone());
        Box::pin(async move {
            let connected = connecting.await?;
            if lease.is_held() { Ok(connected) } else { Err(NOT_OURS.into()) }
        })
    }
}

/// Converts the failure of a connection. If the connection broke, the request may still arrive for as long as `within`. The URL is omitted, because a
/// webhook's URL contains its token.
fn connection_failure(error: http_client::Failed, within: Duration) -> Failed {
    let reason = error.reason;
    if error.is_connect {
        return Failed::NotNow { after: None, detail: format!("{UNREACHABLE}{reason}") };
    }
    if error.is_builder {
        return Failed::NotNow { after: None, detail: format!("{reason} cannot be sent") };
    }
    Failed::Unknown { detail: format!("the connection to Discord broke: {reason}"), within }
}

/// Parses the rate limit information of a response from its headers (Discord's documentation, "Rate Limits", "Header Format"), and for a 429 also
/// from its body.
pub(super) fn limits_of(status: u16, headers: &HeaderMap, body: &[u8]) -> Answer {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let error: ErrorBody = if status == 429 { serde_json::from_slice(body).unwrap_or_default() } else { ErrorBody::default() };
    let retry_after = text("retry-after").and_then(|secs| secs.parse().ok());
    Answer {
        status,
        bucket: text("x-ratelimit-bucket").map(str::to_owned),
        remaining: text("x-ratelimit-remaining").and_then(|count| count.parse().ok()),
        reset_after_secs: text("x-ratelimit-reset-after").and_then(|secs| secs.parse().ok()),
        retry_after_secs: [retry_after, error.retry_after].into_iter().flatten().reduce(f64::max),
        scope: match text("x-ratelimit-scope") {
            Some("user") => Some(Scope::User),
            Some("global") => Some(Scope::Global),
            Some("shared") => Some(Scope::Shared),
            _ => None,
        },
    }
}

/// Reads a body of at most [`MAX_BODY_BYTES`].
async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_BODY_BYTES => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err("Discord's response is too long".to_owned()),
            Ok(None) => return Ok(body),
            Err(error) => return Err(format!("Discord's response broke off: {}", reason(&error))),
        }
    }
}
