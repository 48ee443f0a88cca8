//! Lorebooks are read from files, kept, and written as files again.

use serde_json::json;

use super::*;

#[tokio::test]
async fn a_lorebook_is_read_from_a_file_made_changed_and_written_in_another_form() {
    let world = World::new().await;
    let file =
        json!({ "entries": { "0": { "key": ["mill", "/(?<=a)b/"], "comment": "Mill", "content": "Old.", "probability": 20 } } });

    let (status, read) = world.post_raw("/api/lorebooks/read", file.to_string()).await;

    assert_eq!((status, &read["form"], &read["lost"]), (200, &json!("sillytavern"), &json!({ "chance": 1 })), "{read}");
    assert_eq!(read["unusable"], json!([{ "entry": "Mill", "key": "/(?<=a)b/", "why": "look_around" }]));
    let mut book = read["book"].clone();
    book["name"] = json!("World");
    let (status, made) = world.post("/api/lorebooks", book.clone()).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("/api/lorebooks/{}", made["id"].as_str().unwrap());
    book["entries"][0]["content"] = json!("New.");
    let change = |revision: &serde_json::Value| json!({ "revision": revision, "book": book });
    let changed = world.send(Method::PUT, &path, change(&made["revision"])).await;
    assert_eq!((changed.0, &changed.1["book"]["entries"][0]["content"]), (200, &json!("New.")));
    assert_eq!(world.send(Method::PUT, &path, change(&made["revision"])).await.0, 409, "it was changed meanwhile");
    let (status, risu) = world.get(&format!("{path}/file?as=risu")).await;
    assert_eq!((status, &risu["data"][0]["content"]), (200, &json!("New.")), "{risu}");
    assert_eq!(world.get("/api/lorebooks").await.1["books"][0]["entries"], 1);
    for (method, path, status) in [
        (Method::GET, format!("{path}/file?as=word"), 400),
        (Method::DELETE, path.clone(), 400),
        (Method::DELETE, format!("{path}?revision=1"), 204),
        (Method::GET, path.clone(), 404),
    ] {
        assert_eq!(world.answer(method, &path, |request| request).await.0, status, "{path}");
    }
    for (file, code) in [("", "empty"), ("{}", "other"), ("{\"entries\"", "not_json")] {
        assert_eq!(world.post_raw("/api/lorebooks/read", file).await.1["why"]["code"], code);
    }
}
