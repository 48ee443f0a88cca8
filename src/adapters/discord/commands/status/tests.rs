use twilight_model::channel::ChannelType;
use twilight_model::guild::Permissions;

use super::super::choosing::tests::one;
use super::*;
use crate::ports::backend::room::{RoomId, VoiceNotes};
use crate::settings::companion::ModelChoice;
use crate::snowflake::id;

#[test]
fn a_healthy_channel_says_so() {
    let text = described(&status(), None);

    assert_eq!(
        text,
        "**Who is here**\n• **Aria** speaks up now and then.\n• **Ben** often speaks up. It is paused, and says nothing.\n\
         Voice notes show only their length: their words are not recognised. `/tertulia voice notes switch:on` turns that on.\n\n\
         Everything works: companions can read and speak here."
    );
}

#[test]
fn a_channel_without_companions_explains_how_to_begin() {
    let empty = ChannelStatus { room: None, all: vec![view("aria"), view("ben")], ..status() };
    let direct =
        ChannelStatus { here: ChannelContext { guild: None, kind: Some(ChannelType::Private), ..here() }, ..empty.clone() };

    let text = described(&empty, None);
    assert!(text.starts_with("**No companion is here yet.**\nTo add one: `/tertulia join companion:aria` (you need"), "{text}");
    assert!(text.contains("Available companions: aria and ben."), "{text}");
    assert!(!described(&direct, None).contains("Manage Channels"));
    let unconfigured = ChannelStatus { all: Vec::new(), ..empty };
    assert!(described(&unconfigured, None).contains("The operator of the bot can configure some."));
}

#[test]
fn a_new_thread_lists_the_companions_that_will_join() {
    let thread = ChannelContext { kind: Some(ChannelType::PublicThread), parent: Some(id(30)), ..here() };
    let text = described(&ChannelStatus { here: thread, future_room: status().room, room: None, ..status() }, None);

    assert!(text.starts_with("**Who is here**: those of <#30>, as soon as somebody says something in this thread"), "{text}");
    assert!(text.contains("**Aria**"), "{text}");
}

