//! Refuses requests that a page of another site makes a browser send. Checks the headers Host (against DNS rebinding), Origin and Sec-Fetch-Site.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};

use super::problem::Problem;

/// The names under which this server can be reached.
#[derive(Debug)]
pub(super) struct Names {
    is_loopback: bool,
    /// The origin of `server.public_url`, or of a door for guests, such as `https://talk.example.org`.
    public_origin: Option<String>,
    /// A URL of this server, for error messages.
    address: String,
}

impl Names {
    pub(super) fn new(bound: SocketAddr, public_origin: Option<String>) -> Self {
        let local = || match bound.ip().is_unspecified() {
            true => format!("http://ADDRESS:{} with an IP address of the server's machine", bound.port()),
            false => format!("http://{bound}"),
        };
        let address = public_origin.clone().unwrap_or_else(local);
        Self { is_loopback: is_loopback(bound.ip()), public_origin, address }
    }

    /// Returns the host of a request if it belongs to this server: the public host, a loopback name, or, if the server listens beyond loopback, any
    /// IP address. An IP address is safe because DNS rebinding needs a name.
    pub(super) fn check_host<'a>(&self, uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let host =
            uri.authority().map(axum::http::uri::Authority::as_str).or_else(|| hosts.next().and_then(|host| host.to_str().ok()));
        let (Some(host), None) = (host, hosts.nth(usize::from(uri.authority().is_some()))) else {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "the request must have one Host header"));
        };
        let name = host_name(host);
        let address: Option<IpAddr> = name.trim_start_matches('[').trim_end_matches(']').parse().ok();
        let is_local = name == "localhost" || address.is_some_and(|address| is_loopback(address) || !self.is_loopback);
        if is_local || self.is_public(host) {
            return Ok(host);
        }
        Err(Problem::new(StatusCode::FORBIDDEN, self.unknown_host(&name, host)))
    }

    /// The error for an unknown host, with the setting that accepts it. The host is quoted only if it consists of a name and a port.
    fn unknown_host(&self, name: &str, host: &str) -> String {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        let is_name = !name.is_empty() && host.len() <= 255 && host.bytes().all(is_allowed);
        let (subject, url) = if is_name {
            (format!("the host {name:?}"), format!("\"http://{host}\", or https:// behind a proxy with TLS"))
        } else {
            ("the host in the Host header".to_owned(), "the URL of that host".to_owned())
        };
        let note = if self.public_origin.is_some() { "" } else { " (this requires an admin token)" };
        format!("{subject} is not this server's; use {}, or set server.public_url to {url}{note}", self.address)
    }

    /// Refuses requests from pages of other origins. Programs send neither Origin nor Sec-Fetch-Site, and are admitted.
    pub(super) fn check_origin(&self, host: &str, headers: &HeaderMap) -> Result<(), Problem> {
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or("unreadable").to_ascii_lowercase();
            // If the public URL has https, no page of ours is served under http.
            let is_plain = origin.strip_prefix("http://").is_some_and(|authority| authority == host.to_ascii_lowercase());
            let is_ours = self.public_origin.as_ref() == Some(&origin) || (is_plain && !self.is_secure(host));
            if !is_ours {
                let detail = format!(
                    "the origin {origin:?} may not use this server; open {}, or set server.public_url to that origin",
                    self.address
                );
                return Err(Problem::new(StatusCode::FORBIDDEN, detail));
            }
        }
        self.check_site(headers)
    }

    /// Refuses requests that another site started, according to the browser.
    pub(super) fn check_site(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
            None | Some(b"same-origin" | b"none") => Ok(()),
            Some(_) => Err(Problem::new(
                StatusCode::FORBIDDEN,
                format!("pages of other sites may not use this server; open {}", self.address),
            )),
        }
    }

    fn is_secure(&self, host: &str) -> bool {
        self.public_origin.as_deref().is_some_and(|origin| origin.starts_with("https://")) && self.is_public(host)
    }

    fn is_public(&self, host: &str) -> bool {
        let public = self.public_origin.as_deref().and_then(|origin| origin.split_once("://"));
        public.is_some_and(|(_, public)| host_name(public) == host_name(host))
    }
}

