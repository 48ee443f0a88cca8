//! Lists of common words: words without content, and words that are also given names. The languages are English, German, Spanish and French, and for
//! names also Portuguese.

use std::collections::BTreeSet;
use std::sync::LazyLock;

static FUNCTION_WORDS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| words(&LISTS_OF_FUNCTION_WORDS));
static NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| words(&LISTS_OF_NAMES));

/// Words that carry no content, separated by white space: English, German, Spanish, French.
const LISTS_OF_FUNCTION_WORDS: [&str; 4] = [
    "a an the this that these those it its it's is are was were be been being am i'm you're we're they're i you he she we they me my mine your yours \
     us our him her them their to of in on at for with from by as and or but so if not no n't do does did done don't doesn't didn't have has had \
     i've you've we've i'll you'll we'll i'd you'd can could will would should may might must just really very too then than there here what which \
     who how when where why all any some into up down out about again also still now oh well that's what's there's let's can't won't",
    "der die das den dem ein eine und oder ich du er sie es wir ihr mich mir dich dir ist bin bist sind war nicht auch so zu in mit von auf für an im \
     am ja nein noch doch dann",
    "el la los las un una y o yo tú tu me te se lo le es son está que de en con por para no sí muy también mi",
    "le les une et ou je il elle nous vous ce est suis es sont pas que de du des à en avec pour dans oui non très aussi mon ton",
];

/// Everyday words that are also given names, or that people like to use as names, folded as in [`names`](super::names).
const LISTS_OF_NAMES: [&str; 5] = [
    "amber angel april art ash august autumn bill blue bob buddy candy carol cash chance charity chase cherry christian chuck clay cliff coral \
     crystal daisy dale dawn dean destiny diamond don dot drew duke earl echo eden eve faith fern ford forest frank gene ginger grace grant guy \
     harmony haven heath heaven honey honor hope hunter jack jade jay jean jewel joy june king kit lance lane legend liberty lily love lucky major \
     mark max may melody mercy merry miles misty nick norm ocean olive page pat patience peace pearl penny pepper phoenix poppy precious prince \
     princess queen rain raven ray red rich river rob robin rocky rose royal ruby rusty sage sandy shadow silver sky spike spirit star stone storm \
     story sue summer sunny terry trinity truth unity van victor victory violet wade walker ward west will willow winter wolf woody young",
    "engel ernst falke fee frank gloria heide könig lieb liebe lila linde mai mark max perle prinz rosa rose schatz sommer sonne stern wolf",
    "abril agosto alba alma amor amparo blanca camino caridad cielo clara cruz cristal dolores domingo dulce esperanza estrella fe flor franco gema \
     gloria gracia jesús julio junio justo león leal linda lobo luna luz mar marco marina mercedes milagros moreno nieves paloma paz perla \
     piedad pilar reina rey rocío rosa rubio salvador santos socorro sol soledad victoria vida violeta ángel",
    "aimé aimée ambre ange aurore avril belle blanche céleste chéri chérie claire clair clémentine constance constant désiré désirée douce espérance \
     étoile fleur france grâce honoré jade jean juin juste loup lune marguerite modeste neige noël olive parfait pascal perle pierre prudence \
     prune rose soleil victoire violette",
    "abril amor anjo bela bento branca caridade celeste clara cruz céu dolores domingos dores esperança estrela feliz flor franco fé glória graça justo \
     leão linda lobo lua luz maio mar margarida marina natal neves paz piedade pilar pérola rainha rei reis rico rosa serena socorro sol vida \
     violeta vitória",
];

/// Whether a word in lower case carries no content.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.contains(word)
}

/// Whether a folded name is a word that people use every day (docs/design/gate.md G-6).
pub(crate) fn is_common(name: &str) -> bool {
    NAMES.contains(name) || FUNCTION_WORDS.contains(name)
}

/// All words that are common as names.
pub fn common_words() -> BTreeSet<&'static str> {
    NAMES.union(&FUNCTION_WORDS).copied().collect()
}

fn words(lists: &[&'static str]) -> BTreeSet<&'static str> {
    lists.iter().flat_map(|list| list.split_whitespace()).collect()
}
