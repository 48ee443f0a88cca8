//! Connects to the gateway until its HELLO, and disconnects before it would have to identify.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::time::{Instant, timeout};
use tokio_websockets::{ClientBuilder, Limits, Message};

use super::super::gateway::frame::{self, Frame};
use super::{Checking, Line, TRY_LATER, millis};
use crate::http_client::cause;
use crate::settings::discord::Discord as Settings;

/// The protocol version and encoding that the server uses (Discord's documentation, "Gateway", "Connecting").
const QUERY: &str = "?v=10&encoding=json";
/// HELLO has about a hundred bytes. A longer message is not HELLO.
const MAX_HELLO_BYTES: usize = 64 * 1024;
const OPEN_WAY: &str = "Look at this machine's network, its DNS and its firewall: it has to reach gateway.discord.gg and the hosts below it on \
                        port 443. HTTPS_PROXY does not apply to the gateway; discord.gateway_url names a proxy that speaks WebSocket.";

impl Checking<'_> {
    /// Checks the gateway: the remaining identifies, the connection, and how long it takes.
    pub(super) async fn connection(&mut self) {
        let announced = self.starts().await;
        let configured = match self.settings.gateway() {
            Ok(url) => url.map(|url| url.to_string()),
            Err(problem) => {
                self.note(Line::problem("gateway", format!("discord.{problem}")));
                return;
            }
        };
        let Some(url) = configured.or(announced) else { return };
        // The address that Discord announces must meet the same rules as one in the settings.
        if Settings::gateway_at(&url).is_err() {
            self.note(Line::problem("gateway", "Discord names no gateway that can be used").click(TRY_LATER));
            return;
        }
        let began = Instant::now();
        let result = timeout(self.settings.request_timeout(), hello(&url)).await;
        let took = began.elapsed();
        let line = match result {
            Ok(Ok(())) => {
                self.report.figures.hello_ms = Some(millis(took));
                Line::good("gateway", format!("it sent HELLO after {} ms; no identify was used", millis(took)))
            }
            Ok(Err(reason)) => Line::problem("gateway", format!("no connection to {}: {reason}", host(&url))).click(OPEN_WAY),
            Err(_) => {
                let text = format!("{} sent nothing within {:.0} s", host(&url), self.settings.request_timeout().as_secs_f64());
                Line::problem("gateway", text).click(OPEN_WAY)
            }
        };
        self.note(line);
    }
}

/// Connects, waits for HELLO and disconnects.
async fn hello(url: &str) -> Result<(), String> {
    let address = format!("{}/{QUERY}", url.trim_end_matches('/'));
    let builder = ClientBuilder::new().uri(&address).map_err(|error| error.to_string())?;
    let limits = Limits::default().max_payload_len(Some(MAX_HELLO_BYTES));
    let (mut socket, _) = builder.limits(limits).connect().await.map_err(|error| cause(&error))?;
    let first = match socket.next().await {
        Some(Ok(message)) => message,
        Some(Err(error)) => return Err(cause(&error)),
        None => return Err("it closed the connection".to_owned()),
    };
    let is_hello = first.as_text().is_some_and(|text| matches!(frame::parse(text), Ok(Frame::Hello(_))));
    // The result is known already, even if the server ignores the close frame.
    let _ = timeout(Duration::from_secs(1), socket.send(Message::close(None, ""))).await;
    if is_hello {
        return Ok(());
    }
    Err(if first.is_close() { "it closed the connection" } else { "its first message is not HELLO" }.to_owned())
}

fn host(url: &str) -> String {
    reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "the gateway".to_owned())
}
