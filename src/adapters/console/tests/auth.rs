//! Authentication: tokens, sessions, and paths that need neither.

use serde_json::{Value, json};

use super::*;

const GUARDED: [&str; 4] = ["/api/rooms", "/api/nothing", "/metrics", "/api/live?room=lobby"];

impl World {
    async fn status(&self, request: RequestBuilder) -> u16 {
        request.send().await.unwrap().status().as_u16()
    }

    async fn sign_in(&self) -> String {
        let response = self.request(Method::POST, "/signin").form(&[("token", TOKEN)]).send().await.unwrap();
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }
}

trait Form {
    fn form(self, fields: &[(&str, &str)]) -> Self;
}

impl Form for RequestBuilder {
    fn form(self, fields: &[(&str, &str)]) -> Self {
        let body: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.header("content-type", "application/x-www-form-urlencoded").body(body.join("&"))
    }
}

#[tokio::test]
async fn without_the_token_only_probes_and_the_sign_in_page_are_open() {
    let world = World::with(with_token()).await;

    for path in GUARDED {
        let response = world.request(Method::GET, path).send().await.unwrap();
        assert_eq!((response.status().as_u16(), path), (401, path));
        assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"tertulia\"");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
    for path in ["/page/index.html", "/page/index%2ehtml", "/page/%69ndex.en.html", "/page/guest.en.html", "/page/none.css"] {
        assert_eq!((world.get(path).await.0, path), (404, path));
    }
    for path in ["/healthz", "/readyz", "/signin", "/page/signin.css"] {
        assert_eq!((world.get(path).await.0, path), (200, path));
    }
    let index = world.request(Method::GET, "/").send().await.unwrap();
    assert_eq!((index.status().as_u16(), &index.headers()["location"]), (303, &"/signin".parse().unwrap()));
}

#[tokio::test]
async fn a_program_sends_the_token_with_each_request() {
    let world = World::with(with_token()).await;
    let with = |header: &str| world.request(Method::GET, "/api/rooms").header("authorization", header);

    assert_eq!(world.status(with(&format!("Bearer {TOKEN}"))).await, 200);
    assert_eq!(world.status(with(&format!("bearer {TOKEN}"))).await, 200);
    assert_eq!(world.status(with(&format!("Basic {TOKEN}"))).await, 401);
    assert_eq!(world.status(with(&format!("Bearer {TOKEN}x"))).await, 401);
    assert_eq!(world.status(with("Bearer ")).await, 401);
    assert_eq!(world.status(with("Bearer")).await, 401);
}

#[tokio::test]
async fn loopback_is_open_if_no_token_is_configured() {
    let world = World::new().await;

    let signin = world.request(Method::POST, "/signin").form(&[("token", "x")]).send().await.unwrap();

    assert_eq!(world.get("/api/rooms").await.0, 200);
    assert_eq!(signin.status(), 303);
}

