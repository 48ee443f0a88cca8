//! Section `server`: the console's address, access to it, and its limits.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::kept_token::KeptToken;
use super::secret::{bare_secret, first_line, secret};
use super::{Problem, seconds, within};

/// The minimum length of a token that other machines can try, in characters.
const STRONG_CHARS: usize = 16;

/// The minimum number of different characters in such a token. Almost every random token has more.
const STRONG_KINDS: usize = 6;

/// A token with this number of characters cannot be guessed, even without a limit on attempts. This also holds for tokens of
/// words or of hexadecimal digits.
const UNGUESSABLE_CHARS: usize = 32;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Address and port: `127.0.0.1:7878` or `localhost:7878`. Port 0 selects a free port. An address other than loopback
    /// requires an admin token.
    pub listen: String,
    /// The URL that browsers use, if it is not `listen`: `https://talk.example.org` behind a proxy. The server accepts its host
    /// as Host and its origin as Origin. With `https` cookies are Secure. A host other than loopback requires an admin token.
    pub public_url: Option<String>,
    /// Addresses and networks (`10.0.0.5`, `10.0.0.0/8`) of trusted proxies. Their `X-Forwarded-For` and `Forwarded` headers are used as the
    /// client's address.
    pub trusted_proxies: Vec<String>,
    /// The token that programs and people need for access, only from the environment. See also `admin_token_file`.
    pub admin_token: Option<SecretString>,
    /// A file whose first line is the admin token.
    pub admin_token_file: Option<PathBuf>,
    /// Longest request body, in bytes: 1,024 to 16 MiB.
    pub max_body_bytes: usize,
    /// Longest text of a message, in characters: 1 to 100,000.
    pub max_text_chars: usize,
    /// Concurrent connections: 1 to 100,000. From 16 on, a sixteenth of them, at most 64, is reserved for this machine itself.
    pub max_connections: usize,
    /// Concurrent connections from one address (IPv6: one /64) other than this machine: 1 to 100,000.
    pub max_connections_per_address: usize,
    /// Concurrent WebSockets: 0 to 100,000.
    pub max_live: usize,
    /// Concurrent WebSockets from one address: 0 to 100,000.
    pub max_live_per_address: usize,
    /// Requests per second from one address (IPv6: one /64): 1 to 1,000,000.
    pub requests_per_second: u32,
    /// The burst size of this rate limit, in requests: 1 to 1,000,000.
    pub request_burst: u32,
    /// Failed attempts to sign in per minute from one address: 1 to 1,000. Over this limit a correct token with less than 32 characters must wait
    /// too.
    pub sign_ins_per_minute: u32,
    /// Seconds for a request's headers to arrive, counted from when the connection is ready for the request: 0.05 to 3,600.
    pub header_timeout_secs: f64,
    /// Seconds for a request's body to arrive: 0.05 to 3,600.
    pub body_timeout_secs: f64,
    /// Seconds after which a response that the peer does not read is aborted: 0.05 to 3,600.
    pub stall_timeout_secs: f64,
    /// Seconds between pings on a WebSocket: 0.05 to 3,600. A WebSocket that receives nothing for three pings is closed.
    pub live_ping_secs: f64,
    /// Seconds after which a browser must sign in again: 60 to 31,536,000.
    pub session_secs: f64,
    /// Browsers signed in at the same time: 1 to 10,000.
    pub max_sessions: usize,
    /// Seconds that requests in flight may take to finish at shutdown: 0 to 600.
    pub drain_secs: f64,
    /// The file of the token that the server generates with the first invitation. That token is in force if no other one is set.
    #[serde(skip)]
    pub kept_token: Option<KeptToken>,
}

seconds! {
    Server {
        header_timeout = header_timeout_secs,
        body_timeout = body_timeout_secs,
        stall_timeout = stall_timeout_secs,
        live_ping = live_ping_secs,
        session = session_secs,
        drain = drain_secs,
    }
}

impl Server {
    /// If no token is set and the data folder contains a generated one, uses that.
    pub(super) fn keep_token_in(&mut self, data: &Path) {
        let kept = KeptToken::of(data);
        if self.admin_token.is_none() && self.admin_token_file.is_none() && kept.path().exists() {
            self.admin_token_file = Some(kept.path().to_owned());
        }
        self.kept_token = Some(kept);
    }

