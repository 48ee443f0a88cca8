//! A server of tools: keeps the connection, lists the tools, and makes calls.
//!
//! The server is connected again whenever the connection ends, with pauses that grow. It never has two connections. Calls stop for a while when
//! several in a row fail.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{CallToolRequestParams, CallToolResponse, PaginatedRequestParams, Tool as Described};
use rmcp::service::{Peer, RoleClient, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connection::{Connection, Target, http_error, reason};
use super::content::{self, Text};
use super::listed::{Listed, listed};
use super::lock::Lock;
use crate::domain::breaker::{Breaker, BreakerState, Verdict};
use crate::domain::tools::{Effect, RightSetting};
use crate::ports::clock::Clock;
use crate::ports::tools::{Answer, Failure, OfferedTool, ToolServerView, ToolState, ToolView};
use crate::settings::tools::server::ToolServer;

/// The time limits for connecting, and for listing the tools.
const CONNECTED_WITHIN: Duration = Duration::from_secs(30);
const LISTED_WITHIN: Duration = Duration::from_secs(20);
/// How long the end of a connection is waited for that a call found broken.
const ENDED_WITHIN: Duration = Duration::from_secs(2);
/// How often the tools are listed, besides when the server says that they have changed.
const LOOK_EVERY: Duration = Duration::from_secs(300);
/// The pause after such a message, during which others count as the same.
const CHANGES_TOGETHER: Duration = Duration::from_secs(1);
/// The pauses before a new connection: the first, and the longest. They start anew after a connection that was stable.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// The most tools of a server, and the most pages of its list.
const MOST_TOOLS: usize = 128;
const MOST_PAGES: usize = 16;
/// The most calls at a time. Each may bring a long result.
const MOST_CALLS: usize = 2;
/// The failures in a row that stop calls, and for how long.
const FAILURES: u32 = 3;
const COOL_DOWN: Duration = Duration::from_secs(30);
/// The longest such pause that a server can ask for.
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// A server that is kept connected until this is dropped.
pub(crate) struct Kept {
    pub(crate) server: Arc<Server>,
    keeper: JoinHandle<()>,
}

pub(crate) struct Server {
    name: Arc<str>,
    settings: ToolServer,
    target: Target,
    lock: Arc<Lock>,
    clock: Arc<dyn Clock>,
    pub(crate) state: watch::Sender<State>,
    breaker: Mutex<Breaker>,
    places: Semaphore,
}

#[derive(Default)]
pub(crate) struct State {
    /// Whether it is connected, or has failed once.
    pub(crate) is_tried: bool,
    pub(crate) link: Option<Link>,
    about: Option<String>,
    pub(crate) problem: Option<Arc<str>>,
    /// The tools as they were listed last.
    tools: Vec<Arc<Listed>>,
}

/// A connection that can be used for calls.
#[derive(Clone)]
pub(crate) struct Link {
    peer: Peer<RoleClient>,
    /// Gets the reason when a call finds the connection broken.
    broken: mpsc::Sender<String>,
}

impl Kept {
    pub(crate) fn start(name: Arc<str>, settings: ToolServer, target: Target, lock: Arc<Lock>, clock: Arc<dyn Clock>) -> Self {
        let server = Arc::new(Server {
            name,
            settings,
            target,
            lock,
            clock,
            state: watch::Sender::default(),
            breaker: Mutex::new(Breaker::new(FAILURES, COOL_DOWN)),
            places: Semaphore::new(MOST_CALLS),
        });
        let keeper = tokio::spawn(server.clone().keep());
        Self { server, keeper }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Server {
    /// Whether the server has these settings.
    pub(crate) fn has(&self, settings: &ToolServer) -> bool {
        // Debug output has all settings except the token.
        let is_same = format!("{:?}", self.settings) == format!("{settings:?}");
        is_same && settings.token().is_ok_and(|token| self.target.has_token(token.as_ref()))
    }

    /// The accepted tools, if calls are possible now.
    pub(crate) fn offered(&self) -> Vec<OfferedTool> {
        let state = self.state.borrow();
        if state.link.is_none() || !self.breaker.lock().allows_call(self.clock.now()) {
            return Vec::new();
        }
        let usable = |tool: &&Arc<Listed>| tool.problem.is_none() && self.lock.accepts(&tool.name, &tool.hash);
        let place: Arc<str> = self.target.place().into();
        let offered = |tool: &Arc<Listed>| OfferedTool { tool: tool.offered(), read_only: tool.read_only, place: place.clone() };
        state.tools.iter().filter(usable).map(offered).collect()
    }

    pub(crate) fn view(&self, rights: &BTreeMap<Arc<str>, RightSetting>) -> ToolServerView {
        let state = self.state.borrow();
        let rests = matches!(self.breaker.lock().state(self.clock.now()), BreakerState::Open(_));
        let rests = rests.then(|| "its last calls failed; it rests for a while".to_owned());
        let tool = |tool: &Arc<Listed>| {
            let (state, accepted) = match self.lock.accepted(&tool.name) {
                None => (ToolState::New, None),
                Some(accepted) if accepted.hash == tool.hash => (ToolState::Accepted, None),
                Some(accepted) => (ToolState::Changed, Some(accepted)),
            };
            let Listed { name, description, parameters, read_only, hash, problem, .. } = Listed::clone(tool);
            let effect = if read_only { Effect::ReadOnly } else { Effect::Outside };
            let right = rights.get(&*name).cloned().unwrap_or_default().or(effect.usual_right());
            let problem = problem.map(str::to_owned);
            ToolView { name, state, read_only, description, parameters, hash, accepted, problem, right }
        };
        ToolServerView {
            name: self.name.to_string(),
            place: self.target.place().to_owned(),
            about: state.about.clone(),
            connected: state.link.is_some(),
            problem: state.problem.as_deref().map(str::to_owned).or(rests),
            tools: state.tools.iter().map(tool).collect(),
        }
    }

    /// Keeps the server connected, forever.
    async fn keep(self: Arc<Self>) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let problem = self.run(failures).await;
            self.disconnected(problem);
            if began.elapsed() >= STABLE_AFTER {
                failures = 0;
            }
            sleep(FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Connects the server, and keeps its list of tools until the connection ends. Returns the reason.
    async fn run(&self, failures: u32) -> String {
        let changed = Arc::<Notify>::default();
        // Some old servers fail when they are asked for new versions.
        let connecting = self.target.connect(changed.clone(), failures % 2 == 1);
        let connection = match timeout(CONNECTED_WITHIN, connecting).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(problem)) => return problem,
            Err(_) => return format!("it did not answer within {} seconds", CONNECTED_WITHIN.as_secs()),
        };
        let (broken, mut is_broken) = mpsc::channel(1);
        let (link, about) = (Link { peer: connection.peer().clone(), broken }, connection.about());
        let mut ended = pin!(Connection::ended(connection));
        loop {
            let (tools, is_cut) = tokio::select! {
                reason = &mut ended => return reason,
                listed = timeout(LISTED_WITHIN, list(&link.peer)) => match listed {
                    Ok(Ok(listed)) => listed,
                    Ok(Err(error)) => return format!("it does not list its tools: {}", reason(&error)),
                    Err(_) => return format!("it did not list its tools within {} seconds", LISTED_WITHIN.as_secs()),
                },
            };
            self.connected(&link, about.clone(), tools, is_cut);
            tokio::select! {
                reason = &mut ended => return reason,
                Some(reason) = is_broken.recv() => {
                    // No more calls. If the connection has ended, its end says more.
                    self.state.send_modify(|state| state.link = None);
                    return timeout(ENDED_WITHIN, &mut ended).await.unwrap_or(reason);
                }
                () = changed.notified() => sleep(CHANGES_TOGETHER).await,
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// The tool with this name and the connection, if it can be called now.
    fn callable(&self, name: &str) -> Result<(Arc<Listed>, Link), String> {
        let state = self.state.borrow();
        let tool = state.tools.iter().find(|tool| tool.name == name && tool.problem.is_none());
        let tool = tool.ok_or_else(|| format!("there is no tool {name}"))?;
        if !self.lock.accepts(name, &tool.hash) {
            return Err(format!("{name} is not accepted by the operator"));
        }
        let not_connected = || format!("{} is not connected: {}", self.name, state.problem.as_deref().unwrap_or("it starts"));
        let link = state.link.clone().ok_or_else(not_connected)?;
        match self.breaker.lock().allows_call(self.clock.now()) {
            true => Ok((tool.clone(), link)),
            false => Err(format!("the last calls of {} failed; it rests for a while", self.name)),
        }
    }

    pub(crate) async fn call(&self, name: &str, arguments: Map<String, Value>) -> Result<Answer, Failure> {
        let (tool, link) = self.callable(name).map_err(|reason| Failure::NotMade(reason.into()))?;
        let limit = self.settings.timeout();
        let until = Instant::now() + limit;
        let Ok(Ok(_place)) = timeout_at(until, self.places.acquire()).await else {
            return Err(Failure::NotMade(format!("{} is busy with other calls", self.name).into()));
        };
        let mut attempt = Attempt::begin(self, &link);
        let parameters = CallToolRequestParams::new(tool.original.clone()).with_arguments(arguments);
        let (outcome, verdict, broken) = match timeout_at(until, link.peer.call_tool_once(parameters)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => (Ok(content::answer(&result)), Verdict::Alive, None),
            Ok(Ok(_)) => (Ok(failed("it asks for input, or for time, which is not offered")), Verdict::Alive, None),
            Ok(Err(error)) => judged(&error),
            Err(_) => {
                let reason = format!("{} did not answer within {} seconds", self.name, limit.as_secs_f64());
                (Err(Failure::Unknown(reason.into())), Verdict::Failing(None), None)
            }
        };
        attempt.end(verdict, broken);
        outcome
    }

    fn connected(&self, link: &Link, about: Option<String>, tools: Vec<Described>, is_cut: bool) {
        let tools: Vec<_> = listed(&self.name, tools).into_iter().map(Arc::new).collect();
        let is_held_back = |tool: &&Arc<Listed>| !self.lock.accepts(&tool.name, &tool.hash);
        let (listed, held_back) = (tools.len(), tools.iter().filter(is_held_back).count());
        self.state.send_modify(|state| {
            let is_news =
                state.link.is_none() || !state.tools.iter().map(|tool| &tool.hash).eq(tools.iter().map(|tool| &tool.hash));
            if is_news {
                tracing::info!(server = &*self.name, tools = listed, held_back, "a server of tools is connected");
            }
            let problem = is_cut.then(|| format!("its list of tools is too long; only the first {listed} are used").into());
            *state = State { is_tried: true, link: Some(link.clone()), about, problem, tools };
        });
    }

    fn disconnected(&self, problem: String) {
        self.state.send_modify(|state| {
            if state.problem.as_deref() != Some(&problem) {
                tracing::warn!(server = &*self.name, problem, "a server of tools is not connected");
            }
            (state.is_tried, state.link, state.problem) = (true, None, Some(problem.into()));
        });
    }
}

/// The tools of a server, and whether it has more. A list may never end.
async fn list(peer: &Peer<RoleClient>) -> Result<(Vec<Described>, bool), ServiceError> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor.clone()))).await?;
        tools.extend(page.tools);
        // A cursor that leads to itself is the end of some servers' lists.
        cursor = page.next_cursor.filter(|next| cursor.as_ref() != Some(next));
        if tools.len() > MOST_TOOLS {
            tools.truncate(MOST_TOOLS);
            return Ok((tools, true));
        }
        if cursor.is_none() {
            return Ok((tools, false));
        }
    }
    Ok((tools, true))
}

