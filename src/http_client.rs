//! Builds all HTTP clients of the program: for models, services for speech, Discord, telemetry, and for commands that ask a server.
//!
//! They follow no redirects, which would send a key or a token to a host that nobody configured. They trust the certificate authorities of this
//! machine. They use the proxies that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), but never for this machine.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::net::IpAddr;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Url, blocking};
use rustls::CertificateError::{self, BadSignature, UnknownIssuer};
use rustls::Error::{InvalidCertificate, InvalidMessage};

#[cfg(test)]
pub(crate) mod tests;

/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether this machine has certificate authorities, when they are needed for the first time.
static HAS_AUTHORITIES: LazyLock<bool> = LazyLock::new(|| Client::builder().no_proxy().build().is_ok());

/// A builder of a client for this URL and others of its host, which trusts these authorities besides those of the machine.
pub fn builder(to: &Url, authorities: &[Certificate]) -> ClientBuilder {
    // Proxies hold back a stream that they compress. Those that compress whatever is asked for are understood.
    let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    let builder = Client::builder().default_headers(headers).redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT);
    let is_local = is_loopback(to);
    let builder = if is_local { builder.no_proxy() } else { builder };
    let authorities = authorities.iter().cloned();
    // Without authorities a client cannot be built, although `http://` needs none. Then connections with TLS fail.
    if is_local && to.scheme() == "http" || !*HAS_AUTHORITIES {
        builder.tls_certs_only(authorities)
    } else {
        builder.tls_certs_merge(authorities)
    }
}

/// A client for the threads of the exporters, which are not asynchronous.
///
/// # Errors
/// Why it cannot be built.
pub fn blocking(to: &Url, timeout: Duration) -> Result<blocking::Client, String> {
    let builder = blocking::ClientBuilder::from(builder(to, &[])).timeout(timeout);
    // It must not be built on an asynchronous thread.
    let built = thread::spawn(|| builder.build()).join().map_err(|_| "it panicked".to_owned())?;
    built.map_err(|error| reason(&error))
}

/// Whether a URL leads to this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.');
    let is_own = |address: IpAddr| address.to_canonical().is_loopback() || address.is_unspecified();
    host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(is_own)
}

/// Whether the server has a certificate from an authority that is not trusted, or that has only the name of one that is.
pub fn is_of_unknown_authority(error: &(dyn Error + 'static)) -> bool {
    matches!(tls_error(error), Some(InvalidCertificate(UnknownIssuer | BadSignature)))
}

/// Whether the server's first bytes are not TLS.
pub fn is_no_tls(error: &(dyn Error + 'static)) -> bool {
    matches!(tls_error(error), Some(InvalidMessage(_)))
}

/// Why TLS failed.
pub fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Why a request failed, without its URL, which may hold a secret.
pub fn reason(error: &reqwest::Error) -> String {
    let cause = error.source().map_or_else(|| "the request was aborted".to_owned(), cause);
    match error.url().and_then(proxy) {
        Some(proxy) => format!("{cause} (through the proxy {proxy})"),
        None => cause,
    }
}

/// The proxy of the environment for this URL, without its password.
fn proxy(to: &Url) -> Option<String> {
    let proxy = Matcher::from_env().intercept(&to.as_str().parse().ok()?)?;
    (!is_loopback(to)).then(|| proxy.uri().to_string())
}

/// The innermost cause of an error, because the outer ones say only that a connection failed. If it is a certificate, also what to do.
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

/// The words of an error, without the number that the system gives it.
fn plain(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => "nothing answers at this address".to_owned(),
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    }
}

fn certificate_error(error: &CertificateError) -> String {
    match error {
        // webpki has no words for it.
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
