//! The task with real sockets, against a server on the same machine.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc::Receiver;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_websockets::Connector;

use super::super::transport::{Mode, Transport};
use super::super::{Ended, Event, Options, Server, VoiceConnection, rtp};
use super::world::{KEY, Marks, OWN_SSRC, frames, server};
use crate::telemetry::instruments::Instruments;

struct VoiceServer {
    listener: TcpListener,
    socket: Option<WebSocketStream<TcpStream>>,
    datagrams: UdpSocket,
    transport: Transport,
}

impl VoiceServer {
    async fn begin() -> (Self, VoiceConnection, Receiver<Event>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        let options = Options { connector: Arc::new(Connector::Plain), is_plain: true, instruments: Instruments::noop() };
        let (connection, events) = VoiceConnection::open(Server { endpoint, ..server() }, Box::new(Marks), options);
        let transport = Transport::new(Mode::Aes256Gcm, &KEY).unwrap();
        let mut this = Self { listener, socket: None, datagrams, transport };
        this.accept().await;
        assert_eq!(this.receive(0).await["user_id"], "900");
        this.shake_hands().await;
        (this, connection, events)
    }

    async fn accept(&mut self) {
        let (stream, _) = self.listener.accept().await.unwrap();
        self.socket = Some(tokio_tungstenite::accept_async(stream).await.unwrap());
        self.tell(json!({"op": 8, "d": {"heartbeat_interval": 5_000}})).await;
    }

    async fn shake_hands(&mut self) {
        let port = self.datagrams.local_addr().unwrap().port();
        let modes = ["aead_aes256_gcm_rtpsize"];
        self.tell(json!({"op": 2, "d": {"ssrc": OWN_SSRC, "ip": "127.0.0.1", "port": port, "modes": modes}, "seq": 1})).await;
        let mut buffer = [0; 2_000];
        let (length, from) = self.datagrams.recv_from(&mut buffer).await.unwrap();
        self.datagrams.connect(from).await.unwrap();
        let mut answer = buffer[..length].to_vec();
        answer[1] = 2;
        answer[8..17].copy_from_slice(b"127.0.0.1");
        answer[72..].copy_from_slice(&from.port().to_be_bytes());
        self.datagrams.send(&answer).await.unwrap();
        assert_eq!(self.receive(1).await["data"]["port"], from.port());
        let mode = Mode::Aes256Gcm.name();
        self.tell(json!({"op": 4, "d": {"mode": mode, "secret_key": KEY, "dave_protocol_version": 0}, "seq": 2})).await;
    }

    async fn tell(&mut self, message: Value) {
        self.socket.as_mut().unwrap().send(Message::text(message.to_string())).await.unwrap();
    }

    /// The next message with this number.
    async fn receive(&mut self, op: u64) -> Value {
        loop {
            let message = self.socket.as_mut().unwrap().next().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
            if message["op"] == op {
                return message["d"].clone();
            }
        }
    }

    async fn receive_packet(&mut self) -> Vec<u8> {
        let mut buffer = [0; 2_000];
        loop {
            let length = self.datagrams.recv(&mut buffer).await.unwrap();
            if let Ok(header) = rtp::parse(&buffer[..length]) {
                let receiver = Transport::new(Mode::Aes256Gcm, &KEY).unwrap();
                return receiver.open(&mut buffer[..length], header.clear).unwrap().0.to_vec();
            }
        }
    }

    async fn send_packet(&mut self, sequence: u16, frame: &[u8]) {
        let mut packet = rtp::header(50, sequence, u32::from(sequence) * 960);
        packet.extend_from_slice(frame);
        let packet = self.transport.seal(packet, 12).unwrap();
        self.datagrams.send(&packet).await.unwrap();
    }
}

async fn next_heard(events: &mut Receiver<Event>) -> (u64, Vec<u8>) {
    loop {
        if let Event::Heard(heard) = events.recv().await.unwrap() {
            return (heard.user, heard.opus);
        }
    }
}

#[tokio::test]
async fn a_call_is_held_over_real_sockets() {
    let (mut server, connection, mut events) = VoiceServer::begin().await;
    assert_eq!(events.recv().await, Some(Event::Connected));
    server.tell(json!({"op": 5, "d": {"user_id": "1", "ssrc": 50, "speaking": 1}, "seq": 3})).await;
    // A message and a datagram may overtake each other; the packet is kept until somebody is named.
    server.send_packet(1, &[1, 2, 3]).await;
    assert_eq!(next_heard(&mut events).await, (1, vec![1, 2, 3]));

    connection.play(4, frames(3)).unwrap();
    assert_eq!(server.receive(5).await["speaking"], 1);
    for _ in 0..3 {
        assert_eq!(server.receive_packet().await, [0x78, 3, 232, 3, 232]);
    }
    assert_eq!(server.receive(5).await["speaking"], 0);

    // The connection to the gateway breaks; datagrams go on.
    let frame = CloseFrame { code: 4015.into(), reason: "".into() };
    server.socket.take().unwrap().close(Some(frame)).await.unwrap();
    server.send_packet(2, &[4, 5, 6]).await;
    assert_eq!(next_heard(&mut events).await, (1, vec![4, 5, 6]));
    server.accept().await;
    assert_eq!(server.receive(7).await["seq_ack"], 3);
    server.tell(json!({"op": 9, "d": null})).await;
    while events.recv().await != Some(Event::Resumed) {}
    server.send_packet(3, &[7, 8, 9]).await;
    assert_eq!(next_heard(&mut events).await, (1, vec![7, 8, 9]));

    drop(connection);
    while events.recv().await != Some(Event::Ended(Ended::Left)) {}
    assert_eq!(events.recv().await, None);
    let closed = server.socket.as_mut().unwrap().next().await;
    assert!(matches!(&closed, Some(Ok(Message::Close(Some(frame)))) if u16::from(frame.code) == 1000), "{closed:?}");
}

#[tokio::test]
async fn a_move_to_another_server_goes_on_there() {
    let (_old, connection, mut events) = VoiceServer::begin().await;
    assert_eq!(events.recv().await, Some(Event::Connected));
    let (mut new, other, _) = VoiceServer::begin().await;
    drop(other);
    let endpoint = new.listener.local_addr().unwrap().to_string();
    new.datagrams = UdpSocket::bind("127.0.0.1:0").await.unwrap();

    connection.move_to(Server { endpoint, ..server() });
    new.accept().await;
    assert_eq!(new.receive(0).await["session_id"], "secret-session");
    new.shake_hands().await;

    while events.recv().await != Some(Event::Connected) {}
    connection.leave();
    while events.recv().await != Some(Event::Ended(Ended::Left)) {}
}

#[tokio::test]
async fn a_close_code_that_ends_the_call_is_reported() {
    let (mut server, connection, mut events) = VoiceServer::begin().await;
    let frame = CloseFrame { code: 4014.into(), reason: "".into() };
    server.socket.take().unwrap().close(Some(frame)).await.unwrap();
    while events.recv().await != Some(Event::Ended(Ended::Disconnected)) {}
    assert_eq!(events.recv().await, None);
    assert_eq!(connection.counts().resumes, 0);
}