    /// Checks all ranges, and that an admin token is set if other machines can reach the server. Returns the first problem.
    pub fn check(&self) -> Result<(), Problem> {
        let address = self.address()?;
        if let Some(url) = &self.public_url {
            self.public_origin().ok_or_else(|| {
                Problem::new(
                    "public_url",
                    format!("is {url:?}, must be http:// or https:// and a host, with a port where needed, and no path"),
                )
            })?;
        }
        if self.admin_token.is_some() && self.admin_token_file.is_some() {
            return Err(Problem::new("admin_token_file", "is set together with admin_token; set only one of them"));
        }
        if self.admin_token.is_none() && self.admin_token_file.is_none() {
            let reached = "can be reached from other machines, but no admin token is set; \
                           set TERTULIA__SERVER__ADMIN_TOKEN or server.admin_token_file";
            if !address.ip().to_canonical().is_loopback() {
                return Err(Problem::new("listen", format!("= {:?} {reached}, or listen on 127.0.0.1", self.listen)));
            }
            // Requests through the proxy come from loopback, so the check above does not cover them.
            if let Some(url) = self.public_url.as_deref().filter(|_| !self.is_public_on_loopback()) {
                return Err(Problem::new("public_url", format!("= {url:?} {reached}")));
            }
        }
        self.trusted_networks()?;
        within("max_body_bytes", self.max_body_bytes, 1_024..=(16 << 20))?;
        within("max_text_chars", self.max_text_chars, 1..=100_000)?;
        within("max_connections", self.max_connections, 1..=100_000)?;
        within("max_connections_per_address", self.max_connections_per_address, 1..=100_000)?;
        within("max_live", self.max_live, 0..=100_000)?;
        within("max_live_per_address", self.max_live_per_address, 0..=100_000)?;
        within("requests_per_second", self.requests_per_second, 1..=1_000_000)?;
        within("request_burst", self.request_burst, 1..=1_000_000)?;
        within("sign_ins_per_minute", self.sign_ins_per_minute, 1..=1_000)?;
        within("header_timeout_secs", self.header_timeout_secs, 0.05..=3_600.0)?;
        within("body_timeout_secs", self.body_timeout_secs, 0.05..=3_600.0)?;
        within("stall_timeout_secs", self.stall_timeout_secs, 0.05..=3_600.0)?;
        within("live_ping_secs", self.live_ping_secs, 0.05..=3_600.0)?;
        within("session_secs", self.session_secs, 60.0..=31_536_000.0)?;
        within("max_sessions", self.max_sessions, 1..=10_000)?;
        within("drain_secs", self.drain_secs, 0.0..=600.0)
    }

    /// `listen` as a socket address.
    ///
    /// # Errors
    /// Returns an error if `listen` is not a socket address.
    pub fn address(&self) -> Result<SocketAddr, Problem> {
        let named = self.listen.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        if let Some(port) = named {
            return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        }
        self.listen.parse().map_err(|_| {
            let expected = "must be an address and a port, like 127.0.0.1:7878, [::1]:7878, localhost:7878 or 0.0.0.0:7878";
            Problem::new("listen", format!("is {:?}, {expected}", self.listen))
        })
    }

    /// `public_url` as browsers write an Origin: `https://talk.example.org`, in lower case, without a default port. `None` also
    /// for an invalid URL, which [`check`](Self::check) rejects.
    pub fn public_origin(&self) -> Option<String> {
        let url = Url::parse(self.public_url.as_deref()?).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
        (is_bare && url.path() == "/").then(|| url.origin().ascii_serialization())
    }

