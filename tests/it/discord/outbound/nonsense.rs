//! Malformed responses: whatever a server answers, a part is posted, refused, sent later or looked up. Nothing panics.

use std::collections::BTreeSet;
use std::sync::Arc;

use tertulia::adapters::discord::platform::{Bot, Discord};
use tertulia::ports::chat_platform::{ChatPlatform as _, NotRead, NotSent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::super::counterpart::Id;
use super::super::home::{adapter, part, section_at, snowflake};

const CHANNEL: Id = Id(7);

#[tokio::test]
async fn a_malformed_response_to_a_sent_part_leaves_its_outcome_unknown() {
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-length: 27\r\n\r\n{\"id\":\"0\",\"channel_id\":\"7\"}",
        "HTTP/1.1 200 OK\r\ncontent-length: 23\r\n\r\n{\"id\":9,\"channel_id\":7}",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{\"id\":",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n\u{fffd}",
        "HTTP/1.1 500 x\r\ncontent-length: 99\r\n\r\n",
        "HTTP/1.1 599 x\r\ncontent-length: 0\r\n\r\n",
        "HTTP/9.9 what\r\n\r\n",
        "\u{0}\u{1}\u{2}",
        "",
    ] {
        let sent = send_with_response(response).await;

        assert!(matches!(sent, Err(NotSent::Unknown { .. })), "{response:?}: {sent:?}");
    }
}

#[tokio::test]
async fn a_429_with_malformed_headers_still_means_sending_later() {
    for header in [
        "retry-after: -1",
        "retry-after: NaN",
        "retry-after: inf",
        "retry-after: 1e999",
        "retry-after: soon",
        "x-ratelimit-reset-after: -9\r\nx-ratelimit-remaining: 99999999999999",
        "x-ratelimit-scope: galaxy\r\nx-ratelimit-bucket: ",
        "x-ratelimit-scope: user\r\nx-ratelimit-bucket: b\r\nx-ratelimit-remaining: 0\r\nx-ratelimit-reset-after: inf",
    ] {
        let sent =
            send_with_response(&format!("HTTP/1.1 429 x\r\n{header}\r\ncontent-length: 18\r\n\r\n{{\"retry_after\":[]}}")).await;

        assert!(matches!(sent, Err(NotSent::Later { .. })), "{header:?}: {sent:?}");
    }
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_short_and_has_no_control_characters() {
    let long = "x".repeat(100_000);
    for (status, body) in [
        ("301 x\r\nlocation: http://127.0.0.1:1/", ""),
        ("400 x", "[[[[[["),
        ("403 x", "<html>"),
        ("418 x", "{\"code\":-1,\"message\":{}}"),
        ("400 x", &format!("{{\"code\":1,\"message\":\"a\\u001b[31m\\n{long}\"}}")),
    ] {
        let sent = send_with_response(&format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;

        let Err(NotSent::Refused(why) | NotSent::Unpostable(why)) = sent else { panic!("{status}: {sent:?}") };
        assert!(why.len() < 1_000 && !why.contains(char::is_control), "{why:?}");
    }
}

#[tokio::test]
async fn a_malformed_history_can_be_requested_again_later() {
    for body in ["{}", "[{}]", "[{\"id\":\"1\"}]", "[null]", "null", ""] {
        let (client, server) =
            client_with_response(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;

        let found = client.find(&part(CHANNEL, "x"), Some("1"), &BTreeSet::new()).await;

        assert!(matches!(found, Err(NotRead::Later { .. })), "{body}: {found:?}");
        server.abort();
    }
}

/// Sends a part to a server that gives this response.
async fn send_with_response(response: &str) -> Result<Arc<str>, NotSent> {
    let (client, server) = client_with_response(response.to_owned()).await;
    let sent = client.send(&part(CHANNEL, "x")).await;
    server.abort();
    sent
}

/// An adapter for a server that lists one webhook, and gives this response to every other request.
async fn client_with_response(response: String) -> (Arc<Discord>, AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let api_url = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer_request(stream, &response).await;
        }
    });
    let client = Arc::new(adapter(&section_at(&api_url), "a.b.c"));
    client.set_bot(Bot { application: snowflake(Id(1)), user: snowflake(Id(1)) });
    client.cache().set_parent(snowflake(CHANNEL), None);
    (client, server.abort_handle())
}

/// Reads one request, answers it and closes the connection.
async fn answer_request(mut stream: TcpStream, response: &str) {
    let mut request = Vec::new();
    let mut chunk = [0; 4_096];
    while !is_complete(&String::from_utf8_lossy(&request)) {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&chunk[..read]),
        }
    }
    let webhooks = "[{\"id\":\"3\",\"application_id\":\"1\",\"token\":\"t\"}]";
    let list = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{webhooks}", webhooks.len());
    let is_webhook_list = request.starts_with(b"GET ") && String::from_utf8_lossy(&request).contains("/webhooks HTTP");
    // The client may have closed the connection already.
    let _ = stream.write_all(if is_webhook_list { &list } else { response }.as_bytes()).await;
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}
