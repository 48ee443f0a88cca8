//! Services for speech fail in a call.

use super::super::counterpart::Author;
use super::*;
use crate::speech::{deepgram, with_deepgram};

impl Scene {
    /// What the bot itself wrote into the text of the harbour.
    fn notices(&self) -> Vec<String> {
        let is_of_bot = |author: &Author| matches!(author, Author::User(user) if *user == self.home.bot);
        let posts = self.home.discord.posts().into_iter();
        posts.filter(|post| post.channel == self.harbour && is_of_bot(&post.author)).map(|post| post.content).collect()
    }
}

#[tokio::test]
async fn recognition_that_fails_is_told_once_in_the_text_of_the_channel_and_always_in_the_status() {
    let ears = deepgram(&["hello"]).await;
    ears.books.open().refuses = Some((503, "busy"));
    let recognition = |premises| with_deepgram(premises, &ears).with("speech.recognition", r#"["deepgram"]"#);
    let scene = Scene::with(rules(), recognition).await;
    let mut watch = scene.watch(scene.harbour).await;
    let ana = scene.call(scene.home.ana, scene.harbour).await;
    assert!(scene.status().await.contains("; words are recognised."));

    ana.talk(&sentence()).await;
    let told = scene.home.discord.post_in(scene.harbour).await.content;
    assert!(told.starts_with("Speech recognition is failing"), "{told}");
    let status = scene.status().await;
    assert!(status.contains("; **they fail now**, and no words are recognised"), "{status}");
    assert!(!status.contains("; words are recognised"), "{status}");
    ana.talk(&sentence()).await;

    ears.books.open().refuses = None;
    ana.talk(&sentence()).await;
    watch.event_that("message", |event| event["modality"] == "voice").await;
    assert!(scene.status().await.contains("; words are recognised."));
    assert_eq!(scene.notices().len(), 1, "{:?}", scene.notices());
}

#[tokio::test]
async fn voices_that_fail_are_told_once_in_the_text_of_the_channel_and_in_the_status() {
    let nobody = crate::harness::serve_answer(axum::http::StatusCode::SERVICE_UNAVAILABLE, "out of order").await;
    let model = Model::holding("nobody").await;
    let set = |premises: Premises, field: &str, value: &str| premises.with(&format!("speech.services.mouth.{field}"), value);
    let scene = Scene::with(rules(), |premises| {
        let premises = set(set(model.serving(premises), "api", "openai"), "base_url", &nobody);
        let premises = set(set(set(premises, "model", "tts"), "voice", "nova"), "api_key", "key");
        premises.with("speech.synthesis", "mouth").with("voice.read_text_aloud", "true")
    })
    .await;
    let _ana = scene.call(scene.home.ana, scene.harbour).await;

    for answers in [1, 2] {
        scene.home.discord.say(scene.home.ana, scene.harbour, "hey aria, are you there?");
        let posts = scene.home.discord.posts_in(scene.harbour, 1 + answers).await;
        assert_eq!(posts.iter().filter(|post| post.content == "I am here.").count(), answers, "{posts:?}");
    }

    let status = scene.status().await;
    assert!(
        status.contains("Voices: **openai**") && status.contains("; **they fail now**, and what cannot be spoken is written"),
        "{status}"
    );
    let notices = scene.notices();
    assert!(notices.len() == 1 && notices[0].contains("voices are failing"), "{notices:?}");
}
