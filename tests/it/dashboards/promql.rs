//! A parser for the part of PromQL that tells which series an expression reads, and where an alert's comparison begins.

/// A series that an expression reads.
#[derive(Debug, PartialEq)]
pub struct Selector {
    pub metric: String,
    /// Label, operator and value.
    pub matchers: Vec<(String, String, String)>,
}

/// The series and groupings of an expression, in its order.
#[derive(Debug, Default)]
pub struct Reads {
    pub selectors: Vec<Selector>,
    /// The labels of each aggregation, and the index in `selectors` of the first series that it aggregates.
    pub groups: Vec<(Vec<String>, usize)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Number(String),
    Text(String),
    /// A time range, with its brackets.
    Window,
    Sign(String),
}

/// Parses which series an expression reads.
///
/// # Errors
/// Names the part that cannot be parsed.
pub fn reads(expression: &str) -> Result<Reads, String> {
    let tokens: Vec<Token> = tokens(expression)?.into_iter().map(|(_, token)| token).collect();
    let mut rest = &tokens[..];
    let mut reads = Reads::default();
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let Token::Name(name) = token else { continue };
        let opens = |sign: &str| matches!(rest.first(), Some(Token::Sign(next)) if next == sign);
        match name.as_str() {
            "by" | "without" | "on" | "ignoring" | "group_left" | "group_right" => {
                let labels = parse_labels(&mut rest)?;
                reads.groups.push((labels, reads.selectors.len()));
            }
            "and" | "or" | "unless" | "bool" => {}
            _ if opens("(") => {}
            // An aggregation whose labels come first.
            _ if matches!(rest.first(), Some(Token::Name(next)) if next == "by" || next == "without") => {}
            _ => {
                let matchers = if opens("{") { parse_matchers(&mut rest)? } else { Vec::new() };
                reads.selectors.push(Selector { metric: name.clone(), matchers });
            }
        }
    }
    if reads.selectors.is_empty() { Err(format!("{expression} reads no series")) } else { Ok(reads) }
}

/// Splits an expression of the form `series <op> number` into the series, the operator and the number.
///
/// # Errors
/// The expression has another form, so that splitting would change its meaning.
pub fn split_comparison(expression: &str) -> Result<(&str, String, f64), String> {
    let tokens = tokens(expression)?;
    let mut depth = 0_i32;
    let mut comparisons = Vec::new();
    for (index, (_, token)) in tokens.iter().enumerate() {
        match token {
            Token::Sign(sign) if matches!(sign.as_str(), "(" | "{") => depth += 1,
            Token::Sign(sign) if matches!(sign.as_str(), ")" | "}") => depth -= 1,
            // These operators bind more weakly than a comparison.
            Token::Name(name) if depth == 0 && matches!(name.as_str(), "and" | "or" | "unless") => {
                return Err(format!("{expression}: {name} outside of parentheses"));
            }
            Token::Sign(sign) if depth == 0 && matches!(sign.as_str(), "<" | ">" | "<=" | ">=" | "==" | "!=") => {
                comparisons.push((index, sign.clone()));
            }
            _ => {}
        }
    }
    let [(index, operator)] = &comparisons[..] else { return Err(format!("{expression}: not one comparison")) };
    match &tokens[index + 1..] {
        [(_, Token::Number(number))] => {
            let number = number.parse().map_err(|error| format!("{expression}: {error}"))?;
            Ok((expression[..tokens[*index].0].trim_end(), operator.clone(), number))
        }
        _ => Err(format!("{expression}: no number alone after {operator}")),
    }
}

/// `(a, b)`
fn parse_labels(rest: &mut &[Token]) -> Result<Vec<String>, String> {
    let end = rest.iter().position(|token| *token == Token::Sign(")".into())).ok_or("a list without an end")?;
    let (list, after) = rest.split_at(end + 1);
    *rest = after;
    let names = list.iter().filter_map(|token| match token {
        Token::Name(name) => Some(name.clone()),
        _ => None,
    });
    Ok(names.collect())
}

