//! The rules that decide without asking: which one, about what, and what would have to be different.

use serde_json::json;

use super::super::world::{World, asking_companion, room};
use super::{assert_tells, ballot, fates, refusal, setting, step, texts, why};
use crate::domain::id::Seq;
use crate::ports::backend::decisions::{Outcome, WhyAt};
use crate::ports::language_model::NoAnswer;

#[tokio::test(start_paused = true)]
async fn messages_to_others_show_the_addressee_and_the_setting() {
    let world = World::with_lobby().await;
    world.say_with("lobby", json!({ "from": "Ana", "text": "@Ben, lunch?" })).await;
    world.pass(20.0).await;

    let explanation = why(&world, "lobby", "aria").await;

    assert_eq!(step(&explanation, "message"), "Ana said to somebody else: “@Ben, lunch?”");
    assert_eq!(
        step(&explanation, "decision"),
        "Aria stayed silent without thinking about it, because the message was for somebody else."
    );
    assert_eq!(setting(&explanation, "decision"), "gate.skip_when_other_addressed");
}

#[tokio::test(start_paused = true)]
async fn an_estimate_is_shown_with_its_features() {
    let world = World::with_lobby_settings(json!({ "gate": { "pre_gate": "skip" } })).await;
    for (from, text) in [("Ana", "the ferry was late again"), ("Ben", "Ana: how late was it?"), ("Ana", "an hour")] {
        world.say_with("lobby", json!({ "from": from, "text": text })).await;
    }
    world.pass(20.0).await;

    let explanation = why(&world, "lobby", "aria").await;

    assert_eq!(&*explanation.decision.as_ref().unwrap().reason, "irrelevant", "{}", texts(&explanation));
    assert_eq!(world.side.asked_for("Aria") + world.side.asked_for("aria"), 0);
    let estimate = step(&explanation, "rule");
    assert!(
        estimate.contains("from -1.84 on, Aria would have thought about it") && estimate.contains("constant -"),
        "{estimate}"
    );
    assert_eq!(setting(&explanation, "rule"), "gate.pre_gate_threshold");
}

