//! Reaches a server of tools: by HTTP, or as a program that runs below this one.
//!
//! Sampling, roots, elicitation and logging are not offered to servers.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Url};
use rmcp::model::{ClientCapabilities, ClientConfig, ErrorData, Implementation, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, Peer, RequestContext, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::{ClientCacheConfig, ClientHandler};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::adapters::program::{self, Program, Start};
use crate::domain::text::one_line;
use crate::http_client;
use crate::settings::Problem;
use crate::settings::tools::server::{Reached, ToolServer};

/// The longest message of a server, in bytes. Results are cut later.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// The most bytes that are read of the body of an HTTP error.
const MAX_ERROR_BYTES: usize = 4 << 10;
/// The most characters that are shown of what a server says about a failure.
const MAX_REASON_CHARS: usize = 240;
/// The most characters that are shown of its name and version.
const MAX_ABOUT_CHARS: usize = 80;
/// The time limit for telling a server that a call was cancelled.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
const NO_ANSWER: &str = "it ended the connection instead of answering";
/// The lines of a log that are shown.
const LOG_LINES: usize = 2;
/// How long the log of a program that ended the connection is waited for.
const LOG_WITHIN: Duration = Duration::from_secs(1);
/// The folder in the data folder with the working folders of programs.
const FOLDERS: &str = "tools";

/// The place of a server, and what is needed to reach it.
pub(crate) enum Target {
    Http { url: Url, client: reqwest::Client, token: Option<SecretString> },
    Program { command: String, settings: ToolServer, folder: PathBuf },
}

impl Target {
    /// # Errors
    /// Returns an error if a setting cannot be used.
    pub(crate) fn new(name: &str, settings: &ToolServer, data: &Path, authorities: &[Certificate]) -> Result<Self, Problem> {
        Ok(match settings.reached()? {
            Reached::At(url) => {
                let client = http_client::builder(&url, authorities).build();
                let client =
                    client.map_err(|error| Problem::new("url", format!("cannot be used: {}", http_client::reason(&error))))?;
                Self::Http { url, client, token: settings.token()? }
            }
            Reached::By(command) => {
                let folder = std::path::absolute(data.join(FOLDERS).join(name)).map_err(|error| {
                    Problem::new("command", format!("cannot have a folder below {}: {error}", data.display()))
                })?;
                Self::Program { command: command.to_owned(), settings: settings.clone(), folder }
            }
        })
    }

    /// The URL, or the program.
    pub(crate) fn place(&self) -> &str {
        match self {
            Self::Http { url, .. } => url.as_str(),
            Self::Program { command, .. } => command,
        }
    }

    /// Whether it is reached with the same token.
    pub(crate) fn has_token(&self, other: Option<&SecretString>) -> bool {
        let token = if let Self::Http { token, .. } = self { token.as_ref() } else { None };
        token.map(SecretString::expose_secret) == other.map(SecretString::expose_secret)
    }

    /// Connects. With `is_old`, the server is addressed as one that does not know the newest versions of the protocol.
    ///
    /// # Errors
    /// Returns the reason.
    pub(crate) async fn connect(&self, changed: Arc<Notify>, is_old: bool) -> Result<Connection, String> {
        let lifecycle = match is_old {
            true => ClientLifecycleMode::Initialize,
            false => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        };
        let client = Client { changed };
        let log = watch::Sender::<Log>::default();
        let (connected, program) = match self {
            Self::Http { url, client: http, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .max_sse_event_size(MAX_MESSAGE_BYTES)
                    .max_json_response_size(MAX_MESSAGE_BYTES)
                    .max_error_response_size(MAX_ERROR_BYTES)
                    .control_request_timeout(CONTROL_TIMEOUT)
                    // In a new session, the server may have other tools.
                    .reinit_on_expired_session(false);
                config.auth_header = token.as_ref().map(|token| token.expose_secret().to_owned());
                let transport = StreamableHttpClientTransport::with_client(http.clone(), config);
                (client.serve_with_lifecycle(transport, lifecycle).await, None)
            }
            Self::Program { command, settings, folder } => {
                let (program, input, output) = started(command, settings, folder, log.clone())?;
                let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(MAX_MESSAGE_BYTES);
                (client.serve_with_lifecycle(transport, lifecycle).await, Some(program))
            }
        };
        let service = match connected {
            Ok(service) => service,
            Err(error) => return Err(with_last_words(reason_of_start(&error), program.is_some(), &log).await),
        };
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        Ok(Connection { service, program, log })
    }
}

/// A connection to a server. Dropping it disconnects the server, and ends its program.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Client>,
    program: Option<Program>,
    log: watch::Sender<Log>,
}

/// The log of a program.
#[derive(Default)]
struct Log {
    /// Its newest lines. The shell adds one, such as `Killed`, if a signal ended the program.
    newest: VecDeque<String>,
    has_ended: bool,
}

impl Connection {
    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// What the server says about itself.
    pub(crate) fn about(&self) -> Option<String> {
        let info = self.peer().peer_info()?;
        let version = info.protocol_version.as_str();
        let server = info.server_info.as_ref();
        let server = server.map(|server| one_line(&format!("{} {}", server.name, server.version), MAX_ABOUT_CHARS));
        let parts =
            server.into_iter().filter(|server| !server.is_empty()).chain([one_line(&format!("MCP {version}"), MAX_ABOUT_CHARS)]);
        Some(parts.collect::<Vec<_>>().join(", "))
    }

