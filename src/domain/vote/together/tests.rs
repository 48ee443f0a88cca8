use proptest::prelude::*;

use super::*;

const ASKED: [(&str, &str); 3] = [("aria", "Aria"), ("bruno-2", "★ Bruno ★"), ("cleo", "Cléo")];

fn voters() -> Vec<Voter> {
    ASKED.map(|(id, name)| Voter { id: id.into(), name: name.into() }).into()
}

/// The parts, with what each says.
fn read(text: &str) -> Vec<(String, Vote)> {
    let parts = parts(text, &voters(), Words::ENGLISH);
    parts.into_iter().map(|(companion, part)| (companion.to_string(), super::super::read(&part, Words::ENGLISH))).collect()
}

/// The decisions: `aria YES, cleo NO`.
fn decisions(text: &str) -> String {
    let decision = |(companion, vote): (String, Vote)| {
        let decision = if vote.verdict == Verdict::Yes { "YES" } else { "NO" };
        assert_ne!(vote.verdict, Verdict::Unreadable, "{text}");
        format!("{companion} {decision}")
    };
    read(text).into_iter().map(decision).collect::<Vec<_>>().join(", ")
}

const ARIA: &str = r#"{"reason":"They asked me.","decision":"YES","importance":7.5,"selected":true,"closing":"pre-closing"}"#;
const BRUNO: &str = r#"{"reason":"Not mine, \"YES\" or not.","decision":"NO","importance":1,"selected":false,"closing":"none"}"#;
const CLEO: &str = r#"{"reason":"Plans!","decision":"YES","importance":4,"selected":false,"closing":"none"}"#;

