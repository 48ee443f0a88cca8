use serde_json::{Value, json};

use super::*;
use crate::ports::backend::usage::{GuestUsage, PeopleTold, SafetyMonth, SpeechBy};

#[test]
fn guilds_are_aligned_lines_above_their_total() {
    let table = of(&usage(), By::Guild);

    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines[0], "from 2026-05-01T00:00:00.000Z to 2026-05-02T00:00:00.000Z");
    assert_eq!(
        lines[2..6],
        [
            "guild  statements  calls  no answer  input tokens  cached  output tokens  cost (USD)",
            "den             0     10          0             0       –              0           –",
            "home        1,200  1,234          2     1,234,567    75 %         89,000  1,234.5000",
            "total       1,200  1,244          2     1,234,567    75 %         89,000  1,234.5000",
        ]
    );
}

#[test]
fn figures_are_lines_for_each_guild_and_month_above_their_total() {
    let sums = Safety { told: PeopleTold { first: 1_200, day: 3, interval: 0 }, helped: 2, refused: 0 };
    let month = SafetyMonth { guild: "home".into(), month: "2026-11".into(), sums: sums.clone() };

    let table = safety(&SafetyFigures { from: "2025-12".into(), to: "2026-11".into(), months: vec![month], total: sums });

    let lines: Vec<_> = table.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "from 2025-12 to 2026-11 (months in UTC)",
            "",
            "guild  month    told first  on another day  after a while  shown help  refused",
            "home   2026-11       1,200               3              0           2        0",
            "total                1,200               3              0           2        0",
        ]
    );
}

#[test]
fn a_cap_that_is_used_up_shows_when_it_is_available_again() {
    let table = of(&usage(), By::Guild);

    let caps: Vec<_> = table.lines().skip_while(|line| !line.starts_with("usage of daily caps")).skip(1).take(4).collect();
    assert_eq!(
        caps,
        [
            "den   tokens          0  no limit",
            "den   statements      0  of 0      none allowed",
            "home  tokens        500  of 500    used up, available again at 2026-05-02T03:00:00.000Z",
            "home  statements  1,200  of 5,000",
        ]
    );
}

#[test]
fn guests_are_lines_with_what_they_used_today() {
    let mut usage = usage();
    usage.guilds[1].guests = vec![GuestUsage { name: "Ben".into(), messages: 3, voice_secs: 0, tokens: 1_200 }];

    let table = of(&usage, By::Guest);

    let lines: Vec<_> = table.lines().skip(2).take(3).collect();
    let head = "guild  guest (today, in UTC)  messages  seconds of voice  tokens";
    assert_eq!(lines, [head, "home   Ben                           3                 0   1,200", ""]);
}

#[test]
fn limits_of_speech_are_caps_too() {
    let mut usage = usage();
    usage.guilds[0].caps.recognised_secs = Some(Cap { used: 1_800, limit: Some(36_000), free_at: None });

    let table = of(&usage, By::Guild);

    assert!(table.contains("den   seconds heard  1,800  of 36,000"), "{table}");
}

#[test]
fn calls_without_a_price_or_an_answer_are_noted() {
    let table = of(&usage(), By::Role);

    assert!(table.contains("\n10 calls without a recorded price"), "{table}");
    assert!(table.contains("\n2 calls without an answer"), "{table}");
    assert!(table.contains("\nnot included, because their prices were in another currency: EUR 0.2500"), "{table}");
}

#[test]
fn each_line_sums_the_calls_with_the_same_key() {
    let lines = |by| {
        let table = of(&usage(), by);
        let line = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        table.lines().skip(3).take_while(|line| !line.is_empty()).map(line).collect::<Vec<_>>()
    };

    assert_eq!(lines(By::Companion), ["den (rooms) 10", "home aria 1,000", "home bruno 234", "total 1,244 2"]);
    assert_eq!(lines(By::Model), ["large p 1,000", "small p 244", "total 1,244 2"]);
    assert_eq!(lines(By::Role), ["main statements 1,000", "side decisions, summaries", "total 1,244 2"]);
}

