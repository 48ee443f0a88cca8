//! The program, started for the trial, and a model that answers it.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use axum::{Json, Router};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// A server that is killed when this is dropped.
pub struct Server {
    pub url: String,
    child: Child,
    http: reqwest::Client,
    _folder: TempDir,
}

impl Server {
    /// Starts `TERTULIA_PROGRAM`, or the program that was built along.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let model = format!("http://{}/v1", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        let folder = tempfile::tempdir()?;
        let program = std::env::var("TERTULIA_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_tertulia").to_owned());
        let mut command = Command::new(program);
        command.env("TERTULIA__STORAGE__PATH", folder.path());
        for (name, value) in [
            ("SERVER__LISTEN", "127.0.0.1:0"),
            ("SERVER__MAX_LIVE_PER_ADDRESS", "200"),
            ("MODELS__MAIN__BASE_URL", &model),
            ("MODELS__MAIN__MODEL", "trial"),
            // A reply long enough for all trials.
            ("VOICE__MAX_SPOKEN_CHARS", "10000"),
            ("REPETITION__ENABLED", "false"),
        ] {
            command.env(format!("TERTULIA__{name}"), value);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
        let url = loop {
            let line = lines.next_line().await?.context("the server has ended before it was ready")?;
            if let Some(url) = line.strip_prefix("ready ") {
                break url.to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { url, child, http: reqwest::Client::builder().no_proxy().build()?, _folder: folder })
    }

    /// Creates a room with Aria, who seldom insists on talking.
    pub async fn room(&self, room: &str) -> anyhow::Result<()> {
        let url = format!("{}/api/rooms/{room}", self.url);
        let settings = json!({ "guild": "home", "companions": ["aria"] });
        self.http.put(&url).json(&settings).send().await?.error_for_status()?;
        let quiet = json!({ "companions": { "aria": { "interjection": "very_quiet" } } });
        self.http.patch(&url).json(&quiet).send().await?.error_for_status()?;
        Ok(())
    }

    /// The packets that were not heard, by what became of them.
    pub async fn packets(&self) -> anyhow::Result<String> {
        let metrics = self.http.get(format!("{}/metrics", self.url)).send().await?.text().await?;
        let lines = metrics.lines().filter(|line| line.starts_with("tertulia_voice_packets_total{"));
        let fates = lines.filter_map(|line| Some((line.split('"').rev().nth(1)?, line.rsplit(' ').next()?)));
        Ok(fates.map(|(fate, count)| format!("{count} {fate}")).collect::<Vec<_>>().join(", "))
    }

    /// The processor time of the process so far.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()?))?;
        // In ticks of 10 ms (proc_pid_stat(5)), after the name, which may contain spaces.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        Ok(Duration::from_millis(10 * fields.map(str::parse::<u64>).sum::<Result<u64, _>>()?))
    }

    /// The resident memory of the process in KiB.
    pub fn resident(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        Ok(line.trim_end_matches("kB").trim().parse()?)
    }

    fn id(&self) -> anyhow::Result<u32> {
        self.child.id().context("the server has ended")
    }
}

/// Votes for every answer, and tells a story that is as long as a statement may be.
async fn answer(Json(body): Json<Value>) -> Json<Value> {
    let is_vote = body.to_string().contains("decision");
    let story = (1..).map(|number| format!("This is part {number} of a long story about people who meet in a café and talk."));
    let text = if is_vote {
        json!({ "reason": "Me.", "decision": "YES", "importance": 5, "selected": true, "closing": "none" }).to_string()
    } else {
        story.take(120).collect::<Vec<_>>().join(" ")
    };
    let choice = json!({ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    Json(json!({ "id": "answer", "model": body["model"], "choices": [choice], "usage": usage }))
}
