//! Applies the load over the HTTP API, to a running server or to one that is started for the run.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use futures_util::{StreamExt as _, stream};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::json;
use tokio::sync::Semaphore;

use super::chatter::Message;
use super::figures::{Figures, STORE_SIZE};
use super::load::{Outcome, Target};
use super::minutes::Monitored;
use super::{CONCURRENCY, Rooms};
use crate::adapters::store::sled::disk_bytes;
use crate::cli::client::Client;
use crate::cli::failure::Failure;
use crate::settings::Sources;

/// Settings of a server that is started for the run: limits that never apply, and a model that answers at once.
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

/// At most this number of requests is in flight, as through a proxy with a pool of connections: half of a server's connection limit. Other
/// messages wait, and their wait counts. Without this limit, a server that stalls for a second would get a new connection for each message.
const CONNECTIONS: usize = 512;

pub(super) struct Http {
    client: Client,
    connections: Semaphore,
    /// The server's process and data folder, if it was started for the run.
    own: Option<(Child, PathBuf)>,
}

impl Http {
    /// Uses a running server.
    pub(super) const fn to(client: Client) -> Self {
        Self { client, connections: Semaphore::const_new(CONNECTIONS), own: None }
    }

    /// Starts a server on this data folder, with these settings except for their limits.
    pub(super) fn start(sources: &Sources, data: &Path) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| Failure::Failed(format!("a server cannot be started: {what}: {error}"));
        let program = std::env::current_exe().map_err(|error| failed("this program's file is not found", error))?;
        let mut server = Command::new(&program);
        if sources.folder_was_named {
            server.arg("--config").arg(&sources.folder);
        }
        server.arg("serve").envs(UNLIMITED).env("TERTULIA__STORAGE__PATH", data);
        // It formats its log lines as usual, so that their cost counts; they are dropped.
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut own = server.spawn().map_err(|error| failed(&program.display().to_string(), error))?;
        let mut line = String::new();
        if let Some(out) = own.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(|error| failed("its output", error))?;
        }
        let url = line.trim().strip_prefix("ready ").and_then(|url| Url::parse(url).ok());
        let client = match url {
            Some(url) => Client::new(url, None, false),
            None => Err(Failure::Failed("the server did not start; `tertulia check` may show why".into())),
        };
        match client {
            Ok(client) => Ok(Self { client, connections: Semaphore::new(CONNECTIONS), own: Some((own, data.to_path_buf())) }),
            Err(failure) => {
                end(&mut own);
                Err(failure)
            }
        }
    }

    /// The server's companions: id and name.
    pub(super) async fn cast(&self) -> Result<Vec<(String, String)>, Failure> {
        let answer = self.client.object(self.client.request(Method::GET, "/api/companions", &[])).await?;
        let companions = answer["companions"].as_array().cloned().unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        Ok(companions.iter().filter_map(|companion| Some((text(&companion["id"])?, text(&companion["name"])?))).collect())
    }

    pub(super) async fn create_rooms(&self, rooms: &Rooms) -> Result<(), Failure> {
        let requests = stream::iter(0..rooms.channels).map(|number| async move {
            let path = format!("/api/rooms/{}", Rooms::name(number));
            let plan = json!({ "guild": rooms.guild(number), "companions": rooms.companions(number) });
            self.client.send(self.client.request(Method::PUT, &path, &[]).json(&plan)).await.map(drop)
        });
        let results: Vec<_> = requests.buffer_unordered(CONCURRENCY).collect().await;
        results.into_iter().collect()
    }

    /// GETs this path, and retries once: a server under load may have no connection left, or may close one at this moment.
    async fn get(&self, path: &str) -> Result<Response, Failure> {
        let get_once = || self.client.send(self.client.request(Method::GET, path, &[]));
        match get_once().await {
            Ok(answer) => Ok(answer),
            Err(_) => get_once().await,
        }
    }

    /// Waits until every room has handled its messages.
    pub(super) async fn catch_up(&self, rooms: &Rooms) -> Result<(), Failure> {
        let requests = stream::iter(0..rooms.channels)
            .map(|number| async move { self.get(&format!("/api/rooms/{}/state", Rooms::name(number))).await.map(drop) });
        let results: Vec<_> = requests.buffer_unordered(CONCURRENCY).collect().await;
        results.into_iter().collect()
    }
}

impl Monitored for Http {
    async fn figures(&self) -> Result<Figures, Failure> {
        let answer = self.get("/metrics").await?;
        let text = answer.text().await.map_err(|error| self.client.broken(&error))?;
        let data = self.own.as_ref().map(|(_, data)| data);
        // The server caches its own figure for some seconds.
        Ok(Figures::read(&text).with(STORE_SIZE, data.and_then(|data| disk_bytes(data).ok())))
    }
}

impl Target for Http {
    async fn send(&self, message: Message) -> Outcome {
        let path = format!("/api/rooms/{}/messages", Rooms::name(message.room));
        let mentions: Vec<_> = message.mention.into_iter().collect();
        let body = json!({ "from": message.from, "text": &*message.text, "mentions": mentions });
        // This fails only for a closed semaphore, and none is closed.
        let _connection = self.connections.acquire().await;
        match self.client.request(Method::POST, &path, &[]).json(&body).send().await {
            Ok(answer) if answer.status() == StatusCode::ACCEPTED => {
                // Read the body to its end, so that the connection can be reused.
                if answer.bytes().await.is_ok() { Outcome::Accepted } else { Outcome::Failed }
            }
            Ok(answer) if matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                Outcome::Refused
            }
            Ok(_) | Err(_) => Outcome::Failed,
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

/// Kills the server. Its stored data is not needed any more.
fn end(server: &mut Child) {
    // Both fail only if it has exited already.
    let _ = server.kill();
    let _ = server.wait();
}
