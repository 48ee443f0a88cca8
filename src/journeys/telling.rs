//! People are told that companions are AI: whom, with which answer, and again when (docs/design/safety.md).

use std::sync::Arc;

use futures_util::StreamExt as _;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::calling;
use super::retaining::left_of;
use super::world::{World, lines, room};
use crate::actors::erasure::retention;
use crate::actors::membership::opt_out::OptOutService;
use crate::domain::moment::Moment;
use crate::ports::backend::guest_service::{Ends, NewInvitation};
use crate::ports::backend::keeping::{ExportForm, Person};
use crate::ports::backend::usage::UsageQuery;
use crate::ports::chat_platform::fake::{FakePlatform, Fate};
use crate::ports::chat_platform::{NotRead, NotSent};
use crate::ports::opt_out::OptOut as _;
use crate::samples::lobby;

const LOBBY: &str = "lobby";
const NOTICE: &str =
    "Companions here are AI, not people. This server is run by The Club. Privacy: <https://club.example/privacy>";

/// Settings of a server that other machines reach.
fn public(notice: &str) -> Value {
    let safety = json!({ "notice": notice, "operator": "The Club", "privacy": "https://club.example/privacy" });
    json!({ "server": { "listen": "0.0.0.0:7878", "admin_token": "a-token-that-nobody-guesses" }, "safety": safety })
}

impl World {
    /// Somebody says something to Aria, and she answers.
    async fn tell(&self, from: &str) {
        self.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
        self.say_with(LOBBY, json!({ "from": from, "text": "Ari, one" })).await;
        self.pass(60.0).await;
    }

    /// Why people were told, and whom, each time.
    async fn told(&self) -> Vec<(String, Vec<String>)> {
        let told = self.recorded(LOBBY, "disclosed").await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let people = |told: &Value| told["people"].as_array().into_iter().flatten().map(text).collect();
        told.iter().map(|told| (text(&told["occasion"]), people(told))).collect()
    }
}

fn told(all: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
    all.iter().map(|(occasion, person)| ((*occasion).to_owned(), vec![(*person).to_owned()])).collect()
}

#[tokio::test(start_paused = true)]
async fn each_person_is_told_once_with_the_first_answer_also_after_a_restart() {
    let world = World::with_lobby_settings(public("once")).await;

    world.tell("Ana").await;
    world.tell("Ana").await;
    let world = world.crash().await;
    world.tell("Ana").await;
    world.tell("Ben").await;

    assert_eq!(world.told().await, told(&[("first", "Ana"), ("first", "Ben")]));
    let events: Vec<Value> =
        world.export(LOBBY, ExportForm::Json).await.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = events.iter().position(|event| event["event"] == "disclosed").unwrap();
    assert_eq!(
        (&events[at - 1]["event"], &events[at - 1]["reply"]),
        (&json!("said"), &events[at]["ticket"]),
        "the answer that carried it"
    );
    let asked = world.main.asked.lock();
    assert!(asked.iter().all(|request| !format!("{request:?}").contains("Companions here are AI")), "no model reads it");
}

