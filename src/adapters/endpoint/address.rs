//! Where an endpoint is, and the key that it is called with.

use std::fmt::Display;
use std::sync::Arc;

use hyper::Uri;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::failure::Broken;
use super::http::Http;
use crate::settings::Problem;

/// The HTTP client for an endpoint. It does not follow redirects: they would send the key and what people said to a host that nobody configured.
pub(in crate::adapters) fn client(base: &Url) -> Result<Http, Problem> {
    // A proxy leads to other machines, and is not used for this one.
    Http::new(!is_local(base)).map_err(unusable)
}

/// The host to which requests go. `None`: they do not leave this machine.
pub(in crate::adapters) fn host(base: &Url) -> Option<Arc<str>> {
    base.host_str().filter(|_| !is_local(base)).map(Arc::from)
}

fn is_local(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A path of the API.
pub(in crate::adapters) fn beneath(base: &Url, path: &str) -> Result<Uri, Problem> {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.as_str().parse().map_err(unusable)
}

/// The headers of a request that names the key as a bearer token.
pub(in crate::adapters) fn bearer(key: Option<&SecretString>) -> Result<HeaderMap, Broken> {
    let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("*/*"))]);
    if let Some(key) = key {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).map_err(|_| Broken::Key)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(headers)
}

fn unusable(error: impl Display) -> Problem {
    Problem::new("base_url", format!("cannot be used: {error}"))
}
