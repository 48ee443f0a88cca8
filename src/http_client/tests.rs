use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use super::*;
use crate::samples::{AUTHORITY, tls_server, untrusted_server};

/// A certificate of `localhost` by itself, with the same key, which says that it is an authority.
const SELF_SIGNED: &[u8] = include_bytes!("tests/self-signed.pem");

fn url(text: &str) -> Url {
    text.parse().expect("a URL")
}

async fn asked(url: &Url, authorities: &[Certificate]) -> Result<u16, Failed> {
    let client = Client::new(url, builder(url, authorities), None).expect("a client");
    client.send(client.request(Method::GET, url.clone())).await.map(|response| response.status().as_u16())
}

#[test]
fn this_machine_is_known_by_all_its_names() {
    let here = [
        "localhost",
        "LOCALHOST:8080",
        "localhost.",
        "api.localhost",
        "127.0.0.1:11434",
        "127.9.9.9",
        "127.1",
        "2130706433",
        "[::1]:80",
        "[::ffff:127.0.0.1]",
        "0.0.0.0:1",
        "[::]",
    ];
    let elsewhere = ["10.0.0.1", "128.0.0.1", "notlocalhost", "localhost.example.org", "127.0.0.1.example.org", "[2001:db8::1]"];

    assert_eq!(here.map(|host| is_loopback(&url(&format!("http://{host}/v1")))), [true; 12]);
    assert_eq!(elsewhere.map(|host| is_loopback(&url(&format!("https://{host}")))), [false; 6]);
}

#[tokio::test]
async fn an_unknown_authority_is_told_with_the_remedy_and_one_that_is_given_is_trusted() {
    let server = untrusted_server();
    let authority = Certificate::from_pem(AUTHORITY).expect("a certificate");

    let refused = asked(&server, &[]).await.expect_err("it is not trusted");
    let other_name = url(server.as_str().replace("localhost", "127.0.0.1").as_str());
    let wrong = asked(&other_name, std::slice::from_ref(&authority)).await.expect_err("it is for another name");
    let trusted = asked(&server, &[authority]).await;

    assert!(is_of_unknown_authority(&refused) && refused.reason.contains("SSL_CERT_FILE"), "{}", refused.reason);
    assert!(!is_of_unknown_authority(&wrong) && wrong.reason.contains("not valid for name"), "{}", wrong.reason);
    assert_eq!(trusted.expect("it is trusted"), 204);
}

#[tokio::test]
async fn a_certificate_of_an_authority_in_place_of_a_servers_is_told_with_the_remedy() {
    let server = url(&format!("https://localhost:{}", tls_server(SELF_SIGNED)));
    let own = Certificate::from_pem(SELF_SIGNED).expect("a certificate");

    let refused = asked(&server, &[own]).await.expect_err("it is no server's");

    assert!(refused.reason.contains("make one for the server with CA:FALSE"), "{}", refused.reason);
}

#[tokio::test]
async fn a_server_without_tls_is_recognised() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = url(&format!("https://{}", listener.local_addr().expect("bound")));
    thread::spawn(move || listener.accept().and_then(|(mut stream, _)| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")));

    let refused = asked(&server, &[]).await.expect_err("it is no TLS");

    assert!(is_no_tls(&refused), "{refused:?}");
}

/// A server that answers each connection's first request with this again and again, until its client hangs up. The sender then gets how much was sent.
fn repeating(answer: &'static [u8], times: usize) -> (Url, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = url(&format!("http://{}", listener.local_addr().expect("bound")));
    let (hung_up, sent) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 4_096]);
        let written = (0..times).take_while(|_| stream.write_all(answer).is_ok()).count() * answer.len();
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
        let _ = hung_up.send(written);
    });
    (server, sent)
}

#[tokio::test]
async fn informational_responses_without_an_end_end_the_request_and_the_connection() {
    let (server, sent) = repeating(b"HTTP/1.1 100 Continue\r\n\r\n", usize::MAX / 100);

    let failed = asked(&server, &[]).await.expect_err("no response comes");

    assert!(failed.reason.contains("informational responses") && !failed.is_connect, "{failed}");
    // What the buffers of both systems hold is sent too.
    assert!(tokio::task::spawn_blocking(move || sent.recv()).await.expect("a thread").expect("it ended") < 50_000_000);
}

#[tokio::test]
async fn some_informational_responses_precede_a_response() {
    let (server, _sent) = repeating(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", MOST_INFORMATIONAL);

    assert_eq!(asked(&server, &[]).await.expect("a response"), 204);
}

#[tokio::test]
async fn a_head_without_an_end_is_refused() {
    let (server, _sent) =
        repeating(b"HTTP/1.1 200 OK\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", usize::MAX / 100);

    assert!(!asked(&server, &[]).await.expect_err("no response comes").is_connect);
}

/// A server that sends one response with this body, which has this coding.
fn coded(coding: &str, body: &[u8]) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = url(&format!("http://{}", listener.local_addr().expect("bound")));
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
    let response = [head.as_bytes(), body].concat();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 4_096]);
        response.chunks(1_000).all(|piece| stream.write_all(piece).and_then(|()| stream.flush()).is_ok())
    });
    server
}

#[tokio::test]
async fn compressed_bodies_are_decoded_whatever_the_name_and_the_form() {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    let text: String = (0..5_000).map(|number| format!("Boat {number} leaves at six. ")).collect();
    let (first, second) = text.split_at(60_000);
    let gzip = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("memory")
    };
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    let zlib = zlib.write_all(text.as_bytes()).and_then(|()| zlib.finish()).expect("memory");
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    let raw = raw.write_all(text.as_bytes()).and_then(|()| raw.finish()).expect("memory");
    let asked = async |coding: &str, body: &[u8]| {
        let server = coded(coding, body);
        let client = Client::new(&server, builder(&server, &[]), None).expect("a client");
        client.send(client.request(Method::GET, server)).await.expect("a response")
    };

    for (coding, body) in [
        ("gzip", gzip(&text)),
        ("x-gzip", gzip(&text)),
        ("GZIP", gzip(&text)),
        ("gzip", [gzip(first), gzip(""), gzip(second), vec![0; 512]].concat()),
        ("deflate", zlib.clone()),
        ("Deflate", raw.clone()),
        ("Identity", text.clone().into_bytes()),
    ] {
        let response = asked(coding, &body).await;
        assert!(!response.headers().contains_key("content-encoding"), "{coding}");
        assert!(response.text().await.expect("a text") == text, "{coding}");
    }
    for body in [&gzip(&text)[..1_000], b"no gzip"] {
        assert!(asked("gzip", body).await.bytes().await.is_err());
    }
    assert_eq!(asked("gzip", b"").await.text().await.expect("a text"), "");
    let unknown = asked("br", b"1234").await;
    assert_eq!(unknown.headers()["content-encoding"], "br");
    assert_eq!(unknown.text().await.expect("a text"), "1234");
}
