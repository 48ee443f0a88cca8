//! After a connection ends, for any reason, the client connects again.

use std::time::Duration;

use tertulia::ports::gateway::Gateway as _;

use super::super::counterpart::Counterpart;
use super::super::counterpart::faults::Connects;
use super::super::counterpart::id::Id;
use super::super::counterpart::journal::Resumed;
use super::super::counterpart::rules::Rules;
use super::super::counterpart::state::State;
use super::world::{Client, Notepad, Options, discord, discord_with_fast_heartbeat, rules};

/// A connected client, and a guild with a channel and a person.
struct Scene {
    discord: Counterpart,
    client: Client,
    general: Id,
    ana: Id,
}

impl Scene {
    async fn new() -> Self {
        Self::with(discord().await, |_| {}).await
    }

    async fn with(discord: Counterpart, change: impl FnOnce(&mut Options)) -> Self {
        let guild = discord.guild("Home");
        let (general, ana) = (discord.channel(guild, "general"), discord.member(guild, "Ana"));
        let mut client = Client::with(&discord, &Notepad::new(), change);
        client.connect().await;
        client.inbox.until_kind("GUILD_CREATE", 1).await;
        Self { discord, client, general, ana }
    }

    /// Sends a message, and asserts that it is received exactly once.
    async fn assert_receives_once(&self) {
        self.discord.say(self.ana, self.general, "still there?");
        self.client.inbox.until_text("still there?").await;
        assert_eq!(self.client.inbox.texts(), ["still there?"]);
    }

    fn identifies(&self) -> usize {
        self.discord.look(|state| state.journal.identifies.len())
    }

    fn resumes(&self) -> Vec<Resumed> {
        self.discord.look(|state| state.journal.resumes.clone())
    }

    fn ended_by(&self, cause: &str) -> f64 {
        self.client.total("tertulia_discord_reconnects_total", &[("discord_gateway_cause", cause)])
    }
}

#[tokio::test]
async fn a_requested_reconnect_resumes_on_a_new_connection() {
    let scene = Scene::new().await;

    scene.discord.ask_to_reconnect(0);
    scene.discord.resumes(1).await;
    scene.assert_receives_once().await;

    assert_eq!((scene.identifies(), scene.ended_by("asked")), (1, 1.0));
}

#[tokio::test]
async fn a_connection_that_is_cut_repeatedly_is_resumed_at_once_each_time() {
    let scene = Scene::with(discord().await, |options| {
        // With this random value the first pause is zero. Any later pause would outlast the test.
        (options.rng, options.times.pauses, options.times.lasting) = (0.0, 10_000.0, Duration::from_secs(60));
    })
    .await;

    for cut in 1..=6 {
        scene.discord.cut(0);
        scene.discord.say(scene.ana, scene.general, &format!("meanwhile {cut}"));
        scene.discord.resumes(cut).await;
        scene.client.inbox.until_kind("RESUMED", cut).await;
    }

    let expected: Vec<_> = (1..=6).map(|cut| format!("meanwhile {cut}")).collect();
    assert_eq!(scene.client.inbox.texts(), expected);
    assert_eq!((scene.identifies(), scene.ended_by("cut")), (1, 6.0));
}

#[tokio::test]
async fn an_invalid_session_that_can_be_resumed_is_resumed() {
    let scene = Scene::new().await;

    scene.discord.invalidate(0, true);
    scene.discord.resumes(1).await;
    scene.assert_receives_once().await;

    assert_eq!((scene.identifies(), scene.ended_by("invalid_session")), (1, 1.0));
}

#[tokio::test]
async fn an_invalid_session_that_cannot_be_resumed_is_replaced() {
    let scene = Scene::new().await;

    scene.discord.invalidate(0, false);
    scene.client.inbox.until_kind("READY", 2).await;
    scene.assert_receives_once().await;

    assert_eq!((scene.identifies(), scene.resumes().len()), (2, 0));
}

#[tokio::test]
async fn the_close_code_decides_whether_the_session_is_resumed() {
    for (code, resumes) in [(4_000, true), (4_002, true), (4_008, true), (4_007, false), (4_009, false), (1_001, true)] {
        let scene = Scene::new().await;

        scene.discord.close(0, code, "");
        if resumes {
            scene.discord.resumes(1).await;
        } else {
            scene.client.inbox.until_kind("READY", 2).await;
        }
        scene.assert_receives_once().await;

        assert_eq!((scene.resumes().len(), scene.identifies()), if resumes { (1, 1) } else { (0, 2) }, "{code}");
    }
}

#[tokio::test]
async fn a_connection_whose_heartbeats_are_not_acknowledged_is_replaced() {
    let scene = Scene::with(discord_with_fast_heartbeat().await, |_| {}).await;

    scene.discord.stop_acknowledging(0);
    scene.discord.resumes(1).await;
    scene.assert_receives_once().await;

    assert_eq!(scene.identifies(), 1);
    assert!(scene.ended_by("zombie") >= 1.0);
}

