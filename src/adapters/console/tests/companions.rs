//! Companions are made, tried, changed and removed, and their pictures are served.

use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tower::ServiceExt as _;

use super::*;
use crate::ports::companion_setup::{Base64, CompanionFields, CompanionSetup as _, NewCompanion};
use tertulia_cards::tests::small_png;

fn png() -> String {
    STANDARD.encode(small_png(&[], &[]))
}

fn ida() -> Value {
    json!({ "companion": { "name": "Ida", "persona": "You bake.", "greetings": ["Come in."] }, "picture": png() })
}

#[tokio::test]
async fn a_companion_is_made_changed_and_removed() {
    let world = World::new().await;

    let made = world.post("/api/companions", ida()).await;
    let revision = made.1["revision"].as_str().unwrap();
    let read = world.get("/api/companions/ida").await;
    let change = json!({ "revision": revision, "companion": { "name": " Ida B. ", "interjection": "eager" }, "picture": null });
    let changed = world.send(Method::PUT, "/api/companions/ida", change.clone()).await;
    let late = world.send(Method::PUT, "/api/companions/ida", change).await;
    let late_removal = world.ask(Method::DELETE, &format!("/api/companions/ida?revision={revision}")).await;
    let removal = format!("/api/companions/ida?revision={}", changed.1["revision"].as_str().unwrap());
    let removed = world.ask(Method::DELETE, &removal).await;

    assert_eq!((made.0, &made.1["id"], &made.1["companion"]["persona"]), (201, &json!("ida"), &json!("You bake.")));
    assert_eq!(read, (200, made.1.clone()));
    assert_eq!((changed.0, &changed.1["companion"]["name"], changed.1.get("picture")), (200, &json!("Ida B."), None));
    assert_eq!([late.0, late_removal.0, removed.0], [409, 409, 204]);
    assert_eq!(world.get("/api/companions/ida").await.0, 404);
    assert_eq!(world.ask(Method::DELETE, &removal).await.0, 404);
}

#[tokio::test]
async fn options_are_told_and_a_companion_is_tried_before_it_exists() {
    let world = World::new().await;
    let trial = json!({ "companion": ida()["companion"], "message": "Who are you?" });

    let options = world.get("/api/companions/options").await;
    let tried = world.post("/api/companions/try", trial).await;
    let silent = world.post("/api/companions/try", json!({ "companion": { "name": "Ida" }, "message": " " })).await;

    assert_eq!((options.0, &options.1["models"]), (200, &json!(["main"])));
    assert_eq!((tried.0, &tried.1["statement"]["detail"]), (200, &json!("Ida says hello")));
    assert_eq!((silent.0, &silent.1["field"]), (422, &json!("message")));
    assert_eq!(world.get("/api/companions/ida").await.0, 404, "a trial keeps nothing");
}

#[tokio::test]
async fn what_cannot_be_a_companion_is_refused_with_its_field() {
    let world = World::new().await;
    let html = STANDARD.encode("<!doctype html><script>alert(1)</script>");
    let svg = STANDARD.encode("<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>");
    let cut = STANDARD.encode(&small_png(&[], &[])[..60]);
    let large = STANDARD.encode([&small_png(&[], &[])[..], &vec![0; 1 << 20]].concat());
    let deep = STANDARD.encode("{\"name\":".to_owned() + &"[".repeat(100_000));
    let long = "x".repeat((16 << 10) + 1);
    for (path, value, status, field, code) in [
        ("/companion/name", json!("a\u{7}b"), 422, "companion.name", Some("control_character")),
        ("/companion/name", json!(""), 422, "companion.name", Some("length")),
        ("/companion/name", json!(7), 422, "companion.name", None),
        ("/companion/aliases", json!(["Ida", "a\u{202e}b"]), 422, "companion.aliases[1]", Some("control_character")),
        ("/companion/persona", json!(long), 422, "companion.persona", Some("too_many_bytes")),
        ("/companion/greetings", json!(["Hi.", " "]), 422, "companion.greetings[1]", Some("blank")),
        ("/companion/greetings", json!(vec!["Hi."; 65]), 422, "companion.greetings", Some("too_many_entries")),
        ("/companion/interjection", json!("chatty"), 422, "companion.interjection", None),
        ("/companion/voice", json!({ "speed": "fast" }), 422, "companion.voice.speed", None),
        ("/companion/color", json!("red"), 422, "companion.color", None),
        ("/picture", json!("%%%"), 422, "picture", None),
        ("/picture", json!(html), 422, "picture", Some("unknown")),
        ("/picture", json!(svg), 422, "picture", Some("unknown")),
        ("/picture", json!(cut), 422, "picture", Some("damaged")),
        ("/picture", json!(large), 413, "picture", Some("too_large")),
        ("/card", json!(png()), 422, "card", Some("no_character")),
        ("/card", json!(deep), 422, "card", Some("not_json")),
        ("/card", json!(html), 422, "card", Some("other")),
    ] {
        let mut body = ida();
        let (parent, key) = path.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[key] = value;

        let (refused, problem) = world.post("/api/companions", body).await;

        assert_eq!(
            (refused, problem["field"].as_str(), problem["why"]["code"].as_str()),
            (status, Some(field), code),
            "{problem}"
        );
    }
    assert_eq!(world.ask(Method::DELETE, "/api/companions/ida").await.1["field"], "revision");
    assert_eq!(world.get("/api/companions/a.b").await.0, 422);
}

