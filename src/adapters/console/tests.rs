//! Socket tests: real clients, a console on a free loopback port, and an in-memory backend.

mod addresses;
mod api;
mod auth;
mod bytes;
mod cards;
mod companions;
mod external;
mod foreign;
mod guests;
mod limits;
mod live;
mod lore;
mod models;
mod openapi;
mod page;
mod serving;
mod uploads;

use std::sync::Arc;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::adapters::system::SystemClock;
use crate::ports::backend::Backend;
use crate::ports::backend::fake::FakeBackend;
use crate::ports::companion_setup::fake::FakeCompanions;
use crate::ports::model_setup::fake::FakeModels;
use crate::ports::nodes::NoNodes;
use crate::ports::settings_setup::fake::FakeSettings;
use crate::ports::tools::NoTools;
use crate::samples::Draws;
use crate::settings::samples::server as defaults;
use crate::telemetry::metrics::Metrics;

const TOKEN: &str = "correct-horse-battery-staple";

/// A console that serves until it is dropped.
struct World {
    address: SocketAddr,
    backend: Arc<FakeBackend>,
    client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// This backend, with models that can be set up.
pub(super) fn served(backend: Arc<FakeBackend>) -> Served {
    Served::Core {
        backend: Box::new(Backend::of(backend)),
        models: Arc::<FakeModels>::default(),
        settings: Arc::<FakeSettings>::default(),
        companions: Arc::<FakeCompanions>::default(),
        nodes: Arc::new(NoNodes),
        tools: Arc::new(NoTools),
    }
}

pub(super) fn rng() -> Arc<Draws> {
    Arc::default()
}

pub(super) fn clock() -> Arc<SystemClock> {
    Arc::new(SystemClock)
}

/// The defaults on a free port.
pub(super) fn settings() -> Server {
    Server { listen: "127.0.0.1:0".into(), ..defaults() }
}

fn with_token() -> Server {
    Server { admin_token: Some(TOKEN.into()), ..settings() }
}

impl World {
    async fn new() -> Self {
        Self::with(settings()).await
    }

    async fn with(settings: Server) -> Self {
        let backend = Arc::new(FakeBackend::with_lobby());
        let console = Console::bind(&settings, served(backend.clone()), rng(), clock(), Metrics::local()).await.unwrap();
        let address = console.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(console.serve(async { drop(stopped.await) }));
        // The tests use plain HTTP, but the client needs an installed provider.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { address, backend, client, stop: Some(stop), served }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    /// Status and JSON of a request without a body; `Null` if the response is not JSON.
    async fn ask(&self, method: Method, path: &str) -> (u16, Value) {
        self.answer(method, path, |request| request).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path).await
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        self.answer(method, path, |request| request.json(&body)).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::POST, path, body).await
    }

    /// Status and JSON of a request with this body, sent unchanged.
    async fn post_raw(&self, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
        self.answer(Method::POST, path, |request| request.body(body)).await
    }

    /// Status and JSON of the response, which must be as the description of the API says.
    async fn answer(&self, method: Method, path: &str, with: impl FnOnce(RequestBuilder) -> RequestBuilder) -> (u16, Value) {
        let (status, json) = answer(with(self.request(method.clone(), path)).send().await.unwrap()).await;
        openapi::check_answer(&method, path, status, &json);
        (status, json)
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// The response to these bytes, until the server closes.
    async fn raw(&self, bytes: &str) -> String {
        let mut stream = self.connect().await;
        // The server may close the connection while a refused client is still writing.
        let _ = stream.write_all(bytes.as_bytes()).await;
        read_all(&mut stream).await
    }
}

async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or(Value::Null))
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A reset after the response counts as its end.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}
