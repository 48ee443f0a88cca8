use super::built_in::Poll;
use super::*;
use crate::samples;

/// The people of the table: what was found about each, and whether a role of the tool is among the person's.
fn standing(who: &Who) -> Standing {
    let roles = |roles: &[&str]| Some(roles.iter().map(|role| Arc::from(*role)).collect());
    match who.person.as_str() {
        "op" => Standing { is_operator: true, roles: None },
        "mod" => Standing { is_operator: false, roles: roles(&["7", "9"]) },
        "ana" => Standing { is_operator: false, roles: roles(&["9"]) },
        _ => Standing::default(),
    }
}

fn message(by: &str) -> Message {
    let role = match by {
        "ben" => Role::Companion,
        "bot" => Role::Bot,
        _ => Role::Person,
    };
    let mut message = samples::message(samples::author(by, role), "words");
    message.kind = (by == "raid").then(|| "raid".into());
    message
}

/// A trigger, the place of the address, the authors, and who is the cause.
type Case<'a> = (Trigger, Option<usize>, &'a [&'a str], Option<&'a str>);

/// Whether a reply may call a tool, by the text of the specification and not by its code: `yes`, `ask` for a confirmation, `no`.
fn expected(
    by: Option<&str>,
    authors: &[&str],
    allow: Allow,
    confirm: Confirm,
    changes: bool,
    has_external_answer: bool,
) -> &'static str {
    let rank = |who: &str| match who {
        "op" => 3,
        "mod" => 2,
        _ => 1,
    };
    let is_person = |who: &&str| ["op", "mod", "ana", "label"].contains(who);
    let needed = match allow {
        Allow::Everyone => 0,
        Allow::Roles => 2,
        Allow::Operators => 3,
        Allow::Nobody => return "no",
    };
    let Some(by) = by else {
        return match (changes, needed, confirm) {
            (false, 0, Confirm::Never) => "yes",
            (false, 0, Confirm::Always) => "ask",
            _ => "no",
        };
    };
    if changes && has_external_answer || rank(by) < needed {
        return "no";
    }
    let is_weak = |who: &&str| !is_person(who) || rank(who) < needed;
    match confirm {
        Confirm::Always => "ask",
        Confirm::Never if needed > 0 && authors.iter().any(is_weak) => "no",
        Confirm::Never => "yes",
    }
}

#[test]
fn the_right_of_a_call_is_that_of_the_cause_and_of_the_weakest_author() {
    // The trigger, the number of the message that is its address, the authors of the answered messages, and the cause by the specification.
    let causes: [Case<'_>; 14] = [
        (Trigger::DirectAddress, Some(0), &["op"], Some("op")),
        (Trigger::DirectAddress, Some(0), &["ana"], Some("ana")),
        (Trigger::DirectAddress, Some(1), &["ana", "op"], Some("op")),
        (Trigger::DirectAddress, Some(1), &["op", "ana"], Some("ana")),
        (Trigger::DirectAddress, Some(1), &["ben", "mod"], Some("mod")),
        (Trigger::DirectAddress, Some(0), &["bot", "op"], None),
        (Trigger::DirectAddress, Some(0), &["label"], Some("label")),
        (Trigger::Lull, None, &["op", "op"], Some("op")),
        (Trigger::Lull, None, &["op", "ana"], None),
        (Trigger::Turn, None, &["ben"], None),
        (Trigger::Turn, None, &["mod", "ben"], None),
        (Trigger::Interjection, None, &["mod"], Some("mod")),
        (Trigger::Event, None, &["raid"], None),
        (Trigger::Silence, None, &[], None),
    ];
    let mut rows = 0;
    for (trigger, address, authors, by) in causes {
        let messages: Vec<_> = authors.iter().map(|by| message(by)).collect();
        let numbered = messages.iter().enumerate().map(|(index, message)| (Seq(index as u64), Some(message)));
        let cause = Cause::of(trigger, address.map(|index| Seq(index as u64)), numbered);
        assert_eq!(cause.by.as_ref().map(|who| who.person.as_str()), by, "{trigger} {authors:?}");
        for allow in Allow::ALL {
            for confirm in Confirm::ALL {
                for effect in Effect::ALL {
                    for has_external_answer in [false, true] {
                        let right = Right { allow, roles: vec!["7".into()], approvers: Vec::new(), confirm, guilds: None };
                        let offered = Offered { name: "it".into(), effect, is_external: true, right, version: "".into() };
                        let found = match permission(&offered, &cause, has_external_answer, standing) {
                            Ok(true) => "ask",
                            Ok(false) => "yes",
                            Err(_) => "no",
                        };
                        let changes = effect != Effect::ReadOnly;
                        let wanted = expected(by, authors, allow, confirm, changes, has_external_answer);
                        assert_eq!(
                            found, wanted,
                            "{trigger} {address:?} {authors:?} {allow} {confirm} {effect} {has_external_answer}"
                        );
                        rows += 1;
                    }
                }
            }
        }
    }
    assert_eq!(rows, 14 * 4 * 2 * 3 * 2);
}

