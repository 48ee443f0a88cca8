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