/// What an error means for the call, for the breaker and for the connection: the reason if it is broken.
fn judged(error: &ServiceError) -> (Result<Answer, Failure>, Verdict, Option<String>) {
    let reason = reason(error);
    let http = if let ServiceError::TransportSend(error) = error { http_error(error) } else { None };
    match (error, http) {
        (ServiceError::McpError(_) | ServiceError::UnexpectedResponse, _) => (Ok(failed(&reason)), Verdict::Alive, None),
        (_, Some(StreamableHttpError::ResponseBodyTooLarge { .. })) => {
            (Ok(failed("its answer is too long to be read")), Verdict::Alive, None)
        }
        (_, Some(StreamableHttpError::HttpStatus(status))) if status.status == 429 => {
            let secs = status.retry_after.as_deref().and_then(|secs| secs.parse().ok()).map(Duration::from_secs);
            (Err(Failure::NotMade(reason.into())), Verdict::Failing(secs.map(|secs| secs.min(LONGEST_REST))), None)
        }
        (_, Some(error)) if is_unsent(error) => {
            (Err(Failure::NotMade(reason.clone().into())), Verdict::Failing(None), Some(reason))
        }
        _ => (Err(Failure::Unknown(reason.clone().into())), Verdict::Failing(None), Some(reason)),
    }
}

