//! Reads files of messages from Discord's own hosts. Nothing is written to disk.

use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Method, StatusCode, Url};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::domain::attachment::MOST_BYTES;
use crate::http_client::{self, Client, is_loopback, reason};
use crate::ports::chat_platform::NotRead;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;

/// The hosts from which Discord serves files (Discord's documentation, "Reference", "CDN Endpoints").
const HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
/// The time limit of a file. A companion waits for its pictures before it answers.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The number of files that are read at a time, and the number in a minute.
const AT_ONCE: usize = 4;
const MOST_PER_MINUTE: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// Refusals that may pass, because addresses expire and requests are limited.
const MAY_PASS: [StatusCode; 4] = [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND, StatusCode::GONE, StatusCode::TOO_MANY_REQUESTS];

/// A client for files.
pub struct Files {
    client: Client,
    /// The API, if it is on this machine, as in tests: it may serve files, too.
    local: Option<Url>,
    permits: Semaphore,
    /// The begin of the current minute, and the number of files in it.
    minute: Mutex<(Instant, u32)>,
}

impl Files {
    /// # Errors
    /// Returns an error if the address of the API cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, Problem> {
        let api = settings.api()?;
        let local = is_loopback(&api).then_some(api);
        let to = local.clone().or_else(|| Url::parse(&format!("https://{}", HOSTS[0])).ok());
        let client = to.ok_or_else(|| "no address".to_owned()).and_then(|to| {
            Client::new(&to, http_client::builder(&to, &[]).connect_timeout(TIMEOUT), None).map_err(|error| reason(&error))
        });
        let client = client.map_err(|why| Problem::new("api_url", format!("files cannot be read: {why}")))?;
        let minute = Mutex::new((Instant::now(), 0));
        Ok(Self { client, local, permits: Semaphore::new(AT_ONCE), minute })
    }

    /// Reads a file that [`Self::count`] permitted.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or not now.
    pub async fn read(&self, url: &str) -> Result<Vec<u8>, NotRead> {
        let url = Url::parse(url).ok().filter(|url| self.is_own(url));
        let url = url.ok_or_else(|| NotRead::Never("its address is not one of Discord's".to_owned()))?;
        let fetched = async {
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await;
            self.fetch(url).await
        };
        timeout(TIMEOUT, fetched).await.unwrap_or_else(|_| Err(NotRead::later("it took too long")))
    }

    fn is_own(&self, url: &Url) -> bool {
        let is_plain = url.username().is_empty() && url.password().is_none();
        let is_discords =
            url.scheme() == "https" && url.port().is_none() && url.host_str().is_some_and(|host| HOSTS.contains(&host));
        is_plain && (is_discords || self.local.as_ref().is_some_and(|local| local.origin() == url.origin()))
    }

    /// Counts a file before anything is asked for it.
    ///
    /// # Errors
    /// Returns an error if too many files were counted in this minute.
    pub fn count(&self) -> Result<(), NotRead> {
        let mut minute = self.minute.lock();
        if minute.0.elapsed() >= MINUTE {
            *minute = (Instant::now(), 0);
        }
        minute.1 = minute.1.saturating_add(1);
        if minute.1 == MOST_PER_MINUTE + 1 {
            tracing::warn!(
                "more than a file a second is posted to companions on Discord; for the rest of this minute no further files are read"
            );
        }
        let is_permitted = minute.1 <= MOST_PER_MINUTE;
        is_permitted
            .then_some(())
            .ok_or_else(|| NotRead::Later { after: Some(MINUTE), detail: "too many files are read".to_owned() })
    }

    /// Redirects are never followed.
    async fn fetch(&self, url: Url) -> Result<Vec<u8>, NotRead> {
        let mut response = self.client.send(self.client.request(Method::GET, url)).await.map_err(NotRead::later)?;
        match response.status() {
            StatusCode::OK => {}
            // With a new address it may be there.
            status if status.is_server_error() || MAY_PASS.contains(&status) => {
                return Err(NotRead::later(format!("it is answered with {status}")));
            }
            status => return Err(NotRead::Never(format!("it is answered with {status}"))),
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| NotRead::later(reason(&error)))? {
            if bytes.len() + chunk.len() > MOST_BYTES {
                return Err(NotRead::Never("it is too large".to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::samples;

    fn files(api_url: &str) -> Files {
        let settings = Settings { api_url: api_url.to_owned(), ..samples::defaults().discord.clone() };
        Files::new(&settings).expect("a client")
    }

    #[tokio::test]
    async fn files_are_read_from_discords_own_hosts_only() {
        let files = files("https://discord.com/api");
        for foreign in [
            "https://cdn.discordapp.com.example.org/a.png",
            "https://user@cdn.discordapp.com/a.png",
            "http://cdn.discordapp.com/a.png",
            "https://cdn.discordapp.com:8443/a.png",
            "https://127.0.0.1/a.png",
            "http://169.254.169.254/latest/meta-data",
            "file:///etc/passwd",
            "",
        ] {
            let Err(NotRead::Never(why)) = files.read(foreign).await else { panic!("{foreign} is read") };
            assert_eq!(why, "its address is not one of Discord's", "{foreign}");
        }
        let is_own = |url: &str| files.is_own(&Url::parse(url).unwrap());
        assert!(is_own("https://cdn.discordapp.com/attachments/1/2/a.png?ex=1") && is_own("https://media.discordapp.net/a"));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_files_are_read_in_a_minute() {
        let files = files("https://discord.com/api");
        let counted: Vec<_> = (0..100).map(|_| files.count()).collect();

        assert_eq!(counted.iter().filter(|counted| counted.is_ok()).count(), 60);
        assert!(matches!(counted.last(), Some(Err(NotRead::Later { after: Some(MINUTE), .. }))));
        tokio::time::advance(MINUTE).await;
        assert_eq!(files.count(), Ok(()));
    }
}