    /// Waits for the end of the connection, and returns the reason.
    pub(crate) async fn ended(self) -> String {
        let Self { service, program, log } = self;
        // How the task ended adds nothing.
        let _ = service.waiting().await;
        with_last_words("it ended the connection".to_owned(), program.is_some(), &log).await
    }
}

/// What servers can ask of this client: nothing but whether it is there.
struct Client {
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("tertulia", env!("CARGO_PKG_VERSION")))
    }

    #[expect(deprecated, reason = "servers that speak old versions of the protocol still ask for roots")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListRootsRequestMethod>())
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Starts a program in its folder.
fn started(
    command: &str,
    settings: &ToolServer,
    folder: &Path,
    log: watch::Sender<Log>,
) -> Result<(Program, pipe::Sender, pipe::Receiver), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = match Path::new(command) {
        file if file.is_absolute() => file.to_owned(),
        _ if command.contains('/') => return Err(format!("{command} is a relative path; give the whole path of the program")),
        _ => program::find(command, &path).ok_or_else(|| {
            let in_one = if command.contains(' ') { "; name the program alone, and the rest in `arguments`" } else { "" };
            format!("there is no program {command} in the folders of PATH{in_one}")
        })?,
    };
    let variable = |name: &String| {
        let value =
            std::env::var_os(name).ok_or_else(|| format!("the environment of tertulia has no variable {name}; set it"))?;
        Ok((OsString::from(name), value))
    };
    let environment = settings.environment.iter().map(variable).collect::<Result<Vec<_>, String>>()?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| format!("its folder {} cannot be made: {error}", folder.display()))?;
    let start = Start {
        file: &file,
        arguments: &settings.arguments,
        environment: &environment,
        folder,
        data_bytes: Some(settings.memory_mb() << 20),
        logs_output: false,
    };
    let log = move |line: Option<&str>| {
        log.send_modify(|log| match line {
            Some(line) => {
                log.newest.truncate(LOG_LINES - 1);
                log.newest.push_front(one_line(line, MAX_REASON_CHARS));
            }
            None => log.has_ended = true,
        });
    };
    let piped = || -> io::Result<_> {
        let (program, pipes) = Program::start(&start, log)?;
        let (input, output) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((program, pipe::Sender::from_owned_fd(OwnedFd::from(input))?, pipe::Receiver::from_owned_fd(OwnedFd::from(output))?))
    };
    piped().map_err(|error| format!("{command} cannot be started: {error}"))
}

/// Adds the end of a program's log to a reason. The log of one that has ended arrives soon.
async fn with_last_words(reason: String, has_log: bool, log: &watch::Sender<Log>) -> String {
    if has_log {
        // After the timeout, the program runs on.
        let _ = timeout(LOG_WITHIN, log.subscribe().wait_for(|log| log.has_ended)).await;
    }
    let log = log.borrow();
    let lines: Vec<_> = log.newest.iter().rev().map(String::as_str).collect();
    if lines.is_empty() { reason } else { format!("{reason}; its log ends with: {}", lines.join(" / ")) }
}

/// Why a server could not be connected.
fn reason_of_start(error: &ClientInitializeError) -> String {
    match error {
        // Its standard input is closed.
        ClientInitializeError::TransportError { error, .. } if error.error.is::<io::Error>() => NO_ANSWER.to_owned(),
        ClientInitializeError::TransportError { error, .. } => reason_of_transport(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => reason_of_start(fallback),
        ClientInitializeError::JsonRpcError(error) => one_line(&error.message, MAX_REASON_CHARS),
        ClientInitializeError::ConnectionClosed(_) => NO_ANSWER.to_owned(),
        error => one_line(&error.to_string(), MAX_REASON_CHARS),
    }
}

/// Why a request failed.
pub(crate) fn reason(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => one_line(&error.message, MAX_REASON_CHARS),
        ServiceError::TransportSend(error) => reason_of_transport(error),
        ServiceError::TransportClosed => "the connection ended".to_owned(),
        ServiceError::UnexpectedResponse => "it answered with something that is no result".to_owned(),
        error => one_line(&error.to_string(), MAX_REASON_CHARS),
    }
}

fn reason_of_transport(error: &DynamicTransportError) -> String {
    match http_error(error) {
        // The text of the error itself has the URL.
        Some(StreamableHttpError::Client(error)) => http_client::reason(error),
        Some(StreamableHttpError::AuthRequired(_)) => "it demands a token (401): set token_file".to_owned(),
        Some(StreamableHttpError::InsufficientScope(_)) => "the token does not allow this (403)".to_owned(),
        Some(StreamableHttpError::UnexpectedContentType(kind)) => {
            let kind = kind.as_deref().unwrap_or("a body without a type");
            one_line(
                &format!("it answered with {kind}, neither JSON nor events; is this the URL of an MCP endpoint?"),
                MAX_REASON_CHARS,
            )
        }
        Some(StreamableHttpError::UnexpectedServerResponse(text)) if text.starts_with("HTTP 404") => {
            "there is nothing at this URL (404); that of an MCP endpoint often ends in /mcp".to_owned()
        }
        _ => one_line(&error.error.to_string(), MAX_REASON_CHARS),
    }
}

pub(crate) fn http_error(error: &DynamicTransportError) -> Option<&StreamableHttpError<reqwest::Error>> {
    error.error.downcast_ref()
}
