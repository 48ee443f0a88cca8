//! What calls cost, and what happens when a cap is reached.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, purpose, refusal, room};
use crate::domain::moment::Moment;
use crate::domain::price::Price;
use crate::domain::question_context::Purpose;
use crate::domain::token_usage::TokenUsage;
use crate::ports::backend::Refused;
use crate::ports::backend::stamp::from_rfc3339;
use crate::ports::backend::usage::{GuildUsage, Usage, UsageQuery};
use crate::ports::language_model::NoAnswer;

/// TokenUsage of one call in these worlds.
const TOKENS: u64 = 12;

#[tokio::test(start_paused = true)]
async fn every_call_is_on_record_with_its_companion_its_role_and_its_price() {
    let world = World::with_lobby_settings(priced()).await;
    world.side.answers([Ok("Me.\nYES"), Ok("Not me.\nNO")]);
    world.say_then_pass("lobby", "Ari, are you there?", 5.0).await;
    world.say_then_pass("lobby", "well then", 60.0).await;

    let home = home(&world).await;

    assert_eq!((home.used.statements, home.used.addresses, home.used.evaluations), (1, 1, 1));
    let by: Vec<_> = home
        .by
        .iter()
        .map(|by| (by.companion.as_ref().map(|id| id.as_str()), &*by.role, by.calls.calls, by.calls.usage.input_tokens))
        .collect();
    assert_eq!(by, [(Some("aria"), "main", 1, 10), (Some("aria"), "side", 2, 20)]);
    let (side, main) = (Price::per_million(1.0, 2.0, "EUR"), Price::per_million(10.0, 20.0, "EUR"));
    assert_eq!(home.by[0].calls.costs.cost, Some(main.of(TokenUsage::new(10, 2))));
    assert_eq!(home.by[1].calls.costs.cost, Some(side.of(TokenUsage::new(20, 4))));
    assert_eq!((home.used.calls.calls, home.used.calls.unpriced_calls, home.used.calls.failed_calls), (3, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_keeps_the_price_at_its_time() {
    let world = World::with_lobby_settings(priced()).await;
    world.say_then_pass("lobby", "Ari?", 5.0).await;
    let store = world.store.clone();
    drop(world.crash().await);

    store.reopen();
    let world = World::with_store(store).await;
    let home = home(&world).await;

    let cost = Price::per_million(1.0, 2.0, "EUR").of(TokenUsage::new(10, 2));
    assert_eq!(home.used.calls.costs.cost, None, "nothing is on record in the present currency");
    assert_eq!(home.used.calls.costs.other_costs, [("EUR".into(), cost)].into());
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_has_an_unknown_cost() {
    let endpoint = json!({ "base_url": "http://127.0.0.1:1/v1", "model": "m" });
    let world = World::with_lobby_settings(json!({ "models": { "main": endpoint } })).await;
    world.say_then_pass("lobby", "Ari?", 5.0).await;

    let calls = home(&world).await.used.calls;

    assert_eq!((calls.calls, calls.unpriced_calls, calls.costs.cost), (1, 1, None));
}

#[tokio::test(start_paused = true)]
async fn failed_questions_and_statements_are_counted_with_every_try() {
    let world = World::with_lobby().await;
    let broken = || Err(NoAnswer::Unreachable { endpoint: "scripted".into(), detail: "reset".into() });
    world.side.answers([broken(), Ok("Me.\nYES"), Err(refusal()), Ok("Not me.\nNO")]);
    world.main.answers([broken(), Err(refusal())]);
    world.say_then_pass("lobby", "Ari?", 30.0).await;
    let after_statement = home(&world).await;
    world.say_then_pass("lobby", "Ari??", 5.0).await;

    let calls = home(&world).await.used.calls;

    assert_eq!(after_statement.used.statements, 0);
    let by: Vec<_> = after_statement.by.iter().map(|by| (&*by.role, by.calls.calls, by.calls.failed_calls)).collect();
    assert_eq!(by, [("main", 2, 2), ("side", 2, 1)]);
    assert_eq!((calls.calls, calls.failed_calls, calls.usage.input_tokens), (5, 4, 10));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_times_out_is_counted_as_a_call() {
    let world = World::with_lobby().await;
    world.side.set_delay(Duration::from_secs(3_600));
    world.say_then_pass("lobby", "Ari?", 16.0).await;

    let calls = home(&world).await.used.calls;

    assert_eq!((calls.calls, calls.failed_calls, calls.usage.input_tokens, calls.usage.output_tokens), (1, 1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_dropped_while_a_model_works_on_them_are_counted() {
    let world = World::with_willing_lobby().await;
    world.main.set_delay(Duration::from_secs(60));
    world.say_then_pass("lobby", "Ari?", 5.0).await;
    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(1.0).await;
    let speaking = home(&world).await.used.calls;
    world.side.set_delay(Duration::from_secs(10));
    world.say_then_pass("lobby", "Ari?", 1.0).await;
    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(1.0).await;

    let calls = home(&world).await.used.calls;

    assert_eq!((speaking.calls, speaking.failed_calls), (2, 1));
    assert_eq!((calls.calls, calls.failed_calls, calls.usage.input_tokens), (3, 2, 10));
}

#[tokio::test(start_paused = true)]
async fn summaries_are_counted_for_the_room_itself() {
    let world = World::with_lobby_settings(json!({ "prompt": { "summary_after": 2 } })).await;
    for number in 0..7 {
        world.say("lobby", &format!("remark {number}")).await;
    }
    world.pass(60.0).await;

    let home = home(&world).await;

    let by: Vec<_> = home.by.iter().map(|by| (by.companion.is_none(), &*by.role, by.calls.calls)).collect();
    assert_eq!(by, [(true, "side", 1), (false, "side", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_any_two_steps_counts_nothing_twice() {
    for moment in [0.0, 0.5, 1.0, 1.5, 2.0, 2.5] {
        let world = World::with_willing_lobby().await;
        world.say_then_pass("lobby", "Ari, one", moment).await;
        let made = calls_made(&world);

        let world = world.crash().await;
        world.side.answers([Ok("Me.\nYES")]);
        world.pass(60.0).await;

        let (home, made) = (home(&world).await, made + calls_made(&world));
        assert_eq!(home.used.statements, 1, "crashed after {moment} s");
        // The usage of a call is unknown if its answer was lost in the crash.
        assert!((2..=made).contains(&home.used.calls.calls), "{} of {made}, crashed after {moment} s", home.used.calls.calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_guild_that_has_used_up_its_tokens_is_silent_until_enough_of_them_are_a_day_old() {
    let world = World::with_lobby_settings(json!({ "models": { "guild_tokens_per_day": 2 * TOKENS } })).await;
    world.side.answers([Ok("Me.\nYES")]);
    world.say_then_pass("lobby", "Ari, one", 10.0).await;
    world.say("lobby", "Ari, two").await;
    world.say_then_pass("lobby", "three", 60.0).await;
    let asked = calls_made(&world);
    let decisions = world.decisions("lobby").await;
    let caps = home(&world).await.caps;

    answers_once_it_is_free(&world, &decisions[1]).await;

    let outcomes: Vec<_> = decisions.iter().map(|decision| (outcome(decision), decision["budget"].as_str())).collect();
    assert_eq!(
        outcomes,
        [
            (("YES", "model_yes", "direct_address"), None),
            (("NO", "budget", "direct_address"), Some("guild_tokens")),
            (("NO", "budget", "lull"), Some("guild_tokens")),
        ]
    );
    assert_eq!(asked, 2, "no companion is asked");
    assert_eq!((caps.tokens.used, caps.tokens.limit), (24, Some(24)));
    assert_eq!(serde_json::to_value(caps.tokens.free_at).unwrap(), decisions[1]["free_at"]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_takes_the_last_tokens_leads_to_no_statement() {
    let world = World::with_lobby_settings(json!({ "models": { "guild_tokens_per_day": TOKENS } })).await;
    world.side.answers([Ok("Me.\nYES")]);

    world.say_then_pass("lobby", "Ari, one", 10.0).await;

    let decisions = world.decisions("lobby").await;
    assert_eq!(outcome(&decisions[0]), ("NO", "budget", "direct_address"));
    assert_eq!((&decisions[0]["budget"], &decisions[0]["input_tokens"]), (&json!("guild_tokens"), &json!(10)));
    assert_eq!(world.main.asked.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_run_out_in_a_round_keep_later_votes_from_counting_and_hold_no_further_round() {
    let world = World::with_salon(json!({ "models": { "guild_tokens_per_day": 2 * TOKENS + 1 } })).await;
    world.side.answers([Ok("Me.\nYES")]);

    world.say_then_pass("salon", "aria, bruno, cleo: what do you think?", 60.0).await;

    let decisions = world.decisions("salon").await;
    let reasons: Vec<_> = decisions.iter().map(|decision| (outcome(decision).1, decision["vote"]["state"].as_str())).collect();
    let (yes, no) = (("model_yes", Some("speak")), ("budget", Some("listen")));
    assert_eq!(reasons[..3], [yes, yes, no]);
    assert!(reasons.len() > 3 && reasons[3..].iter().all(|reason| *reason == ("budget", None)), "{reasons:?}");
    assert_eq!(calls_made(&world), 4, "three votes, and the statement of the selected companion");
    let tokens = home(&world).await.caps.tokens;
    assert_eq!((tokens.used, tokens.is_used_up()), (4 * TOKENS, true));
}

#[tokio::test(start_paused = true)]
async fn repetition_is_judged_without_a_model_while_tokens_are_used_up() {
    // Eight calls lead to the first statement that is judged. It uses the last tokens.
    for (most, asked, judged) in [(7 * TOKENS + 1, 0, 1), (8 * TOKENS + 1, 1, 1)] {
        let world = World::with_salon(json!({
            "repetition": { "judge": "model" },
            "gate": { "skip_when_other_addressed": false },
            "turn_taking": { "max_companion_streak": 20 },
            "models": { "guild_tokens_per_day": most },
        }))
        .await;
        world.side.answers([Ok("Me.\nYES")]);

        world.say_then_pass("salon", "Bruno, what of it?", 300.0).await;

        assert_eq!(world.recorded("salon", "repetition_asked").await.len(), asked, "{most} tokens");
        assert_eq!(world.recorded("salon", "repetition").await.len(), judged, "{most} tokens");
        assert_eq!(world.main.asked.lock().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn no_summary_is_made_while_tokens_are_used_up() {
    let settings = json!({ "models": { "guild_tokens_per_day": TOKENS }, "prompt": { "summary_after": 2 } });
    let world = World::with_lobby_settings(settings).await;
    world.say_then_pass("lobby", "Ari, one", 10.0).await;
    for _ in 0..9 {
        world.say("lobby", "more").await;
    }
    world.pass(60.0).await;
    let within = summaries(&world);
    world.pass(86_400.0).await;

    world.say_then_pass("lobby", "Ari, again", 10.0).await;

    assert_eq!(within, 0);
    assert_eq!(summaries(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn a_guild_that_has_said_enough_for_a_day_is_silent_until_its_oldest_statement_is_a_day_old() {
    let world = World::with_lobby_settings(json!({ "gate": { "guild_statements_per_day": 2 } })).await;
    world.side.answers([Ok("Me.\nYES")]);
    for text in ["Ari, one", "Ari, two", "Ari, three"] {
        world.say_then_pass("lobby", text, 10.0).await;
    }
    let asked = calls_made(&world);
    let decisions = world.decisions("lobby").await;
    let caps = home(&world).await.caps;

    answers_once_it_is_free(&world, &decisions[2]).await;

    let outcomes: Vec<_> = decisions.iter().map(|decision| (outcome(decision), decision["budget"].as_str())).collect();
    let yes = (("YES", "model_yes", "direct_address"), None);
    assert_eq!(outcomes, [yes, yes, (("NO", "budget", "direct_address"), Some("guild_statements"))]);
    assert_eq!(asked, 4, "two decisions and two statements");
    assert_eq!((caps.statements.used, caps.statements.limit), (2, Some(2)));
    assert!(caps.statements.free_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_was_used_while_the_clock_was_ahead_does_not_count_once_it_is_right() {
    let overlay = json!({
        "gate": { "guild_statements_per_day": 2, "addresses_per_minute": 2 },
        "models": { "guild_tokens_per_day": 60 }
    });
    let world = World::with_lobby_settings(overlay).await;
    world.set_clock(60 * 86_400);
    world.side.answers([Ok("Me.\nYES")]);
    for text in ["Ari, one", "Ari, two", "Ari, three"] {
        world.say_then_pass("lobby", text, 10.0).await;
    }
    let world = world.crash().await;
    world.set_clock(-60 * 86_400);
    world.side.answers([Ok("Me.\nYES")]);

    for text in ["Ari, four", "Ari, five", "Ari, six"] {
        world.say_then_pass("lobby", text, 35.0).await;
    }

    let decisions = world.decisions("lobby").await;
    let budgets: Vec<_> = decisions.iter().map(|decision| decision["budget"].as_str().unwrap_or("yes")).collect();
    assert_eq!(budgets[..2], ["yes", "yes"], "{budgets:?}");
    assert_eq!(budgets[3..], ["yes", "yes", "guild_statements"], "the clock is right, and two are allowed again: {budgets:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_guild_differs_from_one_without_usage() {
    let world = World::with_lobby().await;
    let of = |guild: &str| UsageQuery { guild: Some(guild.into()), ..UsageQuery::default() };

    let unknown = world.backend.records.usage(of("hoem")).await;
    let quiet = world.backend.records.usage(of("home")).await.unwrap();
    let all = world.backend.records.usage(UsageQuery::default()).await.unwrap();

    assert!(matches!(unknown, Err(Refused::NotFound(_))));
    assert_eq!((quiet.guilds.len(), all.guilds.len()), (1, 0));
    assert!(quiet.guilds[0].by.is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_usage_within_the_span_is_counted() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "Ari?", 5.0).await;
    let between = world.context.clock.now();
    world.say_then_pass("lobby", "Ari??", 5.0).await;
    world.say_then_pass("lobby", "Ari???", 5.0).await;

    let until = usage(&world, UsageQuery { to: Some(between), ..UsageQuery::default() }).await;
    let since = usage(&world, UsageQuery { from: Some(between), ..UsageQuery::default() }).await;
    let never = world.backend.records.usage(UsageQuery { from: Some(between), to: Some(between), guild: None }).await;

    assert_eq!((until.total.calls.calls, since.total.calls.calls), (1, 2));
    assert!(matches!(never, Err(Refused::Invalid { field, .. }) if field == "from"));
}

#[tokio::test(start_paused = true)]
async fn the_returned_span_can_be_requested_again_with_the_same_result() {
    let part_of_a_millisecond = Duration::from_micros(300);
    let world = World::with_lobby().await;
    tokio::time::advance(part_of_a_millisecond).await;
    world.say("lobby", "Ari?").await;
    // Timers would continue to the next millisecond.
    while home(&world).await.used.addresses == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(part_of_a_millisecond).await;

    let returned = usage(&world, UsageQuery::default()).await;
    let time = |name: &str| from_rfc3339(serde_json::to_value(&returned).unwrap()[name].as_str().unwrap());
    let again = usage(&world, UsageQuery { from: time("from"), to: time("to"), guild: None }).await;

    assert_eq!(returned.total.addresses, 1);
    assert_eq!(returned, again);
}

fn priced() -> Value {
    let endpoint = |input: f64, output: f64| json!({ "base_url": "http://127.0.0.1:1/v1", "model": "m", "input_price": input, "output_price": output });
    json!({ "models": { "currency": "EUR", "side": endpoint(1.0, 2.0), "main": endpoint(10.0, 20.0) } })
}

/// The total usage of the guild `home`.
async fn home(world: &World) -> GuildUsage {
    let query = UsageQuery {
        guild: Some("home".into()),
        from: Some(Moment::ZERO),
        to: Some(world.context.clock.now() + Duration::from_secs(86_400)),
    };
    usage(world, query).await.guilds.remove(0)
}

async fn usage(world: &World, query: UsageQuery) -> Usage {
    world.backend.records.usage(query).await.unwrap()
}

fn calls_made(world: &World) -> u64 {
    [&world.side, &world.main].map(|model| model.asked.lock().len() as u64).iter().sum()
}

fn summaries(world: &World) -> usize {
    world.side.asked.lock().iter().filter(|request| *purpose(request) == Purpose::Summary).count()
}

fn outcome(decision: &Value) -> (&str, &str, &str) {
    let field = |name: &str| decision[name].as_str().unwrap();
    (field("decision"), field("reason"), field("trigger"))
}

/// The budget of a decision is free again at the moment that it names, and not before.
async fn answers_once_it_is_free(world: &World, decision: &Value) {
    let free_at = from_rfc3339(decision["free_at"].as_str().expect("it says when")).unwrap();
    world.pass(free_at.since(world.context.clock.now()).as_secs_f64() - 1.0).await;
    world.say_then_pass("lobby", "Ari, four", 0.5).await;
    let before = world.decisions("lobby").await;
    world.pass(1.0).await;
    world.say_then_pass("lobby", "Ari, five", 10.0).await;

    assert_eq!(before.last().unwrap()["reason"], "budget");
    assert_eq!(world.history("lobby").await.last().unwrap(), &("aria".to_owned(), "Hello!".to_owned()));
}
