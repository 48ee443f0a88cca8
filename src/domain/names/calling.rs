//! Determines whether an everyday word addresses the companion of that name (docs/design/gate.md G-6).

use std::ops::Range;

use super::is_word;
use crate::text::{first_bytes, last_bytes};

/// Greetings and farewells that may precede a name, folded and separated by commas.
const GREETINGS: &str = "hi,hiya,hey,heya,hello,yo,howdy,morning,evening,good day,good afternoon,good night,goodnight,welcome,\
    welcome back,bye,goodbye,dear,hallo,hallöchen,moin,servus,grüss dich,guten morgen,guten tag,guten abend,\
    gute nacht,tschüss,hola,oye,buenas,buenos días,buenas tardes,buenas noches,adiós,bonjour,bonsoir,salut,coucou,\
    olá,oi,bom dia,boa tarde,bonne nuit,boa noite";

/// Whether a written name is an address: `@name`, `name,` or the like at the start of a line, `, name` at its end, or a greeting
/// and the name. `range` is the name's range in the folded text.
pub(super) fn calls(text: &str, folded: &str, range: Range<usize>) -> bool {
    let (before, after) = (&folded[..range.start], &folded[range.end..]);
    let preceding = before.trim_end_matches(is_mark);
    let following = after.trim_start_matches(is_mark);
    let (gap_before, gap_after) = (&before[preceding.len()..], &after[..after.len() - following.len()]);
    let starts = preceding.is_empty() || preceding.ends_with('\n');
    let ends = following.is_empty() || following.starts_with('\n');
    let is_mention = before.strip_suffix('@').is_some_and(|before| !before.ends_with(is_word));
    let is_set_off = || gap_after.trim_start_matches(is_emphasis).starts_with([',', ':', '!', '?']);
    // "Hi, hope you are well" does not address Hope; "Hi Hope, are you well" and "Hi Hope are you well" do.
    let greets = || {
        let is_greeted = gap_before.trim_matches(is_emphasis).trim().trim_start_matches(',').trim().is_empty();
        is_greeted
            && ends_with_greeting(preceding)
            && (ends || is_set_off() || is_capitalised_near(text, &folded[range.clone()], range.start))
    };
    is_mention || starts && is_set_off() || ends && gap_before.contains(',') || greets()
}

/// Whether a name is the first or the last word of an utterance.
pub(super) fn is_at_end(folded: &str, range: &Range<usize>) -> bool {
    !folded[..range.start].contains(is_word) || !folded[range.end..].contains(is_word)
}

fn ends_with_greeting(text: &str) -> bool {
    GREETINGS.split(',').any(|greeting| {
        let at = text.len().checked_sub(greeting.len());
        at.and_then(|at| text.split_at_checked(at))
            .is_some_and(|(before, end)| end.eq_ignore_ascii_case(greeting) && !before.ends_with(is_word))
    })
}

/// Whether a character is part of no word and does not end a line.
fn is_mark(c: char) -> bool {
    c != '\n' && (c == '_' || !is_word(c))
}

fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '~' | '"' | '“' | '”')
}

/// Whether a name is capitalised near this position of its folded text, which may be a few bytes off.
fn is_capitalised_near(text: &str, name: &str, at: usize) -> bool {
    const NEAR: usize = 64;
    let near = last_bytes(first_bytes(text, at + name.len() + NEAR), name.len() + 2 * NEAR);
    let mut chars = name.chars().flat_map(char::to_lowercase);
    let capitalised: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    near.contains(&capitalised)
}
