//! How much of a persona prompts show.

use super::*;

/// A persona of this number of sentences.
fn long_persona(sentences: usize) -> String {
    (0..sentences).map(|n| format!("You remember thing number {n}, and you say so. ")).collect()
}

#[test]
fn decisions_show_the_brief_of_a_long_persona_and_statements_all_of_it() {
    let persona = long_persona(200);
    let character = Character { persona: &persona, brief: Some("You remember things.\n"), ..character() };

    let prompt = vote(character, scene(), &input(), &words());
    let stated = statement(character, scene(), &speaking(input()), &words());

    assert!(prompt.system.starts_with("You are Aria.\n\nYou remember things.\n\nYour conversational"), "{}", prompt.system);
    assert!(prompt.sizes.iter().any(|(part, _)| *part == "brief"), "{:?}", prompt.sizes);
    assert!(stated.system.contains(persona.trim()));
    assert_eq!(stated.sizes[1], ("persona", tokens(persona.trim())));
}

#[test]
fn a_persona_that_fits_is_shown_in_decisions_even_if_it_has_a_brief() {
    let persona = long_persona(50);
    let character = Character { persona: &persona, brief: Some("You remember things."), ..character() };

    let prompt = vote(character, scene(), &input(), &words());

    assert!(prompt.system.contains(persona.trim()) && !prompt.system.contains("You remember things."));
}

#[test]
fn a_long_persona_without_a_brief_begins_at_its_beginning_and_ends_with_a_sentence() {
    let persona = long_persona(200);
    let character = Character { persona: &persona, ..character() };

    let prompt = vote(character, scene(), &input(), &words());

    let (shown, rest) = prompt.system.split_once("\n[").expect("a mark says what is missing");
    let shown = shown.strip_prefix("You are Aria.\n\n").expect("the persona comes first");
    let (missing, _) = rest.split_once(" characters left out]\n\n").expect("the mark has its number");
    assert!(persona.starts_with(shown) && shown.ends_with("say so."), "{shown}");
    assert_eq!(missing.parse(), Ok(persona.trim().chars().count() - shown.chars().count()));
    let room = decision_room(&words()).persona;
    assert!(tokens(shown) <= room && tokens(shown) > room * 9 / 10, "{} of {room}", tokens(shown));
}

#[test]
fn a_brief_is_asked_for_with_the_whole_persona() {
    let persona = long_persona(200);

    let prompt = brief(&format!(" {persona}\n"), &words());

    assert!(
        user(&prompt).starts_with(&format!("<description>\n{}\n</description>\n\nWrite this description again", persona.trim()))
    );
}
