//! Calls in several guilds at the same time.

use super::super::commands::rules;
use super::super::counterpart::Rules;
use super::super::counterpart::voice::{self, Mode};
use super::super::real_time::call::settled;
use super::{Scene, sentence, spoken};

#[tokio::test]
async fn a_call_that_is_cut_again_and_again_costs_no_other_a_frame() {
    // With the mode of encryption that every voice server has.
    let voice = voice::Rules { modes: vec![Mode::XChaCha20Poly1305], ..voice::Rules::quick() };
    let scene = Scene::in_guilds(&["Away", "Far"], Rules { voice, ..rules() }, |premises| premises).await;
    let _ana = scene.call(scene.home.ana, scene.harbour).await;
    let (mut watches, mut people) = (Vec::new(), Vec::new());
    for away in &scene.away {
        watches.push(scene.watch(away.channel).await);
        people.push(scene.call(away.zoe, away.channel).await);
    }

    let sentence = sentence();
    let talk = || async { tokio::join!(people[0].talk(&sentence), people[1].talk(&sentence)) };
    let voice = scene.home.discord.voice();
    let sent = || scene.away.iter().map(|away| voice.counts(away.channel, scene.home.bot).sent).sum::<usize>();
    // Who speaks before the call knows the person is not heard yet.
    talk().await;
    for watch in &mut watches {
        assert_eq!(spoken(watch).await["from"], "Zoe");
    }
    let before = settled(&scene.server, sent).await;
    let open = scene.server.sockets();
    let cut = async {
        for times in 1..=5 {
            voice.cut(scene.harbour, scene.home.bot);
            voice.until("a resume", |voice| (voice.journal.resumes.len() >= times).then_some(())).await;
        }
    };
    let (said, ()) = tokio::join!(talk(), cut);
    let after = settled(&scene.server, sent).await;
    // Sockets of the beginning may have been closed, too.
    let left = scene.server.sockets();
    assert!(left <= open, "the sockets of lost connections are closed: {left} are open, {open} were");

    assert_eq!(said, (sentence.len(), sentence.len()));
    let packets = scene.server.measured("tertulia_voice_packets_total").await;
    let of = |fate: &str| packets.iter().find(|(labels, _)| labels.contains(fate)).map(|(_, count)| *count);
    assert!(after.0 - before.0 >= 2 * sentence.len());
    assert_eq!(after.1 - before.1, after.0 - before.0, "{packets:?}");
    // What a call drops because this machine is too busy to decode it in time has nothing to do with the cuts.
    assert_eq!((of("late"), of("undecodable")), (Some(0.0), Some(0.0)), "{packets:?}");
}
