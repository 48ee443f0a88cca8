//! Where an endpoint is, and the key that it is called with.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Url};
use secrecy::{ExposeSecret, SecretString};

use super::failure::Broken;
use crate::http_client::{self, is_loopback};
use crate::settings::Problem;

/// The HTTP client for an endpoint, which trusts these authorities besides those of the machine. It speaks HTTP/1.1 alone, because WebSockets need it,
/// and servers notice at once that a call is cancelled.
pub(in crate::adapters) fn client(base: &Url, authorities: &[Certificate]) -> Result<Client, Problem> {
    let client = http_client::builder(base, authorities).http1_only().build();
    client.map_err(|error| Problem::new("base_url", format!("cannot be used: {}", http_client::reason(&error))))
}

/// The host to which requests go. `None`: they do not leave this machine.
pub(in crate::adapters) fn host(base: &Url) -> Option<Arc<str>> {
    base.host_str().filter(|_| !is_loopback(base)).map(Arc::from)
}

/// A path of the API.
pub(in crate::adapters) fn beneath(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// The headers of a request that names the key as a bearer token.
pub(in crate::adapters) fn bearer(key: Option<&SecretString>) -> Result<HeaderMap, Broken> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).map_err(|_| Broken::Key)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(headers)
}
