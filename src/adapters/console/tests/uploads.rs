//! Files that people send with messages, and how they are returned.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tertulia_cards::tests::{small_png, text_chunk};

use super::*;

impl World {
    async fn post_files(&self, text: &str, files: &[Value]) -> (u16, Value) {
        self.post("/api/rooms/lobby/messages", json!({ "from": "Ana", "text": text, "files": files })).await
    }

    async fn file(&self, number: usize) -> reqwest::Response {
        self.request(Method::GET, &format!("/api/rooms/lobby/messages/1/files/{number}")).send().await.unwrap()
    }
}

fn file(name: &str, bytes: impl AsRef<[u8]>) -> Value {
    json!({ "name": name, "data": STANDARD.encode(bytes) })
}

#[tokio::test]
async fn files_are_listed_with_their_message_and_returned_as_what_they_are() {
    let world = World::new().await;
    let mut picture = file("../cat [1].png", small_png(&[text_chunk("Comment", b"Lisbon")], &[]));
    (picture["description"], picture["spoiler"]) = ("our cat".into(), true.into());

    let (status, said) = world.post_files("Look, Ben", &[picture, file("<b>.html", "<script>alert(1)</script>")]).await;

    let message = world.get("/api/rooms/lobby/history").await.1["messages"][0].clone();
    assert_eq!((status, said), (202, json!({ "seq": 1 })));
    assert_eq!(
        message["text"],
        "Look, Ben\n[image: ../cat (1).png, hidden as a spoiler, described as \"our cat\"]\n[file: <b>.html, 25 B]"
    );
    let picture = small_png(&[], &[]);
    let listed = json!({
        "id": 0, "kind": "image", "media_type": "image/png", "name": "../cat (1).png", "bytes": picture.len(), "width": 2,
        "height": 2, "description": "our cat", "spoiler": true,
    });
    assert_eq!(message["files"][0], listed);
    for (number, media_type, shown, bytes) in [
        (0, "image/png", "inline", picture),
        (1, "text/plain; charset=utf-8", "attachment", b"<script>alert(1)</script>".to_vec()),
    ] {
        let returned = world.file(number).await;
        let header = |name: &str| returned.headers()[name].to_str().unwrap().to_owned();
        assert_eq!([header("content-type"), header("content-disposition")], [media_type, shown]);
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
        assert!(header("cache-control").starts_with("private"));
        assert_eq!(returned.bytes().await.unwrap(), bytes);
    }
    assert_eq!(world.file(2).await.status(), 404);
}

#[tokio::test]
async fn a_file_that_is_not_taken_is_named_with_the_reason() {
    let world = World::new().await;
    let small = file("a.png", small_png(&[], &[]));
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>";
    let cases = [
        (vec![file("a.bin", b"\0\x01\x02")], "files[0].data", "neither a picture"),
        (vec![small.clone(), file("big.txt", "a".repeat((64 << 10) + 1))], "files[1].data", "64 KB"),
        (vec![file("big.png", [b"\x89PNG\r\n\x1a\n".to_vec(), vec![0; 4 << 20]].concat())], "files[0].data", "4 MB"),
        (vec![small.clone(); 5], "files", "at most 4"),
        (vec![json!({ "data": "%" })], "files[0].data", "base64"),
        (vec![json!({ "data": small["data"], "description": "a".repeat(301) })], "files[0].description", "300"),
    ];
    for (files, field, reason) in cases {
        let (status, problem) = world.post_files("", &files).await;

        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(reason), "{problem}");
    }
    // A picture in words is text, and is returned as such.
    assert_eq!(world.post_files("", &[file("a.svg", svg)]).await.0, 202);
    assert_eq!(world.file(0).await.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(world.post("/api/rooms/lobby/messages", json!({ "from": "Ana", "text": "" })).await.0, 422);
}

#[tokio::test]
async fn four_large_files_are_taken_with_one_message() {
    let world = World::new().await;
    let noise = (0..3_900_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let picture = small_png(&[(*b"iCCP", noise)], &[]);
    let files: Vec<Value> = (0..4).map(|n| file(&format!("{n}.png"), &picture)).collect();

    let (status, problem) = world.post_files("", &files).await;

    assert_eq!(status, 202, "{problem}");
    assert_eq!(world.file(3).await.bytes().await.unwrap(), picture);
}

#[tokio::test]
async fn a_voice_note_is_sent_alone_and_returned_as_a_recording() {
    let world = World::new().await;
    let note = [&b"OggS"[..], &[0; 60]].concat();

    let (status, _) = world.post_files("", &[file("x", &note)]).await;

    let message = world.get("/api/rooms/lobby/history").await.1["messages"][0].clone();
    assert_eq!((status, &message["text"], &message["files"][0]["kind"]), (202, &json!("[voice note]"), &json!("voice")));
    let returned = world.file(0).await;
    assert_eq!(
        (&returned.headers()["content-type"], &returned.headers()["content-disposition"]),
        (&"audio/ogg".parse().unwrap(), &"inline".parse().unwrap())
    );
    assert_eq!(returned.bytes().await.unwrap(), note);
    for (text, files) in [("hi", vec![file("x", &note)]), ("", vec![file("x", &note), file("y", &note)])] {
        let (status, problem) = world.post_files(text, &files).await;
        assert_eq!((status, &problem["field"]), (422, &json!("files")), "{problem}");
    }
}