#[tokio::test]
async fn unacknowledged_heartbeats_are_noticed_while_events_arrive() {
    let scene = Scene::with(discord_with_fast_heartbeat().await, |_| {}).await;

    scene.discord.stop_acknowledging(0);
    let talking = async {
        loop {
            scene.discord.say(scene.ana, scene.general, "chatter");
            // One message for each heartbeat.
            let acknowledged = |state: &State| {
                let mut sessions = state.gateway.sessions.values();
                sessions.any(|session| session.acknowledged == session.sequence).then_some(())
            };
            scene.discord.until("a heartbeat", acknowledged).await;
        }
    };
    tokio::select! {
        () = talking => {}
        () = scene.discord.resumes(1) => {}
    }

    assert_eq!(scene.identifies(), 1);
    assert!(scene.ended_by("zombie") >= 1.0);
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_replaced() {
    let scene = Scene::with(discord_with_fast_heartbeat().await, |_| {}).await;

    scene.discord.silence(0);
    scene.discord.say(scene.ana, scene.general, "not received at first");
    scene.client.inbox.until_text("not received at first").await;

    assert_eq!(scene.identifies(), 1);
    assert!(scene.ended_by("zombie") >= 1.0);
    assert_eq!(scene.client.inbox.texts(), ["not received at first"]);
}

#[tokio::test]
async fn a_requested_heartbeat_is_sent() {
    let scene =
        Scene::with(Counterpart::with_rules(Rules { heartbeat_interval: Duration::from_secs(3_600), ..rules() }).await, |_| {})
            .await;

    scene.discord.ask_for_heartbeat(0);

    let acknowledged = |state: &State| state.gateway.sessions.values().any(|session| session.acknowledged > 0).then_some(());
    scene.discord.until("a heartbeat", acknowledged).await;
}

#[tokio::test]
async fn a_dead_resume_url_is_abandoned_after_two_attempts() {
    for dead in [Connects::Refused, Connects::Hanging, Connects::Mute] {
        let scene = Scene::with(discord().await, |options| {
            if dead != Connects::Refused {
                options.times.hello = Duration::from_millis(1_500);
            }
        })
        .await;

        scene.discord.set_resume_connects(dead);
        scene.discord.cut(0);
        scene.discord.resumes(1).await;
        scene.assert_receives_once().await;

        let resumed = scene.discord.look(|state| state.journal.connections[state.journal.resumes[0].connection].clone());
        assert!(!resumed.by_resume_url);
        let cause = if dead == Connects::Refused { "unreachable" } else { "silent" };
        assert_eq!(scene.identifies(), 1, "{dead:?}");
        assert!(scene.ended_by(cause) >= 2.0, "{dead:?}");
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_resumed_is_abandoned() {
    let scene = Scene::new().await;

    scene.discord.fail_resumes(1_000, true);
    scene.discord.cut(0);
    scene.client.inbox.until_kind("READY", 2).await;
    scene.assert_receives_once().await;

    let addresses = scene.discord.look(|state| {
        let resumes = state.journal.resumes.iter();
        resumes.map(|resume| state.journal.connections[resume.connection].by_resume_url).collect::<Vec<_>>()
    });
    assert_eq!(addresses, [true, true, false, false]);
    assert_eq!(scene.identifies(), 2);
}

#[tokio::test]
async fn a_session_is_kept_while_the_gateway_is_unreachable() {
    let scene = Scene::new().await;

    scene.discord.set_connects(Connects::Refused);
    scene.discord.set_resume_connects(Connects::Refused);
    scene.discord.cut(0);
    scene.discord.until("attempts", |state| (state.journal.refused_connects >= 8).then_some(())).await;
    let condition = scene.client.gateway.condition();
    scene.discord.set_connects(Connects::Well);
    scene.discord.resumes(1).await;
    scene.assert_receives_once().await;

    assert!(!condition.ready);
    assert!(condition.detail.contains("Discord's gateway cannot be reached"), "{condition:?}");
    assert_eq!(scene.identifies(), 1);
}

#[tokio::test]
async fn a_gateway_that_sends_no_hello_is_tried_again() {
    let discord = discord().await;
    discord.set_connects(Connects::Mute);
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.times.hello = Duration::from_millis(500));
    client.connect().await;
    discord.until("three attempts", |state| (state.journal.connections.len() >= 3).then_some(())).await;

    discord.set_connects(Connects::Well);
    client.inbox.until_kind("READY", 1).await;

    assert_eq!(discord.look(|state| state.journal.identifies.len()), 1);
}

#[tokio::test]
async fn a_gateway_that_starts_no_session_is_tried_again() {
    let discord = discord().await;
    // It acknowledges heartbeats, and sends nothing else.
    discord.with(|state| state.faults.ignored_identifies = 1);
    let mut client = Client::with(&discord, &Notepad::new(), |options| options.times.session = Duration::from_millis(1_500));

    client.connect().await;
    client.inbox.until_kind("READY", 1).await;

    assert!(client.total("tertulia_discord_reconnects_total", &[("discord_gateway_cause", "no_session")]) >= 1.0);
    assert!(client.total("tertulia_discord_identifies_total", &[("discord_gateway_outcome", "failed")]) >= 1.0);
}
