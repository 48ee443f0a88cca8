//! Messages that are edited and deleted on a platform.

use super::*;
use crate::ports::backend::keeping::ExportForm;

#[tokio::test(start_paused = true)]
async fn an_edit_replaces_the_words_everywhere() {
    let world = world().await;
    say(&world, "1", "zebra").await;

    inbound_events(&world).edited(&general(), "1", "giraffe".into()).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "giraffe")]));
    let asked = world.side.asked.lock();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|request| !format!("{request:?}").contains("zebra")));
}

#[tokio::test(start_paused = true)]
async fn an_edit_without_a_change_and_one_of_an_unknown_message_leave_no_trace() {
    let world = world().await;
    say(&world, "1", "hello").await;
    let before = events(&world, &general()).await;

    inbound_events(&world).edited(&general(), "1", "hello".into()).await.unwrap();
    inbound_events(&world).edited(&general(), "2", "hello?".into()).await.unwrap();
    inbound_events(&world).edited(&thread(), "1", "hello?".into()).await.unwrap();

    assert_eq!(events(&world, &general()).await, before);
    assert_eq!(events(&world, &thread()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_history_lists_the_deleted_messages_of_its_page() {
    let world = world().await;
    for id in ["1", "2", "3"] {
        say(&world, id, "hello").await;
    }
    let backend = &world.backend;
    let page = |limit, before| async move {
        let query = HistoryQuery { after: None, before, limit };
        let history = backend.records.history(&room("discord:10"), query).await.unwrap();
        (history.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), history.deleted)
    };
    let (seqs, _) = page(10, None).await;

    inbound_events(&world).deleted(&general(), &["1".into(), "2".into()]).await.unwrap();

    assert_eq!(page(10, None).await, (vec![seqs[2]], vec![]));
    assert_eq!(page(10, Some(seqs[2])).await, (vec![], seqs[..2].to_vec()));
    inbound_events(&world).deleted(&general(), &["3".into()]).await.unwrap();
    assert_eq!(page(10, None).await, (vec![], seqs));
}

#[tokio::test(start_paused = true)]
async fn a_message_edited_to_nothing_is_deleted() {
    let world = world().await;
    say(&world, "1", "zebra").await;

    inbound_events(&world).edited(&general(), "1", "".into()).await.unwrap();

    assert_eq!(world.history("discord:10").await, []);
    assert_eq!(world.recorded("discord:10", "deleted").await.len(), 1);
    inbound_events(&world).edited(&general(), "1", "zebra again".into()).await.unwrap();
    assert_eq!(world.history("discord:10").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_message_leaves_no_word_in_the_store() {
    let world = world().await;
    world.side.answers([Ok("Ana told me of a zebra.\nNO")]);
    for (id, text) in [("1", "zebra one"), ("2", "zebra two"), ("3", "kept")] {
        say(&world, id, text).await;
    }
    world.pass(1_000.0).await;

    let ids = ["1", "2", "77"].map(Arc::from);
    inbound_events(&world).deleted(&general(), &ids).await.unwrap();
    inbound_events(&world).deleted(&general(), &ids).await.unwrap();

    assert_eq!(world.history("discord:10").await, lines(&[("Ana", "kept")]));
    assert_eq!(world.recorded("discord:10", "deleted").await.len(), 1, "a bulk is one event");
    let exported = world.export("discord:10", ExportForm::Json).await;
    assert!(!exported.join("\n").contains("zebra"), "{exported:?}");
    let snapshot = world.reader().restore(&channel_key(&general())).await.unwrap().snapshot.expect("the channel went to sleep");
    assert!(!serde_json::to_string(&snapshot).unwrap().contains("zebra"));
    let again = inbound_events(&world).said(&general(), ana(&world, "1", "zebra one")).await.unwrap();
    assert!(matches!(again, Acceptance::Duplicate(_)), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_deleted_all_their_messages_is_not_listed_any_more() {
    let world = world().await;
    say(&world, "1", "zebra one").await;
    say(&world, "2", "zebra two").await;
    world.pass(1_000.0).await;
    let entries = async || world.reader().listed(&general().guild, &"discord:5".into()).await.unwrap().len();
    assert_eq!(entries().await, 1);

    inbound_events(&world).deleted(&general(), &["1".into()]).await.unwrap();
    assert_eq!(entries().await, 1);
    inbound_events(&world).deleted(&general(), &["2".into()]).await.unwrap();

    assert_eq!(entries().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_message_is_not_answered() {
    let world = world().await;
    say(&world, "1", "hello").await;

    inbound_events(&world).deleted(&general(), &["1".into()]).await.unwrap();
    world.pass(60.0).await;

    assert_eq!(world.side.asked.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_interrupted_by_a_crash_is_finished_when_it_is_delivered_again() {
    let mut world = world().await;
    say(&world, "1", "zebra").await;
    // The channel and the writer die with everything in flight.
    let cut_short = tokio::spawn({
        let inbound = inbound_events(&world);
        async move { inbound.deleted(&general(), &["1".into()]).await }
    });
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    world.kill(&WriterKey()).await;
    world.expect_deaths();
    drop(cut_short.await.unwrap());

    world.pass(2.0).await;
    inbound_events(&world).deleted(&general(), &["1".into()]).await.unwrap();

    assert_eq!(world.history("discord:10").await, []);
    let world = world.crash().await;
    world.pass(60.0).await;
    assert_eq!(world.side.asked.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn deleting_any_part_deletes_the_whole_statement_and_edits_of_it_are_ignored() {
    let (_, world, lobby) = answering_in_two_parts().await;
    world.pass(20.0).await;

    inbound_events(&world).edited(&lobby, "1", "First comes something else.".into()).await.unwrap();
    let after_the_edit = world.history("lobby").await;
    inbound_events(&world).deleted(&lobby, &["2".into()]).await.unwrap();

    assert_eq!(after_the_edit[1].1, "First comes a sentence. Then there is another one.");
    assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?")]));
}

#[tokio::test(start_paused = true)]
async fn reading_stops_at_a_statement_deleted_before_all_of_it_was_posted() {
    for tick in 0..16 {
        let (platform, world, lobby) = answering_in_two_parts().await;
        while platform.posted().is_empty() {
            world.pass(0.125).await;
        }
        world.pass(f64::from(tick) * 0.125).await;

        let mut tries = 0;
        while inbound_events(&world).deleted(&lobby, &["1".into()]).await.is_err() {
            tries += 1;
            world.pass(1.0).await;
        }
        world.pass(60.0).await;

        assert_eq!(world.history("lobby").await, lines(&[("Ana", "Ari?")]), "tick {tick}");
        assert!(tries < 3, "tick {tick}: {tries}");
    }
}