    /// `trusted_proxies` as networks.
    ///
    /// # Errors
    /// Returns an error if an entry is invalid or covers all addresses.
    pub fn trusted_networks(&self) -> Result<Vec<IpNet>, Problem> {
        let network = |(index, text): (usize, &String)| {
            let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical())));
            let key = || format!("trusted_proxies[{index}]");
            let network = network.map_err(|_| {
                Problem::new(
                    key(),
                    format!("is {text:?}, must be an address or a network, like 10.0.0.5, 10.0.0.0/8 or fd00::/8"),
                )
            })?;
            if network.prefix_len() == 0 {
                let detail =
                    "trusts every address, so that anybody could claim another address; name the proxy's address or network";
                return Err(Problem::new(key(), format!("is {text:?}, which {detail}")));
            }
            Ok(network)
        };
        self.trusted_proxies.iter().enumerate().map(network).collect()
    }

    /// Whether `public_url` names loopback.
    fn is_public_on_loopback(&self) -> bool {
        let origin = self.public_origin().unwrap_or_default();
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        let host = authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(authority, |(host, _)| host);
        let address: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        host == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
    }

    /// Whether other machines can reach the server, directly or through a proxy.
    pub fn is_reached(&self) -> bool {
        let is_here = self.address().is_ok_and(|address| address.ip().to_canonical().is_loopback());
        !is_here || (self.public_url.is_some() && !self.is_public_on_loopback())
    }

    /// The admin token, from the settings or its file. `None`: no token is set.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the token is invalid. Also returns an error if other machines can reach the
    /// server and the token could be guessed.
    pub fn token(&self) -> Result<Option<SecretString>, Problem> {
        let file = ("admin_token_file", self.admin_token_file.as_deref());
        let Some((key, token)) = secret(("admin_token", self.admin_token.as_ref()), file)? else { return Ok(None) };
        let text = bare_secret(key, first_line(&token))?;
        if text.is_empty() {
            return Err(Problem::new(key, "is empty; set a token of 16 characters or more, or remove the key"));
        }
        if text.len() > 1_024 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Problem::new(key, "must be at most 1,024 visible ASCII characters without spaces"));
        }
        if self.is_reached() && !is_strong(text) {
            let remedy = "other machines can reach the server; create one of 16 characters or more, for example with `openssl rand -hex 32`";
            return Err(Problem::new(key, format!("could be guessed, and {remedy}")));
        }
        Ok(Some(text.into()))
    }

    /// A hint about a weak token that only programs on this machine can try.
    pub(super) fn token_note(&self) -> Option<String> {
        let token = self.token().ok()??;
        let key = if self.admin_token.is_some() { "admin_token" } else { "admin_token_file" };
        (!is_strong(token.expose_secret())).then(|| {
            format!("server.{key}: the token could be guessed; create one of 16 characters or more, for example with `openssl rand -hex 32`")
        })
    }
}

/// Whether a token is long enough and has enough different characters.
fn is_strong(token: &str) -> bool {
    let kinds: BTreeSet<u8> = token.bytes().collect();
    token.len() >= STRONG_CHARS && kinds.len() >= STRONG_KINDS
}

