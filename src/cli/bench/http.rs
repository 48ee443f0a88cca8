//! Talks to a server over its HTTP API: to one that runs already, or to one that is started for this.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use futures_util::{StreamExt as _, stream};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::json;
use tokio::sync::Semaphore;

use super::figures::{Figures, STORE_SIZE};
use super::load::{Fate, Listener};
use super::minutes::Watched;
use super::talk::Said;
use super::{AT_A_TIME, Rooms};
use crate::adapters::store::sled::disk_bytes;
use crate::cli::client::Client;
use crate::cli::failure::Failure;
use crate::settings::Sources;

/// What a server is told that is started for this: no limit stands in the way, and its model answers at once.
const UNLIMITED: [(&str, &str); 15] = [
    ("TERTULIA__SERVER__LISTEN", "127.0.0.1:0"),
    ("TERTULIA__SERVER__REQUESTS_PER_SECOND", "1000000"),
    ("TERTULIA__SERVER__REQUEST_BURST", "1000000"),
    ("TERTULIA__GATE__EVALUATIONS_PER_HOUR", "4000000000"),
    ("TERTULIA__GATE__GUILD_EVALUATIONS_PER_HOUR", "4000000000"),
    ("TERTULIA__GATE__ADDRESSES_PER_MINUTE", "4000000000"),
    ("TERTULIA__GATE__GUILD_STATEMENTS_PER_DAY", "4000000000"),
    ("TERTULIA__MODELS__REHEARSAL__PACE", "0"),
    ("TERTULIA__MODELS__POOL__QUEUE_CAPACITY", "100000"),
    ("TERTULIA__MODELS__SIDE__BASE_URL", ""),
    ("TERTULIA__MODELS__MAIN__BASE_URL", ""),
    ("TERTULIA__MODELS__SIDE__MAX_CONCURRENT", "256"),
    ("TERTULIA__MODELS__SIDE__GUILD_MAX_CONCURRENT", "256"),
    ("TERTULIA__MODELS__MAIN__MAX_CONCURRENT", "256"),
    ("TERTULIA__MODELS__MAIN__GUILD_MAX_CONCURRENT", "256"),
];

/// So many messages are on their way at a time, as through a proxy that keeps so many connections: half of what a server takes. The others
/// wait, and their time counts. Without it whatever holds a server up for a second would have the load open a connection for each message.
const CONNECTIONS: usize = 512;

/// A server, and where its rooms take messages.
pub(super) struct Http {
    client: Client,
    connections: Semaphore,
    /// The server and its folder, if it was started for this.
    own: Option<(Child, PathBuf)>,
}

impl Http {
    /// Talks to a server that runs.
    pub(super) const fn to(client: Client) -> Self {
        Self { client, connections: Semaphore::const_new(CONNECTIONS), own: None }
    }

    /// Starts a server on this folder, with these settings where they do not limit it, and talks to that.
    pub(super) fn start(sources: &Sources, data: &Path) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| Failure::Failed(format!("a server cannot be started: {what}: {error}"));
        let program = std::env::current_exe().map_err(|error| failed("this program is not found", error))?;
        let mut server = Command::new(&program);
        if sources.folder_was_named {
            server.arg("--config").arg(&sources.folder);
        }
        server.arg("serve").envs(UNLIMITED).env("TERTULIA__STORAGE__PATH", data);
        // Its lines are written, as ever, to nowhere.
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut own = server.spawn().map_err(|error| failed(&program.display().to_string(), error))?;
        let mut line = String::new();
        if let Some(out) = own.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(|error| failed("its output", error))?;
        }
        let url = line.trim().strip_prefix("ready ").and_then(|url| Url::parse(url).ok());
        let client = match url {
            Some(url) => Client::new(url, None, false),
            None => Err(Failure::Failed("the server that was started did not come up; `tertulia check` may say why".into())),
        };
        match client {
            Ok(client) => Ok(Self { client, connections: Semaphore::new(CONNECTIONS), own: Some((own, data.to_path_buf())) }),
            Err(failure) => {
                end(&mut own);
                Err(failure)
            }
        }
    }

    /// The companions that the server has, by id, with their names.
    pub(super) async fn cast(&self) -> Result<Vec<(String, String)>, Failure> {
        let answer = self.client.object(self.client.request(Method::GET, "/api/companions", &[])).await?;
        let known = answer["companions"].as_array().cloned().unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        Ok(known.iter().filter_map(|one| Some((text(&one["id"])?, text(&one["name"])?))).collect())
    }

    /// Makes the rooms.
    pub(super) async fn make(&self, rooms: &Rooms) -> Result<(), Failure> {
        let making = stream::iter(0..rooms.channels).map(|number| async move {
            let path = format!("/api/rooms/{}", Rooms::name(number));
            let plan = json!({ "guild": rooms.guild(number), "companions": rooms.companions(number) });
            self.client.send(self.client.request(Method::PUT, &path, &[]).json(&plan)).await.map(drop)
        });
        let made: Vec<_> = making.buffer_unordered(AT_A_TIME).collect().await;
        made.into_iter().collect()
    }

    /// Asks for this, once more where that fails: while messages pile up a server may have no connection left, or end one at this moment.
    async fn look(&self, path: &str) -> Result<Response, Failure> {
        let ask = || self.client.send(self.client.request(Method::GET, path, &[]));
        match ask().await {
            Ok(answer) => Ok(answer),
            Err(_) => ask().await,
        }
    }

    /// Waits until every room has handled what it was told.
    pub(super) async fn catch_up(&self, rooms: &Rooms) -> Result<(), Failure> {
        let looking = stream::iter(0..rooms.channels)
            .map(|number| async move { self.look(&format!("/api/rooms/{}/state", Rooms::name(number))).await.map(drop) });
        let looked: Vec<_> = looking.buffer_unordered(AT_A_TIME).collect().await;
        looked.into_iter().collect()
    }
}

impl Watched for Http {
    async fn figures(&self) -> Result<Figures, Failure> {
        let answer = self.look("/metrics").await?;
        let text = answer.text().await.map_err(|error| self.client.broken(&error))?;
        let data = self.own.as_ref().map(|(_, data)| data);
        // What a server says of its disk is some seconds old.
        Ok(Figures::read(&text).with(STORE_SIZE, data.and_then(|data| disk_bytes(data).ok())))
    }
}

impl Listener for Http {
    async fn take(&self, said: Said) -> Fate {
        let path = format!("/api/rooms/{}/messages", Rooms::name(said.room));
        let mentions: Vec<_> = said.mention.into_iter().collect();
        let message = json!({ "from": said.from, "text": &*said.text, "mentions": mentions });
        // Nobody closes them.
        let _connection = self.connections.acquire().await;
        match self.client.request(Method::POST, &path, &[]).json(&message).send().await {
            Ok(answer) if answer.status() == StatusCode::ACCEPTED => {
                // Read to its end, so that the connection can be used again.
                if answer.bytes().await.is_ok() { Fate::Accepted } else { Fate::Failed }
            }
            Ok(answer) if matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                Fate::Refused
            }
            Ok(_) | Err(_) => Fate::Failed,
        }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        if let Some((own, _)) = &mut self.own {
            end(own);
        }
    }
}

/// Nobody needs what it has stored.
fn end(server: &mut Child) {
    // One that has ended already needs no more.
    let _ = server.kill();
    let _ = server.wait();
}