#[tokio::test(start_paused = true)]
async fn a_companion_without_initiative_says_by_whose_setting() {
    let own = World::with_lobby_settings(json!({ "companion_defaults": { "quiet_hours": "always" } })).await;
    let room = World::with_lobby().await;
    room.patch("lobby", json!({ "quiet_hours": "00:00-23:59" })).await.unwrap();
    let guild = World::with_lobby_settings(json!({ "gate": { "guild_quiet_hours": { "home": "always" } } })).await;

    for (world, rule, changes) in [
        (&own, "Aria speaks only when spoken to at all times.", "quiet_hours"),
        (&room, "In this room, companions speak only when spoken to in the hours 00:00-23:59.", "quiet_hours"),
        (&guild, "On this server, companions speak only when spoken to at all times.", "gate.guild_quiet_hours"),
    ] {
        world.say_then_pass("lobby", "hm", 20.0).await;

        let explanation = why(world, "lobby", "aria").await;

        assert_eq!(&*explanation.decision.as_ref().unwrap().reason, "no_initiative", "{}", texts(&explanation));
        assert_eq!(step(&explanation, "rule"), rule);
        assert_eq!(setting(&explanation, "rule"), changes);
        assert_eq!(explanation.waiting_for.unwrap().text, rule);
        assert_eq!(world.side.asked_for("aria"), 0);
        world.side.answers([Ok("Me.\nYES")]);
        world.main.answers([Ok("Yes?")]);
        world.say_then_pass("lobby", "Ari?", 20.0).await;
        assert!(world.history("lobby").await.iter().any(|(_, text)| text == "Yes?"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_named() {
    let asked = World::with_lobby_settings(json!({ "gate": { "evaluations_per_hour": 1 } })).await;
    let addressed = World::with_lobby_settings(json!({ "gate": { "addresses_per_minute": 1 } })).await;
    let guild = World::with_lobby_settings(json!({ "gate": { "guild_statements_per_day": 0 } })).await;
    for _ in 0..2 {
        asked.say("lobby", "hm").await;
        asked.pass(20.0).await;
        addressed.say("lobby", "Ari?").await;
        addressed.pass(2.0).await;
    }
    guild.say("lobby", "Ari?").await;
    guild.pass(20.0).await;

    let rules = [
        (why(&asked, "lobby", "aria").await, "gate.evaluations_per_hour"),
        (why(&addressed, "lobby", "aria").await, "gate.addresses_per_minute"),
        (why(&guild, "lobby", "aria").await, "gate.guild_statements_per_day"),
    ];

    for (explanation, limit) in &rules {
        assert_eq!(&*explanation.decision.as_ref().unwrap().reason, "budget", "{}", texts(explanation));
        assert_eq!(setting(explanation, "rule"), *limit);
    }
    assert!(step(&rules[1].0, "rule").starts_with("One person may speak to companions once a minute. More was possible "));
}

#[tokio::test(start_paused = true)]
async fn while_a_guild_is_out_of_statements_that_is_shown_first() {
    let world = World::with_lobby_settings(json!({ "gate": { "guild_statements_per_day": 1 } })).await;
    world.side.answers([Ok("Me.\nYES")]);
    for text in ["Ari, one", "Ari, two"] {
        world.say_then_pass("lobby", text, 10.0).await;
    }
    world.pass(3_600.0).await;

    let during = why(&world, "lobby", "aria").await.waiting_for.unwrap().text;
    world.pass(23.0 * 3_600.0).await;
    let after = why(&world, "lobby", "aria").await.waiting_for.unwrap().text;

    let used_up = "All companions together have spoken as often as they may in a day. They may speak again in 23 hours.";
    assert_eq!(during, format!("{used_up} {after}"));
}

#[tokio::test(start_paused = true)]
async fn an_endpoints_own_error_text_is_in_no_story_of_another_guild() {
    let world = World::with_lobby().await;
    world.put_room("den", json!({ "guild": "elsewhere", "companions": ["aria"] })).await.unwrap();
    let detail = "400: “I do not like sesame”".to_owned();
    world.side.answers([Err(refusal()), Err(NoAnswer::Refused { endpoint: "scripted".into(), detail })]);
    for place in ["lobby", "den"] {
        world.say_then_pass(place, "Ari?", 2.0).await;
    }

    let explanation = why(&world, "lobby", "aria").await.waiting_for.unwrap().text;

    assert!(
        explanation.starts_with(
            "The AI service did not accept the request, or its answer could not be used; `tertulia health` says why. Aria tries again "
        ),
        "{explanation}"
    );
}

/// Everybody always wants to speak, and two statements in a row are allowed.
async fn guarded_salon() -> World {
    let overlay = json!({ "turn_taking": { "max_companion_streak": 2 }, "repetition": { "enabled": false } });
    let world = World::with_salon(overlay).await;
    world.side.answer_by(|_| Some(Ok(ballot("YES", 5, "none"))));
    world
}

#[tokio::test(start_paused = true)]
async fn the_loop_guard_shows_the_number_of_statements_in_a_row() {
    let world = guarded_salon().await;
    world.say_then_pass("salon", "Ari and Bruno?", 30.0).await;

    let explanation = why(&world, "salon", "cleo").await;

    assert_eq!(&*explanation.decision.as_ref().unwrap().reason, "loop_guard");
    assert_tells(&explanation, "decision", "because companions had spoken 2 times in a row without a person.");
    assert_eq!(setting(&explanation, "decision"), "turn_taking.max_companion_streak");
    let last = world.recorded("salon", "message").await.pop().unwrap()["seq"].to_string();
    let silent: Vec<_> =
        fates(&world, "salon", &last).await.into_iter().filter(|one| one.outcome == Some(Outcome::Silent)).collect();
    let [one, other] = &silent[..] else { panic!("{silent:?}") };
    let all =
        format!("{} and {} stayed silent without thinking about it, because companions had spoken 2 times", one.name, other.name);
    assert!(one.text == other.text && one.text.starts_with(&all), "{silent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_statement_in_flight_when_a_person_spoke_is_not_counted_in_the_streak() {
    let world = guarded_salon().await;
    world.say_then_pass("salon", "Ari and Bruno?", 2.0).await;
    world.say_then_pass("salon", "And one thing more", 30.0).await;

    let explanation = why(&world, "salon", "bruno").await;

    assert_eq!(&*explanation.decision.as_ref().unwrap().reason, "loop_guard");
    assert_tells(&explanation, "decision", "finished what they were writing, and had spoken 2 more times.");
}

#[tokio::test(start_paused = true)]
async fn a_closed_or_paused_companion_shows_since_when_and_what_opens_it() {
    let world = World::with_salon(json!({})).await;
    world.side.answer_by(|request| {
        let terminal = json!({ "reason": "bye", "decision": "NO", "closing": "terminal" }).to_string();
        (asking_companion(request) == "aria").then_some(Ok(terminal))
    });
    world.say_then_pass("salon", "Ari, good night", 5.0).await;
    world.patch("salon", json!({ "companions": { "bruno": { "paused": true } } })).await.unwrap();
    world.say_then_pass("salon", "still here", 5.0).await;

    let closed = why(&world, "salon", "aria").await;
    let paused = why(&world, "salon", "bruno").await;

    assert_eq!(step(&closed, "closing"), "Aria ended the conversation. That was the decision of Aria.");
    assert_tells(&closed, "rule", "after 9 messages by people");
    assert_eq!(step(&paused, "moved"), "Bruno was paused.");
    assert_eq!(setting(&paused, "rule"), "PATCH /api/rooms/salon {\"companions\":{\"bruno\":{\"paused\":null}}}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_shown_until_it_has_ended_and_then_its_end() {
    let world = World::with_lobby().await;
    let pause = async |patch| world.patch("lobby", patch).await.unwrap();
    pause(json!({ "paused": true })).await;
    let seq = world.say_then_pass("lobby", "Ari?", 5.0).await;
    pause(json!({ "companions": { "aria": { "paused": true } } })).await;
    let twice = why(&world, "lobby", "aria").await;
    pause(json!({ "paused": false })).await;
    let own = why(&world, "lobby", "aria").await;
    pause(json!({ "companions": { "aria": { "paused": null } } })).await;
    world.pass(1.0).await;

    let over = why(&world, "lobby", "aria").await;
    let message = fates(&world, "lobby", &seq.to_string()).await.remove(0);

    assert_tells(&twice, "rule", "Aria and the whole room are still paused.");
    let both = "PATCH /api/rooms/lobby {\"companions\":{\"aria\":{\"paused\":null}},\"paused\":false}";
    assert_eq!(setting(&twice, "rule"), both);
    assert_tells(&own, "rule", "Aria is still paused.");
    let explanation = texts(&over);
    assert!(!explanation.contains("still paused"), "{explanation}");
    assert!(message.text.ends_with("because Aria was paused."), "{}", message.text);
    assert!(explanation.ends_with("moved: The pause of Aria ended.\n"), "{explanation}");
}

#[tokio::test(start_paused = true)]
async fn messages_dropped_by_clearing_are_shown_with_it_in_the_order_of_time() {
    let world = World::with_lobby().await;
    world.say_then_pass("lobby", "what a day", 15.0).await;
    world.side.answers([Err(refusal())]);
    world.say_then_pass("lobby", "Ari, are you there?", 3.0).await;
    world.backend.rooms.clear(&room("lobby")).await.unwrap();
    world.pass(3.0).await;
    world.say_then_pass("lobby", "well", 2.0).await;
    world.side.answers([Err(refusal())]);
    world.say_then_pass("lobby", "Ari?", 2.0).await;

    let explanation = why(&world, "lobby", "aria").await;

    let (story, at) = (texts(&explanation), explanation.story.iter().map(|line| line.at.0).collect::<Vec<_>>());
    assert!(at.is_sorted(), "{at:?}\n{story}");
    assert_eq!(story.matches("The room was cleared, and everything in it was dropped.").count(), 1, "{story}");
    let [began, again] =
        ["A new conversation began, and nothing has been decided in it yet.", "“Ari?”"].map(|words| story.find(words));
    assert!(began.is_some() && began < again, "{story}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_the_whole_room_is_shown_as_one_and_not_replaced_by_later_events() {
    for clears in [false, true] {
        let world = World::with_lobby().await;
        world.patch("lobby", json!({ "paused": true })).await.unwrap();
        if clears {
            world.backend.rooms.clear(&room("lobby")).await.unwrap();
        }
        world.say_then_pass("lobby", "hello?", 5.0).await;

        let explanation = why(&world, "lobby", "aria").await;

        assert_eq!(&*explanation.decision.as_ref().unwrap().reason, "paused");
        assert_eq!(step(&explanation, "moved"), "The whole room was paused.");
        assert_eq!(explanation.waiting_for.unwrap().text, "Aria is paused, and says nothing until the pause ends.");
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_and_too_old_messages_show_the_limit() {
    let world = World::with_lobby_settings(json!({ "gate": { "max_buffer": 3, "stale_after_secs": 30.0 } })).await;
    world.side.set_delay(std::time::Duration::from_secs(6));
    world.say_then_pass("lobby", "Ari?", 1.0).await;
    for number in 0..4 {
        world.say("lobby", &format!("number {number}")).await;
    }
    world.rest().await;
    let overflow = why(&world, "lobby", "aria").await;
    world.side.answers([Err(refusal())]);
    world.pass(300.0).await;
    let decisions = world.decisions("lobby").await;
    let stale = decisions.iter().find(|decision| decision["reason"] == "stale").unwrap_or_else(|| panic!("{decisions:#?}"));
    let seq = stale["seq"].as_u64().unwrap();
    let stale = world.why("lobby", None, Some(WhyAt::Event(Seq(seq)))).await.unwrap();

    assert_eq!(setting(&overflow, "decision"), "gate.max_buffer");
    assert!(setting(&stale, "decision").starts_with("gate.stale_after_secs"), "{}", texts(&stale));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_answer_shows_what_was_expected() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Perhaps, perhaps not.")]);
    world.say_then_pass("lobby", "Ari?", 5.0).await;

    let explanation = why(&world, "lobby", "aria").await;

    assert_tells(&explanation, "decision", "its answer made no sense: “Perhaps, perhaps not.”");
    assert_tells(&explanation, "decision", "Aria wanted to speak all the same");
    assert_eq!(setting(&explanation, "rule"), "models.side");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_refuses_to_be_asked_again_leaves_the_first_answer_unreadable() {
    let world = World::with_lobby().await;
    world.side.answers([Ok("Perhaps, perhaps not."), Err(refusal())]);
    world.say_then_pass("lobby", "Ari?", 8.0).await;

    let explanation = why(&world, "lobby", "aria").await;

    assert_tells(&explanation, "decision", "“Perhaps, perhaps not.”");
    assert_eq!(world.history("lobby").await.len(), 2, "who is called by name answers");
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_was_cut_off_ends_with_its_last_whole_sentence_and_says_so() {
    let world = World::with_willing_lobby().await;
    world.main.answers([Ok("There are three ways. First you take the ferry, second you wal")]);
    world.main.cut(1);
    world.say_then_pass("lobby", "Ari?", 8.0).await;

    let explanation = why(&world, "lobby", "aria").await;
    let history = world.try_history("lobby").await.unwrap();

    let statement = history.messages.last().unwrap();
    assert_eq!((&*statement.text, statement.truncated), ("There are three ways.", true));
    assert!(!history.messages[0].truncated);
    assert_tells(&explanation, "statement", "The end is missing");
    assert_eq!(setting(&explanation, "statement"), "prompt.max_main_answer_tokens");
    assert_eq!(world.total("tertulia_answers_cut_total", &[("model_role", "main")]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_was_lost_to_thinking_names_the_limit() {
    let world = World::with_lobby().await;
    let spent = NoAnswer::OutOfTokens { endpoint: "scripted".into(), detail: "all spent".to_owned() };
    world.side.answers([Err(spent)]);
    world.say_then_pass("lobby", "Ari?", 2.0).await;

    let explanation = why(&world, "lobby", "aria").await;

    assert_eq!(setting(&explanation, "error"), "prompt.max_side_answer_tokens");
    assert_eq!(world.total("tertulia_answers_cut_total", &[("model_role", "side")]), 1);
}
