//! What guests may do: the table of routes, walked by everybody who could try.

use std::collections::BTreeSet;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};

use super::super::access::Access;
use super::super::visitor;
use super::*;
use crate::domain::id::{CompanionId, PersonId, Seq};
use crate::ports::call_room::{Packet, Person, Trouble, View};

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>;

/// A console with a token, and its operator's invitation to a room.
impl World {
    async fn invite(&self, room: &str) -> (String, String) {
        let invite = self.request(Method::POST, &format!("/api/rooms/{room}/invitations")).bearer_auth(TOKEN);
        let (status, invited) = answer(invite.json(&json!({ "ends": "day", "most_guests": 5 })).send().await.unwrap()).await;
        assert_eq!(status, 201, "{invited}");
        let link = invited["link"].as_str().unwrap().to_owned();
        (link.split_once('#').unwrap().1.to_owned(), invited["invitation"]["id"].as_str().unwrap().to_owned())
    }

    /// The cookie of somebody who came in.
    async fn join(&self, secret: &str, name: &str) -> String {
        let body = json!({ "secret": secret, "name": name });
        let joined = self.request(Method::POST, "/api/invitations/join").json(&body).send().await.unwrap();
        assert_eq!(joined.status(), 204, "{name}");
        joined.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    /// The status of a request that is complete.
    async fn as_guest(&self, cookie: &str, method: Method, path: &str) -> u16 {
        let body = match path.rsplit_once('/').unwrap().1 {
            "messages" => json!({ "from": "Ben", "text": "hi" }),
            "drafts" => json!({ "companion": "aria", "from": "Ben" }),
            "typing" => json!({ "from": "Ben", "typing": true }),
            "reminders" if method == Method::POST => json!({ "from": "Ben", "text": "tea", "in_minutes": 5 }),
            "time-zone" => json!({ "from": "Ben", "zone": "UTC" }),
            "me?from=Ben" => json!({ "from": "Ben", "text": "hi" }),
            _ if method == Method::PATCH => json!({ "text": "hi" }),
            _ if method == Method::POST && path.contains("/calls/") => json!({ "confirm": true }),
            _ => Value::Null,
        };
        let request = self.request(method, path).header("cookie", cookie);
        let request = if body.is_null() { request } else { request.json(&body) };
        request.send().await.unwrap().status().as_u16()
    }

    /// A WebSocket, or the status with which it was refused.
    async fn open(&self, cookie: &str, path: &str) -> Result<Socket, u16> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        request.headers_mut().insert("cookie", cookie.parse().unwrap());
        match tokio_tungstenite::connect_async(request).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    async fn revoke(&self, room: &str, id: &str) {
        let revoke = self.request(Method::DELETE, &format!("/api/rooms/{room}/invitations/{id}")).bearer_auth(TOKEN);
        assert_eq!(revoke.send().await.unwrap().status(), 204);
    }
}

/// A path of this pattern, in this room.
fn path_of(pattern: &str, room: &str) -> String {
    let path = pattern
        .replace("{room}", room)
        .replace("{seq}", "1")
        .replace("{companion}", "aria")
        .replace("{hash}", "0")
        .replace("{file}", "0")
        .replace("{call}", "1");
    let path = path.replace("{id}", "0").replace("{name}", "base.css");
    match path.as_str() {
        "/api/live" | "/api/live/poll" => format!("{path}?room={room}"),
        me if me.ends_with("/me") => format!("{path}?from=Ben"),
        "/api/voice" => format!("{path}?room={room}&from=Ben&v=1"),
        _ => path,
    }
}

#[tokio::test]
async fn each_route_is_open_to_whom_the_table_names() {
    let world = World::with(Server { request_burst: 100_000, max_sessions: 10, ..with_token() }).await;
    world
        .request(Method::PUT, "/api/rooms/attic")
        .bearer_auth(TOKEN)
        .json(&json!({ "guild": "home", "companions": ["aria"] }))
        .send()
        .await
        .unwrap();
    let (secret, _) = world.invite("lobby").await;
    let (elsewhere, _) = world.invite("attic").await;
    let (ended, id) = world.invite("lobby").await;
    let (guest, stranger, revoked) =
        (world.join(&secret, "Ben").await, world.join(&elsewhere, "Mallory").await, world.join(&ended, "Cleo").await);
    world.revoke("lobby", &id).await;

    for (pattern, method, access) in routes::api().access().all() {
        // Leaving is tried last.
        if pattern == "/signout" {
            continue;
        }
        let (path, method) = (path_of(pattern, "lobby"), Method::from_bytes(method.as_bytes()).unwrap());
        let what = format!("{method} {pattern}");
        let [of_guest, of_stranger, of_revoked] = [
            world.as_guest(&guest, method.clone(), &path).await,
            world.as_guest(&stranger, method.clone(), &path).await,
            world.as_guest(&revoked, method.clone(), &path).await,
        ];
        let of_nobody = world.request(method, &path).send().await.unwrap().status().as_u16();
        match access {
            Access::Everybody => {
                for status in [of_guest, of_stranger, of_revoked, of_nobody] {
                    assert!(!matches!(status, 401 | 403), "{what}: {status}");
                }
            }
            Access::Guests => {
                let is_of_item = ["{seq}", "{call}", "/reminders/{id}"].iter().any(|item| pattern.contains(item));
                assert!(!matches!(of_guest, 401 | 403 | 404 | 500..) || is_of_item, "{what}: {of_guest}");
                let is_of_room = path.contains("lobby");
                assert!(!is_of_room || of_stranger == 404, "{what} of another room: {of_stranger}");
                assert!(matches!((of_revoked, of_nobody), (401, 401) | (303, 303)), "{what}: {of_revoked} {of_nobody}");
            }
            Access::Operators => assert_eq!((of_guest, of_stranger, of_revoked, of_nobody), (403, 403, 401, 401), "{what}"),
        }
    }

    assert_eq!(world.as_guest(&guest, Method::POST, "/signout").await, 204);
    assert_eq!(world.as_guest(&guest, Method::GET, "/api/visit").await, 401);
}

#[test]
fn the_documents_name_what_guests_may_use() {
    let documented = include_str!("../../../../docs/security.md");
    let section = documented.split("## A guest").nth(1).unwrap().split("\n## ").next().unwrap();
    let (outside, of_call) = section.split_once("In the [voice call]").unwrap();
    let (of_call, after) = of_call.split_once("\n\n").unwrap();
    let quoted_in = |text: &'static str| text.split('`').skip(1).step_by(2);
    let of_call: BTreeSet<&str> = quoted_in(of_call).collect();
    let quoted: BTreeSet<&str> = quoted_in(outside).chain(quoted_in(after)).collect();

    for (pattern, method, access) in routes::api().access().all() {
        let is_named = quoted.contains(format!("{method} {pattern}").as_str());
        assert_eq!(is_named, access == Access::Guests, "{method} {pattern}");
    }
    for (kind, _) in visitor::EVENTS {
        assert!(quoted.contains(kind), "{kind}");
    }
    // In a call they send and get each kind of message.
    for kind in ["from_page", "from_server"].iter().flat_map(|list| call_examples(list)) {
        assert!(of_call.contains(kind["type"].as_str().unwrap()), "{kind}");
    }
    // Every other kind is told to nobody but operators.
    let visit = world_visit();
    let live = include_str!("../../../../docs/live.md");
    let kinds = live.split("## Kinds of events").nth(1).unwrap().lines().filter(|line| line.starts_with("| `"));
    for kind in kinds.flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)) {
        let told =
            visitor::event(&json!({ "event": kind, "seq": 9, "message": 9, "person": "Ben" }).to_string(), &visit).is_some();
        assert_eq!(told, quoted.contains(kind), "{kind}");
    }
}

