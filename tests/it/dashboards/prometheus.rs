//! A real Prometheus on loopback, from the system's packages.

use std::process::Stdio;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::file;
use crate::harness::{Lines, PATIENCE, Server, serve};

/// A Prometheus that scrapes one server every second. The server's address may change.
pub struct Prometheus {
    url: String,
    http: reqwest::Client,
    /// The server's URL, and the number of scrapes so far.
    scraped: watch::Sender<(String, u64)>,
    log: Lines,
    _child: Child,
    _folder: TempDir,
}

/// The proxy between Prometheus and the server. It knows the server's address, and counts the scrapes.
#[derive(Clone)]
struct Proxy {
    scraped: Arc<watch::Sender<(String, u64)>>,
    http: reqwest::Client,
}

/// A sample of an instant vector.
#[derive(Debug)]
pub struct Sample {
    pub labels: Value,
    pub value: f64,
}

impl Prometheus {
    /// Starts one, with the alerts of the repository.
    pub async fn start() -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let scraped = watch::Sender::new((String::new(), 0));
        let proxy = Proxy { scraped: Arc::new(scraped.clone()), http: http.clone() };
        let target = serve(Router::new().route("/metrics", get(forward)).with_state(proxy)).await;
        let folder = tempfile::Builder::new().prefix("tertulia-").tempdir().expect("a folder");
        let config = serde_json::json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [file("alerts.yaml")],
            "scrape_configs": [{ "job_name": "tertulia", "static_configs": [{ "targets": [target.trim_start_matches("http://")] }] }],
        });
        // JSON is YAML.
        std::fs::write(folder.path().join("prometheus.yml"), config.to_string()).expect("a settings file");
        let mut child = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0"])
            .current_dir(folder.path())
            .kill_on_drop(true)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("prometheus is installed (Debian's package of that name)");
        let log = Lines::of(child.stderr.take().expect("piped"));
        let address = wait_for_line(&log, "Listening on").await;
        let address = address.rsplit_once("address=").expect("an address").1.to_owned();
        wait_for_line(&log, "Server is ready to receive web requests").await;
        Self { url: format!("http://{address}"), http, scraped, log, _child: child, _folder: folder }
    }

    /// Scrapes this server from now on.
    pub fn scrape_from(&self, server: &Server) {
        self.scraped.send_modify(|(url, _)| url.clone_from(&server.url));
    }

    /// Waits until this many scrapes that begin after this call are stored. A scrape begins only when the one before it is stored.
    pub async fn scrapes(&self, number: u64) {
        let mut scraped = self.scraped.subscribe();
        let wanted = scraped.borrow_and_update().1 + number + 1;
        let waited = timeout(PATIENCE, scraped.wait_for(|(_, scrapes)| *scrapes >= wanted)).await;
        waited.unwrap_or_else(|_| panic!("it does not scrape:\n{}", self.log.text())).expect("the proxy runs");
    }

    /// Evaluates an expression now.
    ///
    /// # Errors
    /// Prometheus rejects the expression, or its result is not a vector.
    pub async fn find(&self, expression: &str) -> Result<Vec<Sample>, String> {
        let data = self.get(&format!("/api/v1/query?query={}", encoded(expression))).await?;
        let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        match data["resultType"].as_str() {
            Some("vector") => {
                let samples = data["result"].as_array().cloned().unwrap_or_default();
                let sample = |sample: Value| Sample { value: number(&sample["value"][1]), labels: sample["metric"].clone() };
                Ok(samples.into_iter().map(sample).collect())
            }
            kind => Err(format!("the result is {kind:?}, not a vector")),
        }
    }

    /// The rules as Prometheus parsed them.
    pub async fn rules(&self) -> Vec<Value> {
        let data = self.get("/api/v1/rules").await.expect("rules");
        let groups = data["groups"].as_array().cloned().unwrap_or_default();
        groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect()
    }

    async fn get(&self, path: &str) -> Result<Value, String> {
        let request = async { self.http.get(format!("{}{path}", self.url)).send().await?.json::<Value>().await };
        let answer = timeout(PATIENCE, request).await.expect("an answer in time").expect("an answer");
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(answer["error"].to_string()) }
    }
}

async fn forward(State(proxy): State<Proxy>) -> Response {
    let mut url = String::new();
    proxy.scraped.send_modify(|(server, scrapes)| {
        *scrapes += 1;
        url.clone_from(server);
    });
    let read = async { proxy.http.get(format!("{url}/metrics")).send().await?.error_for_status()?.text().await };
    match read.await {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        // The server is starting.
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

async fn wait_for_line(log: &Lines, words: &str) -> String {
    let line = timeout(PATIENCE, log.wait_for(words)).await.ok().flatten();
    line.unwrap_or_else(|| panic!("no line says {words:?}:\n{}", log.text()))
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
