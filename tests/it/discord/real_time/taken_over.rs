//! The node of a call is killed, and another node takes over: how long until companions hear and speak again.

use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::time::{Instant, interval};

use super::super::calls::with_ear;
use super::call::{Call, rules};
use crate::harness::call::{Page, sentence};
use crate::harness::{Premises, Server, later_address};
use crate::speech::restarting::slow_model;
use tertulia::adapters::store::postgres::test_server::TestServer;

/// Premises of a node on this database.
fn node(premises: Premises, name: &str, database: &TestServer) -> Premises {
    let url = database.url("postgres").expose_secret().to_owned();
    premises.with("storage.engine", "postgres").with("storage.url", &url).with("cluster.name", name)
}

/// Starts the node that stands by, at a known address.
async fn standing_by(premises: Premises) -> (Premises, Server) {
    let listen = later_address();
    let premises = premises.with("server.listen", &listen);
    let server = Server::beginning(premises.command(&[]), format!("http://{listen}"));
    server.logs("standing by").await;
    (premises, server)
}

/// `cargo test --test it -- --ignored --nocapture call_on_discord_goes_on` prints the figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn a_call_on_discord_goes_on_at_another_node() {
    let Some(database) = TestServer::new() else { return };
    let model = slow_model("I am here. I have been here all the time, and I listen.").await;
    let ear = with_ear(&model).await;
    let call = Call::begin(rules(), node(ear(Premises::shipped()), "a", &database)).await;
    let ana = call.enter().await;
    ana.talk(&sentence()).await;
    ana.heard_from(call.home.bot, 50).await;
    let Call { home, channel, server, premises, .. } = call;
    let ear = with_ear(&model).await;
    let second = ear(Premises::shipped()).without_limits().for_discord(&home.discord).with("voice.read_text_aloud", "true");
    let second = second.with("discord.voice_channels", &format!("[\"{channel}\"]"));
    let (_second_premises, second) = standing_by(node(second, "b", &database)).await;

    server.kill().await;
    let killed = Instant::now();
    second.logs("ready").await;
    let ready = killed.elapsed();
    let mut watch = second.watch(&format!("discord:{channel}"), Some(0)).await;
    let talking = async {
        loop {
            ana.talk(&sentence()).await;
            let mut pause = interval(Duration::from_secs(2));
            pause.tick().await;
            pause.tick().await;
        }
    };
    let hearing = async {
        let spoken = ana.until("speech of another node", |noted| {
            noted
                .heard
                .iter()
                .find(|heard| heard.user == Some(home.bot) && heard.end_to_end && heard.at > killed + ready)
                .map(|heard| heard.at)
        });
        spoken.await.duration_since(killed)
    };
    let spoken = tokio::select! {
        spoken = hearing => spoken,
        () = talking => unreachable!(),
    };
    let heard = watch.event_that("message", |event| event["modality"] == "voice" && event["from"] != "aria").await;
    println!("on Discord: ready after {ready:.1?}, a companion speaks after {spoken:.1?}; {}", heard["text"]);
    drop((ana, premises));
    second.stop().await;
}

/// `cargo test --test it -- --ignored --nocapture call_in_the_browser_goes_on` prints the figures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn a_call_in_the_browser_goes_on_at_another_node() {
    let Some(database) = TestServer::new() else { return };
    let model = slow_model("I am here. I have been here all the time, and I listen.").await;
    let ear = with_ear(&model).await;
    let premises = node(ear(Premises::new()), "a", &database);
    let server = premises.start().await;
    let mut page = Page::enter(&server, "lobby", "Ana").await;
    page.talk(&sentence()).await;
    page.hear_reply().await;
    let ear = with_ear(&model).await;
    let (_second_premises, second) = standing_by(node(ear(Premises::new()), "b", &database)).await;

    server.kill().await;
    let killed = Instant::now();
    second.logs("ready").await;
    let mut page = Page::enter(&second, "lobby", "Ana").await;
    let entered = killed.elapsed();
    page.talk(&sentence()).await;
    let (packets, _) = page.hear_reply().await;

    println!(
        "in the browser: in the call after {entered:.1?}, the answer to the next sentence heard to its end after {:.1?}",
        killed.elapsed()
    );
    assert!(packets > 0);
    second.stop().await;
}