#[tokio::test(start_paused = true)]
async fn the_operator_of_a_console_of_this_machine_is_not_told_and_a_guest_is() {
    let world = World::with_lobby().await;
    world.tell("Ana").await;
    let (_, secret) = world
        .backend
        .guests
        .invite(&room(LOBBY), NewInvitation { ends: Ends::Day, most_guests: 5, knows_before: true })
        .await
        .unwrap();
    world.backend.guests.join(secret.expose_secret(), "Ben".into(), &[]).await.unwrap();

    world.tell("Ben").await;
    world.tell("Ana").await;

    assert_eq!(world.told().await, told(&[("first", "Ben")]));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_where_that_is_off() {
    let world = World::with_lobby_settings(public("off")).await;

    world.tell("Ana").await;

    assert_eq!(world.told().await, []);
}

#[tokio::test(start_paused = true)]
async fn daily_is_told_again_after_three_hours_and_on_the_next_day_also_over_restarts() {
    let mut world = World::with_lobby_settings(public("daily")).await;
    for hours in [0, 2, 2, 9, 1] {
        world.set_clock(hours * 3_600);
        world = world.crash().await;
        world.tell("Ana").await;
    }

    // At noon, at two, four, one in the night, and two.
    assert_eq!(world.told().await, told(&[("first", "Ana"), ("interval", "Ana"), ("day", "Ana")]));
}

#[tokio::test(start_paused = true)]
async fn who_is_forgotten_or_comes_back_after_opting_out_is_told_again() {
    let world = World::with_lobby_settings(public("once")).await;
    world.tell("Ana").await;

    world.forget("Ana", false).await.unwrap();
    assert_eq!(world.told().await, [("first".to_owned(), Vec::new())], "who it was is forgotten");
    world.tell("Ana").await;
    let opt_outs = OptOutService::new(world.context.clone());
    opt_outs.ignore(&lobby().guild, &"Ana".into(), true).await.unwrap();
    opt_outs.ignore(&lobby().guild, &"Ana".into(), false).await.unwrap();
    let world = world.crash().await;
    world.tell("Ana").await;

    assert_eq!(world.told().await[1..], told(&[("first", "Ana"), ("first", "Ana")]));
}

#[tokio::test(start_paused = true)]
async fn a_platform_posts_the_notice_with_the_last_part_and_it_is_not_among_the_words() {
    let (platform, world) = on_platform().await;
    platform.takes_at_most(NOTICE.len() + 32);
    world.main.answers([Ok("First comes a sentence. Then there is another one."), Ok("Again.")]);

    world.tell("Ana").await;
    world.tell("Ana").await;

    assert_eq!(platform.notices(), [None, Some(NOTICE.into()), None]);
    let parts = ["First comes a sentence.", "Then there is another one.", "Again."];
    assert_eq!(platform.posted(), lines(&parts.map(|text| ("Aria", text))));
    assert_eq!(world.told().await, told(&[("first", "Ana")]));
    let export = world.export(LOBBY, ExportForm::Json).await;
    assert!(export.iter().any(|line| line.contains(r#""event":"disclosed""#) && line.contains(r#""part":"2""#)), "{export:?}");
}

#[tokio::test(start_paused = true)]
async fn a_notice_whose_part_is_unconfirmed_or_refused_is_due_again() {
    let (platform, world) = on_platform().await;
    platform.will([Fate::Silent]);
    platform.hides(NotRead::Never("no permission".into()));
    world.tell("Ana").await;
    platform.will([Fate::Fails(NotSent::Refused("no".into()))]);
    world.tell("Ana").await;
    assert_eq!(world.told().await, []);

    world.tell("Ana").await;

    assert_eq!(platform.notices(), [Some(NOTICE.into()), Some(NOTICE.into())]);
    assert_eq!(world.told().await, told(&[("first", "Ana")]));
}

#[tokio::test(start_paused = true)]
async fn a_notice_survives_a_crash_while_its_part_is_posted() {
    let (platform, world) = on_platform().await;
    platform.will([Fate::Hangs]);
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.say_with(LOBBY, json!({ "from": "Ana", "text": "Ari, one" })).await;
    world.pass(5.0).await;
    assert_eq!((platform.notices(), world.told().await), (vec![Some(NOTICE.into())], Vec::new()));

    let world = world.crash().await;
    world.pass(60.0).await;

    assert_eq!(platform.notices(), [Some(NOTICE.into())], "it was found");
    assert_eq!(world.told().await, told(&[("first", "Ana")]));
}

#[tokio::test(start_paused = true)]
async fn in_a_call_of_a_platform_the_notice_is_a_message_of_its_own_and_hourly_where_there_are_minors() {
    let (platform, world) = on_platform().await;
    world.patch(LOBBY, json!({ "minors": true })).await.unwrap();
    world.side.answer_by(|_| Some(Ok("Yes.\nYES".to_owned())));
    calling::play_aloud(&world, Default::default());
    calling::join(&world, LOBBY, "Ana").await;
    let speak = async |text: &str| {
        calling::says_in(&world, LOBBY, "Ana", text).await;
        world.pass(60.0).await;
        world.told().await.len()
    };

    let mut times = vec![speak("Ari, one").await];
    platform.will([Fate::Fails(NotSent::Unpostable("no permission".into()))]);
    for (secs, text) in [(3_300.0, "Ari, two"), (200.0, "Ari, three"), (0.0, "Ari, four")] {
        world.pass(secs).await;
        times.push(speak(text).await);
    }

    assert_eq!(times, [1, 1, 1, 2], "the third answer's notice is refused, and due with the next one");
    assert_eq!((platform.posted(), platform.notices()), (lines(&[("Aria", ""); 2]), vec![Some(NOTICE.into()); 2]));
    assert_eq!(world.told().await, told(&[("first", "Ana"), ("interval", "Ana")]));
    let events = world.export(LOBBY, ExportForm::Json).await;
    let events: Vec<Value> = events.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<_> = events.iter().filter(|event| event["event"] == "said" && event["reply"].is_number()).collect();
    assert!(said.len() == 4 && said.iter().all(|said| said["message"]["modality"] == "voice"), "{said:?}");
    assert!(said.iter().all(|said| said["message"].get("id").is_none()), "the notice is no part of them: {said:?}");
    let parts = events.iter().filter(|event| event["event"] == "disclosed").map(|event| &event["part"]);
    assert_eq!(parts.collect::<Vec<_>>(), ["1", "2"]);
}

async fn on_platform() -> (Arc<FakePlatform>, World) {
    let platform = Arc::<FakePlatform>::default();
    let world = World::with_platform_settings(platform.clone(), public("once")).await;
    (platform, world)
}

#[tokio::test(start_paused = true)]
async fn a_notice_stays_with_the_statement_that_takes_the_place_of_its_own() {
    for is_on_platform in [false, true] {
        let (platform, world) = match is_on_platform {
            true => on_platform().await,
            false => (Arc::default(), World::with_lobby_settings(public("once")).await),
        };
        let newest = async || world.try_history(LOBBY).await.unwrap().messages.pop().unwrap();
        world.tell("Ana").await;
        for step in ["replaced", "continued", "chosen"] {
            let (lobby, statement, messages) = (room(LOBBY), newest().await.seq, &world.backend.messages);
            match step {
                "replaced" => messages.answer_again(&lobby, statement, false, None).await.unwrap(),
                "continued" => messages.answer_again(&lobby, statement, true, None).await.unwrap(),
                _ => messages.stand(&lobby, statement, 0).await.unwrap(),
            }
            world.main.answers([Ok("And more of it.")]);
            world.pass(60.0).await;

            assert!(newest().await.notice.is_some(), "{step}");
            assert!(!is_on_platform || platform.notices() == [Some(NOTICE.into())], "{step}: {:?}", platform.notices());
        }
        world.tell("Ana").await;

        assert!(newest().await.notice.is_none());
        let figures = world.backend.records.safety_figures(UsageQuery::default()).await.unwrap();
        assert_eq!(json!(figures)["total"]["told"]["first"], 1, "it is one notification");
        let history = world.try_history(LOBBY).await.unwrap();
        assert_eq!((history.messages.len(), history.deleted), (4, Vec::new()), "nothing is said of what was replaced");
    }
}

#[tokio::test(start_paused = true)]
async fn figures_are_counted_by_month_and_outlive_what_they_count() {
    let world = World::with_lobby_settings(public("once")).await;
    world.open("den", &["aria", "bruno"]).await;
    world.tell("Ana").await;
    world.tell("Ben").await;
    world.say_with("den", json!({ "from": "Ana", "text": "Ari, Bruno, I want to die" })).await;
    world.pass(60.0).await;
    assert_eq!(world.recorded("den", "help").await.len(), 2, "each companion decides");
    let figures = async || {
        let query = |guild: &str| UsageQuery { guild: Some(guild.into()), ..UsageQuery::default() };
        let all = world.backend.records.safety_figures(UsageQuery::default()).await.unwrap();
        assert_eq!(world.backend.records.safety_figures(query("home")).await.unwrap(), all);
        json!(all)
    };
    let before = figures().await;
    let (helped, numbered) = (r#""what":"help""#, r#""what":"help","message""#);
    assert_eq!(left_of(numbered, &world).await, 2);

    world.forget("Ana", false).await.unwrap();
    assert_eq!((left_of(helped, &world).await, left_of(numbered, &world).await), (1, 0), "which message it was is erased");
    retention::pass_older(&world.context, &|_| Some(Moment::from_micros(u64::MAX))).await;

    let sums = json!({ "told": { "first": 2, "day": 0, "interval": 0 }, "helped": 1, "refused": 0 });
    assert_eq!((&before["total"], before["months"].as_array().map(Vec::len)), (&sums, Some(1)), "{before}");
    assert_eq!((&before["months"][0]["guild"], &before["months"][0]["month"]), (&json!("home"), &before["to"]));
    assert_eq!(figures().await, before);
    assert_eq!(world.recorded(LOBBY, "disclosed").await, [Value::Null; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_export_of_a_person_says_what_else_is_kept() {
    let world = World::with_lobby_settings(public("once")).await;
    let opt_outs = OptOutService::new(world.context.clone());
    let exported = async |id: &str| {
        let lines = world.backend.records.export_person(Person { guild: "home".into(), id: id.into() }).await.unwrap();
        let lines: Vec<String> = lines.map(Result::unwrap).collect().await;
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    world.tell("Ana").await;
    opt_outs.ignore(&"home".into(), &"Zoe".into(), true).await.unwrap();

    let (ana, zoe) = (exported("Ana").await, exported("Zoe").await);

    let [known, said] = &ana[..] else { panic!("{ana:?}") };
    assert!(known["told_at"].is_string() && known["opted_out"] == false, "{known}");
    assert_eq!(said["message"]["text"], "Ari, one");
    let [known] = &zoe[..] else { panic!("{zoe:?}") };
    assert_eq!((&known["person"], &known["told_at"], &known["opted_out"]), (&json!("Zoe"), &Value::Null, &json!(true)));
}
