//! Builds all HTTP clients of the program: for models, speech services, Discord, telemetry, and for commands that ask a server.
//!
//! They follow no redirects, which could send a key or a token to a host that is not configured. They trust the certificate
//! authorities of this machine. They use the proxies from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`),
//! but never for requests to this machine.
//!
//! The server itself sends its requests with [`Client`], which limits informational responses and the size of a response's head.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter::successors;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use http::Request;
use hyper::ext::on_informational;
use hyper_util::client::legacy;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderValue, PROXY_AUTHORIZATION};
use reqwest::redirect::Policy;
use reqwest::{Body, Certificate, ClientBuilder, IntoUrl, Method, RequestBuilder, Response, Url, blocking};
use rustls::CertificateError::{self, BadSignature, UnknownIssuer};
use rustls::Error::{InvalidCertificate, InvalidMessage};
use tokio::sync::Notify;

use self::connections::{Connections, HandOver};

mod compressed;
mod connections;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
#[cfg(test)]
mod tests;

/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most informational responses (100 Continue, 103 Early Hints) before a response. hyper itself has no limit.
const MOST_INFORMATIONAL: usize = 100;
/// The longest head of a response. It also bounds how much one connection reads before other connections get a turn.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// The value of `Accept-Encoding`. Proxies delay a stream that they compress. Responses that are compressed nevertheless are
/// decoded.
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
/// How long a connection stays open without a request.
const POOL_IDLE: Duration = Duration::from_secs(90);

/// Whether this machine has certificate authorities. Checked at the first use.
static HAS_AUTHORITIES: LazyLock<bool> = LazyLock::new(|| reqwest::Client::builder().no_proxy().build().is_ok());

/// A builder of a client for the host of this URL. The client trusts these authorities in addition to those of the machine.
pub fn builder(to: &Url, authorities: &[Certificate]) -> ClientBuilder {
    let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, IDENTITY)]);
    let builder = reqwest::Client::builder().default_headers(headers).redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT);
    let is_local = is_loopback(to);
    let builder = if is_local { builder.no_proxy() } else { builder };
    let authorities = authorities.iter().cloned();
    // A client that uses the machine's authorities cannot be built if there are none, although `http://` needs none. A client without them can be
    // built; only its TLS connections fail.
    if is_local && to.scheme() == "http" || !*HAS_AUTHORITIES {
        builder.tls_certs_only(authorities)
    } else {
        builder.tls_certs_merge(authorities)
    }
}

/// Sends requests, and aborts a request that receives too many informational responses. reqwest cannot count them, so it only
/// makes the connections and describes requests and responses.
#[derive(Clone)]
pub struct Client {
    requests: reqwest::Client,
    sending: legacy::Client<Connections, Body>,
    /// The proxy for requests without TLS. They carry its password in a header.
    proxy: Option<Intercept>,
}

impl Client {
    /// A client for the host of this URL. HTTP/2 connections without an answer to a ping for twice `http2_keep_alive` are closed.
    ///
    /// # Errors
    /// Returns an error if the client cannot be built.
    pub fn new(to: &Url, builder: ClientBuilder, http2_keep_alive: Option<Duration>) -> reqwest::Result<Self> {
        let requests = builder.connector_layer(HandOver).build()?;
        let mut sending = legacy::Client::builder(TokioExecutor::new());
        sending.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE);
        sending.http1_max_buf_size(MAX_HEAD_BYTES).http2_keep_alive_interval(http2_keep_alive);
        if let Some(timeout) = http2_keep_alive {
            sending.http2_keep_alive_timeout(timeout);
        }
        let sending = sending.build(Connections(requests.clone()));
        Ok(Self { requests, sending, proxy: proxy(to) })
    }

    /// Starts building a request, for [`Self::send`].
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.requests.request(method, url)
    }

    /// Sends a request, and waits for the head of the response.
    ///
    /// # Errors
    /// Returns an error if no response arrives.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Failed> {
        let request = request.build().map_err(Failed::from)?;
        let is_plain = request.url().scheme() == "http";
        let mut request = Request::<Body>::try_from(request).map_err(Failed::from)?;
        let headers = request.headers_mut();
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(ACCEPT_ENCODING).or_insert(IDENTITY);
        if is_plain && let Some(authorization) = self.proxy.as_ref().and_then(Intercept::basic_auth) {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let (counted, too_many) = (AtomicUsize::new(0), Arc::new(Notify::new()));
        let over = too_many.clone();
        on_informational(&mut request, move |_| {
            if counted.fetch_add(1, Ordering::Relaxed) == MOST_INFORMATIONAL {
                over.notify_one();
            }
        });
        tokio::select! {
            biased;
            () = too_many.notified() => Err(Failed::endless()),
            sent = self.sending.request(request) => match sent {
                Ok(response) => Ok(Response::from(compressed::decoded(response))),
                Err(error) => Err(Failed::of_sending(error, self.proxy.as_ref())),
            },
        }
    }
}