fn whole() -> String {
    format!(r#"{{"aria": {ARIA}, "bruno-2": {BRUNO}, "cleo": {CLEO}}}"#)
}

#[test]
fn each_companion_takes_its_own_part_as_if_it_had_answered_alone() {
    let read = read(&whole());

    let alone = [("aria", ARIA), ("bruno-2", BRUNO), ("cleo", CLEO)];
    let alone = alone.map(|(companion, part)| (companion.to_owned(), super::super::read(part, Words::ENGLISH)));
    assert_eq!(read, alone);
    let parts = parts(&whole(), &voters(), Words::ENGLISH);
    assert!(!parts[&"aria".into()].contains("Plans!"), "{parts:?}");
}

#[test]
fn the_parts_are_found_whatever_form_the_answer_has() {
    for text in [
        whole(),
        format!("Here you are:\n```json\n{}\n```\nHope that helps!", whole()),
        format!("<think>aria: NO</think>{}", whole()),
        format!(r#"{{"cleo": {CLEO}, "aria": {ARIA}, "bruno-2": {BRUNO}}}"#),
        format!(r#"{{"votes": {}}}"#, whole()),
        format!(r#"{{"reason": "all said", "votes": {}}}"#, whole()),
        format!(r#"{{"Aria": {ARIA}, "Bruno": {BRUNO}, "cléo": {CLEO}}}"#),
        format!("{{aria: {ARIA}, bruno-2: {BRUNO}, cleo: {CLEO}}}"),
        format!("{{'aria': {ARIA}, 'bruno-2': {BRUNO}, 'cleo': {CLEO}}}"),
        format!("{{\"aria\": {ARIA}}}\n{{\"bruno-2\": {BRUNO}}}\n{{\"cleo\": {CLEO}}}"),
        format!("## Aria\n{ARIA}\n\n## Bruno\n{BRUNO}\n\n**cleo:**\n\n{CLEO}"),
        format!("- aria: {ARIA}\n- bruno-2: {BRUNO}\n- cleo: {CLEO}"),
        [("aria", ARIA), ("Bruno", BRUNO), ("cleo", CLEO)]
            .map(|(name, vote)| vote.replacen('{', &format!("{{\"id\":\"{name}\","), 1))
            .join("\n"),
        format!(
            r#"{{"votes": [{}]}}"#,
            [("aria", ARIA), ("Bruno", BRUNO), ("cleo", CLEO)]
                .map(|(name, vote)| vote.replacen('}', &format!(",\"companion\":\"{name}\"}}"), 1))
                .join(", ")
        ),
        r#"{"aria": "YES", "bruno-2": false, "cleo": "yes, gladly"}"#.to_owned(),
        "aria: YES\n**Bruno**: NO - they talk to Ana\nCléo: YES".to_owned(),
        "Aria:\nThey asked me.\nYES\n\nbruno-2:\nNot mine.\nNO\n\ncleo:\nYES".to_owned(),
    ] {
        assert_eq!(decisions(&text), "aria YES, bruno-2 NO, cleo YES", "{text}");
    }
}

#[test]
fn a_part_that_is_missing_unreadable_or_cut_off_is_left_out() {
    for (text, expected) in [
        (format!(r#"{{"aria": {ARIA}, "cleo": {CLEO}}}"#), "aria YES, cleo YES"),
        (format!(r#"{{"aria": {ARIA}, "bruno-2": {{"reason": "hm"}}, "cleo": null}}"#), "aria YES"),
        (format!(r#"{{"aria": {ARIA}, "bruno-2": {{"decision": "YES|NO"}}, "cleo": {CLEO}}}"#), "aria YES, cleo YES"),
        (format!(r#"{{"aria": {ARIA}, "bruno-2": {BRUNO}, "cleo": {{"reason": "Pl"#), "aria YES, bruno-2 NO"),
        (ARIA.to_owned(), ""),
        ("YES".to_owned(), ""),
        (String::new(), ""),
        ("{}".to_owned(), ""),
    ] {
        assert_eq!(decisions(&text), expected, "{text}");
    }
}

#[test]
fn companions_that_were_not_asked_have_no_part() {
    for text in [
        format!(r#"{{"zed": {ARIA}, "aria": {ARIA}}}"#),
        format!(r#"{{"ari": {BRUNO}, "aria": {ARIA}, "ari a!": {{"decision": "maybe"}}}}"#),
        format!("zed: {BRUNO}\naria: {ARIA}"),
        format!("{{\"from\":\"zed\",\"decision\":\"NO\"}}\n{{\"aria\": {ARIA}}}"),
    ] {
        assert_eq!(decisions(&text).split(' ').next(), Some("aria"), "{text}");
        assert!(!decisions(&text).contains("NO"), "{text}");
    }
}

#[test]
fn what_contradicts_a_part_makes_it_unreadable() {
    let no = ARIA.replace("YES", "NO");
    for text in [
        format!(r#"{{"aria": {ARIA}, "aria": {no}, "cleo": {CLEO}}}"#),
        format!("{{\"aria\": {no}}}\n{{\"aria\": {ARIA}, \"cleo\": {CLEO}}}"),
        format!("Ben wrote {{\"id\":\"aria\",\"decision\":\"NO\"}}.\n{{\"aria\": {ARIA}, \"cleo\": {CLEO}}}"),
        format!(r#"{{"aria": {}, "cleo": {CLEO}}}"#, ARIA.replacen('{', "{\"decision\":\"NO\",", 1)),
        format!(r#"{{"aria": {ARIA}, "Aria": {no}, "cleo": {CLEO}}}"#),
        format!("aria: NO</think>{{\"aria\": {ARIA}, \"cleo\": {CLEO}}}"),
        format!("{{\"aria\": {no}}}</think>{{\"aria\": {ARIA}, \"cleo\": {CLEO}}}"),
    ] {
        assert!(!decisions(&text).contains("aria"), "{text}: {}", decisions(&text));
    }
    let denied = format!("{}\nSo the answer for all is NO", whole());
    assert_eq!(decisions(&denied), "bruno-2 NO");
    let twice = format!("{0}\n{0}", whole());
    assert_eq!(decisions(&twice), "aria YES, bruno-2 NO, cleo YES");
}

#[test]
fn a_name_that_two_have_is_nobodys_and_an_id_comes_before_a_name() {
    let voter = |id: &str, name: &str| Voter { id: id.into(), name: name.into() };
    let parts = |text: &str, voters: &[Voter]| {
        parts(text, voters, Words::ENGLISH).into_keys().map(|id| id.to_string()).collect::<Vec<_>>()
    };

    assert_eq!(parts(r#"{"Sam": "YES", "sam-2": "NO"}"#, &[voter("sam-1", "Sam"), voter("sam-2", "SAM")]), ["sam-2"]);
    assert_eq!(parts(r#"{"ben": "YES"}"#, &[voter("ana", "Ben"), voter("ben", "Ana")]), ["ben"]);
}

proptest! {
    #[test]
    fn no_answer_panics(text in any::<String>(), noise in "[{}\"':,a-c\\[\\] \n]{0,60}") {
        decisions(&text);
        decisions(&format!("{{\"aria\": {noise}"));
        decisions(&noise);
    }

    #[test]
    fn words_in_a_reason_change_no_other_part(reason in any::<String>()) {
        let aria = serde_json::json!({ "reason": reason, "decision": "YES", "importance": 1, "selected": false, "closing": "none" });
        let text = format!(r#"{{"aria": {aria}, "bruno-2": {BRUNO}}}"#);

        let read = read(&text);

        prop_assert_eq!(read.iter().find(|(companion, _)| companion == "bruno-2").map(|(_, vote)| vote.verdict), Some(Verdict::No));
    }
}
