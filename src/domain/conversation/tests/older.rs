//! Records of older versions: at a restart they took in the messages that were on record first, and decided afterwards what they should have decided
//! before. Such records fold to the state that those versions had.

use serde_json::{Value, json};

use super::super::*;
use super::scene::{Scene, Setup};
use crate::event::order_of_handling;

#[test]
fn an_address_that_was_refused_after_it_was_taken_in() {
    assert_folds_to_its_state(include_str!("older/refused.json"));
}

#[test]
fn a_reply_that_was_cancelled_after_the_stop_phrase_was_taken_in() {
    assert_folds_to_its_state(include_str!("older/cancelled.json"));
}

fn assert_folds_to_its_state(text: &str) {
    let setup = Setup { companions: 1, judge: "lexical", max_turns: None, streak: 4, equal_timeouts: true, external: false };
    let record: Value = serde_json::from_str(text).unwrap();
    let mut journal: Vec<Recorded> = serde_json::from_value(record["journal"].clone()).unwrap();
    order_of_handling(&mut journal);

    let mut folded = Conversation::default();
    Scene::new(&setup).with_world(|world| journal.iter().for_each(|recorded| folded.fold(recorded, world)));

    assert_eq!(json!(folded), record["state"]);
}