fn world_visit() -> crate::ports::backend::guest_service::Visit {
    crate::ports::backend::guest_service::Visit {
        invitation: "one".into(),
        cookie: "b".into(),
        guild: "home".into(),
        channel: "console:lobby".into(),
        name: "Ben".into(),
        from: Seq(0),
        joined_at: crate::domain::moment::Moment::from_micros(0),
        ends_at: None,
    }
}

#[tokio::test]
async fn a_guest_writes_under_one_name_and_changes_only_what_it_wrote() {
    let world = World::with(with_token()).await;
    let host = |text: &str| {
        let body = json!({ "from": "Ana", "text": text });
        world.request(Method::POST, "/api/rooms/lobby/messages").bearer_auth(TOKEN).json(&body).send()
    };
    host("before").await.unwrap();
    let (secret, _) = world.invite("lobby").await;
    let ben = world.join(&secret, "Ben").await;
    host("after").await.unwrap();
    let send = async |method: Method, path: &str, body: Value| {
        let request = world.request(method, path).header("cookie", &ben).json(&body);
        answer(request.send().await.unwrap()).await
    };

    let own = send(Method::POST, "/api/rooms/lobby/messages", json!({ "from": "Ben", "text": "hi" })).await;
    let forged = send(Method::POST, "/api/rooms/lobby/messages", json!({ "from": "Ana", "text": "hi" })).await;
    let history = send(Method::GET, "/api/rooms/lobby/history", Value::Null).await.1;

    assert_eq!((own.0, forged.0), (202, 403));
    let texts: Vec<_> = history["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(texts, ["after", "hi"]);
    let own = own.1["seq"].as_u64().unwrap();
    for (seq, expected) in [(1, 403), (own - 1, 403), (own + 1, 403), (own, 202)] {
        let path = format!("/api/rooms/lobby/messages/{seq}");
        assert_eq!(send(Method::PATCH, &path, json!({ "text": "new" })).await.0, expected, "{seq}");
        assert_eq!(send(Method::DELETE, &path, Value::Null).await.0, expected, "{seq}");
    }
}

#[tokio::test]
async fn revoking_closes_the_views_of_guests_at_once() {
    let world = World::with(with_token()).await;
    let (secret, id) = world.invite("lobby").await;
    let ben = world.join(&secret, "Ben").await;
    let mut socket = world.open(&ben, "/api/live?room=lobby").await.unwrap();
    let mut next = async || socket.next().await.unwrap().unwrap();
    // What an event of the record has for operators alone.
    world.backend.show("lobby", json!({ "event": "message", "seq": 5, "text": "hi", "raw": "secret" }).to_string().into());
    world.backend.show("lobby", json!({ "event": "counters", "companion": "aria" }).to_string().into());

    let mut texts = vec![next().await.into_text().unwrap().to_string()];
    while !texts.last().unwrap().contains("people") {
        texts.push(next().await.into_text().unwrap().to_string());
    }
    world.revoke("lobby", &id).await;
    let end = next().await;

    assert!(texts.iter().any(|text| text.contains("\"hi\"")) && !texts.iter().any(|text| text.contains("secret")), "{texts:?}");
    assert!(texts.last().unwrap().contains(r#""people":[{"guest":true,"name":"Ben","typing":false}]"#), "{texts:?}");
    let Message::Close(Some(frame)) = end else { panic!("{end:?}") };
    assert_eq!((u16::from(frame.code), frame.reason.as_str()), (1008, "the visit has ended"));
}

/// The examples of messages in a call.
fn call_examples(list: &str) -> Vec<Value> {
    let examples: Value = serde_json::from_str(include_str!("../../../../tests/contracts/voice-protocol.json")).unwrap();
    examples[list].as_array().unwrap().clone()
}

/// What happens in a call, each kind once.
fn views() -> Vec<View> {
    let (ana, aria, text, at) = (PersonId::from("Ana"), CompanionId::from("aria"), Arc::<str>::from("hi"), Duration::ZERO);
    let person = Person { user: ana.clone(), is_muted: false, only_listens: false, is_ignored: false, talks: true };
    vec![
        View::Entered { you: ana.clone(), people: vec![person.clone()] },
        View::Joined(person.clone()),
        View::Changed(person),
        View::Left(ana.clone()),
        View::Talking(ana.clone(), true),
        View::Noise(ana.clone()),
        View::Caption { user: ana, text: text.clone(), kind: None },
        View::Thinking(aria.clone(), true),
        View::Speaking { companion: aria, reply: 1, from: at },
        View::Sentence { reply: 1, from: at, text: text.clone() },
        View::Duck(1, true),
        View::Flush(1),
        View::Resume(1, at),
        View::Done(1),
        View::Cut { reply: 1, heard: text },
        View::Trouble(Trouble::RecognitionFailed),
    ]
}

#[tokio::test]
async fn each_frame_of_a_call_is_for_guests_of_its_room_alone() {
    let world = World::with(with_token()).await;
    let body = json!({ "guild": "home", "companions": ["aria"] });
    world.request(Method::PUT, "/api/rooms/attic").bearer_auth(TOKEN).json(&body).send().await.unwrap();
    let ((secret, id), (elsewhere, _), (ended, ended_id)) =
        (world.invite("lobby").await, world.invite("attic").await, world.invite("lobby").await);
    let (guest, stranger, revoked) =
        (world.join(&secret, "Ben").await, world.join(&elsewhere, "Mallory").await, world.join(&ended, "Cleo").await);
    world.revoke("lobby", &ended_id).await;
    let call = |name: &str| format!("/api/voice?room=lobby&from={name}&v=1");
    for (cookie, name, expected) in
        [(&*stranger, "Mallory", 404), (&*revoked, "Cleo", 401), ("", "Ben", 401), (&*guest, "Ana", 403)]
    {
        assert_eq!(world.open(cookie, &call(name)).await.map(drop), Err(expected), "{name}");
    }

    let mut socket = world.open(&guest, &call("Ben")).await.unwrap();
    let packet = [&[1, 0, 0, 0, 7], &[0xf8, 0xff, 0xfe][..]].concat();
    let mut told = Vec::new();
    for frame in std::iter::once(Message::binary(packet))
        .chain(call_examples("from_page").iter().map(|message| Message::text(message.to_string())))
    {
        socket.send(frame).await.unwrap();
        told.push(message(&mut socket).await["text"].as_str().unwrap().to_owned());
    }
    let expected = ["packet 7", "Muted", "Ignored", "Played", "Stop", "Say", "Leave"];
    for expected in expected {
        assert!(told.iter().any(|told| told.starts_with(expected)), "{expected}: {told:?}");
    }

    let listener = world.backend.listeners.lock()[0].clone();
    let mut kinds = BTreeSet::from(["pulse".to_owned()]);
    for view in views() {
        listener.show(&view);
        kinds.insert(message(&mut socket).await["type"].as_str().unwrap().to_owned());
    }
    let of_protocol = call_examples("from_server").iter().map(|message| message["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, of_protocol, "what a guest gets");
    listener.play(&Packet { reply: 1, number: 0, samples: Box::new([0; _]), bytes: [0xf8, 0xff, 0xfe].into() });
    assert!(matches!(socket.next().await.unwrap().unwrap(), Message::Binary(_)));

    world.revoke("lobby", &id).await;
    let Message::Close(Some(frame)) = socket.next().await.unwrap().unwrap() else { panic!("it goes on") };
    assert_eq!((u16::from(frame.code), frame.reason.as_str()), (1008, "the visit has ended"));
    assert_eq!(world.open(&guest, &call("Ben")).await.map(drop), Err(401));
}

/// The next message of a call besides pulses.
async fn message(socket: &mut Socket) -> Value {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) if !text.contains("pulse") => return serde_json::from_str(&text).unwrap(),
            Message::Text(_) | Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_guest_has_a_share_of_what_is_bounded_for_all() {
    let world = World::with(with_token()).await;
    let (secret, _) = world.invite("lobby").await;
    let (ben, cleo) = (world.join(&secret, "Ben").await, world.join(&secret, "Cleo").await);
    let watch = async |cookie: &str| world.open(cookie, "/api/live?room=lobby").await;

    let mut of_ben = Vec::new();
    while let Ok(view) = watch(&ben).await {
        of_ben.push(view);
    }
    let refused = watch(&ben).await.map(drop);
    let of_cleo = watch(&cleo).await.map(drop);
    let body = json!({ "from": "Ben", "typing": true });
    let typing = || world.request(Method::PUT, "/api/rooms/lobby/typing").header("cookie", &ben).json(&body).send();
    let mut typed = 0;
    while typing().await.unwrap().status() == 204 {
        typed += 1;
        assert!(typed < 10_000, "without an end");
    }
    let others = [world.as_guest(&cleo, Method::GET, "/api/visit").await, world.as_guest(&cleo, Method::GET, "/api/visit").await];

    assert_eq!((of_ben.len(), refused, of_cleo), (web_socket::MOST_OF_VISIT, Err(429), Ok(())));
    assert_eq!(others, [200; 2]);
}

#[tokio::test]
async fn a_message_whose_end_arrives_after_the_visit_is_refused() {
    let world = World::with(with_token()).await;
    let (secret, id) = world.invite("lobby").await;
    let ben = world.join(&secret, "Ben").await;
    let body = json!({ "from": "Ben", "text": "late" }).to_string();
    let (first, last) = body.split_at(body.len() - 1);
    let mut stream = world.connect().await;
    let (host, length) = (world.address, body.len());
    let head =
        format!("POST /api/rooms/lobby/messages HTTP/1.1\r\nhost: {host}\r\ncookie: {ben}\r\ncontent-length: {length}\r\n");
    stream.write_all(format!("{head}connection: close\r\n\r\n{first}").as_bytes()).await.unwrap();

    world.revoke("lobby", &id).await;
    stream.write_all(last.as_bytes()).await.unwrap();

    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn ids_of_messages_are_each_persons_own() {
    let world = World::with(with_token()).await;
    let (secret, _) = world.invite("lobby").await;
    let ben = world.join(&secret, "Ben").await;
    let body = |from: &str| json!({ "from": from, "text": "hi", "id": "1" });
    let of_host = world.request(Method::POST, "/api/rooms/lobby/messages").bearer_auth(TOKEN).json(&body("Ana")).send();
    of_host.await.unwrap();
    let of_guest = world.request(Method::POST, "/api/rooms/lobby/messages").header("cookie", &ben).json(&body("Ben")).send();
    of_guest.await.unwrap();

    let history = world.request(Method::GET, "/api/rooms/lobby/history").header("cookie", &ben).send().await.unwrap();
    let history: Value = history.json().await.unwrap();

    let ids: Vec<_> = history["messages"].as_array().unwrap().iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, [&Value::Null, &json!("1")]);
}

#[tokio::test]
async fn nobody_is_called_like_a_guest() {
    let world = World::with(with_token()).await;
    let (secret, _) = world.invite("lobby").await;
    world.join(&secret, "Ben").await;

    let body = json!({ "from": "ben", "text": "hi" });
    let forged = world.request(Method::POST, "/api/rooms/lobby/messages").bearer_auth(TOKEN).json(&body).send().await.unwrap();

    assert_eq!(forged.status(), 422);
    assert!(forged.text().await.unwrap().contains("is the name of a guest"));
}

#[tokio::test]
async fn the_first_invitation_makes_a_token_and_signs_this_browser_in() {
    let folder = tempfile::tempdir().unwrap();
    let kept = crate::settings::kept_token::KeptToken::of(folder.path());
    let world = World::with(Server { kept_token: Some(kept.clone()), ..settings() }).await;
    let body = json!({ "ends": "never", "most_guests": 1 });
    let invite = || world.request(Method::POST, "/api/rooms/lobby/invitations").json(&body).send();

    let unknown = world.post("/api/rooms/nowhere/invitations", body.clone()).await.0;
    assert_eq!((unknown, world.get("/api/rooms").await.0), (404, 200), "nothing is made for a room that is not there");
    let invited = invite().await.unwrap();
    let cookie = invited.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let invited: Value = invited.json().await.unwrap();

    assert_eq!(invited["token_file"], kept.path().display().to_string());
    let token = std::fs::read_to_string(kept.path()).unwrap();
    assert!(!invited.to_string().contains(token.trim()) && token.trim().len() == 64);
    assert_eq!(invite().await.unwrap().status(), 401);
    assert_eq!(world.as_guest(&cookie, Method::GET, "/api/rooms").await, 200);
    let with_token = world.request(Method::GET, "/api/rooms").bearer_auth(token.trim());
    assert_eq!(with_token.send().await.unwrap().status(), 200);
}
