//! Messages that are read after a downtime.

use super::*;
use crate::domain::event::Gap;
use crate::ports::backend::keeping::ExportForm;
use crate::replay::Script;

fn missed(before: &str) -> Option<Gap> {
    Some(Gap { after: "100".into(), before: before.into(), why: "too_many".into() })
}

#[tokio::test(start_paused = true)]
async fn a_catch_up_is_on_record_with_what_is_missing() {
    let world = world().await;

    inbound_events(&world).caught_up(&general(), 0, None).await.unwrap();
    inbound_events(&world).caught_up(&general(), 12, None).await.unwrap();
    inbound_events(&world).caught_up(&general(), 500, missed("200")).await.unwrap();
    inbound_events(&world).caught_up(&general(), 3, missed("200")).await.unwrap();
    let world = world.crash().await;
    inbound_events(&world).caught_up(&general(), 0, missed("200")).await.unwrap();
    inbound_events(&world).caught_up(&general(), 0, missed("300")).await.unwrap();

    let catch_ups = world.recorded("discord:10", "caught_up").await;
    let catch_ups: Vec<_> = catch_ups.iter().map(|event| json!([event["read"], event["missed"]])).collect();
    let gap = |before: &str| json!({ "after": "100", "before": before, "why": "too_many" });
    assert_eq!(catch_ups, [json!([12, null]), json!([500, gap("200")]), json!([0, gap("300")])]);
}

#[tokio::test(start_paused = true)]
async fn a_catch_up_fires_no_timer_and_lets_channels_sleep() {
    let world = world().await;
    say(&world, "1", "hello").await;
    world.pass(60.0).await;
    let asked = world.side.asked.lock().len();
    let decided = world.decisions("discord:10").await.len();

    inbound_events(&world).caught_up(&general(), 2, missed("200")).await.unwrap();
    world.pass(1_000.0).await;

    assert_eq!(world.side.asked.lock().len(), asked);
    assert_eq!(world.decisions("discord:10").await.len(), decided);
    assert_eq!(world.reader().head(&channel_key(&general())).await.unwrap().pending, None);
}

#[tokio::test(start_paused = true)]
async fn a_catch_up_is_in_the_export_and_a_script_names_what_it_lacks() {
    let world = world().await;
    say(&world, "1", "hello").await;
    inbound_events(&world).caught_up(&general(), 2, missed("200")).await.unwrap();

    let json = world.export("discord:10", ExportForm::Json).await;
    let replay = world.export("discord:10", ExportForm::Replay).await;

    assert!(json.iter().any(|line| line.contains(r#""event":"caught_up""#) && line.contains(r#""too_many""#)), "{json:?}");
    Script::from_json(&replay[0]).unwrap();
    assert!(replay[0].contains("1 gap: "), "{replay:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_of_yesterday_are_not_answered_and_are_in_the_history_with_their_time() {
    let world = world().await;
    let yesterday = world.context.clock.now() - Duration::from_secs(86_400);
    for number in 0..30 {
        let at = yesterday + Duration::from_secs(number);
        let text = if number % 10 == 0 { "Ari?" } else { "and so on" };
        say_in(&world, &general(), InboundMessage { said_at: Some(at), ..ana(&world, &number.to_string(), text) }).await;
    }

    world.pass(60.0).await;

    assert_eq!(world.side.asked.lock().len(), 0);
    let decisions = world.decisions("discord:10").await;
    assert!(decisions.iter().all(|decision| decision["reason"] == "stale"), "{decisions:?}");
    assert_eq!(decisions.len(), 2 * 30);
    let history = world.try_history("discord:10").await.unwrap().messages;
    assert_eq!(history.len(), 30);
    assert_eq!(history[7].at, (yesterday + Duration::from_secs(7)).into());
}

#[tokio::test(start_paused = true)]
async fn messages_missed_for_a_few_minutes_are_answered() {
    let world = world().await;
    let at = world.context.clock.now() - Duration::from_secs(300);
    say_in(&world, &general(), InboundMessage { said_at: Some(at), ..ana(&world, "1", "Ari?") }).await;

    world.pass(5.0).await;

    assert_eq!(world.side.asked_for("aria"), 1);
}

#[tokio::test(start_paused = true)]
async fn no_message_has_a_time_in_the_future() {
    let world = world().await;
    let now = world.context.clock.now();
    let at = now + Duration::from_secs(3_600);

    say_in(&world, &general(), InboundMessage { said_at: Some(at), ..ana(&world, "1", "hello") }).await;

    let at = world.try_history("discord:10").await.unwrap().messages[0].at;
    assert!(at <= world.context.clock.now().into(), "{at:?}");
}
