//! Removes the additions that tools leave around secrets: byte order marks, line endings and quotation marks. Rejects the form
//! `NAME=value`.

use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};

use super::Problem;

/// Quotation marks that shells remove and other programs keep.
const QUOTES: [(char, char); 4] = [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')];

/// The text within the quotation marks around a value. `None`: the value has none around it.
pub(super) fn unquoted(text: &str) -> Option<&str> {
    let text = text.trim();
    QUOTES.iter().find_map(|(open, close)| {
        let inside = text.strip_prefix(*open)?.strip_suffix(*close)?;
        (!inside.contains([*open, *close])).then(|| inside.trim())
    })
}

/// The text of a key file without a byte order mark.
pub(super) fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

/// A secret from the settings, or from the file that they name, with its key. `None`: neither is set.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(super) fn secret(
    (key, secret): (&'static str, Option<&SecretString>),
    (file_key, file): (&'static str, Option<&Path>),
) -> Result<Option<(&'static str, SecretString)>, Problem> {
    match (secret, file) {
        (Some(secret), _) => Ok(Some((key, secret.clone()))),
        (None, Some(path)) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some((file_key, text.into()))),
            Err(error) => Err(Problem::new(file_key, format!("{} cannot be read: {error}", path.display()))),
        },
        (None, None) => Ok(None),
    }
}

/// The first line of a secret. Further lines of a file are notes.
pub(super) fn first_line(secret: &SecretString) -> &str {
    secret.expose_secret().trim().lines().next().unwrap_or_default()
}

/// A secret without byte order mark, white space and quotation marks.
///
/// # Errors
/// Returns an error if the secret is written as `NAME=value`, or as JSON. The message never contains it.
pub(super) fn bare_secret<'a>(key: &str, text: &'a str) -> Result<&'a str, Problem> {
    let text = without_mark(text);
    let secret = unquoted(text).unwrap_or(text);
    if is_assignment(secret) || secret.starts_with('{') {
        return Err(Problem::new(key, "has a name before the secret, as in NAME=value; it must contain only the value"));
    }
    Ok(secret)
}

/// Whether a text is an assignment as in a shell or an env file. The `=` at the end of Base64 is none.
fn is_assignment(text: &str) -> bool {
    let text = text.strip_prefix("export ").unwrap_or(text).trim_start();
    let Some((name, value)) = text.split_once('=') else { return false };
    let name = name.trim_end();
    let is_name =
        !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let lower = name.to_lowercase();
    let names_a_secret = ["key", "token", "secret", "password"].iter().any(|word| lower.contains(word));
    let is_variable = name.contains('_') && lower.to_uppercase() == name;
    is_name && (names_a_secret || is_variable) && !value.trim_matches('=').is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_surrounds_a_secret_is_removed() {
        for text in ["sk-abc", " sk-abc\r\n", "\u{feff}sk-abc\n", "\"sk-abc\"\n", "'sk-abc'", "“sk-abc”", "\" sk-abc \""] {
            assert_eq!(bare_secret("api_key", text), Ok("sk-abc"), "{text:?}");
        }
        for text in ["", "\"", "a\"b\"c", "\"a\" \"b\"", "\"open", "c2VjcmV0==", "Zm9v=YmFy", "sk-proj_a=b"] {
            assert_eq!(bare_secret("api_key", text), Ok(text), "{text:?}");
        }
    }

    #[test]
    fn an_assignment_is_refused_without_its_value() {
        for text in [
            "OPENAI_API_KEY=sk-abc",
            "export OPENAI_API_KEY=\"sk-abc\"",
            "api_key = sk-abc",
            "\"TOKEN=sk-abc\"",
            "MY_BOT=sk-abc",
            "{\"api_key\":\"sk-abc\"}",
        ] {
            let problem = bare_secret("api_key_file", text).expect_err(text);

            assert_eq!(problem.key, "api_key_file");
            assert!(problem.message.contains("NAME=value") && !problem.message.contains("sk-abc"), "{problem}");
        }
    }
}
