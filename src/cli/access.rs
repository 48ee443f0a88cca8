//! How a command reaches stored data: through the named server, through the server that runs on the data folder, or by opening the store.

use std::net::IpAddr;
use std::path::Path;

use reqwest::Url;

use super::client::Client;
use super::failure::Failure;
use crate::adapters::store::sled::is_in_use;
use crate::server::{holds_a_store, running};
use crate::settings::Loaded;

pub(super) enum Access {
    Server(Client),
    /// The store in the data folder. No process has it open.
    Store,
}

/// Finds the way to the data.
///
/// The lock decides whether a server runs, not the note in the data folder. A server that was killed leaves its note, and another program may
/// have its port by now.
pub(super) fn find(loaded: &Loaded, named: Option<&str>) -> Result<Access, Failure> {
    let token = loaded.settings.server.token().map_err(|problem| Failure::Usage(format!("server.{problem}")))?;
    if let Some(named) = named {
        let url = Url::parse(named).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| {
            Failure::Usage(format!("--server {named:?} is not a URL; give the whole URL, for example http://127.0.0.1:7878"))
        })?;
        return Client::new(url, token, true).map(Access::Server);
    }
    let data = &loaded.settings.storage.path;
    if !is_in_use(data) {
        return Ok(Access::Store);
    }
    let url = running(data).and_then(|running| Url::parse(&running.url).ok()).map(reachable);
    let url = url.ok_or_else(|| {
        let data = data.display();
        Failure::Store(format!(
            "{data} is in use, and its server has not reported its address yet: try again, or name the server with --server"
        ))
    })?;
    Client::new(url, token, false).map(Access::Server)
}

/// Fails while a server has the store open, for commands that need exclusive access.
pub(super) fn require_offline(data: &Path, command: &str) -> Result<(), Failure> {
    if !is_in_use(data) {
        return Ok(());
    }
    let server = running(data).map_or_else(String::new, |running| format!(" ({}, process {})", running.url, running.pid));
    let data = data.display();
    Err(Failure::Store(format!(
        "a server{server} runs on {data}: stop it first, because `tertulia history {command}` needs exclusive access to the store"
    )))
}

/// Fails if the folder has no store. Opening it would create a new, empty one.
pub(super) fn require_store(data: &Path) -> Result<(), Failure> {
    if holds_a_store(data) {
        return Ok(());
    }
    let data = data.display();
    Err(Failure::Store(format!("there is no store in {data}: set storage.path or --config as for the server")))
}

/// Replaces an unspecified address, on which a server listens on all interfaces, with loopback.
fn reachable(mut url: Url) -> Url {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let local = match host {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => "127.0.0.1",
        Ok(IpAddr::V6(address)) if address.is_unspecified() => "[::1]",
        _ => return url,
    };
    // An HTTP URL can always have such a host.
    let _ = url.set_host(Some(local));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_on_all_addresses_is_reached_on_loopback() {
        let reached = |url: &str| reachable(Url::parse(url).unwrap()).to_string();

        assert_eq!(reached("http://0.0.0.0:7878"), "http://127.0.0.1:7878/");
        assert_eq!(reached("http://[::]:7878"), "http://[::1]:7878/");
        assert_eq!(reached("http://10.1.2.3:7878"), "http://10.1.2.3:7878/");
    }
}
