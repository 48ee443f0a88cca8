use super::*;
use crate::adapters::discord::permissions::Permissions;
use crate::ports::backend::room::RoomId;

#[test]
fn a_channel_in_which_all_is_well_says_so() {
    let text = told(&standing(), None).unwrap();

    assert_eq!(
        text,
        "**Who is here**\n• **Aria** speaks up now and then.\n• **Ben** often speaks up, but is paused: it says nothing.\n\n\
         Everything is in place: companions can hear and speak here."
    );
}

#[test]
fn a_channel_where_nobody_lives_says_how_to_begin() {
    let empty = Standing { room: None, all: vec![view("aria"), view("ben")], ..standing() };
    let direct = Standing { here: Where { guild: None, kind: Some(1), ..here() }, ..empty.clone() };

    let text = told(&empty, None).unwrap();
    assert!(
        text.starts_with("**Nobody lives here yet.**\nTo let somebody in: `/tertulia join companion:aria` (you need"),
        "{text}"
    );
    assert!(text.contains("There are: aria and ben."), "{text}");
    assert!(!told(&direct, None).unwrap().contains("Manage Channels"));
    let nobody = Standing { all: Vec::new(), ..empty };
    assert!(told(&nobody, None).unwrap().contains("Whoever runs the bot can set some up."));
}

#[test]
fn a_thread_tells_who_comes_along() {
    let thread = Where { kind: Some(11), parent: Snowflake::new(30), ..here() };
    let text = told(&Standing { here: thread, would_be: standing().room, room: None, ..standing() }, None).unwrap();

    assert!(text.starts_with("**Who is here**: those of <#30>, as soon as somebody says something in this thread"), "{text}");
    assert!(text.contains("**Aria**"), "{text}");
}

#[test]
fn whatever_is_in_the_way_is_told_with_what_to_do() {
    let here = Where { ours: Some(Permissions::VIEW_CHANNEL), ..here() };
    let trouble = DeliveryError {
        at: Moment::from_micros(1_777_636_800_000_000),
        why: "The channel has 15 webhooks.".into(),
        retry_at: None,
    };
    let rests = |what| Some((what, Moment::from_micros(1_777_636_900_000_000)));
    let cases: [(Standing, &[&str]); 9] = [
        (
            Standing { rests_until: rests("server"), ..standing() },
            &["In the way", "this server from going on. They try again <t:1777636900:R>;"],
        ),
        (
            Standing { rests_until: rests("channel"), ..standing() },
            &["In the way", "this channel from going on. They try again <t:1777636900:R>;"],
        ),
        (
            Standing { missing: here.missing(), ..standing() },
            &["In the way", "allow Manage Webhooks", "allow Read Message History"],
        ),
        (Standing { missing: Some(vec![Need::Send]), ..standing() }, &["not everything does", "allow Send Messages"]),
        (Standing { reads_all: Some(false), ..standing() }, &["not everything does", "Message Content Intent"]),
        (Standing { trouble: Some(trouble), ..standing() }, &["In the way", "<t:1777636800:R>", "15 webhooks"]),
        (Standing { is_kept: false, ..standing() }, &["In the way", "cannot be taken in"]),
        (Standing { is_answered: false, ..standing() }, &["In the way", "does not answer at the moment"]),
        (Standing { is_ignored: true, ..standing() }, &["Everything is in place", "/tertulia ignore me switch:off"]),
    ];

    for (standing, expected) in cases {
        let text = told(&standing, None).unwrap();
        for expected in expected {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
    let unknown = Standing { missing: None, ..standing() };
    assert!(told(&unknown, None).unwrap().contains("Nothing is known to be in the way."));
}

#[test]
fn one_companion_alone_can_be_asked_for() {
    let text = told(&standing(), Some("BEN")).unwrap();
    assert!(text.contains("**Ben**") && !text.contains("**Aria**"), "{text}");

    let Err(Said::Refused(text)) = told(&standing(), Some("zed")) else { panic!("zed is not there") };
    assert_eq!(text, "“zed” is not in this channel. Who is: Aria and Ben.");
}

#[test]
fn whoever_ended_the_conversation_says_when_it_comes_back() {
    for (stage, expected) in [
        (Stage::None, "speaks up now and then."),
        (Stage::PreClosing, "drawing to a close for it."),
        (Stage::Closing, "saying goodbye."),
        (Stage::Terminal, "comes back when it is named or after 2 more messages."),
    ] {
        let state = CompanionState { closing: stage, heard_closed: 7, ..state() };

        let line = companion(&resident_of("aria", "Aria", "average", false), Some(&state));

        assert!(line.ends_with(expected), "{line}");
    }
}

#[test]
fn more_companions_than_can_be_told_of_are_counted() {
    let many = (0..40).map(|number| resident_of(&format!("c{number}"), &"ü".repeat(60), "average", false)).collect();
    let crowded = Standing { room: Some(Room { companions: many, ..standing().room.unwrap() }), ..standing() };

    let text = told(&crowded, None).unwrap();

    assert!(text.contains("• and 28 more") && text.chars().count() < 2_000, "{text}");
}

fn standing() -> Standing {
    let companions = vec![resident_of("aria", "Aria", "average", false), resident_of("ben", "Ben", "eager", true)];
    let id = RoomId::parse("discord:3").unwrap();
    Standing {
        here: here(),
        room: Some(Room {
            id,
            title: None,
            inherits_from: None,
            guild: "discord:2".into(),
            companions,
            paused: false,
            last_at: None,
        }),
        state: None,
        would_be: None,
        all: Vec::new(),
        missing: here().missing(),
        reads_all: Some(true),
        trouble: None,
        is_kept: true,
        is_answered: true,
        rests_until: None,
        is_ignored: false,
    }
}

fn here() -> Where {
    Where {
        channel: Snowflake::new(3).unwrap(),
        guild: Snowflake::new(2),
        kind: Some(0),
        parent: None,
        is_locked: false,
        theirs: Permissions::NONE,
        ours: Some(Permissions::ALL),
    }
}

fn resident_of(id: &str, name: &str, tier: &str, paused: bool) -> RoomCompanion {
    let aliases = Vec::new();
    RoomCompanion { id: id.into(), name: name.into(), aliases, external: false, interjection: tier.into(), paused }
}

fn view(id: &str) -> CompanionView {
    CompanionView {
        id: id.into(),
        name: id.into(),
        aliases: Vec::new(),
        interjection: "average".into(),
        chattiness: "".into(),
        text_lull_timeout: 10.0,
        voice_lull_timeout: 5.0,
    }
}

fn state() -> CompanionState {
    CompanionState {
        id: "aria".into(),
        name: "Aria".into(),
        interjection: "average".into(),
        buffer: Vec::new(),
        message_count: 0,
        check_count: 0,
        next_interjection_at: None,
        lull_at: None,
        lull_secs: 10.0,
        doing: crate::ports::backend::state::Doing::Listening,
        trigger: None,
        since: None,
        retry_at: None,
        paused: false,
        closing: Stage::None,
        heard_closed: 0,
        reopen_after: 9,
        external: false,
    }
}
