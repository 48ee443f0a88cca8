//! Whom to ask: the server that is named, the one that runs on the data folder, or nobody but the store.

use std::net::IpAddr;
use std::path::Path;

use reqwest::Url;

use super::client::Client;
use super::failure::Failure;
use crate::adapters::store::sled::is_in_use;
use crate::server::{holds_a_store, running};
use crate::settings::Loaded;

/// Whom to ask.
pub(super) enum Whom {
    /// A server.
    Server(Client),
    /// The store in the data folder, which is free.
    Store,
}

/// Finds whom to ask.
///
/// Not the note in the data folder decides whether a server runs, but the lock: a note may be left from a server that was killed, and its
/// port may be another program's by now.
pub(super) fn find(loaded: &Loaded, named: Option<&str>) -> Result<Whom, Failure> {
    let token = loaded.settings.server.token().map_err(|problem| Failure::Usage(format!("server.{problem}")))?;
    if let Some(named) = named {
        let url = Url::parse(named).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| {
            Failure::Usage(format!("--server {named:?} is no address; give it whole, for example http://127.0.0.1:7878"))
        })?;
        return Client::new(url, token, true).map(Whom::Server);
    }
    let data = &loaded.settings.storage.path;
    if !is_in_use(data) {
        return Ok(Whom::Store);
    }
    let url = running(data).and_then(|running| Url::parse(&running.url).ok()).map(reachable);
    let url = url.ok_or_else(|| {
        let data = data.display();
        Failure::Store(format!(
            "{data} is in use, and its server has not said yet where it listens: try again, or name it with --server"
        ))
    })?;
    Client::new(url, token, false).map(Whom::Server)
}

/// Makes sure that nobody has the store open, for what needs it alone.
pub(super) fn only_offline(data: &Path, command: &str) -> Result<(), Failure> {
    if !is_in_use(data) {
        return Ok(());
    }
    let who = running(data).map_or_else(String::new, |running| format!(" ({}, process {})", running.url, running.pid));
    let data = data.display();
    Err(Failure::Store(format!(
        "a server{who} runs on {data}: stop it first, `tertulia history {command}` needs the store alone"
    )))
}

/// Makes sure that a command does not make a new, empty store where it should read one.
pub(super) fn there_is_one(data: &Path) -> Result<(), Failure> {
    if holds_a_store(data) {
        return Ok(());
    }
    let data = data.display();
    Err(Failure::Store(format!("there is no store in {data}: set storage.path, or --config, as for the server")))
}

/// An address that can be connected to, where the server listens on all.
fn reachable(mut url: Url) -> Url {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let local = match host {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => "127.0.0.1",
        Ok(IpAddr::V6(address)) if address.is_unspecified() => "[::1]",
        _ => return url,
    };
    // An address of this kind can always stand there.
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
