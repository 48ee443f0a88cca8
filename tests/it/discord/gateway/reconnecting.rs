//! After a connection ends, for any reason, the client connects again.

use std::time::Duration;

use futures_util::future::join_all;
use tertulia::ports::gateway::Gateway as _;

use super::super::client::{Client, Notepad, rules};
use super::super::counterpart::{Connects, Counterpart, Rules, State};
use super::{Scene, ended_by};

#[tokio::test]
async fn after_a_requested_reconnect_or_a_resumable_invalid_session_the_session_is_resumed() {
    for cause in ["asked", "invalid_session"] {
        let scene = Scene::new().await;

        match cause {
            "asked" => scene.home.discord.ask_to_reconnect(0),
            _ => scene.home.discord.invalidate(0, true),
        }
        scene.home.discord.resumes(1).await;
        scene.assert_receives_once().await;

        assert_eq!((scene.home.discord.identifies(), scene.ended_by(cause)), (1, 1.0), "{cause}");
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_repeatedly_is_resumed_at_once_each_time() {
    let scene = Scene::with(rules(), |options| {
        // With this random value the first pause is zero. Any later pause would outlast the test.
        (options.rng, options.times.pauses, options.times.lasting) = (0.0, 10_000.0, Duration::from_secs(60));
    })
    .await;

    for cut in 1..=6 {
        scene.home.discord.cut(0);
        scene.home.discord.say(scene.home.ana, scene.home.general, &format!("meanwhile {cut}"));
        scene.home.discord.resumes(cut).await;
        scene.client.inbox.until_kind("RESUMED", cut).await;
    }

    let expected: Vec<_> = (1..=6).map(|cut| format!("meanwhile {cut}")).collect();
    assert_eq!(scene.client.inbox.texts(), expected);
    assert_eq!((scene.home.discord.identifies(), scene.ended_by("cut")), (1, 6.0));
    assert!(scene.home.discord.look(|state| state.journal.connections[1..].iter().all(|connection| connection.by_resume_url)));
    assert_eq!(scene.client.total("tertulia_discord_resumes_total", &[("discord_gateway_outcome", "established")]), 6.0);
}

#[tokio::test]
async fn an_invalid_session_that_cannot_be_resumed_is_replaced() {
    let scene = Scene::new().await;

    scene.home.discord.invalidate(0, false);
    scene.client.inbox.until_kind("READY", 2).await;
    scene.assert_receives_once().await;

    assert_eq!((scene.home.discord.identifies(), scene.home.discord.look(|state| state.journal.resumes.len())), (2, 0));
}

#[tokio::test]
async fn the_close_code_decides_whether_the_session_is_resumed() {
    for (code, resumes) in [(4_000, true), (4_002, true), (4_008, true), (4_007, false), (4_009, false), (1_001, true)] {
        let scene = Scene::new().await;

        scene.home.discord.close(0, code, "");
        if resumes {
            scene.home.discord.resumes(1).await;
        } else {
            scene.client.inbox.until_kind("READY", 2).await;
        }
        scene.assert_receives_once().await;

        // On a busy machine, Discord may get the second IDENTIFY too soon after the first, and have it sent again.
        let sent = (scene.home.discord.look(|state| state.journal.resumes.len()), scene.home.discord.identifies());
        assert!(matches!((resumes, sent), (true, (1, 1)) | (false, (0, 2..))), "{code}: {sent:?}");
    }
}

#[tokio::test]
async fn unacknowledged_heartbeats_are_noticed_while_events_arrive() {
    let scene = Scene::with_fast_heartbeat().await;

    scene.home.discord.stop_acknowledging(0);
    let talking = async {
        loop {
            scene.home.discord.say(scene.home.ana, scene.home.general, "chatter");
            // One message for each heartbeat.
            let acknowledged = |state: &State| {
                let mut sessions = state.gateway.sessions.values();
                sessions.any(|session| session.acknowledged == session.sequence).then_some(())
            };
            scene.home.discord.until("a heartbeat", acknowledged).await;
        }
    };
    tokio::select! {
        () = talking => {}
        () = scene.home.discord.resumes(1) => {}
    }

    assert_eq!(scene.home.discord.identifies(), 1);
    assert!(scene.ended_by("zombie") >= 1.0);
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_replaced() {
    let scene = Scene::with_fast_heartbeat().await;

    scene.home.discord.silence(0);
    scene.home.discord.say(scene.home.ana, scene.home.general, "not received at first");
    scene.client.inbox.until_text("not received at first").await;

    assert_eq!(scene.home.discord.identifies(), 1);
    assert!(scene.ended_by("zombie") >= 1.0);
    assert_eq!(scene.client.inbox.texts(), ["not received at first"]);
}

#[tokio::test]
async fn a_requested_heartbeat_is_sent() {
    let scene = Scene::with(Rules { heartbeat_interval: Duration::from_secs(3_600), ..rules() }, |_| {}).await;

    scene.home.discord.ask_for_heartbeat(0);

    let acknowledged = |state: &State| state.gateway.sessions.values().any(|session| session.acknowledged > 0).then_some(());
    scene.home.discord.until("a heartbeat", acknowledged).await;
}

#[tokio::test]
async fn a_dead_resume_url_is_abandoned_after_two_attempts() {
    // Side by side, because two of them wait for timeouts.
    let runs = [Connects::Refused, Connects::Hanging, Connects::Mute].map(async |dead| {
        let scene = Scene::with(rules(), |options| {
            if dead != Connects::Refused {
                options.times.hello = Duration::from_millis(1_500);
            }
        })
        .await;

        scene.home.discord.set_resume_connects(dead);
        scene.home.discord.cut(0);
        scene.home.discord.resumes(1).await;
        scene.assert_receives_once().await;

        let resumed = scene.home.discord.look(|state| state.journal.connections[state.journal.resumes[0].connection].clone());
        assert!(!resumed.by_resume_url);
        let cause = if dead == Connects::Refused { "unreachable" } else { "silent" };
        assert_eq!(scene.home.discord.identifies(), 1, "{dead:?}");
        assert!(scene.ended_by(cause) >= 2.0, "{dead:?}");
    });
    join_all(runs).await;
}

#[tokio::test]
async fn a_session_that_cannot_be_resumed_is_abandoned() {
    let scene = Scene::new().await;

    scene.home.discord.fail_resumes(1_000, true);
    scene.home.discord.cut(0);
    scene.client.inbox.until_kind("READY", 2).await;
    scene.assert_receives_once().await;

    let addresses = scene.home.discord.look(|state| {
        let resumes = state.journal.resumes.iter();
        resumes.map(|resume| state.journal.connections[resume.connection].by_resume_url).collect::<Vec<_>>()
    });
    assert_eq!(addresses, [true, true, false, false]);
    assert_eq!(scene.home.discord.identifies(), 2);
}

#[tokio::test]
async fn a_session_is_kept_while_the_gateway_is_unreachable() {
    let scene = Scene::new().await;

    scene.home.discord.set_connects(Connects::Refused);
    scene.home.discord.set_resume_connects(Connects::Refused);
    scene.home.discord.cut(0);
    scene.home.discord.wait_for("attempts", |state| state.journal.refused_connects >= 8).await;
    let condition = scene.client.gateway.condition();
    scene.home.discord.set_connects(Connects::Well);
    scene.home.discord.resumes(1).await;
    scene.assert_receives_once().await;

    assert!(!condition.ready);
    assert!(condition.detail.contains("Discord's gateway cannot be reached"), "{condition:?}");
    assert_eq!(scene.home.discord.identifies(), 1);
}

#[tokio::test]
async fn a_gateway_that_sends_no_hello_is_tried_again() {
    let discord = Counterpart::with_rules(rules()).await;
    discord.set_connects(Connects::Mute);
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.times.hello = Duration::from_millis(500));
    client.connect().await;
    discord.wait_for("three attempts", |state| state.journal.connections.len() >= 3).await;

    discord.set_connects(Connects::Well);
    client.inbox.until_kind("READY", 1).await;

    assert_eq!(discord.identifies(), 1);
}

#[tokio::test]
async fn a_gateway_that_starts_no_session_is_tried_again() {
    let discord = Counterpart::with_rules(rules()).await;
    // It acknowledges heartbeats, and sends nothing else.
    discord.with(|state| state.faults.ignored_identifies = 1);
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.times.session = Duration::from_millis(1_500));

    client.connect().await;
    client.inbox.until_kind("READY", 1).await;

    assert!(ended_by(&client, "no_session") >= 1.0);
    assert!(client.total("tertulia_discord_identifies_total", &[("discord_gateway_outcome", "failed")]) >= 1.0);
}
