//! Where an answer ends, what it is made of, and what its failures say.

use super::*;

fn choice(choice: Value) -> String {
    json!({ "choices": [choice] }).to_string()
}

fn said(text: &str, reason: &str) -> String {
    choice(json!({ "delta": { "content": text }, "finish_reason": reason }))
}

fn ended(reason: &str) -> String {
    choice(json!({ "delta": {}, "finish_reason": reason }))
}

/// An answer of which these events have arrived.
fn partial(events: &[String]) -> PartialAnswer<'static> {
    let mut partial = PartialAnswer::new(MAX_ANSWER_BYTES, None);
    for event in events {
        partial.take_event(event.as_bytes(), false).unwrap_or_else(|broken| panic!("{event}: {broken:?}"));
    }
    partial
}

#[test]
fn an_answer_is_whole_after_what_ends_it() {
    let keep_alive = || choice(json!({ "delta": { "content": "" } }));
    for (events, is_ending, breaks, silence, end) in [
        (vec![piece("Hel")], false, false, false, true),
        (vec![piece("Hel"), stop()], true, true, true, true),
        (vec![piece("Hel"), done()], true, true, true, true),
        (vec![piece("Hel"), usage()], true, true, true, true),
        // Words after a reason are words.
        (vec![piece("Hel"), stop(), piece("lo")], false, true, true, true),
        (vec![piece("Hel"), said("lo", "stop")], false, true, true, true),
        // A reason in every piece is none.
        (vec![said("Hel", "stop"), said("lo", "stop")], false, false, true, true),
        // A reason that nobody knows, and tokens before the first word, end nothing.
        (vec![piece("Hel"), ended("whatever")], false, true, true, true),
        (vec![usage()], false, false, false, false),
        (vec![piece("Hel"), keep_alive()], false, false, false, true),
        (vec![piece(""), keep_alive()], false, false, false, false),
        (vec![choice(json!({ "delta": { "reasoning_content": "hm" } }))], false, false, false, false),
    ] {
        let partial = partial(&events);

        let found = (partial.is_ending(), partial.survives_break(), partial.survives_silence(), partial.survives_end());
        assert_eq!(found, (is_ending, breaks, silence, end), "{events:?}");
    }
}

#[tokio::test]
async fn words_after_a_reason_belong_to_the_answer_and_the_last_reason_counts() {
    let events = [said("The harbour ", "stop"), said("opens.", "stop"), ended("length"), usage(), done()];

    let answer = ask_once(streamed(events, Then::Ends)).await.expect("an answer");

    assert_eq!((&*answer.text(), answer.finish_reason.as_deref()), ("The harbour opens.", Some("length")));
    assert!(answer.is_cut());
}

#[tokio::test]
async fn a_body_that_ends_properly_ends_the_answer() {
    let answer = ask_once(streamed([piece("Hel"), piece("lo")], Then::Ends)).await.expect("an answer");
    let cut = ask_once(plain(200, "text/event-stream", format!("data: {}\n\ndata: {{\"choi", piece("Hel")))).await;

    assert_eq!(answer.text(), "Hello");
    assert_eq!(cut.expect_err("cut within a piece").code(), "unreachable");
}