#[test]
fn speech_has_lines_of_its_own_if_there_was_any() {
    assert!(!of(&usage(), By::Guild).contains("\nspeech\n"));
    let mut usage = usage();
    let by = |service, companion: Option<&str>, secs, characters| -> SpeechBy {
        let by = json!({
            "service": service, "companion": companion, "provider": "p", "recognised_secs": secs, "characters": characters, "cost": null,
        });
        serde_json::from_value(by).unwrap()
    };
    usage.guilds[1].speech_by = vec![by("speech_recognition", None, 63.5, 0), by("speech_synthesis", Some("aria"), 0.0, 1_234)];
    usage.total.speech = Speech { recognised_ms: 63_500, characters: 1_234, ..Speech::default() };

    let table = of(&usage, By::Model);

    let speech: Vec<_> = table.lines().skip_while(|line| *line != "speech").skip(1).take(4).collect();
    assert_eq!(
        speech,
        [
            "guild  who                   served by  seconds heard  characters spoken  cost (USD)",
            "home   (people)  were heard  p                   63.5                  0           –",
            "home   aria      spoke       p                    0.0              1,234           –",
            "total                                            63.5              1,234           –",
        ]
    );
}

#[test]
fn an_empty_period_says_that_nothing_was_used() {
    let usage = serde_json::from_value(json!({
        "from": "2026-05-01T00:00:00Z", "to": "2026-05-02T00:00:00Z", "currency": "USD", "guilds": [], "total": used(0, calls(0, 0)),
    }));

    assert!(of(&usage.unwrap(), By::Guild).ends_with("\nNothing was used.\n"));
}

#[test]
fn names_from_outside_cannot_control_the_terminal() {
    let mut usage = usage();
    usage.guilds[0].guild = "a\u{1b}[2Jb".into();

    assert!(!of(&usage, By::Guild).contains('\u{1b}'));
}

#[test]
fn money_is_shown_to_a_hundredth_of_a_cent() {
    let shown = |units: f64| money(serde_json::from_value(json!(units)).unwrap());

    assert_eq!([0.0, 0.000_01, 0.023_253, 1_234_567.891].map(shown), ["0.0000", "<0.0001", "0.0233", "1,234,567.8910"]);
}

fn usage() -> Usage {
    let mut total = calls(1_244, 10);
    total["cost"] = 1234.5.into();
    total["failed_calls"] = 2.into();
    total["input_tokens"] = 1_234_567.into();
    total["cache_read_tokens"] = 925_925.into();
    total["output_tokens"] = 89_000.into();
    total["other_costs"] = json!({ "EUR": 0.25 });
    let mut home = total.clone();
    home["calls"] = 1_234.into();
    serde_json::from_value(json!({
        "from": "2026-05-01T00:00:00Z",
        "to": "2026-05-02T00:00:00Z",
        "currency": "USD",
        "guilds": [
            guild("den", used(0, calls(10, 10)), &[by(None, "small", "side", 10)], (0, None, None), (0, Some(0), None)),
            guild(
                "home",
                used(1_200, home),
                &[by(Some("aria"), "large", "main", 1_000), by(Some("bruno"), "small", "side", 234)],
                (500, Some(500), Some("2026-05-02T03:00:00Z")),
                (1_200, Some(5_000), None),
            ),
        ],
        "total": used(1_200, total),
    }))
    .unwrap()
}

type CapUse = (u64, Option<u64>, Option<&'static str>);

fn guild(id: &str, used: Value, by: &[Value], tokens: CapUse, statements: CapUse) -> Value {
    let cap = |(used, limit, free_at): CapUse| json!({ "used": used, "limit": limit, "free_at": free_at });
    let more = json!({ "guild": id, "by": by, "caps": { "tokens": cap(tokens), "statements": cap(statements) } });
    with(used, more)
}

fn by(companion: Option<&str>, model: &str, role: &str, number: u64) -> Value {
    with(calls(number, 0), json!({ "companion": companion, "model": model, "provider": "p", "role": role }))
}

fn used(statements: u64, calls: Value) -> Value {
    with(calls, json!({ "statements": statements, "evaluations": 0, "addresses": 0 }))
}

fn calls(number: u64, unpriced: u64) -> Value {
    let nothing = json!({ "failed_calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": null });
    with(nothing, json!({ "calls": number, "unpriced_calls": unpriced }))
}

fn with(mut object: Value, more: Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}
