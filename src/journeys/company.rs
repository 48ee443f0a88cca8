//! Several companions in one room, and external companions.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, asking_companion, channel_key, lines, newest, room};
use crate::domain::id::Seq;
use crate::ports::backend::Refused;
use crate::ports::backend::decisions::{Why, WhyAt};
use crate::ports::backend::keeping::ExportForm;
use crate::replay::{ReplayEventKind, Script, run};

fn conflict<T: std::fmt::Debug>(outcome: Result<T, Refused>) -> String {
    match outcome {
        Err(Refused::Conflict(detail)) => detail.to_string(),
        other => panic!("{other:?} is no conflict"),
    }
}

/// A vote of a program that plays a companion, about a message.
fn external_vote(from: &str, about: impl ToString, state: &str, importance: u8) -> Value {
    json!({ "from": from, "messageId": about.to_string(), "state": state, "importance": importance, "selected": false })
}

async fn why(world: &World, companion: &str, at: Option<u64>) -> Why {
    let at = at.map(|seq| WhyAt::Event(Seq(seq)));
    world.why("lobby", Some(companion), at).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_external_companion_that_looks_like_an_internal_one_is_refused() {
    let world = World::with_lobby().await;
    let invite = async |external: Value| world.put_room("hall", json!({ "guild": "elsewhere", "companions": [external] })).await;

    // A Cyrillic A, a name in another place, and a digit.
    let cyrillic = conflict(invite(json!({ "id": "zed", "external": true, "name": "\u{410}ria" })).await);
    let alias = conflict(invite(json!({ "id": "zed", "external": true, "aliases": ["Brun0"] })).await);
    let id = conflict(invite(json!({ "id": "brun0", "external": true })).await);

    assert!(cyrillic.contains("looks like \"aria\"") && cyrillic.ends_with("choose another name"), "{cyrillic}");
    assert!(alias.contains("companion bruno") && id.contains("companion bruno"), "{alias} {id}");
    assert!(invite(json!({ "id": "zed", "external": true, "name": "Zed" })).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn membership_changes_while_a_room_is_in_use_survive_a_crash() {
    let world = World::with_lobby().await;
    let mut watching = world.watch("lobby", None).await;
    world.say("lobby", "before").await;

    world.open_with("lobby", json!(["aria", "bruno"])).await;
    world.say("lobby", "between").await;
    let state = world.state("lobby").await;
    world.open_with("lobby", json!(["bruno"])).await;
    let world = world.crash().await;

    let buffers: Vec<Vec<_>> =
        state.companions.iter().map(|companion| companion.buffer.iter().map(|text| &**text).collect()).collect();
    assert_eq!(buffers, [vec!["before", "between"], vec!["between"]]);
    assert_eq!(world.present("lobby").await, ["bruno"]);
    assert_eq!(watching.names().await, ["hello", "message", "joined", "message", "left"]);
}

#[tokio::test(start_paused = true)]
async fn an_open_round_is_shown_in_the_state_of_the_room() {
    let world = World::new().await;
    world.open_with("lobby", json!(["aria", "bruno", { "id": "zed", "external": true }])).await;
    world.side.answers([Ok("{\"reason\": \"me\", \"decision\": \"YES\", \"importance\": 7}")]);

    let asked = world.say("lobby", "Ari? Zed?").await;
    world.rest().await;
    let open = world.state("lobby").await;
    world.pass(1.0).await;
    let half = world.state("lobby").await.rounds.remove(0);
    let ballot = external_vote("zed", asked, "listen", 0);
    world.vote("lobby", ballot).await.unwrap();
    world.pass(0.5).await;
    let selected = serde_json::to_value(world.state("lobby").await).unwrap();

    let round = open.rounds[0].clone();
    assert_eq!((round.message_id, &round.asked), (asked, &vec!["aria".into(), "zed".into()]));
    assert_eq!(round.missing, round.asked);
    assert_eq!((half.asked, half.missing), (round.asked, vec!["zed".into()]));
    assert_eq!(round.states.iter().map(|state| state.from.as_str()).collect::<Vec<_>>(), ["bruno"]);
    assert_eq!(selected["rounds"], json!([]));
    assert_eq!(selected["turn"]["companion"], "aria");
    assert_eq!(selected["turn"]["trigger"], "direct_address");
    assert_eq!(selected["companions"][0]["doing"], "waiting_its_turn");
    assert_eq!((&selected["streak"], &selected["max_companion_streak"]), (&json!(0), &json!(4)));
}

#[tokio::test(start_paused = true)]
async fn a_vote_that_is_held_has_its_floor_once_another_has_spoken() {
    let world = World::new().await;
    world.open("lobby", &["aria", "bruno", "cleo"]).await;
    world.main.set_delay(Duration::from_secs(10));
    world.side.set_delay_for("cleo", Duration::from_secs(5));
    world.side.answer_by(|request| {
        let decision = if asking_companion(request) == "cleo" { "NO" } else { "YES" };
        Some(Ok(json!({ "decision": decision, "importance": 7 }).to_string()))
    });
    let mut watching = world.watch("lobby", None).await;
    let floors = async || {
        let decisions = world.decisions("lobby").await;
        decisions.iter().filter(|vote| vote["decision"] == "YES").map(|vote| vote["floor"].clone()).take(2).collect::<Vec<_>>()
    };

    // Aria's round closes before Bruno's, and she speaks.
    world.say_then_pass("lobby", "Bruno? Cleo?", 1.0).await;
    world.say_then_pass("lobby", "Ari?", 3.0).await;
    let while_open = floors().await;
    world.pass(3.0).await;
    let while_held = floors().await;
    world.pass(10.0).await;
    let afterwards = floors().await;

    assert_eq!((while_open, while_held), (vec![Value::Null, json!("won")], vec![Value::Null, json!("won")]));
    assert_eq!(afterwards, ["won", "won"]);
    let seen = watching.seen().await;
    let held: Vec<_> = seen.iter().filter_map(|event| event.get("held")).collect();
    assert_eq!(held, [&json!(["bruno"])]);
    assert_eq!(newest(&seen, "held_selected")["selected"], "bruno");
}

#[tokio::test(start_paused = true)]
async fn a_decision_in_a_round_has_its_vote_and_why_tells_who_got_the_floor() {
    let world = World::new().await;
    world.open("lobby", &["aria", "bruno"]).await;
    let yes = "{\"reason\": \"I know\", \"decision\": \"YES\", \"importance\": 7}";
    let no = "{\"reason\": \"enough\", \"decision\": \"NO\"}";
    world.side.answers([Ok(yes), Ok(yes), Ok(no)]);

    world.say_then_pass("lobby", "Ari? Bruno?", 30.0).await;

    let decisions = world.decisions("lobby").await;
    assert_eq!((&decisions[0]["companion"], &decisions[0]["floor"]), (&json!("aria"), &json!("won")));
    assert_eq!((&decisions[1]["companion"], &decisions[1]["floor"]), (&json!("bruno"), &json!("lost")));
    assert_eq!(decisions[0]["vote"]["importance"], 7.0);
    let story = why(&world, "bruno", decisions[1]["seq"].as_u64()).await.story;
    let story: Vec<_> = story.into_iter().map(|line| (line.event, line.text)).collect();
    let round = story.iter().find(|(event, _)| &**event == "round").unwrap_or_else(|| panic!("{story:#?}"));
    assert_eq!(
        round.1,
        "Aria (7 of 10) and Bruno (7 of 10) wanted to speak. Aria was chosen by the alphabet, because all else was equal."
    );
}

#[tokio::test(start_paused = true)]
async fn a_companion_that_ended_the_conversation_says_what_opens_it_again() {
    let world = World::new().await;
    world.open("lobby", &["aria", "bruno"]).await;
    world.side.answers([Ok("{\"reason\": \"bye\", \"decision\": \"NO\", \"closing\": \"terminal\"}")]);
    world.say_then_pass("lobby", "Ari, good night", 5.0).await;
    world.say_then_pass("lobby", "and you", 5.0).await;

    let state = serde_json::to_value(world.state("lobby").await).unwrap();
    let why = why(&world, "aria", None).await;

    let aria = &state["companions"][0];
    assert_eq!((&aria["closing"], &aria["doing"]), (&json!("terminal"), &json!("closed")));
    assert_eq!((&aria["heard_closed"], &aria["reopen_after"]), (&json!(1), &json!(9)));
    let waiting = why.waiting_for.unwrap();
    assert_eq!(
        (waiting.messages, &*waiting.text),
        (
            Some(8),
            "Aria has said goodbye, and comes back when somebody speaks to Aria, after 8 more messages by people, or in a new conversation."
        )
    );
    assert_eq!(why.decision.unwrap().reason, "closed".into());
    assert!(why.story.iter().any(|line| line.text.starts_with("Aria ended the conversation.")), "{:#?}", why.story);
}

#[tokio::test(start_paused = true)]
async fn an_external_companion_votes_and_speaks() {
    let world = World::with_lobby().await;
    world.open_with("lobby", json!(["aria", { "id": "zed", "external": true, "aliases": ["zeddy"] }])).await;
    let mut watching = world.watch("lobby", None).await;

    let asked = world.say("lobby", "Zeddy, are you there?").await;
    world.rest().await;
    let seen = watching.seen().await;
    let ballot = external_vote("zed", asked, "speak", 6);
    let listed = newest(&seen, "round_opened")["asked"].clone();
    let early = world.speak("lobby", json!({ "from": "zed", "message_id": asked, "text": "I am" })).await;
    let other = world.vote("lobby", external_vote("zed", "1", "listen", 0)).await;
    let played = world.vote("lobby", external_vote("aria", "1", "listen", 0)).await;
    world.vote("lobby", ballot.clone()).await.unwrap();
    let twice = world.vote("lobby", ballot).await;
    world.pass(3.0).await;
    let respond = newest(&watching.seen().await, "respond").clone();
    let seq = world.speak("lobby", json!({ "from": "zed", "message_id": asked, "text": "I am" })).await.unwrap();
    let again = world.speak("lobby", json!({ "from": "zed", "message_id": asked, "text": "I am still" })).await;
    world.rest().await;

    assert_eq!(listed, json!(["zed"]));
    assert!(conflict(early).contains("not selected"));
    assert!(conflict(other).contains("not that of the open round"));
    assert!(conflict(played).contains("not external"));
    conflict(twice);
    assert_eq!(respond["companion"], "zed");
    assert!(respond["due_at"].is_string());
    assert!(conflict(again).contains("already"));
    let history = world.history("lobby").await;
    assert_eq!(history[..2], lines(&[("Ana", "Zeddy, are you there?"), ("zed", "I am")])[..]);
    let decision = world.decisions("lobby").await.remove(0);
    assert_eq!(
        (&decision["reason"], &decision["floor"], &decision["vote"]["importance"]),
        (&json!("external"), &json!("won"), &json!(6.0))
    );
    let story = why(&world, "zed", Some(decision["seq"].as_u64().unwrap())).await.story;
    assert!(story.iter().any(|line| line.text == "The program that plays Zed wanted to speak."), "{story:#?}");
    assert!(seq > asked);
}

#[tokio::test(start_paused = true)]
async fn an_external_companion_that_was_not_asked_is_told_so_even_after_a_crash() {
    let world = World::with_lobby().await;
    world.open_with("lobby", json!(["aria", { "id": "vera", "external": true }, { "id": "zed", "external": true }])).await;
    world.side.set_delay_for("aria", std::time::Duration::from_secs(9));
    let asked = world.say_then_pass("lobby", "Aria, Zed, are you there?", 1.0).await;
    let ballot = |from: &str| external_vote(from, asked, "speak", 5);

    // Enough messages for a snapshot within the round.
    for number in 0..130 {
        world.say("lobby", &format!("and {number}")).await;
    }

    let not_asked = world.vote("lobby", ballot("vera")).await;
    let first = world.vote("lobby", ballot("zed")).await;
    let second = world.vote("lobby", ballot("zed")).await;
    let channel_key = channel_key("lobby");
    let restored = world.reader().restore(&channel_key).await.unwrap();
    let world = world.crash().await;
    world.side.set_delay_for("aria", std::time::Duration::from_secs(9));
    world.pass(0.5).await;
    let still_not_asked = world.vote("lobby", ballot("vera")).await;
    let third = world.vote("lobby", ballot("zed")).await;

    first.unwrap();
    let open = restored.snapshot.map(|snapshot| snapshot.conversation.turns().rounds().to_vec()).unwrap_or_default();
    assert_eq!(open.iter().map(|round| round.asked.clone()).collect::<Vec<_>>(), [["aria".into(), "zed".into()]]);
    for refused in [not_asked, still_not_asked] {
        assert!(conflict(refused).contains("vera is not asked in this round"));
    }
    for refused in [second, third] {
        assert!(conflict(refused).contains("zed has done this already"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_vote_is_named_as_the_cause() {
    let world = World::with_lobby().await;
    world.open_with("lobby", json!(["aria", { "id": "zed", "external": true }])).await;
    world.side.answers([Ok("{\"reason\": \"me\", \"decision\": \"YES\", \"importance\": 7}")]);
    world.say_then_pass("lobby", "Aria, Zed, are you there?", 21.0).await;

    let silent = why(&world, "zed", None).await;
    let seq = world.decisions("lobby").await[0]["seq"].as_u64();
    let story = why(&world, "aria", seq).await.story;

    let attempts: Vec<_> = silent.story.iter().map(|line| (&*line.event, &*line.text)).collect();
    let expected = "The program that plays Zed did not answer in time. Zed was to try again after 10 seconds.";
    assert_eq!(attempts, [("message", "Ana said to Aria and Zed: “Aria, Zed, are you there?”"), ("error", expected)]);
    let waiting = silent.waiting_for.unwrap();
    assert!(waiting.text.starts_with("The program that plays Zed did not answer in time."), "{}", waiting.text);
    let texts: Vec<_> = story.iter().map(|line| &*line.text).collect();
    let round = "Aria wanted to speak. Zed gave no answer. Aria was chosen, because nobody else wanted to speak.";
    assert!(texts.contains(&round), "{texts:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_external_companion_survives_a_crash_and_leaves_when_it_is_left_out() {
    let world = World::with_lobby().await;
    world.open_with("lobby", json!(["aria", { "id": "zed", "external": true, "name": "Zed the Bot" }])).await;

    let world = world.crash().await;
    let lobby = world.backend.rooms.get(&room("lobby")).await.unwrap();
    world.say("lobby", "hello, Zed the Bot").await;
    world.rest().await;
    let asked = world.state("lobby").await.rounds.remove(0).asked;
    world.open_with("lobby", json!(["aria"])).await;

    assert_eq!((lobby.companions[1].external, &*lobby.companions[1].name), (true, "Zed the Bot"));
    assert_eq!(asked, ["zed".into()]);
    assert_eq!(world.present("lobby").await, ["aria"]);
    let late = world.vote("lobby", external_vote("zed", "1", "listen", 0)).await;
    assert!(conflict(late).contains("zed is not in room lobby"));
}

#[tokio::test(start_paused = true)]
async fn votes_without_an_open_round_or_room_are_refused() {
    let world = World::with_lobby().await;
    world.open_with("lobby", json!(["aria", { "id": "zed", "external": true }])).await;
    let ballot = external_vote("zed", 1, "listen", 0);

    let no_round = world.vote("lobby", ballot.clone()).await;
    let nowhere = world.vote("nowhere", ballot).await;

    assert!(conflict(no_round).contains("no round is open"));
    assert!(matches!(nowhere, Err(Refused::NotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn a_script_with_one_external_companion_decides_the_same_and_names_what_is_missing() {
    let world = World::new().await;
    world.open_with("lobby", json!([{ "id": "zed", "external": true }])).await;
    let asked = world.say("lobby", "Zed, are you there?").await;
    world.rest().await;
    let ballot = external_vote("zed", asked, "speak", 6);
    world.vote("lobby", ballot).await.unwrap();
    world.pass(3.0).await;
    world.speak("lobby", json!({ "from": "zed", "message_id": asked, "text": "I am" })).await.unwrap();
    world.rest().await;

    let script = Script::from_json(&world.export("lobby", ExportForm::Replay).await[0]).unwrap();
    let happened = run(&script).unwrap();

    assert_eq!(script.notes.len(), 1, "{:?}", script.notes);
    assert!(script.notes[0].starts_with("1 vote of zed, an external companion: "), "{:?}", script.notes);
    let what: Vec<_> = happened
        .iter()
        .filter_map(|happening| match &happening.kind {
            ReplayEventKind::Decision { decision, reason, .. } => Some(format!("{decision} {reason}")),
            ReplayEventKind::Statement { text, .. } => Some(text.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(what, ["YES model_yes", "I am"]);
}

#[tokio::test(start_paused = true)]
async fn an_exported_talk_of_three_decides_the_same_when_it_is_replayed() {
    let world = World::new().await;
    world.open("lobby", &["aria", "bruno", "cleo"]).await;
    let vote = |decision: &str, importance: f64, closing: &str| {
        json!({ "reason": "so it is", "decision": decision, "importance": importance, "closing": closing }).to_string()
    };
    let answers = [
        vote("YES", 4.0, "none"),
        vote("YES", 8.5, "none"),
        vote("NO", 1.0, "none"),
        vote("NO", 0.0, "pre-closing"),
        "I have no idea".to_owned(),
        vote("YES", 5.0, "none"),
        vote("YES", 5.0, "closing"),
        vote("NO", 0.0, "terminal"),
        vote("NO", 0.0, "none"),
    ];
    world.side.answers(answers.map(|answer| Ok(&*answer.leak())));
    world.main.answers(["First.", "Second.", "Third.", "Fourth."].map(Ok));
    world.say_then_pass("lobby", "Aria, Bruno, Cleo: what now?", 40.0).await;
    world.say_then_pass("lobby", "and what do you think of the harbour?", 9.0).await;
    world.say_then_pass("lobby", "it is old", 60.0).await;
    world.say_then_pass("lobby", "Bruno?", 60.0).await;

    let script = Script::from_json(&world.export("lobby", ExportForm::Replay).await[0]).unwrap();
    let happened = run(&script).unwrap();

    let replayed: Vec<_> = happened
        .iter()
        .filter_map(|happening| match &happening.kind {
            ReplayEventKind::Decision { companion, trigger, decision, reason } => {
                Some([companion.to_string(), trigger.to_string(), decision.to_string(), reason.to_string()])
            }
            _ => None,
        })
        .collect();
    let decided = world.decisions("lobby").await;
    let text = |decision: &Value, field: &str| decision[field].as_str().unwrap().to_owned();
    let decided: Vec<_> = decided
        .iter()
        .map(|decision| ["companion", "trigger", "decision", "reason"].map(|field| text(decision, field)))
        .collect();
    assert_eq!(replayed, decided);
    assert!(decided.len() > 8, "{decided:#?}");
    let statements = happened.iter().filter_map(|happening| match &happening.kind {
        ReplayEventKind::Statement { companion, text } => Some((companion.to_string(), text.clone())),
        _ => None,
    });
    let history: Vec<_> = world.history("lobby").await.into_iter().filter(|(from, _)| from != "Ana").collect();
    assert_eq!(statements.collect::<Vec<_>>(), history);
}

#[tokio::test(start_paused = true)]
async fn a_reload_removes_companions_that_are_no_longer_configured_and_leaves_the_others() {
    let world = World::new().await;
    let zed = json!({ "id": "zed", "external": true });
    world.open_with("lobby", json!(["aria", "bruno", zed])).await;

    world.reload_companions(&["aria"]).await;
    let without = world.present("lobby").await;
    world.say("lobby", "one").await;
    world.reload_companions(&["aria", "bruno"]).await;
    world.say("lobby", "two").await;
    world.rest().await;

    assert_eq!(without, ["aria", "zed"]);
    let state = world.state("lobby").await;
    let buffers: Vec<_> = state.companions.iter().map(|companion| (companion.id.as_str(), companion.buffer.len())).collect();
    assert_eq!(buffers, [("aria", 2), ("bruno", 1), ("zed", 2)]);
}