#[tokio::test]
async fn words_arrive_in_the_shapes_of_many_servers() {
    let thinking = || json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "SECRET" }] }]);
    let text = |text: &str| json!({ "type": "text", "text": text });
    for (what, events, expected) in [
        (
            "parts",
            vec![
                choice(json!({ "delta": { "content": thinking() } })),
                choice(json!({ "delta": { "content": [text("Foggy "), text("day.")] } })),
            ],
            "Foggy day.",
        ),
        (
            "a part of an unknown type",
            vec![choice(json!({ "delta": { "content": [{ "type": "reference", "reference_ids": [1] }, text("Foggy.")] } }))],
            "Foggy.",
        ),
        ("one part", vec![choice(json!({ "delta": { "content": text("Foggy.") } }))], "Foggy."),
        (
            "JSON that the server has parsed",
            vec![choice(json!({ "delta": { "content": { "decision": "YES" } } }))],
            r#"{"decision":"YES"}"#,
        ),
        ("strings in a list", vec![choice(json!({ "delta": { "content": ["Fog", "gy."] } }))], "Foggy."),
        ("a message beside an empty delta", vec![choice(json!({ "delta": {}, "message": { "content": "Foggy." } }))], "Foggy."),
        (
            "a message that repeats the pieces",
            vec![
                piece("Fog"),
                piece("gy."),
                choice(json!({ "delta": {}, "message": { "content": "Foggy." }, "finish_reason": "stop" })),
            ],
            "Foggy.",
        ),
        (
            "messages as pieces",
            vec![choice(json!({ "message": { "content": "Fog" } })), choice(json!({ "message": { "content": "gy." } }))],
            "Foggy.",
        ),
        ("a completion", vec![choice(json!({ "text": "Fog" })), choice(json!({ "text": "gy.", "delta": {} }))], "Foggy."),
        (
            "halves of a character",
            vec![
                r#"{"choices":[{"delta":{"content":"Fog \ud83c"}}]}"#.to_owned(),
                r#"{"choices":[{"delta":{"content":"\udf2b!"}}]}"#.to_owned(),
            ],
            "Fog 🌫!",
        ),
        ("empty errors", vec![r#"{"error":{},"choices":[{"delta":{"content":"Foggy."},"error":null}]}"#.to_owned()], "Foggy."),
        (
            "ids that are numbers",
            vec![r#"{"id":7,"model":8,"choices":[{"index":"0","delta":{"content":"Foggy."}}]}"#.to_owned()],
            "Foggy.",
        ),
    ] {
        let events = events.into_iter().chain([done()]);

        let answer = ask_once(streamed(events, Then::Ends)).await.unwrap_or_else(|error| panic!("{what}: {error}"));

        assert_eq!(answer.text(), expected, "{what}");
    }
    let whole = json!({ "choices": [{ "message": { "content": [thinking()[0], text("Foggy.")] }, "finish_reason": "stop" }] });
    let answer = ask_once(plain(200, "application/json", whole.to_string())).await.expect("an answer");
    assert_eq!(answer.text(), "Foggy.");
}

#[test]
fn thoughts_in_fields_of_their_own_are_work_and_no_text() {
    for field in ["reasoning", "reasoning_content", "thinking"] {
        let partial = partial(&[choice(json!({ "delta": { field: "hm" } }))]);
        assert!(partial.has_begun() && !partial.survives_end(), "{field}");
    }
    for field in ["reasoning_details", "thinking_blocks"] {
        let partial = partial(&[choice(json!({ "delta": { field: [{ "type": "thinking", "text": "hm" }] } }))]);
        assert!(partial.has_begun() && !partial.survives_end(), "{field}");
    }
    let silent = json!({ "delta": { "reasoning": "", "reasoning_details": [], "thinking": null } });
    assert!(!partial(&[choice(silent)]).has_begun());
}

#[tokio::test]
async fn the_first_bytes_tell_what_a_body_holds_whatever_its_type() {
    let stream = || format!("data: {}\n\ndata: [DONE]\n\n", piece("Half past nine."));
    let whole = || json!({ "choices": [{ "message": { "content": "Half past nine." } }] }).to_string();
    for kind in [
        "text/plain; charset=utf-8",
        "application/json",
        "application/octet-stream",
        "text/json",
        "text/event-stream",
        "text/html",
    ] {
        for body in [stream(), whole()] {
            let answer = ask_once(plain(200, kind, body)).await.unwrap_or_else(|error| panic!("{kind}: {error}"));

            assert_eq!(answer.text(), "Half past nine.", "{kind}");
        }
    }
    let detail = refusal(plain(200, "text/plain", "Ollama is running")).await;
    assert!(detail.contains("text/plain (“Ollama is running”)") && detail.contains("/v1"), "{detail}");
}

#[tokio::test]
async fn errors_in_a_success_are_told_in_their_own_words() {
    let event_stream = "text/event-stream";
    for (what, does, code) in [
        (
            "an event named error",
            plain(200, event_stream, "event: error\ndata: {\"code\": 400, \"message\": \"MARK\"}\n\n"),
            "refused",
        ),
        ("an event of words", plain(200, event_stream, "event: error\ndata: MARK\n\n"), "overloaded"),
        (
            "an object of the type error",
            plain(200, event_stream, "data: {\"object\":\"error\",\"message\":\"MARK\",\"code\":400}\n\n"),
            "refused",
        ),
        (
            "an error without a field",
            plain(
                200,
                event_stream,
                format!("data: {}\n\n{{\"error\":{{\"message\":\"MARK\",\"code\":500}}}}\n\n", piece("Hel")),
            ),
            "overloaded",
        ),
        (
            "a type and an object",
            plain(
                200,
                event_stream,
                "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"MARK\"}}\n\n",
            ),
            "overloaded",
        ),
        (
            "a code and words",
            plain(200, "application/json", "{\"code\": 1113, \"msg\": \"MARK\", \"success\": false}"),
            "no_credit",
        ),
        ("an array", plain(200, "application/json", "[{\"error\":{\"code\":400,\"message\":\"MARK\"}}]"), "refused"),
        (
            "in a choice",
            streamed(
                [choice(json!({ "delta": {}, "error": { "code": 502, "message": "MARK" }, "finish_reason": "error" }))],
                Then::Ends,
            ),
            "overloaded",
        ),
        ("after words", streamed([piece("Hel"), choice(json!({ "error": { "message": "MARK" } }))], Then::Ends), "overloaded"),
        ("beside the code", plain(200, "application/json", "{\"error\":\"BAD\",\"message\":\"MARK\"}"), "overloaded"),
    ] {
        let error = ask_once(does).await.expect_err("no answer");

        assert!(error.to_string().contains("MARK") && error.code() == code, "{what}: {} {error}", error.code());
    }
    let reason = ask_once(streamed([piece("Hel"), ended("error"), done()], Then::Ends)).await.expect_err("no answer");
    assert!(reason.to_string().contains("the reason \"error\""), "{reason}");
}

#[tokio::test]
async fn a_wrong_address_leads_to_v1() {
    let detail =
        refusal(plain(200, "application/json", r#"{"error":"Unexpected endpoint or method. (POST /chat/completions)"}"#)).await;

    assert!(detail.contains("“Unexpected endpoint") && detail.contains("usually ends in /v1"), "{detail}");
}

#[tokio::test]
async fn tokens_that_are_all_spent_name_the_setting_that_raises_the_limit() {
    let thinks = || choice(json!({ "delta": { "reasoning_content": "hm" } }));
    for (role, events, words) in [
        (
            ModelRole::Main,
            vec![thinks(), ended("length"), usage()],
            "all of the 50 tokens that an answer may have on thinking; raise prompt.max_main_answer_tokens",
        ),
        (ModelRole::Side, vec![piece(" "), ended("MAX_TOKENS")], "before the first word; raise prompt.max_side_answer_tokens"),
    ] {
        let fake = Fake::new([streamed(events.into_iter().chain([done()]), Then::Ends)]).await;

        let error = model(&endpoint(&fake.url)).ask(&Request { role, ..request() }, None).await.expect_err("no answer");

        assert!(error.code() == "out_of_tokens" && error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn the_words_of_a_refusal_are_told() {
    for does in [
        streamed(
            [
                choice(json!({ "delta": { "refusal": "I can’t help " } })),
                choice(json!({ "delta": { "refusal": "with that." } })),
                stop(),
                done(),
            ],
            Then::Ends,
        ),
        plain(
            200,
            "application/json",
            json!({ "choices": [{ "message": { "content": null, "refusal": "I can’t help with that." } }] }).to_string(),
        ),
        streamed(
            [choice(json!({ "delta": { "content": [{ "type": "refusal", "refusal": "I can’t help with that." }] } })), done()],
            Then::Ends,
        ),
    ] {
        let detail = refusal(does).await;

        assert_eq!(detail, "the model declined to answer: “I can’t help with that.”");
    }
}

#[tokio::test]
async fn a_reason_that_is_not_known_is_no_end_of_half_a_sentence() {
    for (text, reason, is_cut) in [
        ("The ferry to the isl", "token_budget", true),
        ("The harbour opens at six.", "COMPLETE", false),
        (r#"{"decision": "YES"}"#, "finished", false),
        ("The ferry to the isl", "stop", false),
    ] {
        let answer = ask_once(streamed([piece(text), ended(reason), done()], Then::Ends)).await.expect("an answer");
        assert_eq!((&*answer.text(), answer.is_cut()), (text, is_cut), "{reason}");
    }
}

#[tokio::test]
async fn of_several_answers_the_one_with_the_lowest_index_is_read() {
    let of = |index: u64, text: &str| json!({ "index": index, "delta": { "content": text } });
    let both = |first: &str| json!({ "choices": [of(1, "XX"), of(0, first)] }).to_string();
    let only = |index: u64, text: &str| choice(of(index, text));
    let ended = |index: u64| choice(json!({ "index": index, "delta": {}, "finish_reason": "length" }));
    for events in [
        vec![both("See "), only(1, "YY"), only(0, "you"), both("."), stop()],
        vec![only(1, "XX"), only(0, "See "), only(1, "YY"), only(0, "you."), ended(1), stop()],
        vec![only(2, "XX"), only(1, "YY"), ended(1), only(0, "See you."), stop()],
        vec![only(3, "See "), only(3, "you."), choice(json!({ "index": 3, "delta": {}, "finish_reason": "stop" }))],
    ] {
        let fake = Fake::new([streamed(events.into_iter().chain([done()]), Then::Ends)]).await;
        let (drafts, mut drafted) = mpsc::unbounded_channel();
        let answer = model(&endpoint(&fake.url)).ask(&request(), Some(&drafts)).await.expect("an answer");

        let mut shown = String::new();
        while let Ok(draft) = drafted.try_recv() {
            match draft {
                Draft::More(more) => shown.push_str(&more),
                Draft::Restart => shown.clear(),
            }
        }
        assert_eq!((&*answer.text(), &*shown, answer.is_cut()), ("See you.", "See you.", false));
    }
}

#[tokio::test]
async fn an_answer_that_came_as_a_thought_is_used_if_it_is_none() {
    let thought = |text: &str| choice(json!({ "delta": { "reasoning_content": text } }));
    let asked = async |text: &str, format: AnswerFormat| {
        let fake = Fake::new([streamed([thought(&text[..4]), thought(&text[4..]), stop(), done()], Then::Ends)]).await;
        model(&endpoint(&fake.url)).ask(&Request { format, ..request() }, None).await
    };

    let words = asked("The harbour opens at six.", AnswerFormat::Text).await.expect("an answer");
    let vote = asked(r#"{"decision": "YES"}"#, AnswerFormat::JsonObject).await.expect("an answer");
    let thinking = asked("Okay, the user wants to know when it opens.", AnswerFormat::Text).await.expect_err("a thought");
    let no_vote = asked("The harbour opens at six.", AnswerFormat::JsonObject).await.expect_err("a thought");

    assert_eq!((&*words.text(), &*vote.text()), ("The harbour opens at six.", r#"{"decision": "YES"}"#));
    assert!(thinking.to_string().contains("only thought") && no_vote.to_string().contains("only thought"), "{thinking}");
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_stopped() {
    let endless = |begin: &str, part: &str| {
        let events = [piece(begin)].into_iter().chain(std::iter::repeat_n(piece(part), 2_000));
        streamed(events, Then::Hangs)
    };

    let answer = ask_once(endless("The harbour opens at six.", " the")).await.expect("an answer");
    let nothing = ask_once(endless("", "\n")).await.expect_err("no word");
    let thoughts = std::iter::repeat_n(choice(json!({ "delta": { "reasoning_content": "the " } })), 2_000);
    let thinking = ask_once(streamed(thoughts, Then::Hangs)).await.expect_err("no word");
    // The end comes before the next check.
    let short = format!("The harbour opens at six.{}", " I am done.".repeat(40));
    let short = ask_once(streamed([piece(&short), ended("length"), done()], Then::Ends)).await.expect("an answer");

    let steps = (1..2_000).map(|step| piece(&format!("\nStep {step}: I think so.")));
    let steps = [piece("The harbour opens at six.")].into_iter().chain(steps);
    let counted = ask_once(streamed(steps, Then::Hangs)).await.expect("an answer");

    assert_eq!((&*answer.text(), answer.is_cut()), ("The harbour opens at six.", true));
    assert_eq!((&*counted.text(), counted.is_cut()), ("The harbour opens at six.", true));
    assert_eq!((&*short.text(), short.is_cut()), ("The harbour opens at six.", true));
    assert!([&nothing, &thinking].iter().all(|error| error.to_string().contains("again and again")), "{nothing} {thinking}");
}

#[tokio::test]
async fn a_thought_that_is_sent_as_the_text_too_is_no_answer() {
    let both = choice(json!({ "delta": { "content": "The user asks", "reasoning_content": "The user asks" } }));

    let nothing = refusal(streamed([both, ended("length"), done()], Then::Ends)).await;

    assert!(nothing.contains("on thinking"), "{nothing}");
}

#[tokio::test]
async fn an_empty_answer_of_a_full_context_means_that_the_prompt_is_too_long() {
    for reason in ["model_context_window_exceeded", "context_length"] {
        let error = ask_once(streamed([ended(reason), done()], Then::Ends)).await.expect_err("nothing");

        assert_eq!(error.code(), "too_long", "{error}");
    }
}

#[tokio::test]
async fn lines_of_json_are_a_stream() {
    let body = [piece("Hel"), piece("lo."), stop()].join("\n");
    for kind in ["application/x-ndjson", "application/json", "text/plain"] {
        let answer = ask_once(plain(200, kind, body.clone())).await.expect("an answer");
        assert_eq!(answer.text(), "Hello.", "{kind}");
    }
}

#[tokio::test]
async fn compressed_bodies_are_read_although_none_is_asked_for() {
    let compressed = |status: u16, kind: &str, body: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, body.as_bytes()).expect("memory");
        let Does::Answers(mut response) = plain(status, kind, gzip.finish().expect("memory")) else { unreachable!() };
        response.headers_mut().insert("content-encoding", "gzip".parse().expect("a value"));
        Does::Answers(response)
    };
    let stream = format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", piece("Hello."), stop());
    let bomb = format!("{{\"choices\": [{}", " ".repeat(40 << 20));

    let streamed = ask_once(compressed(200, "text/event-stream", &stream)).await.expect("an answer");
    let refused = ask_once(compressed(400, "application/json", r#"{"error": {"message": "your plan has no access"}}"#))
        .await
        .expect_err("refused");
    let bombed = ask_once(compressed(200, "application/json", &bomb)).await.expect_err("too long");
    let Does::Answers(mut brotli) = plain(200, "text/event-stream", "\u{1}\u{2}") else { unreachable!() };
    brotli.headers_mut().insert("content-encoding", "br".parse().expect("a value"));
    let unread = ask_once(Does::Answers(brotli)).await.expect_err("no answer").in_our_words();
    let Does::Answers(mut brotli) = plain(403, "application/json", "\u{1}\u{2}") else { unreachable!() };
    brotli.headers_mut().insert("content-encoding", "br".parse().expect("a value"));
    let unread_refusal = ask_once(Does::Answers(brotli)).await.expect_err("no answer").in_our_words();

    assert!(unread.contains("compressed (br)") && unread.contains("send it uncompressed"), "{unread}");
    assert!(unread_refusal.contains("403 Forbidden: its message is compressed (br) (check the key)"), "{unread_refusal}");
    assert_eq!(streamed.text(), "Hello.");
    assert!(refused.in_our_words().contains("change the plan"), "{refused}");
    assert!(refused.to_string().contains("no access") && bombed.to_string().contains("too long"), "{refused} {bombed}");
}

#[tokio::test]
async fn what_an_endpoint_wants_besides_is_sent_and_its_secrets_are_never_shown() {
    let fake = Fake::new([error(400, "no gateway-secret here", &[])]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    std::fs::write(&file, "gateway-secret\n").expect("a file");
    let set = |table: Value| -> Endpoint {
        let mut endpoint = endpoint(&fake.url);
        endpoint.extra_body = serde_json::from_value(table["body"].clone()).expect("a table");
        endpoint.extra_headers = serde_json::from_value(table["headers"].clone()).expect("a table");
        endpoint
    };

    let wanted = set(json!({ "body": { "top_k": 5 }, "headers": { "x-gateway-key": { "file": file } } }));
    let refused = model(&wanted).ask(&request(), None).await.expect_err("refused").to_string();

    assert_eq!(fake.received()[0].body["top_k"], 5);
    assert!(refused.contains("no *** here"), "{refused}");
    for (body, headers, words) in [
        (json!({ "model": "other" }), json!({}), "must not have model"),
        (json!({}), json!({ "Authorization": "Bearer other" }), "is set by the program itself"),
        (json!({}), json!({ "a b": "c" }), "is not the name of a header"),
        (json!({}), json!({ "x-key": { "file": "/nowhere" } }), "cannot be read"),
    ] {
        let problem = set(json!({ "body": body, "headers": headers })).extra().expect_err("a problem");
        assert!(problem.message.contains(words), "{problem}");
    }
}

#[tokio::test]
async fn an_answer_without_a_choice_was_withheld_by_a_filter() {
    let whole = |answer: Value| plain(200, "application/json", answer.to_string());
    for does in [
        streamed([usage(), done()], Then::Ends),
        streamed([json!({ "id": "1", "choices": null }).to_string(), done()], Then::Ends),
        streamed([json!({ "id": "1", "object": "chat.completion.chunk" }).to_string(), done()], Then::Ends),
        whole(json!({ "choices": [] })),
        whole(json!({ "object": "chat.completion", "choices": null, "usage": { "prompt_tokens": 5 } })),
        whole(json!({ "object": "chat.completion", "usage": { "prompt_tokens": 5 } })),
    ] {
        let no_answer = ask_once(does).await.expect_err("no answer");

        assert!(matches!(no_answer, NoAnswer::Filtered { .. }), "{no_answer}");
    }
}
