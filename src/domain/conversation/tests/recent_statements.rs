//! The statements that a judgement of repetition considers.

use super::super::super::message::{Message, Role};
use super::super::super::repetition::REMEMBERED_STATEMENTS;
use super::super::*;
use crate::samples::{author, message, recorded, said};

fn statement(text: &str) -> Arc<Message> {
    Arc::new(message(author("aria", Role::Companion), text))
}

fn texts(conversation: &Conversation) -> Vec<&str> {
    conversation.closing.recent_statements.iter().map(|statement| &*statement.message.text).collect()
}

/// A conversation with these statements, numbered 10, 20 and so on.
fn talk(said: &[&str]) -> Conversation {
    let mut conversation = Conversation::default();
    for (text, seq) in said.iter().zip((10..).step_by(10)) {
        conversation.closing.remember_statement(Seq(seq), statement(text));
    }
    conversation
}

#[test]
fn only_the_newest_statements_are_kept() {
    let conversation = talk(&["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]);

    assert_eq!(texts(&conversation), ["3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]);
    assert!(conversation.closing.recent_statements.capacity() <= REMEMBERED_STATEMENTS + 3);
}

#[test]
fn edits_deletions_redaction_and_expiry_reach_them() {
    let mut conversation = talk(&["1", "2", "3", "4", "5"]);

    conversation.closing.edit_recent_statement(Seq(20), &"two".into());
    conversation.closing.delete_recent_statements(&[Seq(30)]);
    conversation.drop_below(Seq(20));
    conversation.apply_redaction(&recorded(40, said(Message::clone(&statement("")))));

    assert_eq!(texts(&conversation), ["two", "", "5"]);
}

#[test]
fn a_deleted_statement_does_not_hide_the_person_before_it() {
    let mut conversation = talk(&["1"]);
    conversation.closing.tally.newest_human = Seq(15);
    conversation.closing.remember_statement(Seq(20), statement("2"));
    conversation.closing.remember_statement(Seq(30), statement("3"));

    conversation.closing.delete_recent_statements(&[Seq(20)]);

    let follows: Vec<bool> = conversation.closing.recent_statements.iter().map(|statement| statement.follows_person).collect();
    assert_eq!(follows, [false, true]);
}
