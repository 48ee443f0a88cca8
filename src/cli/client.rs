//! Asks a running server over its HTTP API.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::failure::Failure;
use crate::domain::text::is_invisible;
use crate::ports::backend::DAMAGED;

/// A server that is there answers a connection at once, or is too far away for copies.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// A server, and what it takes to be let in.
pub(super) struct Client {
    http: reqwest::Client,
    url: Url,
    token: Option<SecretString>,
    /// Somebody named it, so its files may be another machine's.
    pub(super) is_named: bool,
}

impl Client {
    pub(super) fn new(url: Url, token: Option<SecretString>, is_named: bool) -> Result<Self, Failure> {
        // The token goes to this server alone.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).connect_timeout(CONNECT_DEADLINE);
        let http = if is_named { http } else { http.no_proxy() };
        let http = http.build().map_err(|error| Failure::Failed(format!("no HTTP client can be made: {error}")))?;
        Ok(Self { http, url, token, is_named })
    }

    /// The same server, asked without the token.
    pub(super) fn without_token(self) -> Self {
        Self { token: None, ..self }
    }

    /// Where it is asked, without what somebody else may not see: `http://127.0.0.1:7878`.
    pub(super) fn address(&self) -> String {
        shown(&self.url)
    }

    /// A request to one of the API's paths, such as `/api/backup`.
    pub(super) fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        }
    }

    /// Sends a request; what is not a success is a failure that says what the server said.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let said: Value = response.json().await.unwrap_or_default();
        let detail = match (said["detail"].as_str(), said["field"].as_str()) {
            (Some(detail), Some(field)) if !detail.starts_with(field) => format!("{field}: {detail}"),
            (Some(detail), _) => detail.to_owned(),
            (None, _) => format!("it answered {status}"),
        };
        let detail = one_line(&detail);
        Err(match status {
            _ if said["type"] == DAMAGED => Failure::Store(detail),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::Failed(format!(
                "{} does not let us in: {detail}; set TERTULIA__SERVER__ADMIN_TOKEN or server.admin_token_file to its token",
                self.address()
            )),
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Failure::Usage(detail),
            _ => Failure::Failed(detail),
        })
    }

    /// Sends a request whose answer is one JSON object.
    pub(super) async fn object(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let response = self.send(request).await?;
        response.json().await.map_err(|error| self.broken(&error))
    }

    /// What to say of a connection that failed.
    pub(super) fn broken(&self, error: &reqwest::Error) -> Failure {
        if self.url.scheme() == "https" && is_no_tls(error) {
            let mut plain = self.url.clone();
            // Of these two each can stand in the place of the other.
            let _ = plain.set_scheme("http");
            return Failure::Failed(format!(
                "{} answers, and not in TLS: a tertulia server itself speaks plain HTTP, so ask {}, or name the proxy in front of it",
                self.address(),
                shown(&plain)
            ));
        }
        let cause = std::iter::successors(std::error::Error::source(error), |cause| cause.source()).last();
        let cause = cause.map_or_else(|| error.to_string(), ToString::to_string);
        Failure::Failed(format!("the server at {} cannot be reached, or does not answer as it should: {cause}", self.address()))
    }
}

fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // An address of this kind can always do without.
    let _ = (shown.set_username(""), shown.set_password(None));
    shown.as_str().trim_end_matches('/').to_owned()
}

/// Whether what came over a connection is not how TLS begins.
fn is_no_tls(error: &reqwest::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if matches!(error.downcast_ref(), Some(rustls::Error::InvalidMessage(_))) {
            return true;
        }
        // What is wrapped in an error of input and output is not its source.
        cause = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

/// What a server said, as one line with nothing in it that a terminal would obey, whoever answered.
pub(super) fn one_line(said: &str) -> String {
    said.chars().map(|char| if char.is_control() || is_invisible(char) { ' ' } else { char }).collect()
}

/// Runs until this is done.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Failed(format!("the runtime cannot be made: {error}")))?.block_on(work)
}
