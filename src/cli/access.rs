//! Selects how a command accesses stored data: through the named server, through the server that runs on the data folder, or by
//! opening the store.

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use reqwest::{Method, Url};
use serde_json::Value;

use super::client::{Client, block_on};
use super::failure::Failure;
use crate::adapters::store::sled::is_in_use;
use crate::http_client::is_loopback;
use crate::server::{check_folder, has_store, is_half_copied, running};
use crate::settings::Loaded;
use crate::settings::storage::{Engine, Storage};

/// The timeout for an unnamed server. A slower one counts as not found.
const FINDING_DEADLINE: Duration = Duration::from_secs(2);

/// How long a command waits for the address of a starting server, which reports it soon after it has locked the data folder.
const STARTING_DEADLINE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);

pub(super) enum Access {
    Server(Client),
    /// The store in the data folder. No process has it open.
    Store,
}

/// Selects the access to the data.
///
/// The lock shows whether a server runs, not the note in the data folder: a killed server leaves its note, and another program
/// may use its port by now.
pub(super) fn find(loaded: &Loaded, named: Option<&str>) -> Result<Access, Failure> {
    let token = loaded.settings.server.token().map_err(|problem| Failure::Usage(format!("server.{problem}")))?;
    if let Some(named) = named {
        let has_scheme = named.contains("://");
        let url = if has_scheme { Url::parse(named) } else { Url::parse(&format!("http://{named}")) };
        // An address without a scheme must be local: the token is not sent to other machines in plain text.
        let is_clear = |url: &Url| has_scheme || named.contains(':') && is_loopback(url);
        let url = url.ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host() && is_clear(url));
        let url = url.ok_or_else(|| {
            Failure::Usage(format!(
                "--server {named:?} is not an address: give one like 127.0.0.1:7878 or https://talk.example.org"
            ))
        })?;
        return Client::new(url, token, true).map(Access::Server);
    }
    let data = &loaded.settings.storage.path;
    if !is_in_use(data) {
        return Ok(Access::Store);
    }
    let url = block_on(async { Ok(address_of(data).await) })?;
    let url = url.ok_or_else(|| {
        let data = data.display();
        Failure::Store(format!(
            "{data} is in use, and its server has not reported its address yet: try again, or name the server with --server"
        ))
    })?;
    Client::new(url, token, false).map(Access::Server)
}

/// The address of the server that runs on a data folder. Waits for a server that is starting.
async fn address_of(data: &Path) -> Option<Url> {
    for _ in 0..STARTING_DEADLINE.as_millis() / POLL.as_millis() {
        if let Some(running) = running(data) {
            return Url::parse(&running.url).ok().map(reachable);
        }
        tokio::time::sleep(POLL).await;
    }
    None
}

/// Selects the access for a command that only reads. If no server runs on the data folder and it has no store, the command uses the
/// server on `server.listen`, if one answers. It does not send the token there: any user of this machine may listen on that port.
pub(super) fn find_to_read(loaded: &Loaded, named: Option<&str>) -> Result<Access, Failure> {
    let found = find(loaded, named)?;
    if matches!(found, Access::Server(_)) || has_store(&loaded.settings.storage) {
        return Ok(found);
    }
    Ok(listening(loaded).map_or(found, Access::Server))
}

/// The server on `server.listen`, if its response is one of tertulia.
pub(super) fn listening(loaded: &Loaded) -> Option<Client> {
    let address = loaded.settings.server.address().ok().filter(|address| address.port() != 0)?;
    let url = reachable(Url::parse(&format!("http://{address}")).ok()?);
    let client = Client::new(url, None, false).ok()?;
    let request = client.request(Method::GET, "/readyz", &[]).timeout(FINDING_DEADLINE);
    // A server that is not ready responds with an error status.
    let answer = async { request.send().await.ok()?.json::<Value>().await.ok() };
    let answer = block_on(async { Ok(answer.await) }).ok()??;
    answer["ready"].is_boolean().then_some(client)
}

/// Fails while a server has the store open, for commands that need exclusive access.
pub(super) fn require_offline(data: &Path, command: &str) -> Result<(), Failure> {
    if !is_in_use(data) {
        return require_owner(data);
    }
    let server = running(data).map_or_else(String::new, |running| format!(" ({}, process {})", running.url, running.pid));
    let data = data.display();
    Err(Failure::Store(format!(
        "a server{server} runs on {data}: stop it first, because `tertulia history {command}` needs exclusive access to the store"
    )))
}

/// Fails if root uses the folder of another user: that user's server could not open the files that root writes there.
pub(super) fn require_owner(data: &Path) -> Result<(), Failure> {
    let owner = std::fs::metadata(data).map_or(0, |folder| folder.uid());
    if owner == 0 || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let data = data.display();
    Err(Failure::Store(format!(
        "{data} belongs to the user with the number {owner}, whose server could not open what root writes there: run this as that user, for \
         example with `sudo -u '#{owner}' tertulia …`"
    )))
}

/// Fails if the folder has no store. Opening it would create a new, empty one.
pub(super) fn require_store(storage: &Storage) -> Result<(), Failure> {
    if has_store(storage) {
        if storage.engine == Engine::Sled && is_half_copied(&storage.path) {
            check_folder(&storage.path).map_err(Failure::Store)?;
        }
        return require_owner(&storage.path);
    }
    let data = storage.path.display();
    Err(Failure::Store(format!("there is no store in {data}: set storage.path or --config as for the server")))
}

/// Fails with PostgreSQL if the command is only for a store on disk. `instead` names the alternative.
pub(super) fn require_disk(storage: &Storage, command: &str, instead: &str) -> Result<(), Failure> {
    match storage.engine {
        Engine::Sled => Ok(()),
        Engine::Postgres => Err(Failure::Usage(format!(
            "`tertulia history {command}` is for storage.engine = \"sled\", and the store is in PostgreSQL: {instead}"
        ))),
    }
}

/// Replaces an unspecified address, on which a server listens on all interfaces, with the loopback address.
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