#[tokio::test]
async fn a_browser_signs_in_with_the_form_and_signs_out() {
    let world = World::with(with_token()).await;

    let signin = world.request(Method::POST, "/signin").form(&[("token", TOKEN)]).send().await.unwrap();
    let cookie = world.sign_in().await;
    let rooms = |cookie: &str| world.request(Method::GET, "/api/rooms").header("cookie", cookie);
    let signed_in = world.status(rooms(&cookie)).await;
    let signout = world.request(Method::POST, "/signout").header("cookie", &cookie).form(&[]).send().await.unwrap();
    let signed_out = world.status(rooms(&cookie)).await;

    assert_eq!((signin.status().as_u16(), &signin.headers()["location"]), (303, &"/".parse().unwrap()));
    let set = signin.headers()["set-cookie"].to_str().unwrap();
    assert!(set.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict"), "{set}");
    assert_eq!((signed_in, signed_out), (200, 401));
    assert!(signout.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(world.status(rooms("tertulia=0123")).await, 401);
}

#[tokio::test]
async fn a_script_signs_in_with_json() {
    let world = World::with(with_token()).await;

    let right = world.request(Method::POST, "/signin").json(&json!({ "token": TOKEN })).send().await.unwrap();
    let wrong = world.post("/signin", json!({ "token": "wrong" })).await;
    let none = world.post("/signin", json!({})).await;

    assert_eq!(right.status(), 204);
    assert!(right.headers().contains_key("set-cookie"));
    assert_eq!(wrong.0, 401);
    assert_eq!((none.0, &none.1["field"]), (422, &json!("token")));
}

#[tokio::test]
async fn a_wrong_token_in_the_form_shows_the_form_again() {
    let world = World::with(with_token()).await;

    let response = world.request(Method::POST, "/signin").form(&[("token", "wrong")]).send().await.unwrap();

    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
    assert!(!response.headers().contains_key("set-cookie"));
    assert!(response.text().await.unwrap().contains("<p role=\"alert\">this is not the admin token</p>"));
}

#[tokio::test]
async fn wrong_tokens_are_limited_across_the_form_and_the_api() {
    let world = World::with(Server { sign_ins_per_minute: 2, ..with_token() }).await;

    let form = world.status(world.request(Method::POST, "/signin").form(&[("token", "a")])).await;
    let bearer = world.status(world.request(Method::GET, "/api/rooms").bearer_auth("b")).await;
    let third = world.request(Method::POST, "/signin").json(&json!({ "token": TOKEN })).send().await.unwrap();

    assert_eq!((form, bearer, third.status().as_u16()), (401, 401, 429));
    assert!(third.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn anonymous_clients_get_no_details_from_readiness() {
    let world = World::with(with_token()).await;
    *world.backend.not_ready_because.lock() = Some("/secret/path is full".into());

    let anonymous = world.get("/readyz").await;
    let program = answer(world.request(Method::GET, "/readyz").bearer_auth(TOKEN).send().await.unwrap()).await;

    assert_eq!(anonymous, (503, json!({ "ready": false })));
    assert_eq!((program.0, &program.1["parts"][0]["detail"]), (503, &json!("/secret/path is full")));
}

#[tokio::test]
async fn binding_beyond_loopback_requires_a_token() {
    let open = Server { listen: "0.0.0.0:0".into(), ..settings() };
    let refusal = Console::bind(&open, served(Arc::default()), rng(), clock(), Metrics::local()).await.err().unwrap();

    let text = refusal.to_string();

    assert!(text.contains("0.0.0.0:0") && text.contains("TERTULIA__SERVER__ADMIN_TOKEN") && text.contains("127.0.0.1"), "{text}");
}

#[tokio::test]
async fn beyond_loopback_the_token_grants_access() {
    let mut world = World::with(Server { listen: "0.0.0.0:0".into(), ..with_token() }).await;
    world.address.set_ip([127, 0, 0, 1].into());

    assert_eq!(world.get("/api/rooms").await.0, 401);
    assert_eq!(world.status(world.request(Method::GET, "/api/rooms").bearer_auth(TOKEN)).await, 200);
}

#[tokio::test]
async fn prometheus_needs_the_token_but_no_known_host() {
    let world = World::with(with_token()).await;
    let scrape = || world.request(Method::GET, "/metrics").header("host", "tertulia:7878");

    assert_eq!(world.status(scrape().bearer_auth(TOKEN)).await, 200);
    assert_eq!(world.status(scrape()).await, 401);
}

#[tokio::test]
async fn a_token_of_a_program_opens_what_its_scope_says_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let kept = crate::settings::kept_token::KeptToken::of(folder.path());
    let world = World::with(Server { kept_token: Some(kept), ..with_token() }).await;
    let ask = async |token: &str, method: Method, path: &str| {
        let body = json!({ "from": "Ana", "text": "hi" });
        world.request(method, path).bearer_auth(token).json(&body).send().await.unwrap().status().as_u16()
    };
    let made = async |name: &str, scope: &str| {
        let body = json!({ "name": name, "scope": scope });
        let made = world.request(Method::POST, "/api/tokens").bearer_auth(TOKEN).json(&body).send().await.unwrap();
        (made.status().as_u16(), made.json::<Value>().await.unwrap()["token"].as_str().map(str::to_owned))
    };
    let (Some(metrics), Some(read), Some(admin)) =
        (made("prometheus", "metrics").await.1, made("reader", "read").await.1, made("bot", "admin").await.1)
    else {
        panic!("no token")
    };

    for (token, expected) in [(&metrics, [200, 403, 403]), (&read, [200, 200, 403]), (&admin, [200, 200, 202])] {
        let answers = [
            ask(token, Method::GET, "/metrics").await,
            ask(token, Method::GET, "/api/rooms").await,
            ask(token, Method::POST, "/api/rooms/lobby/messages").await,
        ];
        assert_eq!(answers, expected);
    }
    assert_eq!(made("reader", "admin").await.0, 409);
    assert_eq!(ask(&admin, Method::DELETE, "/api/tokens/reader").await, 204);
    assert_eq!([ask(&read, Method::GET, "/api/rooms").await, ask(&metrics, Method::GET, "/metrics").await], [401, 200]);
}
