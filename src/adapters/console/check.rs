//! Checks from this machine whether an address leads to this server, and whether everything that browsers need gets through.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use reqwest::{Client, StatusCode, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::lookup_host;

use tertulia_http_client::{builder, cause, is_loopback, tls_error};

/// The time limit of each request.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 4 << 10;

/// About the size of a card or a picture. Some proxies pass on at most a mebibyte unless told otherwise.
pub(super) const LARGE_BYTES: usize = 2 << 20;

/// The result of a check.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Checked {
    /// What does not work. Empty: everything works.
    faults: Vec<Fault>,
}

/// The answer to a check that has found its server.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Here {
    /// The address of a proxy that names its clients and is not trusted.
    #[schemars(with = "Option<String>")]
    pub(super) untrusted_proxy: Option<IpAddr>,
}

/// Something that does not work.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Fault {
    code: FaultCode,
    /// The address or the error, in English. Absent: there is no more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FaultCode {
    /// It is not a URL of a host.
    NoUrl,
    /// It begins with http://.
    NoHttps,
    /// It has a path, but the server needs a host name of its own.
    BelowPath,
    /// The host name has no address.
    NoName,
    /// Nothing answers there.
    NoAnswer,
    /// TLS fails, for example because of the certificate.
    NoTls,
    /// The request arrives here with another host name than `server.public_url`.
    HostRefused,
    /// Something else answers.
    OtherServer,
    /// WebSockets do not get through.
    NoWebSocket,
    /// Large bodies are refused on the way.
    SmallBodies,
    /// The proxy names its clients, but is not one of `server.trusted_proxies`.
    UntrustedProxy,
}

impl FaultCode {
    fn because(self, detail: impl Into<Option<String>>) -> Fault {
        Fault { code: self, detail: detail.into() }
    }
}

/// Checks an address. `secret` is that of the check, by which this server recognises its requests.
pub(super) async fn check(address: &str, secret: &str) -> Checked {
    let faults = match faults(address.trim(), secret).await {
        Ok(faults) => faults,
        Err(fault) => vec![fault],
    };
    Checked { faults }
}

async fn faults(address: &str, secret: &str) -> Result<Vec<Fault>, Fault> {
    let url: Option<Url> = address.parse().ok().filter(|url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| FaultCode::NoUrl.because(None))?;
    if url.scheme() == "http" && !is_loopback(&url) {
        return Err(FaultCode::NoHttps.because(None));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(FaultCode::BelowPath.because(url.origin().ascii_serialization()));
    }
    let client = builder(&url, &[]).http1_only().timeout(ANSWER_WITHIN).build();
    let client = client.map_err(|error| FaultCode::NoTls.because(cause(&error)))?;
    let mut here = url.clone();
    here.set_path("/api/addresses/here");
    here.query_pairs_mut().append_pair("secret", secret);

    let mut faults = Vec::new();
    if let Some(proxy) = reached(&client, &url, &here).await?.untrusted_proxy {
        faults.push(FaultCode::UntrustedProxy.because(proxy.to_string()));
    }
    let upgrade = client.get(here.clone()).header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
    let upgrade = upgrade.header(SEC_WEBSOCKET_VERSION, "13").header(SEC_WEBSOCKET_KEY, "dGVydHVsaWEgY2hlY2tzIQ==").send().await;
    if upgrade.map(|response| response.status()).ok() != Some(StatusCode::SWITCHING_PROTOCOLS) {
        faults.push(FaultCode::NoWebSocket.because(None));
    }
    let large = client.post(here).header(CONTENT_TYPE, "application/octet-stream").body(vec![0; LARGE_BYTES]).send().await;
    // A lost or slow connection is no fault of the proxy.
    if large.is_ok_and(|response| response.status() != StatusCode::NO_CONTENT) {
        faults.push(FaultCode::SmallBodies.because(None));
    }
    Ok(faults)
}

/// The answer of this server at the address.
async fn reached(client: &Client, url: &Url, here: &Url) -> Result<Here, Fault> {
    let mut response = match client.get(here.clone()).send().await {
        Ok(response) => response,
        Err(error) if tls_error(&error).is_some() => return Err(FaultCode::NoTls.because(cause(&error))),
        Err(error) => {
            let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
            let has_address =
                lookup_host((host.trim_matches(['[', ']']), port)).await.is_ok_and(|mut found| found.next().is_some());
            let code = if has_address { FaultCode::NoAnswer } else { FaultCode::NoName };
            return Err(code.because(cause(&error)));
        }
    };
    let status = response.status();
    let is_problem = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/problem+json");
    if status == StatusCode::FORBIDDEN && is_problem {
        return Err(FaultCode::HostRefused.because(url.origin().ascii_serialization()));
    }
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() > ANSWER_BYTES {
            break;
        }
    }
    let answer = (status == StatusCode::OK).then(|| serde_json::from_slice(&body).ok()).flatten();
    answer.ok_or_else(|| FaultCode::OtherServer.because(status.to_string()))
}
