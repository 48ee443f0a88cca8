//! UDP: IP discovery, and RTP from each member of a call to all others.
//!
//! <https://docs.discord.com/developers/topics/voice-connections#ip-discovery>,
//! <https://docs.discord.com/developers/topics/voice-connections#establishing-a-voice-udp-connection>

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::net::UdpSocket;

use super::sessions::Seat;
use super::state::Shared;
use super::transport::{Header, SILENCE, is_end_to_end, packet};
use super::{Network, Voice};

/// The length of both datagrams of IP discovery.
const DISCOVERY: usize = 74;
/// The length of a datagram that keeps a way through routers open.
const KEEPALIVE: usize = 8;
/// How late a reordered datagram is: behind the two that follow it at the usual pace.
const REORDERED: Duration = Duration::from_millis(45);

/// Serves the datagrams to a server until its task is aborted.
pub async fn serve(socket: UdpSocket, shared: Arc<Shared>, server: usize) {
    let mut datagram = [0; 2_048];
    loop {
        // On loopback an error means that a client's socket is gone, which its session tells.
        if let Ok((length, from)) = socket.recv_from(&mut datagram).await {
            shared.with(|voice| voice.received_datagram(server, &datagram[..length], from));
        }
    }
}

impl Voice {
    fn received_datagram(&mut self, server: usize, datagram: &[u8], from: SocketAddr) {
        if let Some(answer) = discovered(datagram, from) {
            return self.transmit(server, from, answer, Duration::ZERO);
        }
        let seat = Header::read(datagram).and_then(|header| {
            let mut sessions = self.sessions.iter();
            sessions.find(|(_, session)| session.ssrc == header.ssrc && session.cipher.is_some()).map(|(seat, _)| *seat)
        });
        let Some(seat) = seat else {
            // Clients keep a way through routers open with datagrams of eight bytes, which come back. This is not documented.
            if datagram.len() == KEEPALIVE {
                self.transmit(server, from, datagram.to_vec(), Duration::ZERO);
            }
            return;
        };
        let datagram = datagram.to_vec();
        if let Some(delay) = self.passes(seat, self.faults.uplinks.get(&seat).copied()) {
            if delay.is_zero() {
                self.received_rtp(seat, &datagram, from);
            } else {
                self.later(delay, move |voice| voice.received_rtp(seat, &datagram, from));
            }
        }
    }

    fn received_rtp(&mut self, seat: Seat, datagram: &[u8], from: SocketAddr) {
        let Some(header) = Header::read(datagram) else { return };
        let Some(session) = self.sessions.get_mut(&seat) else { return };
        let Some(cipher) = &session.cipher else { return };
        let body = cipher.open(datagram, header.length);
        let payload = body.as_ref().and_then(|body| header.payload(datagram, body)).map(<[u8]>::to_vec);
        let Some(payload) = payload else {
            self.count(seat).not_authentic += 1;
            return;
        };
        session.address = Some(from);
        let (speaks, connection) = (session.speaking.is_some(), session.connection);
        // A payload over TCP may arrive after packets that were sent later, so a few are forgiven.
        if !speaks {
            let counts = self.count(seat);
            counts.before_speaking += 1;
            let too_many = counts.before_speaking > self.rules.packets_before_speaking;
            if let Some(connection) = connection.filter(|_| too_many) {
                return self.close(connection, 4020, "Invalid SSRC.");
            }
        }
        let counts = self.count(seat);
        counts.received += 1;
        if is_end_to_end(&payload) {
            counts.end_to_end += 1;
        } else if payload != SILENCE {
            counts.plain += 1;
        }
        self.forward(seat, header, &payload);
    }

    /// Sends a frame of a member to all other members.
    fn forward(&mut self, seat: Seat, header: Header, payload: &[u8]) {
        let Some(ssrc) = self.sessions.get(&seat).map(|session| session.shown_ssrc) else { return };
        let header = Header { ssrc, ..header };
        for user in self.members(seat.channel).into_iter().filter(|user| *user != seat.user) {
            let receiver = Seat { user, ..seat };
            let Some(session) = self.sessions.get_mut(&receiver).filter(|_| !self.deafened.contains(&receiver)) else { continue };
            // End-to-end encrypted frames are kept from those who cannot read them.
            if is_end_to_end(payload) && session.max_dave == 0 {
                continue;
            }
            let (Some(cipher), Some(address)) = (&mut session.cipher, session.address) else { continue };
            let datagram = packet(cipher, header, payload);
            let server = session.grant.server;
            if let Some(delay) = self.passes(receiver, self.faults.downlinks.get(&receiver).copied()) {
                self.count(receiver).sent += 1;
                self.transmit(server, address, datagram, delay);
            }
        }
    }

    /// The delay with which a datagram passes a network. None: it is lost.
    fn passes(&mut self, seat: Seat, network: Option<Network>) -> Option<Duration> {
        let Some(network) = network else { return Some(Duration::ZERO) };
        if self.rng.random_bool(network.loss) {
            self.count(seat).lost += 1;
            return None;
        }
        let late = if self.rng.random_bool(network.reordering) { REORDERED } else { Duration::ZERO };
        Some(network.delay + late)
    }

    fn transmit(&self, server: usize, to: SocketAddr, datagram: Vec<u8>, delay: Duration) {
        let socket = Arc::clone(&self.servers[server].1);
        if delay.is_zero() {
            // A full buffer loses datagrams, as everywhere.
            let _ = socket.send_to(&datagram, to);
        } else {
            self.later(delay, move |_| drop(socket.send_to(&datagram, to)));
        }
    }
}

/// The answer to an IP discovery. None: it is something else.
fn discovered(datagram: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
    (datagram.len() == DISCOVERY && datagram.starts_with(&[0, 1, 0, 70])).then_some(())?;
    let mut answer = vec![0; DISCOVERY];
    answer[..4].copy_from_slice(&[0, 2, 0, 70]);
    answer[4..8].copy_from_slice(&datagram[4..8]);
    let address = from.ip().to_string();
    answer[8..8 + address.len()].copy_from_slice(address.as_bytes());
    answer[72..].copy_from_slice(&from.port().to_be_bytes());
    Some(answer)
}
