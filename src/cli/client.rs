//! Sends requests to a running server's HTTP API.

use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::failure::Failure;
use crate::domain::text::spaced;
use crate::http_client::{self, is_no_tls, reason};
use crate::ports::backend::DAMAGED;

pub struct Client {
    http: reqwest::Client,
    url: Url,
    token: Option<SecretString>,
    /// Whether the server was named with `--server`. It may run on another machine, with other files.
    pub is_named: bool,
}

impl Client {
    pub fn new(url: Url, token: Option<SecretString>, is_named: bool) -> Result<Self, Failure> {
        let http = http_client::builder(&url, &[]);
        // An unnamed server runs on this machine, whatever its address is.
        let http = if is_named { http } else { http.no_proxy() }.build();
        let http = http.map_err(|error| Failure::Failed(format!("the HTTP client cannot be created: {}", reason(&error))))?;
        Ok(Self { http, url, token, is_named })
    }

    /// The same client without the token.
    pub fn without_token(self) -> Self {
        Self { token: None, ..self }
    }

    /// The server's URL without credentials: `http://127.0.0.1:7878`.
    pub fn address(&self) -> String {
        shown(&self.url)
    }

    /// Builds a request to one of the API's paths, such as `/api/backup`.
    pub fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
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

    /// Sends a request. An error status becomes a failure with the server's error text.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body: Value = response.json().await.unwrap_or_default();
        let detail = match (body["detail"].as_str(), body["field"].as_str()) {
            (Some(detail), Some(field)) if !detail.starts_with(field) => format!("{field}: {detail}"),
            (Some(detail), _) => detail.to_owned(),
            (None, _) => format!("it answered {status}"),
        };
        let detail = spaced(&detail);
        Err(match status {
            _ if body["type"] == DAMAGED => Failure::Store(detail),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                // A server that was found only by its address gets no token.
                let and = if self.token.is_none() && !self.is_named { ", and name the server with --server" } else { "" };
                Failure::Failed(format!(
                    "{} denies access: {detail}; set TERTULIA__SERVER__ADMIN_TOKEN or server.admin_token_file to its token{and}",
                    self.address()
                ))
            }
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Failure::Usage(detail),
            _ => Failure::Failed(detail),
        })
    }

    /// Sends a request for a single JSON object.
    pub async fn object(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let response = self.send(request).await?;
        response.json().await.map_err(|error| self.broken(&error))
    }

    /// The failure to report for a broken connection.
    pub fn broken(&self, error: &reqwest::Error) -> Failure {
        if self.url.scheme() == "https" && is_no_tls(error) {
            let mut plain = self.url.clone();
            // An https URL can always become an http URL.
            let _ = plain.set_scheme("http");
            return Failure::Failed(format!(
                "{} does not speak TLS: a tertulia server itself speaks plain HTTP, so use {}, or name the TLS proxy in front of it",
                self.address(),
                shown(&plain)
            ));
        }
        Failure::Failed(format!("the server at {} cannot be reached, or its answer is broken: {}", self.address(), reason(error)))
    }
}

fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // Credentials can always be removed from an HTTP URL.
    let _ = (shown.set_username(""), shown.set_password(None));
    shown.as_str().trim_end_matches('/').to_owned()
}

/// Runs a future to completion on a new runtime.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Failed(format!("the runtime cannot be started: {error}")))?.block_on(work)
}
