//! Reads files that people posted from Discord's own hosts. Nothing is kept, and no redirect is followed.

use std::time::Duration;

use reqwest::{Method, Url};
use tokio::time::timeout;

use crate::http_client::{self, Client};
use crate::ports::chat_platform::NotRead;
use crate::settings::Problem;

/// The hosts of files (Discord's documentation, "API Reference", "Image Formatting" and "Signed Attachment CDN URLs").
const HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
/// Connecting fails after this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A file must have arrived within this time.
const WITHIN: Duration = Duration::from_secs(20);

/// Reads files. Requests contain no token.
pub struct Files {
    client: Client,
    api: Url,
}

impl Files {
    /// A reader beside the API at this address.
    ///
    /// # Errors
    /// Returns an error if the address is not usable.
    pub fn new(api: Url) -> Result<Self, Problem> {
        let builder = http_client::builder(&api, &[]).connect_timeout(CONNECT_TIMEOUT);
        let client = Client::new(&api, builder, None);
        let client =
            client.map_err(|error| Problem::new("api_url", format!("cannot be used: {}", http_client::reason(&error))))?;
        Ok(Self { client, api })
    }

    /// Reads the file at this address, of at most `most` bytes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read. It is `Later` for an expired address, too: its message has a new one.
    pub async fn read(&self, address: &str, most: usize) -> Result<Vec<u8>, NotRead> {
        let address = Url::parse(address).ok().filter(|address| self.is_of_discord(address));
        let address = address.ok_or_else(|| never("the address of a file is not one of Discord's"))?;
        let read = timeout(WITHIN, self.exchange(address, most)).await;
        read.unwrap_or_else(|_| Err(later("a file did not arrive in time".to_owned())))
    }

    fn is_of_discord(&self, address: &Url) -> bool {
        let is_host = address.scheme() == "https" && address.host_str().is_some_and(|host| HOSTS.contains(&host));
        is_host && address.port().is_none() || address.origin() == self.api.origin()
    }

    async fn exchange(&self, address: Url, most: usize) -> Result<Vec<u8>, NotRead> {
        let sent = self.client.send(self.client.request(Method::GET, address)).await;
        let mut response = sent.map_err(|error| later(error.reason))?;
        match response.status().as_u16() {
            200 => {}
            // The address has expired, or the file is gone.
            403 | 404 => return Err(later("Discord has no file at this address any more".to_owned())),
            status @ (429 | 500..) => return Err(later(format!("Discord's file server answered {status}"))),
            status => return Err(never(&format!("Discord's file server answered {status}"))),
        }
        let is_too_long = |length: usize| length > most;
        if response.content_length().is_some_and(|length| usize::try_from(length).map_or(true, is_too_long)) {
            return Err(never("the file is too large"));
        }
        let mut file = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| later(http_client::reason(&error)))? {
            if is_too_long(file.len() + chunk.len()) {
                return Err(never("the file is too large"));
            }
            file.extend_from_slice(&chunk);
        }
        Ok(file)
    }
}

fn later(detail: String) -> NotRead {
    NotRead::Later { after: None, detail }
}

fn never(detail: &str) -> NotRead {
    NotRead::Never(detail.to_owned())
}
