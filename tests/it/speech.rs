//! Services for speech: the real program with fakes of their protocols on loopback, and somebody who talks in a room's call.

#[path = "../../src/adapters/speech/cartesia/fake.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod cartesia;
mod checking;
#[path = "../../src/adapters/speech/deepgram/fake.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod deepgram;
#[path = "../../src/adapters/speech/elevenlabs/fake.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod elevenlabs;
mod failing;
mod on_page;
#[path = "../../src/adapters/speech/openai/fake.rs"]
#[expect(dead_code, reason = "the library's own tests use more of it")]
mod openai;
pub mod restarting;

use serde_json::{Value, json};

use self::deepgram::Habits;
use self::elevenlabs::{Manner, Times};
use crate::harness::call::{Page, sentence};
use crate::harness::model::Model;
use crate::harness::{Premises, Server, Watch};

const QUESTION: &str = "Aria, what do you think about the new release?";
const ANSWER: &str = "I am here.";

/// A Deepgram that hears these utterances.
pub async fn deepgram(texts: &[&'static str]) -> deepgram::Fake {
    // Silence that was encoded is none, so that only `Finalize` ends an utterance.
    let fake = deepgram::Fake::new(Habits { endpoint: u64::MAX, ..Habits::default() }).await;
    fake.books.open().texts_to_hear.extend(texts);
    fake
}

/// Sets a service with an address and a key.
fn with_service(premises: Premises, name: &str, api: &str, url: &str, key: &str) -> Premises {
    let set = |premises: Premises, field: &str, value: &str| premises.with(&format!("speech.services.{name}.{field}"), value);
    set(set(set(premises, "api", api), "base_url", url), "api_key", key)
}

/// Sets Deepgram, with a price for a minute.
pub fn with_deepgram(premises: Premises, fake: &deepgram::Fake) -> Premises {
    with_service(premises, "deepgram", "deepgram", &fake.url, deepgram::KEY).with("speech.services.deepgram.price", "0.6")
}

/// Ana in the call of the lobby, in which Aria answers everything.
struct Scene {
    server: Server,
    ana: Page,
    watch: Watch,
}

impl Scene {
    async fn new(set: impl FnOnce(Premises) -> Premises) -> Self {
        let model = Model::holding("nobody").await;
        let server = set(model.serving(Premises::new())).start().await;
        let ana = Page::enter(&server, "lobby", "Ana").await;
        let watch = server.watch("lobby", Some(0)).await;
        Self { server, ana, watch }
    }

    /// Waits for the next message of somebody, and returns its text and modality.
    async fn message_of(&mut self, from: &str) -> (String, String) {
        let message = self.watch.event_that("message", |event| event["from"] == from).await;
        let text = |field: &str| message[field].as_str().expect("a text").to_owned();
        (text("text"), text("modality"))
    }
}

/// What services did in the room's guild, by service, companion and provider.
async fn usage(server: &Server) -> Value {
    server.get("/api/usage?guild=home").await["guilds"][0]["speech_by"].clone()
}

fn spoken(text: &str) -> (String, String) {
    (text.to_owned(), "voice".to_owned())
}

#[tokio::test]
async fn words_are_recognised_and_answered_aloud_and_their_cost_is_known() {
    let hearing = deepgram(&[QUESTION]).await;
    let speaking = elevenlabs::Fake::new([Manner { times: Times::OfAudio, is_odd: true, then: None }]).await;
    let mut scene = Scene::new(|premises| {
        let premises = with_deepgram(premises, &hearing).with("speech.recognition", r#"["deepgram"]"#);
        let premises = with_service(premises, "elevenlabs", "elevenlabs", &speaking.url, elevenlabs::KEY);
        let premises = premises.with("speech.services.elevenlabs.voice", "calm").with("speech.services.elevenlabs.price", "50.0");
        premises.with("speech.synthesis", "elevenlabs")
    })
    .await;

    scene.ana.talk(&sentence()).await;
    let heard = scene.message_of("Ana").await;
    let (packets, _) = scene.ana.hear_reply().await;
    let said = scene.message_of("aria").await;

    assert_eq!((heard, said), (spoken(QUESTION), spoken(ANSWER)));
    // Each character is a tone of 60 ms.
    assert!((30..=40).contains(&packets), "{packets}");
    assert!(hearing.books.open().asked.contains("keyterm=Aria"), "names are hints");
    assert_eq!(speaking.connections()[0].voice, "calm");
    scene.ana.leave().await;
    let usage = usage(&scene.server).await;
    let by = |place: usize| json!([usage[place]["service"], usage[place]["companion"], usage[place]["provider"]]);
    assert_eq!(by(0), json!(["speech_recognition", null, "deepgram"]), "{usage}");
    assert_eq!(by(1), json!(["speech_synthesis", "aria", "elevenlabs"]), "{usage}");
    let figure = |place: usize, name: &str| usage[place][name].as_f64().unwrap_or_else(|| panic!("{name}: {usage}"));
    let secs = figure(0, "recognised_secs");
    assert!((1.0..4.0).contains(&secs) && (figure(0, "cost") - secs / 60.0 * 0.6).abs() < 1e-4, "{usage}");
    assert_eq!((figure(1, "characters"), figure(1, "cost")), (10.0, 0.0005), "{usage}");
    scene.server.stop().await;
}