/// `{a="b", c=~"d"}`
fn parse_matchers(rest: &mut &[Token]) -> Result<Vec<(String, String, String)>, String> {
    let end = rest.iter().position(|token| *token == Token::Sign("}".into())).ok_or("matchers without an end")?;
    let (list, after) = rest.split_at(end + 1);
    *rest = after;
    list[1..end]
        .split(|token| *token == Token::Sign(",".into()))
        .filter(|matcher| !matcher.is_empty())
        .map(|matcher| match matcher {
            [Token::Name(label), Token::Sign(operator), Token::Text(value)] => {
                Ok((label.clone(), operator.clone(), value.clone()))
            }
            _ => Err(format!("{matcher:?} is no matcher")),
        })
        .collect()
}

/// The tokens, with their byte offsets.
fn tokens(expression: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut tokens = Vec::new();
    let mut rest = expression;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let as_long_as = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let length = match first {
            'a'..='z' | 'A'..='Z' | '_' | ':' => as_long_as(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':'),
            '0'..='9' | '.' => {
                let length = as_long_as(|c| c.is_ascii_digit() || c == '.' || c == 'e');
                // `1e+09`, as Prometheus writes it.
                let is_signed = rest[..length].ends_with('e') && rest[length..].starts_with(['+', '-']);
                let exponent = if is_signed { rest[length + 1..].find(|c: char| !c.is_ascii_digit()) } else { Some(0) };
                if is_signed { length + 1 + exponent.unwrap_or(rest.len() - length - 1) } else { length }
            }
            '"' => 2 + rest[1..].find('"').ok_or_else(|| format!("{expression}: a text without an end"))?,
            '[' => 1 + rest.find(']').ok_or_else(|| format!("{expression}: a window without an end"))?,
            '=' | '!' | '<' | '>' => as_long_as(|c| matches!(c, '=' | '!' | '<' | '>' | '~')),
            '(' | ')' | '{' | '}' | ',' | '+' | '-' | '*' | '/' => 1,
            _ => return Err(format!("{expression}: unexpected {first}")),
        };
        let text = &rest[..length];
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' | ':' => Token::Name(text.to_owned()),
            '0'..='9' | '.' => Token::Number(text.to_owned()),
            '"' if text.contains('\\') => return Err(format!("{expression}: {text} has an escape")),
            '"' => Token::Text(text[1..length - 1].to_owned()),
            '[' => Token::Window,
            _ => Token::Sign(text.to_owned()),
        };
        tokens.push((expression.len() - rest.len(), token));
        rest = &rest[length..];
    }
}

#[test]
fn the_series_that_an_expression_reads_are_found() {
    let reads =
        reads(r#"sum by (le, x) (rate(a_bucket{b="c", d=~"e|f"}[5m])) / (g or vector(0)) > 1e3"#).expect("it can be parsed");

    let matchers = vec![("b".into(), "=".into(), "c".into()), ("d".into(), "=~".into(), "e|f".into())];
    let [first, second] = &reads.selectors[..] else { panic!("{reads:?}") };
    assert_eq!(first, &Selector { metric: "a_bucket".into(), matchers });
    assert_eq!(second, &Selector { metric: "g".into(), matchers: Vec::new() });
    assert_eq!(reads.groups, [(vec!["le".to_owned(), "x".to_owned()], 0)]);
}

#[test]
fn an_alert_expression_is_split_at_its_comparison() {
    assert_eq!(split_comparison("a * (b == bool 0) > 20"), Ok(("a * (b == bool 0)", ">".to_owned(), 20.0)));
    assert_eq!(split_comparison("a < 1.5e+09"), Ok(("a", "<".to_owned(), 1.5e9)));
}

#[test]
fn an_expression_whose_meaning_a_split_would_change_is_rejected() {
    for expression in ["a", "a > 1 and b", "a and b > 1", "a > 1 > 2", "a > b", "a > 1 + b", "a > bool 1"] {
        assert!(split_comparison(expression).is_err(), "{expression}");
    }
}
