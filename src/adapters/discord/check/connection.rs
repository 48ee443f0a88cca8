//! Connects to the gateway up to its HELLO, and leaves before it would have to identify.

use std::error::Error as _;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use tokio::time::{Instant, timeout};
use tokio_websockets::{ClientBuilder, Limits, Message};

use super::{Checking, Line, TRY_LATER, millis};
use crate::settings::discord::Discord as Settings;

/// What the server speaks with the gateway (Discord's documentation, "Gateway", "Connecting").
const QUERY: &str = "?v=10&encoding=json";
/// HELLO is a hundred bytes; more than this is none.
const MAX_HELLO_BYTES: usize = 64 * 1024;
const HELLO: u64 = 10;
const OPEN_WAY: &str = "Look at this machine's network, its DNS and its firewall: it has to reach gateway.discord.gg and the hosts below it on \
                        port 443. HTTPS_PROXY does not hold for the gateway; discord.gateway_url names a proxy that speaks WebSocket.";

#[derive(Deserialize)]
struct Opening {
    op: u64,
}

impl Checking<'_> {
    /// Looks at the gateway: the budget, the way there, and how long it takes.
    pub(super) async fn connection(&mut self) {
        let announced = self.starts().await;
        let set = match self.settings.gateway() {
            Ok(set) => set.map(|url| url.to_string()),
            Err(problem) => {
                self.note(Line::problem("gateway", format!("discord.{problem}")));
                return;
            }
        };
        let Some(url) = set.or(announced) else { return };
        // What Discord announces is held to what may be set.
        if Settings::gateway_at(&url).is_err() {
            self.note(Line::problem("gateway", "Discord names no gateway that can be used").click(TRY_LATER));
            return;
        }
        let began = Instant::now();
        let heard = timeout(self.settings.request_timeout(), hello(&url)).await;
        let took = began.elapsed();
        let line = match heard {
            Ok(Ok(())) => {
                self.report.told.hello_ms = Some(millis(took));
                Line::good("gateway", format!("it said HELLO after {} ms; nothing was identified", millis(took)))
            }
            Ok(Err(why)) => Line::problem("gateway", format!("no connection to {}: {why}", host(&url))).click(OPEN_WAY),
            Err(_) => {
                let said = format!("{} said nothing within {:.0} s", host(&url), self.settings.request_timeout().as_secs_f64());
                Line::problem("gateway", said).click(OPEN_WAY)
            }
        };
        self.note(line);
    }
}

/// Connects, waits for HELLO and hangs up.
async fn hello(url: &str) -> Result<(), String> {
    let address = format!("{}/{QUERY}", url.trim_end_matches('/'));
    let builder = ClientBuilder::new().uri(&address).map_err(|error| error.to_string())?;
    let limits = Limits::default().max_payload_len(Some(MAX_HELLO_BYTES));
    let (mut socket, _) = builder.limits(limits).connect().await.map_err(|error| deepest(&error))?;
    let first = match socket.next().await {
        Some(Ok(message)) => message,
        Some(Err(error)) => return Err(deepest(&error)),
        None => return Err("it hung up".to_owned()),
    };
    let opening = first.as_text().and_then(|text| serde_json::from_str::<Opening>(text).ok());
    // It is known what was to be known, however it takes the goodbye.
    let _ = timeout(Duration::from_secs(1), socket.send(Message::close(None, ""))).await;
    match opening {
        Some(Opening { op: HELLO }) => Ok(()),
        _ if first.is_close() => Err("it hung up".to_owned()),
        _ => Err("what it said is no HELLO".to_owned()),
    }
}

fn deepest(error: &tokio_websockets::Error) -> String {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

fn host(url: &str) -> String {
    reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "the gateway".to_owned())
}
