use super::*;
use crate::domain::budget::Budget;
use crate::domain::closing::{Cause, Stage};
use crate::domain::voice::interruption::Verdict;
use crate::story::samples::aria;

/// Keys that are composed of a code.
#[test]
fn every_code_has_a_sentence() {
    let sentences = |section: &str, codes: Vec<&'static str>| -> Vec<_> {
        codes.into_iter().map(|code| format!("why.{section}.{code}")).collect()
    };
    let reasons = Reason::ALL.into_iter().filter(|reason| *reason != Reason::External).map(Reason::as_str);
    let keys = [
        sentences("reasons", reasons.collect()),
        sentences("stages", Stage::ALL.map(Stage::as_str).into()),
        sentences("causes", Cause::ALL.map(Cause::as_str).into()),
        sentences("interrupted", Verdict::ALL.map(Verdict::as_str).into()),
        sentences("limits", Budget::ALL.map(Budget::as_str).into()),
    ];

    for key in keys.concat() {
        assert_ne!(aria().say(&key, &[("count", &2)]), key);
    }
    assert_eq!(failed(&aria(), "melted").text, "No answer came (melted).");
    assert!(failed(&aria(), "fatal_answer").text.contains("had stopped twice"), "only earlier versions recorded it");
    let without_text: Vec<_> = SETTINGS.iter().filter(|(key, _)| aria().say(key, &[]) == *key).collect();
    assert!(without_text.is_empty(), "{without_text:?}");
}

#[test]
fn a_span_is_shown_in_a_fitting_unit() {
    let spans = [0.0, 0.26, 1.0, 8.98, 9.97, 59.4, 120.0, 5_400.0, 7_200.0, 90_000.0, 400_000.0];

    assert_eq!(
        spans.map(|secs| span(Duration::from_secs_f64(secs), Language::English)),
        [
            "0 seconds",
            "0.3 seconds",
            "1 second",
            "9 seconds",
            "10 seconds",
            "59 seconds",
            "2 minutes",
            "90 minutes",
            "2 hours",
            "25 hours",
            "5 days"
        ]
    );
    assert_eq!(span(Duration::from_millis(1_500), Language::German), "1,5 Sekunden");
}

#[test]
fn names_are_listed_as_in_a_sentence() {
    let names = ["Ana", "Ben", "Cleo"].map(str::to_owned);

    let listed = [0, 1, 2, 3].map(|count| listed(&names[..count], Language::German));
    assert_eq!(listed, ["", "Ana", "Ana und Ben", "Ana, Ben und Cleo"]);
}

#[test]
fn a_long_text_is_cut_between_characters() {
    assert_eq!(cut(&"ü".repeat(200)).chars().count(), 200);
    assert!(cut(&"ü".repeat(201)).ends_with("ü…"));
}
