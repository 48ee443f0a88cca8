//! Tunnels that are started from the page, with a stand-in for `cloudflared` on PATH.

use std::os::unix::fs::PermissionsExt as _;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{PATIENCE, Premises, Server};

const HOST: &str = "calm-blue-hats.trycloudflare.com";

/// Tells its process id and the address that it forwards to, opens, and goes on until it is killed.
const OPENS: &str = r#"for last; do :; done; echo "pid $$ to $last"; echo "see https://developers.cloudflare.com/" >&2
echo "INF |  https://calm-blue-hats.trycloudflare.com  |" >&2; trap '' TERM INT HUP; exec tail -f /dev/null"#;

fn install(premises: &Premises, script: &str) {
    let file = premises.path().join("cloudflared");
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A server with this program on PATH.
async fn server_with(script: &str) -> (Premises, Server) {
    let premises = Premises::new();
    install(&premises, script);
    let path = format!("{}:/usr/bin:/bin", premises.path().display());
    let premises = premises.with_variable("PATH", &path);
    let server = premises.start().await;
    (premises, server)
}

/// Starts the tunnel, and waits until it is open or has failed.
async fn start(server: &Server) -> Value {
    server.done(Method::PUT, "/api/addresses/tunnel", Some(json!({ "program": "cloudflared" }))).await;
    until(server, |tunnel| !tunnel["url"].is_null() || !tunnel["problem"].is_null()).await
}

async fn until(server: &Server, holds: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let tunnel = server.get("/api/addresses").await["tunnel"].take();
            if holds(&tunnel) {
                return tunnel;
            }
        }
    };
    timeout(PATIENCE, found).await.expect("the tunnel changes")
}

/// The process id of the program, and the address that it forwards to.
fn told(tunnel: &Value) -> (u32, String) {
    let words: Vec<&str> = tunnel["log"][0].as_str().unwrap().split(' ').collect();
    (words[1].parse().unwrap(), words[3].to_owned())
}

async fn ends(process: u32) {
    // Nobody may wait for an orphan in a container.
    let runs = || std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    let ended = async {
        while runs() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the program ends");
}

#[tokio::test]
async fn a_friend_comes_in_through_a_tunnel_and_it_ends_with_a_killed_server() {
    let (premises, server) = server_with(OPENS).await;

    let tunnel = start(&server).await;
    let (process, to) = told(&tunnel);
    assert_eq!(tunnel["url"], format!("https://{HOST}"), "{tunnel}");
    let again = server.ask(Method::PUT, "/api/addresses/tunnel", Some(json!({ "program": "cloudflared" }))).await;
    assert_eq!(again.0, 409, "{again:?}");
    let invited =
        server.done(Method::POST, "/api/rooms/lobby/invitations", Some(json!({ "ends": "day", "most_guests": 1 }))).await;
    let link = invited["link"].as_str().unwrap();
    assert!(link.starts_with(&format!("https://{HOST}/join#")) && invited["links"][0]["qr"].is_array(), "{invited}");

    // What the program would forward.
    let http = reqwest::Client::new();
    let forwarded = |method, path: &str| -> RequestBuilder {
        let request = http.request(method, format!("{to}{path}")).header("host", HOST).header("x-forwarded-for", "192.0.2.7");
        request.header("origin", format!("https://{HOST}"))
    };
    let secret = link.split_once('#').unwrap().1;
    let join = forwarded(Method::POST, "/api/invitations/join").json(&json!({ "secret": secret, "name": "Ben" }));
    let joined = join.send().await.unwrap();
    let cookie = joined.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let say = forwarded(Method::POST, "/api/rooms/lobby/messages").header("cookie", &cookie);
    let said = say.json(&json!({ "from": "Ben", "text": "Hello from afar" })).send().await.unwrap();
    let token = std::fs::read_to_string(premises.path().join(invited["token_file"].as_str().unwrap())).unwrap();
    let operated = forwarded(Method::GET, "/api/rooms").bearer_auth(token.trim()).send().await.unwrap();
    assert_eq!([joined.status(), said.status(), operated.status()].map(|status| status.as_u16()), [204, 202, 401]);

    server.kill().await;

    ends(process).await;
}

#[tokio::test]
async fn a_tunnel_that_fails_or_dies_says_so_and_another_can_be_started() {
    let (premises, server) = server_with(r#"echo 'ERR Post "https://api.trycloudflare.com/tunnel": timeout'; exit 1"#).await;

    let failed = start(&server).await;
    assert_eq!((&failed["problem"], &failed["url"]), (&json!("not_opened"), &Value::Null), "{failed}");
    assert!(failed["log"][0].as_str().unwrap().contains("timeout"), "{failed}");

    install(&premises, OPENS);
    let (process, to) = told(&start(&server).await);
    let killed = tokio::process::Command::new("kill").args(["-9", &process.to_string()]).status().await.unwrap();
    let ended = until(&server, |tunnel| !tunnel["problem"].is_null()).await;
    assert_eq!((killed.success(), &ended["problem"], &ended["url"]), (true, &json!("ended"), &Value::Null), "{ended}");
    assert!(reqwest::get(to).await.is_err(), "nothing listens for it any more");

    let (process, _) = told(&start(&server).await);
    let closed = server.done(Method::DELETE, "/api/addresses/tunnel", None).await;
    assert_eq!(closed["tunnel"], Value::Null);
    ends(process).await;
    let (process, _) = told(&start(&server).await);
    server.stop().await;
    ends(process).await;
}
