//! A recogniser that receives no audio any more is told to finish (docs/design/voice.md A-13).

use tokio::time::Instant;

use super::*;

/// Ears that note what they are given, and when.
#[derive(Default)]
struct Noting(Mutex<Vec<(&'static str, Instant)>>);

#[async_trait]
impl SpeechRecognition for Noting {
    fn provider(&self) -> &'static str {
        "noting"
    }

    fn host(&self) -> Option<Arc<str>> {
        None
    }

    fn recognises_words(&self) -> bool {
        true
    }

    fn has_partials(&self) -> bool {
        true
    }

    async fn listen(&self, _: Expectation, mut sounds: Receiver<Sound>, _: Sender<Recognised>) -> Result<(), NoAnswer> {
        while let Some(sound) = sounds.recv().await {
            let what = match sound {
                Sound::Audio { .. } => "audio",
                Sound::Ended(_) | Sound::Cut(_) => "end",
                Sound::Finalize => "finalize",
            };
            self.0.lock().push((what, Instant::now()));
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_told_after_the_time_of_the_settings() {
    for idle_finalize_secs in [0.1, 0.4] {
        let ears = Arc::<Noting>::default();
        let settings = json!({ "voice": { "idle_finalize_secs": idle_finalize_secs } });
        let world = world_of(ears.clone(), Arc::new(RehearsedSpeech), settings).await;
        let mut ana = Caller::enter(&world, "ana").await;

        // As on Discord, nothing is sent in a pause.
        ana.talk(&world, 60, 1).await;
        world.pass(5.0).await;
        ana.talk(&world, 60, 1).await;
        world.pass(5.0).await;

        let noted = ears.0.lock().clone();
        let pauses: Vec<_> = noted.windows(2).filter(|two| two[0].0 == "audio" && two[1].0 != "audio").collect();
        let waited = |two: &&[(&str, Instant)]| (two[1].1 - two[0].1).as_secs_f64();
        assert_eq!(pauses.iter().map(|two| two[1].0).collect::<Vec<_>>(), ["finalize"; 2], "{idle_finalize_secs}");
        assert!(pauses.iter().all(|two| (waited(two) - idle_finalize_secs).abs() < 0.03), "{pauses:?}");
    }
}
