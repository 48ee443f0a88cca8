//! Finds the numbers of a statement, in digits or in words (docs/design/closing.md C-12).

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Number words, separated by spaces: English, German, Spanish, French. The English "one", "first" and "second" are left out,
/// because they mostly count nothing.
static NUMBER_WORDS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| LISTS.iter().flat_map(|list| list.split(' ')).collect());
const LISTS: [&str; 4] = [
    "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty \
     forty fifty sixty seventy eighty ninety hundred thousand third fourth fifth sixth seventh eighth ninth tenth",
    "null zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig \
     dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend zweite dritte vierte fünfte sechste siebte achte neunte zehnte",
    "cero dos tres cuatro cinco seis siete ocho nueve diez doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte \
     veintiuno veintidós veintitrés treinta cuarenta cincuenta sesenta setenta ochenta noventa cien mil tercero quinto",
    "zéro deux trois quatre cinq sept huit neuf dix onze douze treize quatorze quinze seize vingt trente quarante cinquante soixante cent mille \
     deuxième troisième quatrième cinquième",
];
/// The endings of German compounds such as "neunundneunzig".
const GERMAN_TENS: [&str; 8] =
    ["undzwanzig", "unddreißig", "undvierzig", "undfünfzig", "undsechzig", "undsiebzig", "undachtzig", "undneunzig"];
/// Chinese and Japanese numerals, which occur among other characters without spaces.
const IDEOGRAPHS: &str = "〇零一二三四五六七八九十百千万";

/// The numbers among these words, in order: number words, and runs of digits or ideographs within words.
pub(super) fn numbers(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for word in words {
        if NUMBER_WORDS.contains(&**word) || GERMAN_TENS.iter().any(|ending| word.ends_with(ending)) {
            found.push(word.clone());
        } else {
            let is_numeral = |c: char| c.is_numeric() || IDEOGRAPHS.contains(c);
            found.extend(word.split(|c| !is_numeral(c)).filter(|run| !run.is_empty()).map(str::to_owned));
        }
    }
    found
}