/// A request that failed before its response, or in the middle of it.
#[derive(Debug)]
pub struct Failed {
    /// The reason. It does not contain the URL, which may hold a secret.
    pub reason: String,
    /// Whether the connection failed, so that nothing was sent.
    pub is_connect: bool,
    /// Whether the request itself is invalid.
    pub is_builder: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl Failed {
    fn endless() -> Self {
        let reason = format!("it sent more than {MOST_INFORMATIONAL} informational responses (1xx) and no response");
        Self { source: reason.clone().into(), reason, is_connect: false, is_builder: false }
    }

    fn of_sending(error: legacy::Error, proxy: Option<&Intercept>) -> Self {
        let reason = through(cause(&error), proxy);
        Self { reason, is_connect: error.is_connect(), is_builder: false, source: error.into() }
    }
}

impl From<reqwest::Error> for Failed {
    fn from(error: reqwest::Error) -> Self {
        let (is_connect, is_builder) = (error.is_connect(), error.is_builder());
        Self { reason: reason(&error), is_connect, is_builder, source: error.into() }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// A client for the threads of the exporters, which are not asynchronous.
///
/// # Errors
/// Returns the reason as text if the client cannot be built.
pub fn blocking(to: &Url, timeout: Duration) -> Result<blocking::Client, String> {
    let builder = blocking::ClientBuilder::from(builder(to, &[])).timeout(timeout);
    // It must not be built on an asynchronous thread.
    let built = thread::spawn(|| builder.build()).join().map_err(|_| "it panicked".to_owned())?;
    built.map_err(|error| reason(&error))
}

/// Whether the host is `localhost`, a name below it, or a loopback or unspecified address. Other names and addresses of this machine do not count.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.');
    let is_own = |address: IpAddr| address.to_canonical().is_loopback() || address.is_unspecified();
    host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(is_own)
}

/// Whether the server's certificate is from an authority that is not trusted, or that only shares the name of a trusted one.
pub fn is_of_unknown_authority(error: &(dyn Error + 'static)) -> bool {
    matches!(tls_error(error), Some(InvalidCertificate(UnknownIssuer | BadSignature)))
}

/// Whether the server's first bytes are not TLS.
pub fn is_no_tls(error: &(dyn Error + 'static)) -> bool {
    matches!(tls_error(error), Some(InvalidMessage(_)))
}

/// The TLS error among an error's causes.
pub fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Why a request failed, without its URL, which may hold a secret.
pub fn reason(error: &reqwest::Error) -> String {
    let cause = error.source().map_or_else(|| "the request was aborted".to_owned(), cause);
    through(cause, error.url().and_then(proxy).as_ref())
}

/// Adds the proxy of the request to a reason, without the proxy's password.
fn through(cause: String, proxy: Option<&Intercept>) -> String {
    match proxy {
        Some(proxy) => format!("{cause} (through the proxy {})", proxy.uri()),
        None => cause,
    }
}

/// The proxy of the environment for this URL.
fn proxy(to: &Url) -> Option<Intercept> {
    Matcher::from_env().intercept(&to.as_str().parse().ok()?).filter(|_| !is_loopback(to))
}

/// The innermost cause of an error, because the outer ones only say that a connection failed. For a certificate error, the text
/// includes the remedy.
pub fn cause(error: &(dyn Error + 'static)) -> String {
    match tls_error(error) {
        Some(InvalidCertificate(UnknownIssuer | BadSignature)) if !*HAS_AUTHORITIES => {
            "this machine has no certificate authorities; install ca-certificates, or name a PEM file of authorities in SSL_CERT_FILE"
                .to_owned()
        }
        Some(InvalidCertificate(UnknownIssuer | BadSignature)) => {
            "its certificate comes from an authority that this machine does not trust; add the authority to those of the machine, or name a PEM \
             file with all trusted ones in SSL_CERT_FILE"
                .to_owned()
        }
        Some(InvalidCertificate(error)) => format!("its certificate is not valid: {}", certificate_error(error)),
        Some(other) => format!("TLS failed: {other}"),
        None => causes(error).last().map_or_else(String::new, plain),
    }
}

/// The message of an error, without the error number of the operating system.
fn plain(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => "nothing answers at this address".to_owned(),
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    }
}

fn certificate_error(error: &CertificateError) -> String {
    match error {
        // webpki has no readable message for this case.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority (basicConstraints CA:TRUE); make one for the server with CA:FALSE".to_owned()
        }
        other => other.to_string(),
    }
}

/// An error and its causes, the outermost first. The error inside an `io::Error` is not its `source`.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    })
}
