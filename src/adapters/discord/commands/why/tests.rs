use serde_json::{Map, json};

use super::super::choosing::tests::one;
use super::*;
use crate::commands::words::fitted;
use crate::domain::decision::Reason;
use crate::domain::id::Seq;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::ports::backend::room::RoomId;

#[test]
fn every_reason_is_described_without_jargon() {
    for trigger in Trigger::ALL {
        for reason in Reason::ALL {
            let decision = if matches!(reason, Reason::ModelYes | Reason::Event) { "YES" } else { "NO" };

            let line = decision_line(&room(), &record(trigger, decision, reason.as_str())).in_language("en-US");

            assert!(line.starts_with("• <t:1777636800:R> **Aria** "), "{line}");
            assert!(!line.contains(reason.as_str()) || matches!(reason, Reason::Paused | Reason::Budget), "{line}");
            assert!(!line.contains('_'), "{line}");
        }
    }
}

#[test]
fn decisions_are_listed_newest_first_with_what_companions_wait_for() {
    let first = record(Trigger::Lull, "NO", "model_no");
    let mut second = record(Trigger::DirectAddress, "YES", "model_yes");
    second.more = Map::from_iter([("why".to_owned(), json!("They *asked* me @everyone"))]);
    let waiting =
        WaitingFor { text: "Aria thinks *twice*.".into(), messages: Some(9), lull_at: None, retry_at: None, unsettled: 0 };
    let room = room();

    let text = describe(&room, &[(first, None), (second, Some(Text::Plain(verbatim("The *platform* refused it."))))], &[waiting])
        .in_language("en-US");

    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "**What they wait for now**",
            "• Aria thinks \\*twice\\*.",
            "**What was decided here**, the newest first",
            "• <t:1777636800:R> **Aria** decided to speak (it was addressed) – “They \\*asked\\* me \\@everyone”",
            "  – The \\*platform\\* refused it.",
            "• <t:1777636800:R> **Aria** was asked (it was quiet), and stayed silent",
        ]
    );
}

#[test]
fn a_companion_that_lost_the_floor_is_described_so() {
    let mut lost = record(Trigger::Turn, "YES", "model_yes");
    lost.more = Map::from_iter([("floor".to_owned(), json!("lost"))]);

    assert!(
        decision_line(&room(), &lost)
            .in_language("en-US")
            .ends_with("wanted to speak (a companion had spoken), but another companion went first")
    );
    assert!(describe(&room(), &[], &[]).in_language("en-US").contains("Nothing was decided here yet"));
}

#[test]
fn a_role_that_may_not_address_companions_is_named_as_the_reason() {
    let mut restricted = record(Trigger::Lull, "NO", "other_addressed");
    restricted.more = Map::from_iter([("by_role".to_owned(), json!(true))]);

    let line = decision_line(&room(), &restricted).in_language("en-US");

    assert!(line.contains("may not address companions here"), "{line}");
}

#[test]
fn a_long_answer_is_cut_at_a_line() {
    let mut long = record(Trigger::Lull, "NO", "model_no");
    long.more = Map::from_iter([("why".to_owned(), json!("*".repeat(10_000)))]);

    let text = fitted(&describe(&room(), &vec![(long, None); MOST_DECISIONS], &[]).in_language("en-US"));

    assert!(text.chars().count() <= 2_000);
    assert!(text.ends_with("”\n…") || text.ends_with('”'), "{text}");
}

fn record(trigger: Trigger, decision: &str, reason: &str) -> DecisionRecord {
    DecisionRecord {
        seq: Seq(2),
        at: Moment::from_micros(1_777_636_800_000_000).into(),
        room: "discord:3".into(),
        companion: "aria".into(),
        trigger,
        decision: decision.into(),
        reason: reason.into(),
        more: Map::new(),
    }
}

fn room() -> Room {
    let id = RoomId::parse("discord:3").unwrap();
    Room {
        id,
        title: None,
        inherits_from: None,
        guild: "discord:2".into(),
        companions: vec![one("aria", "Aria", &[])],
        minors: false,
        voice_notes: crate::ports::backend::room::VoiceNotes::Off,
        words: Default::default(),
        paused: false,
        last_at: None,
        language: None,
        quiet_hours: None,
    }
}
