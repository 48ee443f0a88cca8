//! Connects to the gateway, waits for HELLO, and disconnects without identifying.

use tokio::time::{Instant, timeout};
use tokio_websockets::Connector;

use super::super::gateway::frame::{self, Frame};
use super::super::gateway::socket::{GatewaySocket, Received};
use super::{Checking, Line, TRY_LATER, millis};
use crate::settings::discord::Discord as Settings;

const OPEN_WAY: &str = "Look at this machine's network, its DNS and its firewall: it has to reach gateway.discord.gg and the hosts below it on \
                        port 443. HTTPS_PROXY does not apply to the gateway; discord.gateway_url names a proxy that speaks WebSocket.";

impl Checking<'_> {
    /// Checks the gateway: the remaining identifies, the connection, and how long it takes.
    pub(super) async fn connection(&mut self) {
        let announced = self.starts().await;
        let configured = match self.settings.gateway() {
            Ok(url) => url.map(|url| url.to_string()),
            Err(problem) => {
                self.add_line(Line::problem("gateway", format!("discord.{problem}")));
                return;
            }
        };
        let Some(url) = configured.or(announced) else { return };
        // The address that Discord announces must meet the same rules as one in the settings.
        if Settings::gateway_at(&url).is_err() {
            self.add_line(Line::problem("gateway", "Discord names no gateway that can be used").click(TRY_LATER));
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
        self.add_line(line);
    }
}

/// Connects as the server would, waits for HELLO, and disconnects.
async fn hello(url: &str) -> Result<(), String> {
    let connector = Connector::new().map_err(|error| error.to_string())?;
    let mut socket = GatewaySocket::open(url.trim_end_matches('/'), &connector).await?;
    match socket.next().await {
        Received::Frame(text) if matches!(frame::parse(&text), Ok(Frame::Hello(_))) => Ok(()),
        Received::Closed(_) => Err("it closed the connection".to_owned()),
        _ => Err("its first message is not HELLO".to_owned()),
    }
}

fn host(url: &str) -> String {
    reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "the gateway".to_owned())
}
