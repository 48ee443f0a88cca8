//! The UDP socket of a call.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Once;

use rustix::net::{SendFlags, send, sockopt};
use tokio::net::UdpSocket;

/// The wanted receive buffer: 100 ms of 50 people speaking while the task is busy. Linux counts 1,280 bytes for a packet of audio, and more with
/// some network cards.
const RECEIVE_BUFFER: usize = 50 * 5 * 1_536;

static SMALL_BUFFER_LOGGED: Once = Once::new();

/// A UDP socket that is connected to a voice server.
pub struct Datagrams(UdpSocket);

impl Datagrams {
    /// Opens a socket to this address.
    ///
    /// # Errors
    /// Returns an error if the machine cannot open a socket, or has no route to the address.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let any = match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = std::net::UdpSocket::bind(any)?;
        socket.connect(address)?;
        socket.set_nonblocking(true)?;
        // If this is too large, some systems give as much as they can, others fail.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER);
        let given = sockopt::socket_recv_buffer_size(&socket)?;
        if given < RECEIVE_BUFFER {
            SMALL_BUFFER_LOGGED.call_once(|| {
                tracing::warn!(
                    given,
                    wanted = RECEIVE_BUFFER,
                    "the system gives voice calls a small receive buffer: audio of large calls may be lost while this machine is busy; raise \
                     net.core.rmem_max"
                );
            });
        }
        UdpSocket::from_std(socket).map(Self)
    }

    /// Sends a datagram without waiting.
    ///
    /// # Errors
    /// Returns an error if the datagram cannot leave this machine now.
    pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        // Tokio's `send` would refuse the first datagram, because Tokio has not yet seen that the socket is writable.
        Ok(send(&self.0, datagram, SendFlags::empty())?)
    }

    /// Receives the next datagram.
    ///
    /// # Errors
    /// Returns an error if the system reports that an earlier datagram was not delivered.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn opened() -> (UdpSocket, Datagrams) {
        let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let datagrams = Datagrams::open(peer.local_addr().unwrap()).unwrap();
        (peer, datagrams)
    }

    #[tokio::test]
    async fn a_socket_sends_as_soon_as_it_is_open() {
        let (peer, datagrams) = opened().await;

        assert_eq!(datagrams.send(&[1, 2, 3]).unwrap(), 3);

        let mut buffer = [0; 8];
        let (length, from) = peer.recv_from(&mut buffer).await.unwrap();
        assert_eq!(buffer[..length], [1, 2, 3]);
        peer.send_to(&[4], from).await.unwrap();
        assert_eq!(datagrams.receive(&mut buffer).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_socket_holds_what_fifty_people_say_in_a_tenth_of_a_second() {
        let (peer, datagrams) = opened().await;
        let address = datagrams.0.local_addr().unwrap();

        for _ in 0..250 {
            peer.send_to(&[1; 230], address).await.unwrap();
        }

        datagrams.0.readable().await.unwrap();
        let held = std::iter::from_fn(|| datagrams.0.try_recv(&mut [0; 256]).ok()).count();
        assert_eq!(held, 250);
    }
}
