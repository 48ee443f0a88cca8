//! Bytes that no ordinary client sends.

use super::*;

const SAY: &str = "POST /api/rooms/lobby/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";

impl World {
    /// The number of messages in the lobby.
    async fn messages(&self) -> usize {
        self.get("/api/rooms/lobby/history").await.1["messages"].as_array().unwrap().len()
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

/// The statuses of all answers on one connection.
fn statuses(answers: &str) -> Vec<&str> {
    answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

#[tokio::test]
async fn head_requests_get_no_body_and_unsupported_methods_are_refused() {
    let world = World::new().await;
    let request = async |method: &str, path: &str| {
        world
            .raw(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: tertulia=secret\r\n\r\n"))
            .await
    };

    let head = request("HEAD", "/api/rooms").await;

    assert!(status(&head) == "200" && head.ends_with("\r\n\r\n"), "{head}");
    for method in ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "DELETE"] {
        let answer = request(method, "/api/rooms").await;
        assert!(matches!(status(&answer), "400" | "403" | "405"), "{method}: {answer}");
        // TRACE would return headers that a script must not read.
        assert!(!answer.contains("secret") && !answer.to_ascii_lowercase().contains("access-control-allow"), "{answer}");
    }
}

#[tokio::test]
async fn a_request_hidden_in_another_is_not_answered() {
    let world = World::new().await;
    let hidden = "DELETE /api/rooms/lobby HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let length = hidden.len();
    let keep = "POST /api/rooms/lobby/messages HTTP/1.1\r\nHost: localhost\r\n";

    for smuggled in [
        format!("{keep}Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{keep}Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{keep}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("{keep}Content-Length: 0, {length}\r\n\r\n{hidden}"),
        format!("{keep}Content-Length: +0\r\n\r\n{hidden}"),
        format!("{keep}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{keep}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{keep}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{keep}X: a\r\n Transfer-Encoding: chunked\r\n\r\n{hidden}"),
        format!("{keep}Transfer-Encoding: chunked\r\n\r\n0;x=\n\r\n\r\n{hidden}"),
    ] {
        let answers = world.raw(&smuggled).await;
        let statuses = statuses(&answers);
        assert!(statuses.len() <= 1 && !statuses.contains(&"204"), "{smuggled:?}: {answers}");
        assert_eq!(world.get("/api/rooms/lobby").await.0, 200, "{smuggled:?}");
    }
}

#[tokio::test]
async fn a_request_that_a_proxy_may_read_differently_is_refused_and_ends_the_connection() {
    let world = World::new().await;
    let body = r#"{"from": "Ana", "text": "hi"}"#;
    let length = body.len();
    let say = "POST /api/rooms/lobby/messages HTTP/1.1\r\nHost: localhost\r\n";

    for head in [
        format!("{say}Content-Length: {length}\r\nContent-Length: {length}\r\n\r\n"),
        format!("{say}X: 1\nContent-Length: {length}\r\n\r\n"),
        format!("{say}Content-Length: {length}\n\n"),
        format!("{say}Transfer-Encoding: gzip, chunked\r\n\r\n{length:x}\r\n"),
    ] {
        // An earlier request on the same connection is answered normally.
        let answers = world.raw(&format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n{head}{body}\r\n0\r\n\r\n")).await;
        assert_eq!(statuses(&answers), ["200", "400"], "{head:?}: {answers}");
        assert_eq!(world.messages().await, 0, "{head:?}");
    }
}

#[tokio::test]
async fn a_request_without_a_content_length_is_the_last_of_its_connection() {
    let world = World::new().await;
    let next = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

    for first in [
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    ] {
        let answers = world.raw(&format!("{first}{next}")).await;
        assert_eq!(statuses(&answers), ["200"], "{first:?}: {answers}");
        assert!(answers.contains("\r\nconnection: close\r\n"), "{answers}");
    }
}

#[tokio::test]
async fn heads_with_too_many_fields_or_with_control_characters_are_refused() {
    let world = World::new().await;
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    let long = "x".repeat(70_000);

    for head in [
        format!("GET /api/rooms HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        "GET /api/rooms HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n".to_owned(),
        "GET /api/\u{1b}[31mrooms HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /api/rooms HTTP/1.1\r\nHost: local\thost\r\nConnection: close\r\n\r\n".to_owned(),
        "GET http://evil.example/api/rooms HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ] {
        let answer = world.raw(&head).await;
        assert!(!matches!(status(&answer), "200"), "{head:?}: {answer}");
    }
    assert_eq!(world.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn a_compressed_body_is_not_decompressed() {
    let world = World::new().await;
    // The start of a gzip stream. The rest does not matter, because the body is only ever read as JSON.
    let packed = "\u{1f}\u{8}\0\0";

    let answer = world.raw(&format!("{SAY}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n{packed}", packed.len())).await;

    assert_eq!(status(&answer), "400", "{answer}");
    assert_eq!(world.messages().await, 0);
}

#[tokio::test]
async fn page_files_are_found_only_by_their_names() {
    let world = World::new().await;

    for path in [
        "/page/../signin.html",
        "/page/../../Cargo.toml",
        "/page/..%2f..%2fCargo.toml",
        "/page/%2e%2e/%2e%2e/etc/passwd",
        "/page/....//etc/passwd",
        "/page//etc/passwd",
        "/page/index.html%00.css",
        "/page/..\\..\\Cargo.toml",
        "//etc/passwd",
    ] {
        let answer = world.raw(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await;
        assert!(matches!(status(&answer), "400" | "404"), "{path}: {answer}");
        assert!(!answer.contains("root:") && !answer.contains("[package]"), "{answer}");
    }
}

#[tokio::test]
async fn an_unread_body_does_not_delay_the_response() {
    let world = World::new().await;

    let answer = world.raw("GET /api/rooms HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab").await;

    assert_eq!(status(&answer), "200", "{answer}");
}