#[tokio::test]
async fn bodies_with_files_have_a_limit_of_their_own_and_must_be_json() {
    let world = World::new().await;
    // More than other bodies may have, and less than the largest card.
    let (some, most) = (" ".repeat(1 << 20), " ".repeat((14 << 20) + 1));

    for (method, path) in
        [(Method::POST, "/api/companions"), (Method::POST, "/api/companions/try"), (Method::PUT, "/api/companions/ida")]
    {
        let fits = world.answer(method.clone(), path, |request| request.body(some.clone())).await;
        let long = world.answer(method.clone(), path, |request| request.body(most.clone())).await;
        let form = world.answer(method.clone(), path, |request| request.header("content-type", "text/plain").body("{}")).await;

        assert_eq!([fits.0, long.0, form.0], [400, 413, 415], "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn large_bodies_wait_for_each_other_and_are_refused_after_a_while() {
    let backend = Arc::new(FakeBackend::with_lobby());
    let console = Console::bind(&settings(), served(backend), rng(), clock(), Metrics::local()).await.unwrap();
    let ask = async || {
        let body = Body::from(ida().to_string());
        let request = Request::post("/api/companions").header("host", "localhost");
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(guard::Peer { address: [127, 0, 0, 1].into(), door: console.shared.door.clone() });
        console.router.clone().oneshot(request).await.unwrap()
    };

    let others = console.shared.large_bodies.acquire_many(body::MAX_LARGE_BODIES as u32).await.unwrap();
    let refused = ask().await;
    drop(others);
    let made = ask().await;

    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"5".parse().unwrap()));
    assert_eq!(made.status(), 201);
}

#[tokio::test]
async fn a_picture_is_served_to_everybody_and_is_nothing_else() {
    let world = World::with(with_token()).await;
    let make = world.request(Method::POST, "/api/companions").bearer_auth(TOKEN).json(&ida());
    let made = answer(make.send().await.unwrap()).await.1;
    let path = made["picture"].as_str().unwrap();

    let response = world.request(Method::GET, path).send().await.unwrap();
    let headers = response.headers().clone();
    let head = world.request(Method::HEAD, path).send().await.unwrap();
    let foreign = world.request(Method::GET, path).header("host", "evil.example").send().await.unwrap();

    assert_eq!((response.status(), response.bytes().await.unwrap().to_vec()), (200.try_into().unwrap(), small_png(&[], &[])));
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'"),
        ("cache-control", "public, max-age=31536000, immutable"),
    ] {
        assert_eq!(headers.get_all(name).iter().collect::<Vec<_>>(), [value], "{name}");
    }
    assert_eq!((head.status().as_u16(), foreign.status().as_u16()), (200, 403));
    for path in ["/pictures/ida/0", "/pictures/nobody/1"] {
        assert_eq!(world.get(path).await.0, 404, "{path}");
    }
    assert_eq!(world.get("/pictures/a%2e%2e/1").await.0, 422);
    for path in ["/api/companions/ida", "/pictures", "/picturesque"] {
        assert_eq!(world.get(path).await.0, 401, "{path}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_picture_are_not_served() {
    let companions = Arc::new(FakeCompanions::default());
    let fields = CompanionFields { name: "Ida".into(), ..CompanionFields::default() };
    let svg = Base64(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>".to_vec());
    let new = NewCompanion { companion: fields, copy_of: None, picture: Some(svg), card: None, room: None, guild: None };
    let made = companions.create(new).await.unwrap();
    let backend = Backend::of(Arc::new(FakeBackend::with_lobby()));
    let served = Served::Core {
        backend: Box::new(backend),
        models: Arc::<FakeModels>::default(),
        settings: Arc::<FakeSettings>::default(),
        companions,
        nodes: Arc::new(NoNodes),
        tools: Arc::new(NoTools),
    };
    let console = Console::bind(&settings(), served, rng(), clock(), Metrics::local()).await.unwrap();

    let mut request = Request::get(made.picture.unwrap()).header("host", "localhost").body(Body::empty()).unwrap();
    request.extensions_mut().insert(guard::Peer { address: [127, 0, 0, 1].into(), door: console.shared.door.clone() });
    let response = console.router.oneshot(request).await.unwrap();

    assert_eq!(response.status(), 404);
}