#[test]
fn only_the_cause_an_approver_or_an_operator_confirms() {
    let who = |person: &str, sender| Who { person: person.into(), sender };
    let right = |approvers: Option<Vec<Arc<str>>>| {
        RightSetting { approvers, ..RightSetting::default() }.or(Effect::Outside.usual_right())
    };
    let cause = who("ana", Some(Sender::Guest));
    let may = |right: &Right, by: &Who| may_confirm(right, Some(&cause), by, &standing(by));

    let usual = right(None);
    let of_role = right(Some(vec!["7".into()]));

    assert!(may(&usual, &cause) && may(&usual, &who("op", None)));
    assert!(!may(&usual, &who("ana", None)), "a label with the name of a guest");
    assert!(!may(&usual, &who("mod", None)));
    assert!(may(&of_role, &who("mod", None)) && may(&of_role, &who("op", None)) && !may(&of_role, &cause));
    assert!(!may_confirm(&usual, None, &cause, &standing(&cause)), "a cause that was forgotten");
}

#[test]
fn who_deletes_a_message_while_the_model_writes_gains_no_right() {
    let [ana, gus] = ["ana", "gus"].map(|person| Who { person: person.into(), sender: None });
    let of = |by: Option<&Who>, authors: &[&Who]| Cause {
        by: by.cloned(),
        authors: authors.iter().map(|who| Some((*who).clone())).collect(),
    };
    let standing = |who: &Who| Standing { is_operator: *who == ana, roles: None };
    let right =
        Right { allow: Allow::Operators, roles: Vec::new(), approvers: Vec::new(), confirm: Confirm::Never, guilds: None };
    let offered = Offered { name: "post".into(), effect: Effect::Outside, is_external: true, right, version: "1".into() };
    let may = |cause: &Cause| permission(&offered, cause, false, standing);
    let now = of(Some(&ana), &[&ana]);

    assert_eq!(may(&now.clone().and(&now)), Ok(false));
    for asked in [of(None, &[&ana, &gus]), of(Some(&gus), &[&gus]), Cause::nobody()] {
        assert_eq!(may(&now.clone().and(&asked)), Err(Refusal::NoCause), "{asked:?}");
    }
    assert_eq!(may(&now.and(&of(Some(&ana), &[&ana, &gus]))), Err(Refusal::NotAllowed));
}

#[test]
fn dice_are_rolled_in_their_notation_within_bounds() {
    let mut numbers = [0.0, 0.5, 0.999_999, 0.2].into_iter().cycle();

    let rolled = |notation: &str| built_in::roll(notation, || numbers.next().unwrap_or_default());
    let rolls: Vec<_> = ["2d6", "d20 + 3", "d%", "W6", "3d4-2"].map(rolled).into_iter().collect();

    let wanted = ["2d6: 1 + 4 = 5", "d20+3: 20 + 3 = 23", "d%: 21", "w6: 1", "3d4-2: 3 + 4 + 1 - 2 = 6"];
    assert_eq!(rolls, wanted.map(|roll| Ok(roll.to_owned())));
    for wrong in
        ["", "d", "2x6", "0d6", "101d6", "d1", "d1001", "2d6+", "2d6+9999999", "-2d6", "2d6+1+1", "99999999999999999999d6", "٢d6"]
    {
        assert!(built_in::roll(wrong, || 0.0).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_choice_is_one_of_the_options() {
    let options = |json: serde_json::Value| serde_json::from_value(json).unwrap();

    let chosen = built_in::choose(&options(serde_json::json!({ "options": ["tea", "coffee", 7] })), || 0.999);

    assert_eq!(chosen.as_deref(), Ok("7"));
    assert!(built_in::choose(&options(serde_json::json!({ "options": ["tea", " "] })), || 0.0).is_err());
    assert!(built_in::choose(&options(serde_json::json!({ "options": "tea" })), || 0.0).is_err());
}

#[test]
fn a_poll_has_a_question_and_different_options() {
    let read = |json: serde_json::Value| Poll::read(json.as_object().unwrap());

    let poll = read(serde_json::json!({ "question": "Tea\n?", "options": ["Yes", "No", "yes", 7, "x".repeat(80)] })).unwrap();

    assert_eq!(&*poll.question, "Tea ?");
    let lengths: Vec<_> = poll.options.iter().map(|option| option.chars().count()).collect();
    assert_eq!(lengths, [3, 2, 1, 55]);
    let many: Vec<_> = (0..11).collect();
    for options in
        [serde_json::json!(["Yes", "yes"]), serde_json::json!(["Yes"]), serde_json::json!(many), serde_json::json!("Yes")]
    {
        assert!(read(serde_json::json!({ "question": "Tea?", "options": options })).is_err(), "{options}");
    }
    assert!(read(serde_json::json!({ "options": ["Yes", "No"] })).is_err());
}

#[test]
fn the_time_is_that_of_the_place() {
    let now = Moment::from_micros(1_767_225_600_000_000);

    assert_eq!(built_in::time("Asia/Tokyo", now).as_deref(), Ok("Thursday, 1 January 2026, 09:00 (+09:00) in Asia/Tokyo"));
    assert_eq!(built_in::time("new york", now).as_deref(), Ok("Wednesday, 31 December 2025, 19:00 (-05:00) in America/New_York"));
    assert!(built_in::time("Atlantis", now).is_err_and(|error| error.contains("Atlantis")));
}
