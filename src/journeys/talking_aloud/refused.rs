//! A service that refuses what somebody says is not asked about it for ever.

use super::*;

/// Ears that refuse everything, and count how often they are asked.
#[derive(Default)]
struct Refusing(AtomicUsize);

#[async_trait]
impl SpeechRecognition for Refusing {
    fn provider(&self) -> &'static str {
        "refusing"
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn recognises_words(&self) -> bool {
        true
    }

    fn has_partials(&self) -> bool {
        false
    }

    async fn listen(&self, _: Expectation, _: Receiver<Sound>, _: Sender<Recognised>) -> Result<(), NoAnswer> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(NoAnswer::Refused { endpoint: "http://ears.example".into(), detail: "400: the file is no audio".to_owned() })
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_service_recognises_is_given_up_after_half_a_minute() {
    let ears = Arc::<Refusing>::default();
    let world = world_of(ears.clone(), Arc::new(RehearsedSpeech), json!({})).await;
    let mut ana = Caller::enter(&world, "ana").await;
    let asked = || ears.0.load(Ordering::Relaxed);

    ana.say_something(&world).await;
    world.pass(40.0).await;
    let at_first = asked();
    world.pass(120.0).await;

    assert!((20..=40).contains(&at_first), "about once a second: {at_first}");
    assert_eq!(asked(), at_first);
    ana.say_something(&world).await;
    world.pass(5.0).await;
    assert!(asked() > at_first, "it is asked about what is said next");
}

#[tokio::test(start_paused = true)]
async fn what_no_service_takes_is_not_counted() {
    let limit = json!({ "speech": { "guild_minutes_per_day": 0.02 } });
    let world = world_of(Arc::<Refusing>::default(), Arc::new(RehearsedSpeech), limit).await;
    let mut ana = Caller::enter(&world, "ana").await;

    for _ in 0..3 {
        ana.say_something(&world).await;
        world.pass(40.0).await;
    }

    assert!(!ana.page.has(|view| *view == View::Trouble(Trouble::RecognitionUsedUp)), "{:?}", ana.page.seen());
    assert_eq!(world.spans.metrics().total("tertulia_speech_recognised_seconds_total", &[]), 0.0);
}
