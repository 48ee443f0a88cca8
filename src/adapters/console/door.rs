//! The listeners of the server, each with the host names, proxies and cookies that belong to it. The main one is `server.listen`. Others are opened on
//! the page for guests alone: there, tokens and sessions of operators are not even looked at.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;
use tokio::sync::watch;

use super::forwarded::{Proxies, UNKNOWN};
use super::host::{Names, is_loopback};
use crate::settings::Problem;
use crate::settings::server::Server;

/// One listener.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) names: Names,
    pub(super) proxies: Proxies,
    /// Whether browsers reach it by https, so that cookies are Secure.
    pub(super) is_secure: bool,
    pub(super) is_for_guests: bool,
    /// Set to true when it closes. The closing waits until all receivers are dropped.
    pub(super) closing: watch::Sender<bool>,
}

impl Door {
    /// The door at `server.listen`.
    pub(super) fn main(bound: SocketAddr, settings: &Server) -> Result<Self, Problem> {
        let proxies = Proxies::new(settings.trusted_networks()?);
        Ok(Self { is_for_guests: false, ..Self::of(bound, settings.public_origin(), proxies) })
    }

    /// A door for guests, who reach it at this origin.
    pub(super) fn for_guests(bound: SocketAddr, origin: &str, proxies: Proxies) -> Self {
        Self::of(bound, Some(origin.to_owned()), proxies)
    }

    fn of(bound: SocketAddr, origin: Option<String>, proxies: Proxies) -> Self {
        let is_secure = origin.as_deref().is_some_and(|origin| origin.starts_with("https://"));
        Self { names: Names::new(bound, origin), proxies, is_secure, is_for_guests: true, closing: watch::Sender::new(false) }
    }

    /// The proxies of a door that only programs on this machine can reach.
    pub(super) fn proxies_on_this_machine() -> Proxies {
        Proxies::new(vec![IpNet::from(IpAddr::V4(Ipv4Addr::LOCALHOST))])
    }

    /// The address of a client. A guest whose proxy names none must not use up what the operator may do from this machine.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let client = self.proxies.client(peer, headers);
        if self.is_for_guests && is_loopback(client) { UNKNOWN } else { client }
    }
}