#[test]
fn every_problem_is_listed_with_what_to_do() {
    let here = ChannelContext { bot_permissions: Some(Permissions::VIEW_CHANNEL), ..here() };
    let delivery_error = DeliveryError {
        at: Moment::from_micros(1_777_636_800_000_000),
        why: "The channel has 15 webhooks.".into(),
        retry_at: None,
    };
    let until = |quarantined| Some((quarantined, Moment::from_micros(1_777_636_900_000_000)));
    let cases: [(ChannelStatus, &[&str]); 9] = [
        (
            ChannelStatus { quarantined_until: until(Quarantined::Server), ..status() },
            &["Problems", "Companions of this server are stopped after repeated failures. They try again <t:1777636900:R>;"],
        ),
        (
            ChannelStatus { quarantined_until: until(Quarantined::Channel), ..status() },
            &["Problems", "Companions of this channel are stopped after repeated failures. They try again <t:1777636900:R>;"],
        ),
        (
            ChannelStatus { missing: here.missing(), ..status() },
            &["Problems", "allow Manage Webhooks", "allow Read Message History"],
        ),
        (ChannelStatus { missing: Some(vec![Need::Send]), ..status() }, &["with restrictions", "allow Send Messages"]),
        (ChannelStatus { reads_all: Some(false), ..status() }, &["with restrictions", "Message Content Intent"]),
        (ChannelStatus { delivery_error: Some(delivery_error), ..status() }, &["Problems", "<t:1777636800:R>", "15 webhooks"]),
        (ChannelStatus { store_is_ready: false, ..status() }, &["Problems", "cannot be stored"]),
        (ChannelStatus { models_are_ready: false, ..status() }, &["Problems", "does not answer at the moment"]),
        (ChannelStatus { is_opted_out: true, ..status() }, &["Everything works", "/tertulia ignore me switch:off"]),
    ];

    for (status, expected) in cases {
        let text = described(&status, None);
        for expected in expected {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
    let unknown = ChannelStatus { missing: None, ..status() };
    assert!(described(&unknown, None).contains("No problem is known."));
}

#[test]
fn the_status_of_one_companion_can_be_requested() {
    let text = described(&status(), Some("BEN"));
    assert!(text.contains("**Ben**") && !text.contains("**Aria**"), "{text}");

    let Err(Answer::Refused(text)) = describe(&status(), Some("zed")) else { panic!("zed is not there") };
    assert_eq!(text.in_language("en-US"), "“zed” is not in this channel. In this channel: Aria and Ben.");
}

#[test]
fn a_companion_that_ended_the_conversation_says_when_it_returns() {
    for (stage, expected) in [
        (Stage::None, "speaks up now and then."),
        (Stage::PreClosing, "drawing to a close for it."),
        (Stage::Closing, "saying goodbye."),
        (Stage::Terminal, "comes back when it is named or after 2 more messages."),
    ] {
        let state = CompanionState { closing: stage, heard_closed: 7, ..state() };

        let line = companion(&member_named("aria", "Aria", "average", false), Some(&state)).in_language("en-US");

        assert!(line.ends_with(expected), "{line}");
    }
}

#[test]
fn companions_over_the_limit_are_counted() {
    let many = (0..40).map(|number| member_named(&format!("c{number}"), &"ü".repeat(60), "average", false)).collect();
    let crowded = ChannelStatus { room: Some(Room { companions: many, ..status().room.unwrap() }), ..status() };

    let text = described(&crowded, None);

    assert!(text.contains("• and 28 more") && text.chars().count() < 2_000, "{text}");
}

fn described(status: &ChannelStatus, typed: Option<&str>) -> String {
    describe(status, typed).unwrap().in_language("en-US")
}

fn status() -> ChannelStatus {
    let companions = vec![member_named("aria", "Aria", "average", false), member_named("ben", "Ben", "eager", true)];
    let id = RoomId::parse("discord:3").unwrap();
    ChannelStatus {
        here: here(),
        room: Some(Room {
            language: None,
            quiet_hours: None,
            id,
            title: None,
            inherits_from: None,
            guild: "discord:2".into(),
            companions,
            minors: false,
            voice_notes: VoiceNotes::Off,
            words: Default::default(),
            paused: false,
            last_at: None,
        }),
        state: None,
        future_room: None,
        all: Vec::new(),
        missing: here().missing(),
        reads_all: Some(true),
        delivery_error: None,
        store_is_ready: true,
        models_are_ready: true,
        quarantined_until: None,
        is_opted_out: false,
    }
}

fn here() -> ChannelContext {
    ChannelContext {
        channel: id(3),
        guild: Some(id(2)),
        kind: Some(ChannelType::GuildText),
        parent: None,
        is_locked: false,
        user_permissions: Permissions::empty(),
        bot_permissions: Some(Permissions::all()),
    }
}

fn member_named(id: &str, name: &str, tier: &str, paused: bool) -> RoomCompanion {
    RoomCompanion { interjection: tier.into(), paused, ..one(id, name, &[]) }
}

fn view(id: &str) -> CompanionView {
    CompanionView {
        ai: true,
        id: id.into(),
        name: id.into(),
        aliases: Vec::new(),
        interjection: "average".into(),
        chattiness: "".into(),
        text_lull_timeout: 10.0,
        voice_lull_timeout: 5.0,
        quiet_hours: crate::settings::companion::QuietHours::Never,
        starts_after: None,
        max_turns: None,
        repetition: true,
        model: ModelChoice::default(),
        picture: None,
        greets: false,
        guild: None,
        public_picture: None,
    }
}

fn state() -> CompanionState {
    CompanionState {
        id: "aria".into(),
        name: "Aria".into(),
        interjection: "average".into(),
        lull_secs: 10.0,
        reopen_after: 9,
        repetition: true,
        ..CompanionState::default()
    }
}