/// Whether a token cannot be guessed, even without a limit on attempts: as strong as the output of `openssl rand -hex 16`.
pub fn is_unguessable(token: &str) -> bool {
    token.len() >= UNGUESSABLE_CHARS && is_strong(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::server as defaults;

    #[test]
    fn the_defaults_pass_their_own_check() {
        let server = defaults();

        assert_eq!(server.check(), Ok(()));
        assert_eq!(server.address().unwrap().to_string(), "127.0.0.1:7878");
        assert!(server.token().unwrap().is_none());
    }

    #[test]
    fn a_value_out_of_range_is_named_with_its_range() {
        let mut server = defaults();
        server.max_text_chars = 0;

        assert_eq!(server.check().unwrap_err().to_string(), "max_text_chars: is 0, must be from 1 to 100000");

        server.max_text_chars = 8_000;
        server.drain_secs = f64::NAN;

        assert_eq!(server.check().unwrap_err().key, "drain_secs");
    }

    #[test]
    fn a_listen_address_without_a_port_is_rejected_with_examples() {
        let server = Server { listen: "localhost".into(), ..defaults() };

        assert!(server.check().unwrap_err().message.contains("like 127.0.0.1:7878"));
    }

    #[test]
    fn a_trusted_proxy_is_an_address_or_a_network_and_not_everybody() {
        let of = |text: &str| Server { trusted_proxies: vec!["::1".into(), text.into()], ..defaults() };

        assert_eq!(of("10.0.0.5").trusted_networks().unwrap()[1].to_string(), "10.0.0.5/32");
        assert_eq!(of("fd00::/8").check(), Ok(()));
        for wrong in ["proxy.example.org", "10.0.0.0/33", "", "0.0.0.0/0", "::/0"] {
            let problem = of(wrong).check().unwrap_err();
            assert!(problem.key == "trusted_proxies[1]" && problem.message.contains(&format!("{wrong:?}")), "{problem}");
        }
    }

    #[test]
    fn localhost_is_loopback() {
        let server = Server { listen: "localhost:0".into(), ..defaults() };

        assert_eq!(server.address().unwrap().to_string(), "127.0.0.1:0");
    }

    #[test]
    fn a_public_url_becomes_an_origin() {
        let origin = |url: &str| Server { public_url: Some(url.into()), ..defaults() }.public_origin();

        assert_eq!(origin("https://Talk.example.org/").as_deref(), Some("https://talk.example.org"));
        assert_eq!(origin("https://talk.example.org:443").as_deref(), Some("https://talk.example.org"));
        assert_eq!(origin("http://[::1]:90").as_deref(), Some("http://[::1]:90"));
        assert_eq!(
            ["talk.example.org", "ftp://a", "https://a/b", "https://a@b", "https://a:b", "https://"].map(origin),
            [const { None }; 6]
        );
    }

    #[test]
    fn a_token_comes_from_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "correct-horse-battery\nnot this\n").unwrap();
        let server = Server { admin_token_file: Some(file.path().into()), ..defaults() };

        assert_eq!(server.token().unwrap().unwrap().expose_secret(), "correct-horse-battery");
    }

    #[test]
    fn an_invalid_token_is_rejected_and_never_printed() {
        let empty = Server { admin_token: Some(" ".into()), ..defaults() };
        let spaced = Server { admin_token: Some("two words".into()), ..defaults() };

        assert!(empty.token().unwrap_err().message.starts_with("is empty"));
        assert!(!spaced.token().unwrap_err().to_string().contains("words"));
        assert!(!format!("{spaced:?}").contains("words"));
    }

    #[test]
    fn a_token_is_required_except_on_loopback() {
        let listening = |listen: &str| Server { listen: listen.into(), ..defaults() };
        let with_token = Server { admin_token: Some("correct-horse-battery".into()), ..listening("0.0.0.0:1") };

        let refused = ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"].map(|listen| listening(listen).check().is_err());
        let accepted =
            ["127.0.0.1:1", "[::1]:1", "localhost:1", "[::ffff:127.0.0.1]:1"].map(|listen| listening(listen).check().is_ok());

        assert_eq!((refused, accepted), ([true; 3], [true; 4]));
        assert!(with_token.check().is_ok());
    }

    #[test]
    fn behind_a_proxy_a_token_is_required() {
        let published = |url: &str| Server { public_url: Some(url.into()), ..defaults() };
        let with_token = Server { admin_token: Some("correct-horse-battery".into()), ..published("https://talk.example.org") };

        let refused = ["https://talk.example.org", "http://10.0.0.1:80", "https://localhost.example", "http://[2001:db8::1]"]
            .map(|url| published(url).check().unwrap_err().key);
        let accepted = ["http://localhost:7878", "http://127.0.0.1:8080", "http://[::1]", "http://[::1]:8080"]
            .map(|url| published(url).check());

        assert_eq!(refused, ["public_url"; 4]);
        assert_eq!(accepted, [const { Ok(()) }; 4]);
        assert!(with_token.check().is_ok());
    }

    #[test]
    fn a_weak_token_is_rejected_if_other_machines_can_try_tokens() {
        let of = |listen: &str, url: Option<&str>, token: &str| {
            let server = Server { listen: listen.into(), public_url: url.map(str::to_owned), ..defaults() };
            Server { admin_token: Some(token.into()), ..server }.token().map(drop)
        };
        let weak = ["short", "fifteen-letters", "aaaaaaaaaaaaaaaaaaaaaaaa", "ababababababababababab"];

        for token in weak {
            let problem = of("0.0.0.0:1", None, token).unwrap_err();
            assert_eq!(problem.key, "admin_token");
            assert!(problem.message.contains("openssl rand -hex 32") && !problem.message.contains(token), "{problem}");
            assert!(of("127.0.0.1:1", Some("https://talk.example.org"), token).is_err());
            assert!(of("127.0.0.1:1", None, token).is_ok());
        }
        assert!(of("0.0.0.0:1", None, "9f86d081884c7d659a2feaa0c55ad015").is_ok());
    }

    #[test]
    fn token_and_token_file_exclude_each_other() {
        let server = Server { admin_token: Some("a".into()), admin_token_file: Some("b".into()), ..defaults() };

        assert_eq!(server.check().unwrap_err().key, "admin_token_file");
    }
}
