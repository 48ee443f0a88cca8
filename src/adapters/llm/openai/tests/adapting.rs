//! Endpoints that refuse how they are asked, and are asked in another way.

use super::*;

fn vote_with_schema() -> Request {
    let schema = json!({ "type": "object" }).into();
    Request { format: AnswerFormat::JsonSchema { name: "vote".to_owned(), schema }, ..request() }
}

fn answers(text: &str) -> Does {
    streamed([piece(text), stop(), done()], Then::Ends)
}

fn whole(text: &str) -> Does {
    let choice = json!({ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
    plain(200, "application/json", json!({ "choices": [choice] }).to_string())
}

fn messages_of(received: &super::super::fake::Received) -> Vec<(String, String)> {
    let messages = received.body["messages"].as_array().expect("messages").iter();
    messages
        .map(|one| (one["role"].as_str().expect("a role").to_owned(), one["content"].as_str().expect("text").to_owned()))
        .collect()
}

#[tokio::test]
async fn an_endpoint_that_refuses_to_stream_is_asked_for_whole_answers_from_then_on() {
    let no = json!({ "error": { "message": "Your organization must be verified to stream this model.", "param": "stream" } })
        .to_string();
    let fake = Fake::new([plain(400, "application/json", no), whole("In one piece."), whole("Again.")]).await;
    let model = model(&endpoint(&fake.url));

    let first = model.ask(&request(), None).await.expect("an answer");
    let second = model.ask(&request(), None).await.expect("an answer");

    assert_eq!((&*first.text(), &*second.text()), ("In one piece.", "Again."));
    let asked: Vec<_> =
        fake.received().iter().map(|one| (one.body["stream"] == true, one.body.get("stream_options").is_some())).collect();
    assert_eq!(asked, [(true, true), (false, false), (false, false)]);
    assert_eq!(model.adaptations(), ["answers come in one piece, because the endpoint refuses to stream"]);
}

#[test]
fn an_answer_in_one_piece_may_take_longer_than_a_first_word() {
    let mut endpoint = endpoint("http://127.0.0.1:1/v1");
    (endpoint.first_token_timeout_secs, endpoint.idle_timeout_secs, endpoint.timeout_secs) = (1.0, 2.0, 3.0);
    let model = model(&endpoint);
    let mut attempt = model.dialect.first(Form::Text, 50);

    let streamed = model.within(&attempt, Instant::now());
    attempt.parameters.stream = false;
    let whole = model.within(&attempt, Instant::now());

    let secs = |within: Within| [within.first_token, within.idle].map(|span| span.as_secs());
    assert_eq!([secs(streamed), secs(whole)], [[1, 2], [3, 3]]);
}

#[tokio::test]
async fn nobody_speaks_twice_in_a_row() {
    let of = |role: Role, text: &str| Message::text(role, text.to_owned());
    let assistant = || Role::Assistant { tool_calls: Vec::new() };
    let messages = vec![
        of(Role::System, "S1"),
        of(Role::System, "S2"),
        of(Role::User, "a"),
        of(Role::User, "b"),
        of(assistant(), "c"),
        of(assistant(), "d"),
        of(Role::System, "S3"),
        of(Role::User, "e"),
    ];
    // The refusal may come in a stream.
    let refusal = "event: error\ndata: {\"message\": \"Conversation roles must alternate user/assistant\"}\n\n";
    let fake = Fake::new([answers("one"), plain(200, "text/event-stream", refusal), answers("two")]).await;
    let model = model(&endpoint(&fake.url));

    model.ask(&Request { messages: messages.clone(), ..request() }, None).await.expect("an answer");
    model.ask(&Request { messages, ..request() }, None).await.expect("an answer");

    let received = fake.received();
    let sent = |index: usize| {
        messages_of(&received[index]).into_iter().map(|(role, text)| format!("{role}: {text}")).collect::<Vec<_>>()
    };
    assert_eq!(sent(0), ["system: S1\n\nS2", "user: a\n\nb", "assistant: c\n\nd", "user: S3\n\ne"]);
    assert_eq!(sent(2), ["user: S1\n\nS2\n\na\n\nb", "assistant: c\n\nd", "user: S3\n\ne"]);
}

#[tokio::test]
async fn a_schema_is_refused_before_json_is() {
    let fake =
        Fake::new([error(500, "Internal Server Error", &[]), error(400, "json_object is unknown", &[]), answers("YES")]).await;
    let model = model(&endpoint(&fake.url));

    model.ask(&vote_with_schema(), None).await.expect("an answer");

    let forms: Vec<_> = fake.received().iter().map(|one| one.body["response_format"]["type"].clone()).collect();
    assert_eq!(forms, [json!("json_schema"), json!("json_object"), Value::Null]);
    assert_eq!(model.adaptations().len(), 2);
}

#[tokio::test]
async fn an_error_after_words_is_reported_as_it_is() {
    let fails = json!({ "error": { "message": "streaming is not supported", "code": 400 } }).to_string();
    let fake = Fake::new([streamed([piece("Hel"), fails], Then::Ends)]).await;

    let error = model(&endpoint(&fake.url)).ask(&request(), None).await.expect_err("no answer");

    assert_eq!((error.code(), fake.received().len()), ("refused", 1));
}

#[tokio::test]
async fn two_users_of_a_model_learn_together() {
    let fake = Fake::new([error(400, "System role not supported", &[]), answers("one"), answers("two")]).await;
    let dialects = Dialects::default();
    let [first, second] = [(); 2].map(|()| model(&endpoint(&fake.url)).with_dialects(&dialects));

    first.ask(&request(), None).await.expect("an answer");
    second.ask(&request(), None).await.expect("an answer");

    assert_eq!(fake.received().len(), 3);
    assert_eq!(first.adaptations(), second.adaptations());
}