/// Whether an address can be reached only from this machine.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A host without its port, in lower case.
fn host_name(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::settings::samples::server as defaults;
    use crate::settings::server::Server;

    fn names(bound: &str, public_url: Option<&str>) -> Names {
        Names::new(bound.parse().unwrap(), Server { public_url: public_url.map(str::to_owned), ..defaults() }.public_origin())
    }

    fn is_accepted(names: &Names, host: &'static str) -> bool {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        names.check_host(&Uri::from_static("/"), &headers).is_ok()
    }

    fn may_post(names: &Names, host: &str, origin: &'static str) -> bool {
        names.check_origin(host, &HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))])).is_ok()
    }

    #[test]
    fn a_server_on_loopback_accepts_only_loopback_hosts() {
        let names = names("127.0.0.1:7878", None);

        let ours =
            ["127.0.0.1:7878", "localhost", "LOCALHOST:9", "[::1]:7878", "127.8.8.8"].map(|host| is_accepted(&names, host));
        let foreign =
            ["evil.example", "evil.example:7878", "localhost.evil.example", "10.0.0.1", "", ":7878", "127.0.0.1.nip.io"]
                .map(|host| is_accepted(&names, host));

        assert_eq!(ours, [true; 5]);
        assert_eq!(foreign, [false; 7]);
    }

    #[test]
    fn a_server_beyond_loopback_accepts_addresses_and_the_public_host() {
        let names = names("0.0.0.0:7878", Some("https://talk.example.org"));

        let ours =
            ["talk.example.org", "Talk.Example.org:443", "10.0.0.1:7878", "localhost:7878"].map(|host| is_accepted(&names, host));

        assert_eq!(ours, [true; 4]);
        assert!(!is_accepted(&names, "evil.example"));
    }

    #[test]
    fn a_machine_name_is_refused_with_the_setting_that_accepts_it() {
        let refusal = |names: &Names, host: &'static str| {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            names.check_host(&Uri::from_static("/"), &headers).unwrap_err().detail().to_owned()
        };

        let named = refusal(&names("0.0.0.0:7878", None), "attic.lan:7878");
        let malformed = refusal(&names("127.0.0.1:7878", Some("https://talk.example.org")), "a secret");

        assert!(named.contains("http://ADDRESS:7878 with an IP address") && !named.contains("0.0.0.0"), "{named}");
        assert!(named.contains("server.public_url to \"http://attic.lan:7878\""), "{named}");
        assert!(
            malformed.contains("use https://talk.example.org,")
                && malformed.ends_with("server.public_url to the URL of that host"),
            "{malformed}"
        );
    }

    #[test]
    fn requests_with_no_host_or_two_hosts_are_refused() {
        let names = names("127.0.0.1:7878", None);
        let mut doubled = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        doubled.append(HOST, HeaderValue::from_static("evil.example"));

        assert!(names.check_host(&Uri::from_static("/"), &HeaderMap::new()).is_err());
        assert!(names.check_host(&Uri::from_static("/"), &doubled).is_err());
    }

    #[test]
    fn the_authority_of_an_absolute_uri_is_checked() {
        let names = names("127.0.0.1:7878", None);
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);

        assert!(names.check_host(&Uri::from_static("http://evil.example/api/rooms"), &headers).is_err());
        assert!(names.check_host(&Uri::from_static("http://localhost:7878/api/rooms"), &headers).is_ok());
    }

    #[test]
    fn an_origin_is_ours_when_it_is_the_host_or_the_public_url() {
        let names = names("127.0.0.1:7878", Some("https://talk.example.org"));

        assert!(may_post(&names, "localhost:7878", "http://localhost:7878"));
        assert!(may_post(&names, "127.0.0.1:7878", "https://talk.example.org"));
        let foreign =
            ["null", "http://evil.example", "http://localhost:9999", "https://talk.example.org.evil.example", "file://"];
        assert_eq!(foreign.map(|origin| may_post(&names, "localhost:7878", origin)), [false; 5]);
    }

    #[test]
    fn another_site_is_refused_even_without_an_origin() {
        let names = names("127.0.0.1:7878", None);
        let site =
            |site: &'static str| HeaderMap::from_iter([("sec-fetch-site".parse().unwrap(), HeaderValue::from_static(site))]);

        assert!(names.check_site(&site("same-origin")).is_ok());
        assert!(names.check_site(&site("none")).is_ok());
        assert!(names.check_site(&site("cross-site")).is_err());
        assert!(names.check_site(&site("same-site")).is_err());
    }
}
