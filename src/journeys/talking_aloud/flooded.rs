//! Services that return more, or faster, than anybody can hear or read.

use super::*;

/// The seconds of audio that the mouth below makes of a sentence, one at a time.
const SECS: usize = 25;

#[tokio::test(start_paused = true)]
async fn audio_is_read_some_seconds_ahead_of_its_playback_and_none_is_lost() {
    let read = Arc::new(AtomicUsize::new(0));
    let counted = read.clone();
    let mouth = Mouth::new(move |_| {
        let counted = counted.clone();
        let second = move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Piece::Audio(vec![1; 24_000]))
        };
        stream::iter(0..SECS).map(second).boxed()
    });
    let world = world_of(Ears::rehearsed(), mouth, json!({})).await;
    let ana = Caller::enter(&world, "ana").await;

    ana.hear_the_beginning(&world).await;
    let mut ahead = Vec::new();
    for _ in 0..300 {
        ana.listen(&world, 0.1).await;
        ahead.push(read.load(Ordering::Relaxed) as f64 - ana.page.packets.lock().len() as f64 / 50.0);
    }

    assert!(ahead.iter().all(|secs| *secs <= 11.0), "read {ahead:?} seconds ahead");
    assert_eq!((read.load(Ordering::Relaxed), ana.page.packets.lock().len()), (SECS, SECS * 50));
    assert!(!ana.page.has(|view| matches!(view, View::Trouble(_))), "{:?}", ana.page.seen());
}

#[tokio::test(start_paused = true)]
async fn captions_of_a_service_that_returns_too_many_have_a_rate() {
    let ears = Ears::new(|mut sounds, results| async move {
        let Some(Sound::Audio { from, .. }) = sounds.recv().await else { return Ok(()) };
        for number in 0.. {
            let text = format!("word {number}").into();
            if results.send(Recognised::Partial { text, started: from }).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    let world = world_of(ears, Arc::new(RehearsedSpeech), json!({})).await;
    let mut ana = Caller::enter(&world, "ana").await;

    ana.talk(&world, 100, 1).await;

    let captions = ana.page.seen.lock().iter().filter(|view| matches!(view, View::Caption { .. })).count();
    assert!((64..=64 + 2 * 50 + 2).contains(&captions), "{captions} captions in 2 seconds");
}
