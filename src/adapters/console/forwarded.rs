//! Finds the client address of a request: the connection's peer, or the address that a trusted proxy forwards.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::FORWARDED;
use ipnet::IpNet;

/// The address of all clients behind a trusted proxy whose two headers contradict each other. No connection comes from this address. So a client
/// that sends a header of its own does not use up the limits of the proxy's address, which may be loopback.
pub(super) const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The trusted proxies (`server.trusted_proxies`).
#[derive(Debug)]
pub(super) struct Proxies(Vec<IpNet>);

impl Proxies {
    pub(super) const fn new(trusted: Vec<IpNet>) -> Self {
        Self(trusted)
    }

    pub(super) fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client address of a request that arrived from `peer`.
    ///
    /// Every proxy appends the address that it saw, so the list is read from its end. The client's address is the first one that does not belong to
    /// a trusted proxy. All earlier entries are the client's own claims. If an entry cannot be read, the result is the address of the proxy that
    /// appended it. A proxy passes on a header that it does not know, so all clients whose two headers contradict each other count as one client.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.is_trusted(peer) {
            return peer;
        }
        let de_facto = self.walk(peer, listed(headers, "x-forwarded-for").map(address));
        let standard = self.walk(peer, listed(headers, FORWARDED.as_str()).map(|hop| hop_for(hop).and_then(address)));
        match (de_facto, standard) {
            (None, None) => peer,
            (Some(client), None) | (None, Some(client)) => client,
            (Some(one), Some(other)) => {
                if one == other {
                    one
                } else {
                    UNKNOWN
                }
            }
        }
    }

    /// The first address from the end that does not belong to a trusted proxy. `None` if the list is empty.
    fn walk(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut hops = hops.peekable();
        hops.peek()?;
        let mut last = peer;
        for hop in hops {
            let Some(hop) = hop else { break };
            last = hop;
            if !self.is_trusted(hop) {
                break;
            }
        }
        Some(last)
    }
}

/// The elements of a list header in reverse order.
fn listed<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("unreadable"));
    let mut hops: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    hops.reverse();
    hops.into_iter()
}

/// The `for` parameter of an element of `Forwarded` (RFC 7239). A comma within quotes makes the element unreadable, but no address contains one.
fn hop_for(element: &str) -> Option<&str> {
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut addresses = pairs.filter(|(name, _)| name.eq_ignore_ascii_case("for"));
    let (_, value) = addresses.next()?;
    addresses.next().is_none().then(|| value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value))
}

/// An address, with or without a port and brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn client(headers: &[(&'static str, &'static str)]) -> String {
        client_at("10.0.0.1", headers)
    }

    fn client_at(peer: &str, headers: &[(&'static str, &'static str)]) -> String {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Proxies::new(trusted.into()).client(peer.parse().unwrap(), &map).to_string()
    }

    #[test]
    fn only_the_headers_of_a_trusted_proxy_are_believed() {
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.7")]), "192.0.2.7");
        assert_eq!(client_at("::ffff:10.0.0.1", &[("x-forwarded-for", "192.0.2.7")]), "192.0.2.7");
        assert_eq!(client_at("192.0.2.1", &[("x-forwarded-for", "192.0.2.7")]), "192.0.2.1");
        assert_eq!(client(&[]), "10.0.0.1");
    }

    #[test]
    fn the_last_address_in_a_list_that_is_not_a_trusted_proxy_counts() {
        assert_eq!(client(&[("x-forwarded-for", "198.51.100.1, 192.0.2.7, 10.0.0.2")]), "192.0.2.7");
        assert_eq!(client(&[("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "192.0.2.7")]), "192.0.2.7");
        assert_eq!(client(&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")]), "10.0.0.3");
    }

    #[test]
    fn addresses_before_an_unreadable_one_are_not_believed() {
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.7, unknown")]), "10.0.0.1");
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.7, , 10.0.0.2")]), "10.0.0.2");
        assert_eq!(client(&[("forwarded", "for=192.0.2.7;for=192.0.2.8")]), "10.0.0.1");
        assert_eq!(client(&[("forwarded", "for=_hidden")]), "10.0.0.1");
    }

    #[test]
    fn addresses_are_read_with_ports_brackets_and_quotes() {
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.7:4711")]), "192.0.2.7");
        assert_eq!(client(&[("x-forwarded-for", "[2001:db8::1]")]), "2001:db8::1");
        assert_eq!(
            client(&[("forwarded", "for=198.51.100.1, For=\"[2001:db8::1]:4711\";proto=https, by=x;for=10.0.0.2")]),
            "2001:db8::1"
        );
    }

    #[test]
    fn contradicting_headers_give_the_unknown_address() {
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=192.0.2.7")]), "192.0.2.7");
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=198.51.100.1")]), "0.0.0.0");
    }
}