/// Whether the server has certainly not begun to handle the request.
fn is_unsent(error: &StreamableHttpError<reqwest::Error>) -> bool {
    match error {
        StreamableHttpError::Client(error) => error.is_connect(),
        StreamableHttpError::SessionExpired
        | StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_) => true,
        _ => false,
    }
}

fn failed(reason: &str) -> Answer {
    let mut text = Text::default();
    text.add(reason);
    text.answer(true)
}

/// A call in progress. Dropping it means that the caller gave up, which counts as a failure.
struct Attempt<'a> {
    server: &'a Server,
    link: &'a Link,
    /// Whether it is the probe of the breaker. `None`: it is over.
    is_probe: Option<bool>,
}

impl<'a> Attempt<'a> {
    fn begin(server: &'a Server, link: &'a Link) -> Self {
        let is_probe = server.breaker.lock().started(server.clock.now());
        Self { server, link, is_probe: Some(is_probe) }
    }

    /// `broken`: why the connection cannot be used any more.
    fn end(&mut self, verdict: Verdict, broken: Option<String>) {
        let Some(is_probe) = self.is_probe.take() else { return };
        let has_opened = self.server.breaker.lock().ended(self.server.clock.now(), is_probe, verdict);
        // A program that only hangs is started anew, too.
        if let Some(reason) = broken.or_else(|| has_opened.then(|| "its last calls failed".to_owned())) {
            // The channel is full if another call has reported a failure.
            let _ = self.link.broken.try_send(reason);
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.end(Verdict::Failing(None), None);
    }
}
