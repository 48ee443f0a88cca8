//! Applies the load over the HTTP API, to a running server or to one that is started for the run.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tertulia::adapters::store::sled::disk_bytes;
use tertulia::http_client;
use tokio::sync::Semaphore;

use super::chatter::Message;
use super::figures::{Figures, STORE_SIZE};
use super::minutes::Monitored;
use super::pace::{Outcome, Target};
use super::{CONCURRENCY, Rooms, System};

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
    http: reqwest::Client,
    url: Url,
    token: Option<SecretString>,
    connections: Semaphore,
    /// The server, if it was started for the run.
    own: Option<Own>,
}

/// A server that is killed when this is dropped. Its stored data is not needed any more.
pub(super) struct Own {
    process: Child,
    data: PathBuf,
}

impl Http {
    pub(super) fn to(url: Url, token: Option<SecretString>, own: Option<Own>) -> anyhow::Result<Self> {
        let http = http_client::builder(&url, &[]).build()?;
        Ok(Self { http, url, token, connections: Semaphore::new(CONNECTIONS), own })
    }

    /// Starts `TERTULIA_PROGRAM`, or the program that was built along, on this data folder, with its usual settings except for their limits.
    pub(super) fn start(
        config: Option<&Path>,
        profile: Option<&str>,
        token: Option<SecretString>,
        data: PathBuf,
    ) -> anyhow::Result<Self> {
        let program = std::env::var("TERTULIA_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tertulia").to_owned());
        let mut command = Command::new(program);
        command.args(config.into_iter().flat_map(|folder| [OsStr::new("--config"), folder.as_os_str()]));
        command.args(profile.into_iter().flat_map(|name| ["--profile", name]));
        command.arg("serve").envs(UNLIMITED).env("TERTULIA__STORAGE__PATH", &data);
        // It formats its log lines as usual, so that their cost counts; they are dropped.
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = process.stdout.take().context("its output")?;
        let own = Own { process, data };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let url = line.trim().strip_prefix("ready ").context("the server did not start; `tertulia check` may show why")?;
        Self::to(url.parse()?, token, Some(own))
    }

    /// The server's companions: id and name.
    pub(super) async fn cast(&self) -> anyhow::Result<Vec<(String, String)>> {
        let answer: Value = self.get("/api/companions").await?.json().await?;
        let companions = answer["companions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(companions.filter_map(|companion| Some((text(&companion["id"])?, text(&companion["name"])?))).collect())
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        }
    }

    /// GETs this path, and retries once: a server under load may have no connection left, or may close one at this moment.
    async fn get(&self, path: &str) -> anyhow::Result<Response> {
        let once = || async { answered(self.request(Method::GET, path).send().await?).await };
        match once().await {
            Ok(answer) => Ok(answer),
            Err(_) => once().await,
        }
    }
}

/// The response, or an error with the text of an error response.
async fn answered(response: Response) -> anyhow::Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    anyhow::bail!("{} answered {status}: {}", response.url().clone(), response.text().await.unwrap_or_default())
}

impl Monitored for Http {
    async fn figures(&self) -> anyhow::Result<Figures> {
        let text = self.get("/metrics").await?.text().await?;
        // The server caches its own figure for some seconds.
        Ok(Figures::read(&text).with(STORE_SIZE, self.own.as_ref().and_then(|own| disk_bytes(&own.data).ok())))
    }
}

impl System for Http {
    async fn create(&self, rooms: &Rooms) -> anyhow::Result<()> {
        let requests = stream::iter(0..rooms.channels).map(|number| async move {
            let request = self.request(Method::PUT, &format!("/api/rooms/{}", Rooms::name(number)));
            answered(request.json(&rooms.plan(number)).send().await?).await.map(drop)
        });
        requests.buffer_unordered(CONCURRENCY).try_collect().await
    }

    async fn catch_up(&self, rooms: &Rooms) -> anyhow::Result<()> {
        let requests = stream::iter(0..rooms.channels)
            .map(|number| async move { self.get(&format!("/api/rooms/{}/state", Rooms::name(number))).await.map(drop) });
        requests.buffer_unordered(CONCURRENCY).try_collect().await
    }
}

impl Target for Http {
    async fn send(&self, message: Message) -> Outcome {
        let path = format!("/api/rooms/{}/messages", Rooms::name(message.room));
        let mentions: Vec<_> = message.mention.into_iter().collect();
        let body = json!({ "from": message.from, "text": &*message.text, "mentions": mentions });
        // This fails only for a closed semaphore, and none is closed.
        let _connection = self.connections.acquire().await;
        match self.request(Method::POST, &path).json(&body).send().await {
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

impl Drop for Own {
    fn drop(&mut self) {
        // Both fail only if it has exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
