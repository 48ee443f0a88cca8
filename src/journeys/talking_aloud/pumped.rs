//! A recogniser that receives no audio any more is told to finish (docs/design/voice.md A-13).

use tokio::time::Instant;

use super::*;

/// What the ears are given, and when.
type Notes = Arc<Mutex<Vec<(&'static str, Instant)>>>;

fn noting(notes: &Notes) -> Arc<Ears> {
    let notes = notes.clone();
    Ears::new(move |mut sounds, _| {
        let notes = notes.clone();
        async move {
            while let Some(sound) = sounds.recv().await {
                let what = match sound {
                    Sound::Audio { .. } => "audio",
                    Sound::Ended(_) | Sound::Cut(_) => "end",
                    Sound::Finalize => "finalize",
                };
                notes.lock().push((what, Instant::now()));
            }
            Ok(())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn it_is_told_after_the_time_of_the_settings() {
    for idle_finalize_secs in [0.1, 0.4] {
        let notes = Notes::default();
        let settings = json!({ "voice": { "idle_finalize_secs": idle_finalize_secs } });
        let world = world_of(noting(&notes), Arc::new(RehearsedSpeech), settings).await;
        let mut ana = Caller::enter(&world, "ana").await;

        // As on Discord, nothing is sent in a pause.
        ana.talk(&world, 60, 1).await;
        world.pass(5.0).await;
        ana.talk(&world, 60, 1).await;
        world.pass(5.0).await;

        let noted = notes.lock().clone();
        let pauses: Vec<_> = noted.windows(2).filter(|two| two[0].0 == "audio" && two[1].0 != "audio").collect();
        let waited = |two: &&[(&str, Instant)]| (two[1].1 - two[0].1).as_secs_f64();
        assert_eq!(pauses.iter().map(|two| two[1].0).collect::<Vec<_>>(), ["finalize"; 2], "{idle_finalize_secs}");
        assert!(pauses.iter().all(|two| (waited(two) - idle_finalize_secs).abs() < 0.03), "{pauses:?}");
    }
}
